WITH A_by_dim_0 AS (
  /* A[DIM_0, dim_1] */
  SELECT
    t.dim_0,
    tensor_stack(t.val, t.dim_1, 4, CAST(0 AS DOUBLE)) AS val
  FROM main.A AS t
  GROUP BY
    t.dim_0
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
), B_by_dim_1 AS (
  /* B[dim_0, DIM_1] */
  SELECT
    t.dim_1,
    tensor_stack(t.val, t.dim_0, 4, CAST(0 AS DOUBLE)) AS val
  FROM B_by_dim_0_dim_1 AS t
  GROUP BY
    t.dim_1
)
/* C[I, K] = sum(A[I, j] * B[j, K]) */
SELECT
  u.dim_0 AS i,
  v.dim_1 AS k,
  tensor_dot(u.val, v.val) AS val
FROM A_by_dim_0 AS u
CROSS JOIN B_by_dim_1 AS v;
