CREATE UNLOGGED TABLE "A_by_dim_0_dim_1_1" (
  dim_0 BIGINT,
  dim_1 BIGINT,
  val DOUBLE PRECISION
);

SELECT
  create_distributed_table('"A_by_dim_0_dim_1_1"', 'dim_0');

INSERT INTO "A_by_dim_0_dim_1_1"
SELECT
  t.dim_0,
  t.dim_1,
  t.val
FROM main."A" AS t;

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
  u.dim_0 AS i,
  tensor_bytes(tensor_sum_scaled(u.val, v.val)) AS val
FROM "A_by_dim_0_dim_1_1" AS u
JOIN main."B" AS v
  ON u.dim_1 = v.dim_0
GROUP BY
  u.dim_0;

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
