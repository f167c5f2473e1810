WITH B_resident AS (
  /* B[DIM_0, dim_1], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(t.val, t.dim_0, 4, CAST(0 AS DOUBLE)) AS handle
  FROM main.B AS t
), C AS (
  /* C[I, k] = sum(A[I, J] * B[J, k]) */
  SELECT
    u.dim_0 AS i,
    tensor_sum_scaled(u.val, tensor_row(v.handle, u.dim_1, 5, CAST(0 AS DOUBLE))) AS val
  FROM main.A AS u
  CROSS JOIN B_resident AS v
  GROUP BY
    u.dim_0
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
