WITH B_by_dim_0_dim_1 AS (
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
)
/* C[I, K] = sum(A[I, J] * B[J, K]) */
SELECT
  u.dim_0 AS i,
  v.dim_1 AS k,
  SUM(u.val * v.val) AS val
FROM main.A AS u
JOIN B_by_dim_0_dim_1 AS v
  ON u.dim_1 = v.dim_0
GROUP BY
  u.dim_0,
  v.dim_1;
