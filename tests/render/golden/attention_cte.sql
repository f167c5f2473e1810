WITH X_compressed AS MATERIALIZED (
  /* X[DIM_0, DIM_1], ordered by dim_0 in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.dim_0, t.dim_1, 2708) AS handle
  FROM main.X AS t
), WQ_resident AS (
  /* WQ[DIM_0, dim_1], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(reserved.handle, t.val, t.dim_0) AS handle
  FROM main.WQ AS t
  CROSS JOIN (
    SELECT
      tensor_reserved(1433, 1024, CAST(0 AS DOUBLE), CAST(UUID() AS TEXT)) AS handle
  ) AS reserved
), T0 AS (
  /* T0[I, k] = sum(X[I, M] * WQ[M, k]) */
  SELECT
    s.row_number AS i,
    s.val AS val
  FROM (
    SELECT
      CAST(r.row_number AS INT) AS row_number,
      tensor_gather_sum(u.handle, r.row_number, v.handle, 1024, CAST(0 AS DOUBLE)) AS val
    FROM tensor_row_numbers(2708, 64) AS r
    CROSS JOIN (
      SELECT DISTINCT
        handle
      FROM X_compressed
    ) AS u
    CROSS JOIN WQ_resident AS v
  ) AS s
  WHERE
    NOT s.val IS NULL
), WK_resident AS (
  /* WK[DIM_0, dim_1], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(reserved.handle, t.val, t.dim_0) AS handle
  FROM main.WK AS t
  CROSS JOIN (
    SELECT
      tensor_reserved(1433, 1024, CAST(0 AS DOUBLE), CAST(UUID() AS TEXT)) AS handle
  ) AS reserved
), T1 AS (
  /* T1[J, k] = sum(X[J, N] * WK[N, k]) */
  SELECT
    s.row_number AS j,
    s.val AS val
  FROM (
    SELECT
      CAST(r.row_number AS INT) AS row_number,
      tensor_gather_sum(u.handle, r.row_number, v.handle, 1024, CAST(0 AS DOUBLE)) AS val
    FROM tensor_row_numbers(2708, 64) AS r
    CROSS JOIN (
      SELECT DISTINCT
        handle
      FROM X_compressed
    ) AS u
    CROSS JOIN WK_resident AS v
  ) AS s
  WHERE
    NOT s.val IS NULL
), T0_resident AS (
  /* T0[I, k], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(reserved.handle, t.val, t.i) AS handle
  FROM T0 AS t
  CROSS JOIN (
    SELECT
      tensor_reserved(2708, 1024, CAST(0 AS DOUBLE), CAST(UUID() AS TEXT)) AS handle
  ) AS reserved
), T1_resident AS (
  /* T1[J, k], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(reserved.handle, t.val, t.j) AS handle
  FROM T1 AS t
  CROSS JOIN (
    SELECT
      tensor_reserved(2708, 1024, CAST(0 AS DOUBLE), CAST(UUID() AS TEXT)) AS handle
  ) AS reserved
), T3 AS (
  /* T3[I, J] = sum(T2[I, J, k] * T1[J, k]) */
  SELECT
    u.dim_0 AS i,
    u.dim_1 AS j,
    tensor_scaled_dot(u.val, v.handle, u.dim_0, w.handle, u.dim_1, 1024) AS val
  FROM main.A AS u
  CROSS JOIN T0_resident AS v
  CROSS JOIN T1_resident AS w
)
/* S[I, J] = T3[I, J] / 32.0 */
SELECT
  u.i,
  u.j,
  u.val / 32.0 AS val
FROM T3 AS u;
