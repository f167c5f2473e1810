WITH "D_compressed" AS MATERIALIZED (
  /* D[DIM_0, DIM_1], ordered by dim_0 in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.dim_0, t.dim_1, 2708) AS handle
  FROM main.d AS t
), "A_compressed" AS (
  /* A[DIM_0, DIM_1], ordered by dim_0 in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.dim_0, t.dim_1, 2708) AS handle
  FROM main.a AS t
), "T0_compressed" AS (
  /* T0[I, K], ordered by i in memory while the statement runs */
  SELECT
    tensor_product_rows(
      'sum(u * v)',
      (
        SELECT
          handle
        FROM "D_compressed" AS only_row
      ),
      (
        SELECT
          handle
        FROM "A_compressed" AS only_row
      ),
      CAST(0 AS DOUBLE PRECISION)
    ) AS handle
), "T1_compressed" AS MATERIALIZED (
  /* T1[I, L], ordered by i in memory while the statement runs */
  SELECT
    tensor_product_rows(
      'sum(u * v)',
      (
        SELECT
          handle
        FROM "T0_compressed" AS only_row
      ),
      (
        SELECT
          handle
        FROM "D_compressed" AS only_row
      ),
      CAST(0 AS DOUBLE PRECISION)
    ) AS handle
), "X_compressed" AS (
  /* X[DIM_0, DIM_1], ordered by dim_0 in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.dim_0, t.dim_1, 2708) AS handle
  FROM main.x AS t
), "T2_compressed" AS (
  /* T2[I, M], ordered by i in memory while the statement runs */
  SELECT
    tensor_product_rows(
      'sum(u * v)',
      (
        SELECT
          handle
        FROM "T1_compressed" AS only_row
      ),
      (
        SELECT
          handle
        FROM "X_compressed" AS only_row
      ),
      CAST(0 AS DOUBLE PRECISION)
    ) AS handle
), "W1_whole" AS (
  /* W1[dim_0, dim_1] */
  SELECT
    COALESCE(
      tensor_stack(t.val, t.dim_0, 1433, 256, CAST(0 AS DOUBLE PRECISION)),
      tensor_fill(366848 + COUNT(*), CAST(0 AS DOUBLE PRECISION))
    ) AS val
  FROM main.w1 AS t
), "T3" AS (
  /* T3[i, n] = sum(T2[i, m] * W1[m, n]) */
  SELECT
    tensor_sparse_matmul(u.handle, 2708, v.val, 256) AS val
  FROM "W1_whole" AS v
  CROSS JOIN "T2_compressed" AS u
), "H" AS (
  /* H[i, n] = sigmoid(T3[i, n]) */
  SELECT
    tensor_map('sigmoid', u.val) AS val
  FROM "T3" AS u
), "T4" AS (
  /* T4[i, n] = sum(T1[i, l] * H[l, n]) */
  SELECT
    tensor_sparse_matmul(u.handle, 2708, v.val, 256) AS val
  FROM "H" AS v
  CROSS JOIN "T1_compressed" AS u
), "W2_whole" AS (
  /* W2[dim_0, dim_1] */
  SELECT
    COALESCE(
      tensor_stack(t.val, t.dim_0, 256, 16, CAST(0 AS DOUBLE PRECISION)),
      tensor_fill(4096 + COUNT(*), CAST(0 AS DOUBLE PRECISION))
    ) AS val
  FROM main.w2 AS t
), "T5" AS (
  /* T5[i, o] = sum(T4[i, n] * W2[n, o]) */
  SELECT
    tensor_matmul(u.val, v.val, ARRAY[2708, 256, 16]) AS val
  FROM "T4" AS u
  CROSS JOIN "W2_whole" AS v
), "Y" AS (
  /* Y[i, o] = sigmoid(T5[i, o]) */
  SELECT
    tensor_map('sigmoid', u.val) AS val
  FROM "T5" AS u
  ORDER BY
    CAST(NULL AS INT)
)
/* Y[I, O] */
/* what has no row holds 0.5 */
SELECT
  s.position / 16 AS i,
  s.position % 16 AS o,
  s.val
FROM (
  SELECT
    GENERATE_SERIES(0, CARDINALITY(t.val) - 1) AS position,
    UNNEST(t.val) AS val
  FROM "Y" AS t
) AS s
WHERE
  s.val <> CAST(0.5 AS DOUBLE PRECISION);
