WITH WQ_resident AS (
  /* WQ[DIM_0, dim_1], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(t.val, t.dim_0, 1433, CAST(0 AS DOUBLE)) AS handle
  FROM main.WQ AS t
), T0 AS (
  /* T0[I, k] = sum(X[I, M] * WQ[M, k]) */
  SELECT
    u.dim_0 AS i,
    tensor_sum_scaled(u.val, tensor_row(v.handle, u.dim_1, 1024, CAST(0 AS DOUBLE))) AS val
  FROM main.X AS u
  CROSS JOIN WQ_resident AS v
  GROUP BY
    u.dim_0
), WK_resident AS (
  /* WK[DIM_0, dim_1], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(t.val, t.dim_0, 1433, CAST(0 AS DOUBLE)) AS handle
  FROM main.WK AS t
), T1 AS (
  /* T1[J, k] = sum(X[J, N] * WK[N, k]) */
  SELECT
    u.dim_0 AS j,
    tensor_sum_scaled(u.val, tensor_row(v.handle, u.dim_1, 1024, CAST(0 AS DOUBLE))) AS val
  FROM main.X AS u
  CROSS JOIN WK_resident AS v
  GROUP BY
    u.dim_0
), T2 AS (
  /* T2[I, J, k] = T0[I, k] * A[I, J] */
  SELECT
    u.i,
    v.dim_1 AS j,
    tensor_scale(v.val, u.val) AS val
  FROM (
    SELECT
      t.i,
      t.val
    FROM T0 AS t
    UNION ALL
    SELECT
      NULL,
      NULL
    FROM tensor_no_tuples()
  ) AS u
  JOIN main.A AS v
    ON u.i = v.dim_0
), T3 AS (
  /* T3[I, J] = sum(T2[I, J, k] * T1[J, k]) */
  SELECT
    u.i,
    u.j,
    tensor_dot(u.val, v.val) AS val
  FROM (
    SELECT
      t.i,
      t.j,
      t.val
    FROM T2 AS t
    UNION ALL
    SELECT
      NULL,
      NULL,
      NULL
    FROM tensor_no_tuples()
  ) AS u
  JOIN T1 AS v
    ON u.j = v.j
)
/* S[I, J] = T3[I, J] / 32.0 */
SELECT
  u.i,
  u.j,
  u.val / 32.0 AS val
FROM T3 AS u;
