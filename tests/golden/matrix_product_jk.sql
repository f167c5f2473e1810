WITH A_by_dim_1 AS (
  /* A[dim_0, DIM_1] */
  SELECT
    t.dim_1,
    tensor_stack(t.val, t.dim_0, 3, CAST(0 AS DOUBLE)) AS val
  FROM main.A AS t
  GROUP BY
    t.dim_1
), A_resident AS (
  /* A[dim_0, DIM_1], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(t.val, t.dim_1, 4, CAST(0 AS DOUBLE)) AS handle
  FROM A_by_dim_1 AS t
), B_by_dim_0_dim_1 AS (
  /* B[DIM_0, DIM_1] */
  SELECT
    s.dim_0,
    s.dim_1,
    s.val
  FROM (
    SELECT
      t.dim_0,
      UNNEST(RANGE(5)) AS dim_1,
      UNNEST(t.val) AS val
    FROM main.B AS t
  ) AS s
), C AS (
  /* C[i, K] = sum(A[i, J] * B[J, K]) */
  SELECT
    v.dim_1 AS k,
    tensor_sum_scaled(v.val, tensor_row(u.handle, v.dim_0, 3, CAST(0 AS DOUBLE))) AS val
  FROM B_by_dim_0_dim_1 AS v
  CROSS JOIN A_resident AS u
  GROUP BY
    v.dim_1
)
/* C[I, K] */
SELECT
  s.i,
  s.k,
  s.val
FROM (
  SELECT
    t.k,
    UNNEST(RANGE(3)) AS i,
    UNNEST(t.val) AS val
  FROM C AS t
) AS s
WHERE
  s.val <> 0;
