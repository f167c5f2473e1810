CREATE UNLOGGED TABLE "D_by_dim_0_dim_1_1" (
  dim_0 BIGINT,
  dim_1 BIGINT,
  val DOUBLE PRECISION
);

SELECT
  create_distributed_table('"D_by_dim_0_dim_1_1"', 'dim_1');

INSERT INTO "D_by_dim_0_dim_1_1"
SELECT
  t.dim_0,
  t.dim_1,
  t.val
FROM main."D" AS t;

CREATE UNLOGGED TABLE "T0" (
  i BIGINT,
  k BIGINT,
  val DOUBLE PRECISION
);

SELECT
  create_distributed_table('"T0"', 'i');

INSERT INTO "T0"
/* T0[I, K] = sum(D[I, J] * A[J, K]) */
SELECT
  u.dim_0 AS i,
  v.dim_1 AS k,
  tensor_sum(tensor_mul(u.val, v.val)) AS val
FROM "D_by_dim_0_dim_1_1" AS u
JOIN main."A" AS v
  ON u.dim_1 = v.dim_0
GROUP BY
  u.dim_0,
  v.dim_1;

CREATE UNLOGGED TABLE "T0_by_cell_i_k_1" (
  cell BIGINT,
  i BIGINT,
  k BIGINT,
  val DOUBLE PRECISION
);

SELECT
  create_distributed_table('"T0_by_cell_i_k_1"', 'cell');

INSERT INTO "T0_by_cell_i_k_1"
/* T0[CELL, I, K], each tuple in 1 of 2 cells */
SELECT
  CAST((
    ARRAY[1, 0]
  )[(
    t.i % 2
  ) + 1] AS BIGINT) AS cell,
  t.i,
  t.k,
  t.val
FROM "T0" AS t;

CREATE UNLOGGED TABLE "D_by_cell_dim_0_dim_1_1" (
  cell BIGINT,
  dim_0 BIGINT,
  dim_1 BIGINT,
  val DOUBLE PRECISION
);

SELECT
  create_distributed_table('"D_by_cell_dim_0_dim_1_1"', 'cell');

INSERT INTO "D_by_cell_dim_0_dim_1_1"
/* D[CELL, DIM_0, DIM_1], each tuple in 2 of 2 cells */
SELECT
  CAST((
    ARRAY[1, 0]
  )[g0.piece + 1] AS BIGINT) AS cell,
  t.dim_0,
  t.dim_1,
  t.val
FROM main."D" AS t
CROSS JOIN (
  SELECT
    range AS piece
  FROM GENERATE_SERIES(CAST(0 AS BIGINT), 1) AS range(range)
) AS g0;

CREATE UNLOGGED TABLE "T1" (
  cell BIGINT,
  i BIGINT,
  l BIGINT,
  val DOUBLE PRECISION
);

SELECT
  create_distributed_table('"T1"', 'cell');

INSERT INTO "T1"
/* T1[I, L] = sum(T0[I, K] * D[K, L]) */
SELECT
  u.cell,
  u.i,
  v.dim_1 AS l,
  tensor_sum(tensor_mul(u.val, v.val)) AS val
FROM "T0_by_cell_i_k_1" AS u
JOIN "D_by_cell_dim_0_dim_1_1" AS v
  ON u.cell = v.cell AND u.k = v.dim_0
GROUP BY
  u.cell,
  u.i,
  v.dim_1;

CREATE UNLOGGED TABLE "X_by_cell_dim_0_dim_1_1" (
  cell BIGINT,
  dim_0 BIGINT,
  dim_1 BIGINT,
  val DOUBLE PRECISION
);

SELECT
  create_distributed_table('"X_by_cell_dim_0_dim_1_1"', 'cell');

INSERT INTO "X_by_cell_dim_0_dim_1_1"
/* X[CELL, DIM_0, DIM_1], each tuple in 2 of 2 cells */
SELECT
  CAST((
    ARRAY[1, 0]
  )[g0.piece + 1] AS BIGINT) AS cell,
  t.dim_0,
  t.dim_1,
  t.val
FROM main."X" AS t
CROSS JOIN (
  SELECT
    range AS piece
  FROM GENERATE_SERIES(CAST(0 AS BIGINT), 1) AS range(range)
) AS g0;

CREATE UNLOGGED TABLE "T2" (
  cell BIGINT,
  i BIGINT,
  m BIGINT,
  val DOUBLE PRECISION
);

SELECT
  create_distributed_table('"T2"', 'cell');

INSERT INTO "T2"
/* T2[I, M] = sum(T1[I, L] * X[L, M]) */
SELECT
  u.cell,
  u.i,
  v.dim_1 AS m,
  tensor_sum(tensor_mul(u.val, v.val)) AS val
FROM "T1" AS u
JOIN "X_by_cell_dim_0_dim_1_1" AS v
  ON u.cell = v.cell AND u.l = v.dim_0
GROUP BY
  u.cell,
  u.i,
  v.dim_1;

CREATE UNLOGGED TABLE "W1_by_cell_dim_0_1" (
  cell BIGINT,
  dim_0 BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"W1_by_cell_dim_0_1"', 'cell');

INSERT INTO "W1_by_cell_dim_0_1"
/* W1[CELL, DIM_0, dim_1], each tuple in 2 of 2 cells */
SELECT
  CAST((
    ARRAY[1, 0]
  )[g0.piece + 1] AS BIGINT) AS cell,
  t.dim_0,
  tensor_bytes(t.val) AS val
FROM main."W1" AS t
CROSS JOIN (
  SELECT
    range AS piece
  FROM GENERATE_SERIES(CAST(0 AS BIGINT), 1) AS range(range)
) AS g0;

CREATE UNLOGGED TABLE "T3" (
  cell BIGINT,
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"T3"', 'cell');

INSERT INTO "T3"
/* T3[I, n] = sum(T2[I, M] * W1[M, n]) */
SELECT
  u.cell,
  u.i,
  tensor_bytes(tensor_sum_scaled(u.val, tensor_of_bytes(v.val, CAST(0 AS DOUBLE PRECISION)))) AS val
FROM "T2" AS u
JOIN "W1_by_cell_dim_0_1" AS v
  ON u.cell = v.cell AND u.m = v.dim_0
GROUP BY
  u.cell,
  u.i;

CREATE UNLOGGED TABLE "T3_by_i_1" (
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"T3_by_i_1"', 'i');

INSERT INTO "T3_by_i_1"
/* T3[I, n] */
SELECT
  t.i,
  t.val
FROM "T3" AS t;

CREATE UNLOGGED TABLE "H" (
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"H"', 'i');

INSERT INTO "H"
/* H[I, n] = sigmoid(T3[I, n]) */
SELECT
  u.i,
  tensor_bytes(tensor_map('sigmoid', tensor_of_bytes(u.val, CAST(0 AS DOUBLE PRECISION)))) AS val
FROM "T3_by_i_1" AS u;

CREATE UNLOGGED TABLE "H_by_i_1" (
  i BIGINT
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"H_by_i_1"', 'i');

INSERT INTO "H_by_i_1"
/* all keys of H[I, n] */
SELECT
  g.position AS i
FROM (
  SELECT
    range AS position
  FROM GENERATE_SERIES(CAST(0 AS BIGINT), 2707) AS range(range)
) AS g;

CREATE UNLOGGED TABLE "H_by_i_2" (
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"H_by_i_2"', 'i');

INSERT INTO "H_by_i_2"
/* H[I, n], every tuple present */
SELECT
  g.i,
  tensor_bytes(
    COALESCE(tensor_of_bytes(t.val, CAST(0 AS DOUBLE PRECISION)), tensor_fill(256, CAST(0.5 AS DOUBLE PRECISION)))
  ) AS val
FROM "H_by_i_1" AS g
LEFT JOIN "H" AS t
  ON t.i = g.i;

CREATE UNLOGGED TABLE "H_by_cell_i_1" (
  cell BIGINT,
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"H_by_cell_i_1"', 'cell');

INSERT INTO "H_by_cell_i_1"
/* H[CELL, I, n], each tuple in 2 of 2 cells */
SELECT
  CAST((
    ARRAY[1, 0]
  )[g0.piece + 1] AS BIGINT) AS cell,
  t.i,
  t.val
FROM "H_by_i_2" AS t
CROSS JOIN (
  SELECT
    range AS piece
  FROM GENERATE_SERIES(CAST(0 AS BIGINT), 1) AS range(range)
) AS g0;

CREATE UNLOGGED TABLE "T4" (
  cell BIGINT,
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"T4"', 'cell');

INSERT INTO "T4"
/* T4[I, n] = sum(T1[I, L] * H[L, n]) */
SELECT
  u.cell,
  u.i,
  tensor_bytes(tensor_sum_scaled(u.val, tensor_of_bytes(v.val, CAST(0 AS DOUBLE PRECISION)))) AS val
FROM "T1" AS u
JOIN "H_by_cell_i_1" AS v
  ON u.cell = v.cell AND u.l = v.i
GROUP BY
  u.cell,
  u.i;

CREATE TEMPORARY TABLE "W2_by_dim_0_1" AS
SELECT
  t.dim_0,
  tensor_bytes(t.val) AS val
FROM main."W2" AS t;

CREATE TEMPORARY TABLE "W2_whole_1" AS
/* W2[dim_0, dim_1] */
SELECT
  tensor_bytes(
    COALESCE(
      tensor_stack(tensor_of_bytes(t.val, CAST(0 AS DOUBLE PRECISION)), t.dim_0, 256, 16, CAST(0 AS DOUBLE PRECISION)),
      tensor_fill(4096 + COUNT(*), CAST(0 AS DOUBLE PRECISION))
    )
  ) AS val
FROM "W2_by_dim_0_1" AS t;

CREATE UNLOGGED TABLE "W2_by_cell_1" (
  cell BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"W2_by_cell_1"', 'cell');

INSERT INTO "W2_by_cell_1"
/* W2[CELL, dim_0, dim_1], each tuple in 2 of 2 cells */
SELECT
  CAST((
    ARRAY[1, 0]
  )[g0.piece + 1] AS BIGINT) AS cell,
  t.val
FROM "W2_whole_1" AS t
CROSS JOIN (
  SELECT
    range AS piece
  FROM GENERATE_SERIES(CAST(0 AS BIGINT), 1) AS range(range)
) AS g0;

CREATE UNLOGGED TABLE "T5" (
  cell BIGINT,
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"T5"', 'cell');

INSERT INTO "T5"
/* T5[I, o] = sum(T4[I, n] * W2[n, o]) */
SELECT
  u.cell,
  u.i,
  tensor_bytes(tensor_matmul(tensor_of_bytes(u.val, CAST(0 AS DOUBLE PRECISION)), v.val, ARRAY[1, 256, 16])) AS val
FROM "T4" AS u
JOIN (
  SELECT
    t.cell,
    tensor_of_bytes(t.val, CAST(0 AS DOUBLE PRECISION)) AS val
  FROM (
    SELECT
      *
    FROM "W2_by_cell_1" AS t
  ) AS t
  ORDER BY
    CAST(NULL AS INT)
) AS v
  ON u.cell = v.cell;

CREATE UNLOGGED TABLE "T5_by_i_1" (
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"T5_by_i_1"', 'i');

INSERT INTO "T5_by_i_1"
/* T5[I, o] */
SELECT
  t.i,
  t.val
FROM "T5" AS t;

CREATE UNLOGGED TABLE "Y" (
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"Y"', 'i');

INSERT INTO "Y"
/* Y[I, o] = sigmoid(T5[I, o]) */
SELECT
  u.i,
  tensor_bytes(tensor_map('sigmoid', tensor_of_bytes(u.val, CAST(0 AS DOUBLE PRECISION)))) AS val
FROM "T5_by_i_1" AS u;

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
    UNNEST(tensor_of_bytes(t.val, CAST(0 AS DOUBLE PRECISION))) AS val
  FROM "Y" AS t
) AS s
WHERE
  s.val <> CAST(0.5 AS DOUBLE PRECISION);
