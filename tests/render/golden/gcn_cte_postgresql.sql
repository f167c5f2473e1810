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
), "T1_compressed" AS (
  /* T1[I, L], ordered by l in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.l, t.i, 2708) AS handle
  FROM "T1" AS t
), "X_compressed" AS (
  /* X[DIM_0, DIM_1], ordered by dim_1 in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.dim_1, t.dim_0, 1433) AS handle
  FROM main.x AS t
), "T2" AS (
  /* T2[I, M] = sum(T1[I, L] * X[L, M]) */
  SELECT
    s.position AS i,
    s.row_number AS m,
    s.val AS val
  FROM (
    SELECT
      e.row_number,
      unnest(tensor_of_bytes(SUBSTR(e.entry, 1, OCTET_LENGTH(e.entry) / 16 * 8), CAST(0 AS BIGINT))) AS position,
      unnest(tensor_of_bytes(SUBSTR(e.entry, OCTET_LENGTH(e.entry) / 16 * 8 + 1), CAST(0 AS DOUBLE PRECISION))) AS val
    FROM (
      SELECT
        CAST(r.row_number AS INT) AS row_number,
        tensor_product_row(
          'sum(u * v)',
          (
            SELECT
              handle
            FROM "X_compressed" AS only_row
          ),
          r.row_number,
          (
            SELECT
              handle
            FROM "T1_compressed" AS only_row
          ),
          CAST(0 AS DOUBLE PRECISION)
        ) AS entry
      FROM (
        SELECT
          range AS row_number
        FROM GENERATE_SERIES(CAST(0 AS BIGINT), 1432) AS range(range)
      ) AS r
      OFFSET 0
    ) AS e
  ) AS s
), "T2_compressed" AS (
  /* T2[I, M], ordered by i in memory while the statement runs */
  SELECT
    s.i,
    ARRAY_AGG(s.positions) AS positions,
    ARRAY_AGG(s.val) AS val
  FROM (
    SELECT
      t.i AS i,
      CAST(t.m AS INT) AS positions,
      t.val AS val
    FROM "T2" AS t
    ORDER BY
      t.i
  ) AS s
  GROUP BY
    s.i
), "W1_resident" AS (
  /* W1[DIM_0, dim_1], all tuples in one array in memory while the statement runs */
  SELECT
    COALESCE(
      tensor_stack(t.val, t.dim_0, 1433, 256, CAST(0 AS DOUBLE PRECISION)),
      tensor_fill(1433 * 256 + COUNT(*), CAST(0 AS DOUBLE PRECISION))
    ) AS handle
  FROM (
    SELECT
      *
    FROM main.w1 AS u
    LIMIT 9223372036854775807
  ) AS t
), "T3" AS (
  /* T3[I, n] = sum(T2[I, M] * W1[M, n]) */
  SELECT
    u.i,
    tensor_gather_sum(u.val, u.positions, (
      SELECT
        handle
      FROM "W1_resident" AS only_row
    ), 256) AS val
  FROM "T2_compressed" AS u
), "H" AS (
  /* H[I, n] = sigmoid(T3[I, n]) */
  SELECT
    u.i,
    tensor_map('sigmoid', u.val) AS val
  FROM "T3" AS u
), "T1_compressed_2" AS (
  /* T1[I, L], ordered by i in memory while the statement runs */
  SELECT
    s.i,
    ARRAY_AGG(s.positions) AS positions,
    ARRAY_AGG(s.val) AS val
  FROM (
    SELECT
      t.i AS i,
      CAST(t.l AS INT) AS positions,
      t.val AS val
    FROM "T1" AS t
    ORDER BY
      t.i
  ) AS s
  GROUP BY
    s.i
), "H_resident" AS (
  /* H[I, n], all tuples in one array in memory while the statement runs */
  SELECT
    COALESCE(
      tensor_stack(t.val, t.i, 2708, 256, CAST(0.5 AS DOUBLE PRECISION)),
      tensor_fill(2708 * 256 + COUNT(*), CAST(0.5 AS DOUBLE PRECISION))
    ) AS handle
  FROM (
    SELECT
      *
    FROM "H" AS u
    LIMIT 9223372036854775807
  ) AS t
), "T4" AS (
  /* T4[I, n] = sum(T1[I, L] * H[L, n]) */
  SELECT
    u.i,
    tensor_gather_sum(u.val, u.positions, (
      SELECT
        handle
      FROM "H_resident" AS only_row
    ), 256) AS val
  FROM "T1_compressed_2" AS u
  ORDER BY
    CAST(NULL AS INT)
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
