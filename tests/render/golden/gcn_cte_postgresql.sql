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
  FROM (
    SELECT
      *
    FROM main.w1 AS u
    LIMIT 9223372036854775807
  ) AS t
), "W2_whole" AS (
  /* W2[dim_0, dim_1] */
  SELECT
    COALESCE(
      tensor_stack(t.val, t.dim_0, 256, 16, CAST(0 AS DOUBLE PRECISION)),
      tensor_fill(4096 + COUNT(*), CAST(0 AS DOUBLE PRECISION))
    ) AS val
  FROM main.w2 AS t
), "Y" AS (
  /* T3[i, n] = sum(T2[i, m] * W1[m, n]); H[i, n] = sigmoid(T3[i, n]); T4[i, n] = sum(T1[i, l] * H[l, n]); T5[i, o] = sum(T4[i, n] * W2[n, o]); Y[i, o] = sigmoid(T5[i, o]) */
  SELECT
    tensor_map('sigmoid', t.value_8) AS val
  FROM (
    SELECT
      tensor_matmul(t.value_7, t.value_4, ARRAY[2708, 256, 16]) AS value_8
    FROM (
      SELECT
        t.value_4,
        tensor_sparse_matmul(t.value_3, 2708, t.value_6, 256) AS value_7
      FROM (
        SELECT
          t.value_3,
          t.value_4,
          tensor_map('sigmoid', t.value_5) AS value_6
        FROM (
          SELECT
            t.value_3,
            t.value_4,
            tensor_sparse_matmul(t.value_1, 2708, t.value_2, 256) AS value_5
          FROM (
            SELECT
              r1.handle AS value_1,
              r2.val AS value_2,
              r3.handle AS value_3,
              r4.val AS value_4
            FROM "T2_compressed" AS r1
            CROSS JOIN "W1_whole" AS r2
            CROSS JOIN "T1_compressed" AS r3
            CROSS JOIN "W2_whole" AS r4
            OFFSET 0
          ) AS t
          OFFSET 0
        ) AS t
        OFFSET 0
      ) AS t
      OFFSET 0
    ) AS t
    OFFSET 0
  ) AS t
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
