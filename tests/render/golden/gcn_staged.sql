CREATE TEMPORARY TABLE T1 AS
WITH T0 AS (
  /* T0[I, K] = sum(D[I, J] * A[J, K]) */
  SELECT
    u.dim_0 AS i,
    v.dim_1 AS k,
    SUM(u.val * v.val) AS val
  FROM main.D AS u
  JOIN main.A AS v
    ON u.dim_1 = v.dim_0
  GROUP BY
    u.dim_0,
    v.dim_1
)
/* T1[I, L] = sum(T0[I, K] * D[K, L]) */
SELECT
  u.i,
  v.dim_1 AS l,
  SUM(u.val * v.val) AS val
FROM T0 AS u
JOIN main.D AS v
  ON u.k = v.dim_0
GROUP BY
  u.i,
  v.dim_1;

WITH T1_compressed AS (
  /* T1[I, L], ordered by l in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.l, t.i, 2708) AS handle
  FROM T1 AS t
), X_compressed AS (
  /* X[DIM_0, DIM_1], ordered by dim_1 in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.dim_1, t.dim_0, 1433) AS handle
  FROM main.X AS t
), T2 AS (
  /* T2[I, M] = sum(T1[I, L] * X[L, M]) */
  SELECT
    s.entry.position AS i,
    s.row_number AS m,
    s.entry.val AS val
  FROM (
    SELECT
      CAST(r.row_number AS INT) AS row_number,
      unnest(tensor_product_row('sum(u * v)', u.handle, r.row_number, v.handle, CAST(0 AS DOUBLE))) AS entry
    FROM tensor_row_numbers(1433, 22) AS r
    CROSS JOIN (
      SELECT DISTINCT
        handle
      FROM X_compressed
    ) AS u
    CROSS JOIN T1_compressed AS v
  ) AS s
), T2_compressed AS (
  /* T2[I, M], ordered by i in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.i, t.m, 2708) AS handle
  FROM T2 AS t
), W1_resident AS (
  /* W1[DIM_0, dim_1], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(reserved.handle, t.val, t.dim_0) AS handle
  FROM main.W1 AS t
  CROSS JOIN (
    SELECT
      tensor_reserved(1433, 256, CAST(0 AS DOUBLE), CAST(UUID() AS TEXT)) AS handle
  ) AS reserved
), T3 AS (
  /* T3[I, n] = sum(T2[I, M] * W1[M, n]) */
  SELECT
    s.row_number AS i,
    s.val AS val
  FROM (
    SELECT
      CAST(r.row_number AS INT) AS row_number,
      tensor_gather_sum(u.handle, r.row_number, v.handle, 256, CAST(0 AS DOUBLE)) AS val
    FROM tensor_row_numbers(2708, 256) AS r
    CROSS JOIN (
      SELECT DISTINCT
        handle
      FROM T2_compressed
    ) AS u
    CROSS JOIN W1_resident AS v
  ) AS s
  WHERE
    NOT s.val IS NULL
), H AS (
  /* H[I, n] = sigmoid(T3[I, n]) */
  SELECT
    u.i,
    tensor_map('sigmoid', u.val) AS val
  FROM T3 AS u
), T1_compressed_2 AS (
  /* T1[I, L], ordered by i in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.i, t.l, 2708) AS handle
  FROM T1 AS t
), H_resident AS (
  /* H[I, n], all tuples in one array in memory while the statement runs */
  SELECT
    tensor_resident(reserved.handle, t.val, t.i) AS handle
  FROM H AS t
  CROSS JOIN (
    SELECT
      tensor_reserved(2708, 256, CAST(0.5 AS DOUBLE), CAST(UUID() AS TEXT)) AS handle
  ) AS reserved
), T4 AS (
  /* T4[I, n] = sum(T1[I, L] * H[L, n]) */
  SELECT
    s.row_number AS i,
    s.val AS val
  FROM (
    SELECT
      CAST(r.row_number AS INT) AS row_number,
      tensor_gather_sum(u.handle, r.row_number, v.handle, 256, CAST(0.5 AS DOUBLE)) AS val
    FROM (
      SELECT
        range AS row_number
      FROM RANGE(0, 2708)
    ) AS r
    CROSS JOIN T1_compressed_2 AS u
    CROSS JOIN H_resident AS v
  ) AS s
  WHERE
    NOT s.val IS NULL
), W2_whole AS (
  /* W2[dim_0, dim_1] */
  SELECT
    COALESCE(
      tensor_stack(t.val, t.dim_0, 256, 16, CAST(0 AS DOUBLE)),
      tensor_fill(4096 + COUNT(*), CAST(0 AS DOUBLE))
    ) AS val
  FROM main.W2 AS t
), T5 AS (
  /* T5[I, o] = sum(T4[I, n] * W2[n, o]) */
  SELECT
    u.i,
    tensor_matmul(u.val, v.val, [1, 256, 16]) AS val
  FROM T4 AS u
  CROSS JOIN W2_whole AS v
), Y AS MATERIALIZED (
  /* Y[I, o] = sigmoid(T5[I, o]) */
  SELECT
    u.i,
    tensor_map('sigmoid', u.val) AS val
  FROM T5 AS u
)
/* Y[I, O] */
/* what has no row holds 0.5 */
SELECT
  s.i,
  s.o,
  s.val
FROM (
  SELECT
    t.i,
    UNNEST(RANGE(16)) AS o,
    UNNEST(t.val) AS val
  FROM Y AS t
) AS s
WHERE
  s.val <> 0.5;
