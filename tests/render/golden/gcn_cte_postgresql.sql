WITH "T0" AS (
  /* T0[I, K] = sum(D[I, J] * A[J, K]) */
  SELECT
    u.dim_0 AS i,
    v.dim_1 AS k,
    tensor_sum(tensor_mul(u.val, v.val)) AS val
  FROM main.d AS u
  JOIN main.a AS v
    ON u.dim_1 = v.dim_0
  GROUP BY
    u.dim_0,
    v.dim_1
), "T1" AS MATERIALIZED (
  /* T1[I, L] = sum(T0[I, K] * D[K, L]) */
  SELECT
    u.i,
    v.dim_1 AS l,
    tensor_sum(tensor_mul(u.val, v.val)) AS val
  FROM "T0" AS u
  JOIN main.d AS v
    ON u.k = v.dim_0
  GROUP BY
    u.i,
    v.dim_1
), "X_by_dim_0" AS (
  /* X[DIM_0, dim_1] */
  SELECT
    t.dim_0,
    tensor_stack(t.val, t.dim_1, 1433, CAST(0 AS DOUBLE PRECISION)) AS val
  FROM main.x AS t
  GROUP BY
    t.dim_0
), "T2" AS (
  /* T2[I, m] = sum(T1[I, L] * X[L, m]) */
  SELECT
    u.i,
    tensor_sum_scaled(u.val, v.val) AS val
  FROM "T1" AS u
  JOIN "X_by_dim_0" AS v
    ON u.l = v.dim_0
  GROUP BY
    u.i
), "W1_whole" AS (
  /* W1[dim_0, dim_1] */
  SELECT
    COALESCE(
      tensor_stack(t.val, t.dim_0, 1433, 256, CAST(0 AS DOUBLE PRECISION)),
      tensor_fill(366848 + COUNT(*), CAST(0 AS DOUBLE PRECISION))
    ) AS val
  FROM main.w1 AS t
), "T3" AS (
  /* T3[I, n] = sum(T2[I, m] * W1[m, n]) */
  SELECT
    u.i,
    tensor_matmul(u.val, v.val, ARRAY[1, 1433, 256]) AS val
  FROM "T2" AS u
  JOIN "W1_whole" AS v
    ON (
      u.i IS NULL
    ) = (
      v.val IS NULL
    )
), "H" AS (
  /* H[I, n] = sigmoid(T3[I, n]) */
  SELECT
    u.i,
    tensor_map('sigmoid', u.val) AS val
  FROM "T3" AS u
), "H_by_i_dense" AS (
  /* H[I, n], every tuple present */
  SELECT
    g.position AS i,
    COALESCE(t.val, tensor_fill(256, CAST(0.5 AS DOUBLE PRECISION))) AS val
  FROM (
    SELECT
      range AS position
    FROM GENERATE_SERIES(CAST(0 AS BIGINT), 2707) AS range(range)
  ) AS g
  LEFT JOIN "H" AS t
    ON t.i = g.position
  ORDER BY
    CAST(NULL AS INT)
), "T4" AS (
  /* T4[I, n] = sum(T1[I, L] * H[L, n]) */
  SELECT
    u.i,
    tensor_sum_scaled(u.val, v.val) AS val
  FROM "T1" AS u
  JOIN "H_by_i_dense" AS v
    ON u.l = v.i
  GROUP BY
    u.i
), "W2_whole" AS (
  /* W2[dim_0, dim_1] */
  SELECT
    COALESCE(
      tensor_stack(t.val, t.dim_0, 256, 16, CAST(0 AS DOUBLE PRECISION)),
      tensor_fill(4096 + COUNT(*), CAST(0 AS DOUBLE PRECISION))
    ) AS val
  FROM main.w2 AS t
), "T5" AS (
  /* T5[I, o] = sum(T4[I, n] * W2[n, o]) */
  SELECT
    u.i,
    tensor_matmul(u.val, v.val, ARRAY[1, 256, 16]) AS val
  FROM "T4" AS u
  JOIN "W2_whole" AS v
    ON (
      u.i IS NULL
    ) = (
      v.val IS NULL
    )
), "Y" AS (
  /* Y[I, o] = sigmoid(T5[I, o]) */
  SELECT
    u.i,
    tensor_map('sigmoid', u.val) AS val
  FROM "T5" AS u
  ORDER BY
    CAST(NULL AS INT)
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
    GENERATE_SERIES(0, 15) AS o,
    UNNEST(t.val) AS val
  FROM "Y" AS t
) AS s
WHERE
  s.val <> CAST(0.5 AS DOUBLE PRECISION);
