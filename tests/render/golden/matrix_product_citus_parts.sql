CREATE UNLOGGED TABLE "C_by_j_i_1" (
  j BIGINT,
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"C_by_j_i_1"', 'i');

INSERT INTO "C_by_j_i_1"
/* C[J, I, k], parts of groups */
SELECT
  u.dim_1 AS j,
  u.dim_0 AS i,
  tensor_bytes(tensor_scale(u.val, v.val)) AS val
FROM main."A" AS u
JOIN main."B" AS v
  ON u.dim_1 = v.dim_0;

CREATE UNLOGGED TABLE "C" (
  i BIGINT,
  val BYTEA
)
WITH (
  toast_tuple_target=8160
);

SELECT
  create_distributed_table('"C"', 'i');

INSERT INTO "C"
/* C[I, k] = sum(A[I, J] * B[J, k]) */
SELECT
  u.i,
  tensor_bytes(tensor_sum(tensor_of_bytes(u.val, CAST(0 AS DOUBLE PRECISION)))) AS val
FROM "C_by_j_i_1" AS u
GROUP BY
  u.i;

/* C[I, K] */
SELECT
  s.i,
  s.k,
  s.val
FROM (
  SELECT
    t.i,
    GENERATE_SERIES(0, 9) AS k,
    UNNEST(tensor_of_bytes(t.val, CAST(0 AS DOUBLE PRECISION))) AS val
  FROM "C" AS t
) AS s
WHERE
  s.val <> 0;
