WITH A_compressed AS (
  /* A[DIM_0, DIM_1], ordered by dim_0 in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.dim_0, t.dim_1, 30) AS handle
  FROM main.A AS t
), B_resident AS (
  /* B[DIM_0, dim_1], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(t.val, t.dim_0, 4, CAST(0 AS DOUBLE)) AS handle
  FROM main.B AS t
), C AS (
  /* C[I, k] = sum(A[I, J] * B[J, k]) */
  SELECT
    s.row_number AS i,
    COALESCE(s.val, tensor_fill(5, CAST(0 AS DOUBLE))) AS val
  FROM (
    SELECT
      CAST(r.row_number AS INT) AS row_number,
      tensor_gather_sum(u.handle, r.row_number, v.handle, 5, CAST(0 AS DOUBLE)) AS val
    FROM (
      SELECT
        range AS row_number
      FROM RANGE(0, 30)
    ) AS r
    CROSS JOIN A_compressed AS u
    CROSS JOIN B_resident AS v
  ) AS s
)
/* C[I, K] */
SELECT
  s.i,
  s.k,
  s.val
FROM (
  SELECT
    t.i,
    UNNEST(RANGE(5)) AS k,
    UNNEST(t.val) AS val
  FROM C AS t
) AS s
WHERE
  s.val <> 0;
