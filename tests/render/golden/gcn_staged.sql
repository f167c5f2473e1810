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
), T1_compressed_2 AS (
  /* T1[I, L], ordered by i in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.i, t.l, 2708) AS handle
  FROM T1 AS t
), W2_whole AS (
  /* W2[dim_0, dim_1] */
  SELECT
    COALESCE(
      tensor_stack(t.val, t.dim_0, 256, 16, CAST(0 AS DOUBLE)),
      tensor_fill(4096 + COUNT(*), CAST(0 AS DOUBLE))
    ) AS val
  FROM main.W2 AS t
), Y AS (
  /* T3[i, n] = sum(T2[i, m] * W1[m, n]); H[i, n] = sigmoid(T3[i, n]); T4[i, n] = sum(T1[i, l] * H[l, n]); T5[i, o] = sum(T4[i, n] * W2[n, o]); Y[i, o] = sigmoid(T5[i, o]) */
  SELECT
    tensor_map('sigmoid', t.value_8) AS val
  FROM (
    SELECT
      tensor_matmul(t.value_7, t.value_4, [2708, 256, 16]) AS value_8
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
              tensor_row(r2.handle, 0, 366848, CAST(0 AS DOUBLE)) AS value_2,
              r3.handle AS value_3,
              r4.val AS value_4
            FROM T2_compressed AS r1
            CROSS JOIN W1_resident AS r2
            CROSS JOIN T1_compressed_2 AS r3
            CROSS JOIN W2_whole AS r4
          ) AS t
        ) AS t
      ) AS t
    ) AS t
  ) AS t
)
/* Y[I, O] */
/* what has no row holds 0.5 */
SELECT
  s.position // 16 AS i,
  s.position % 16 AS o,
  s.val
FROM (
  SELECT
    UNNEST(RANGE(LEN(t.val))) AS position,
    UNNEST(t.val) AS val
  FROM Y AS t
) AS s
WHERE
  s.val <> 0.5;
