CREATE TEMPORARY TABLE "B_by_dim_0_1" AS
SELECT
  t.dim_0,
  tensor_bytes(t.val) AS val
FROM main."B" AS t;

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
  tensor_bytes(tensor_sum_scaled(u.val, tensor_of_bytes(v.val, CAST(0 AS DOUBLE PRECISION)))) AS val
FROM main."A" AS u
JOIN "B_by_dim_0_1" AS v
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
