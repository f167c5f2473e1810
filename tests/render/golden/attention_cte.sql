WITH T0 AS (
  /* T0[I, k] = sum(X[I, M] * WQ[M, k]) */
  SELECT
    u.dim_0 AS i,
    tensor_sum_scaled(u.val, v.val) AS val
  FROM main.X AS u
  JOIN (
    SELECT
      t.dim_0,
      t.val
    FROM main.WQ AS t
    UNION ALL
    SELECT
      NULL,
      NULL
    FROM tensor_no_tuples()
  ) AS v
    ON u.dim_1 = v.dim_0
  GROUP BY
    u.dim_0
), T1 AS (
  /* T1[J, k] = sum(X[J, N] * WK[N, k]) */
  SELECT
    u.dim_0 AS j,
    tensor_sum_scaled(u.val, v.val) AS val
  FROM main.X AS u
  JOIN (
    SELECT
      t.dim_0,
      t.val
    FROM main.WK AS t
    UNION ALL
    SELECT
      NULL,
      NULL
    FROM tensor_no_tuples()
  ) AS v
    ON u.dim_1 = v.dim_0
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
), T1_resident AS (
  /* T1[J, k], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(t.val, t.j, 2708, CAST(0 AS DOUBLE)) AS handle
  FROM T1 AS t
), T3 AS (
  /* T3[I, J] = sum(T2[I, J, k] * T1[J, k]) */
  SELECT
    u.i,
    u.j,
    tensor_dot(u.val, tensor_row(v.handle, u.j, 1024, CAST(0 AS DOUBLE))) AS val
  FROM T2 AS u
  CROSS JOIN T1_resident AS v
)
/* S[I, J] = T3[I, J] / 32.0 */
SELECT
  u.i,
  u.j,
  u.val / 32.0 AS val
FROM T3 AS u;
