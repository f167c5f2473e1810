WITH "A_by_dim_0_dim_1" AS (
  /* A[DIM_0, DIM_1] */
  SELECT
    s.dim_0,
    s.dim_1,
    s.val
  FROM (
    SELECT
      t.dim_0,
      GENERATE_SERIES(0, 3) AS dim_1,
      UNNEST(t.val) AS val
    FROM main.a AS t
  ) AS s
  WHERE
    s.val <> 0
  ORDER BY
    CAST(NULL AS INT)
), "B_by_dim_0_dim_1" AS (
  /* B[DIM_0, DIM_1] */
  SELECT
    s.dim_0,
    s.dim_1,
    s.val
  FROM (
    SELECT
      t.dim_0,
      GENERATE_SERIES(0, 4) AS dim_1,
      UNNEST(t.val) AS val
    FROM main.b AS t
  ) AS s
  WHERE
    s.val <> 0
  ORDER BY
    CAST(NULL AS INT)
)
/* C[I, K] = sum(A[I, J] * B[J, K]) */
SELECT
  u.dim_0 AS i,
  v.dim_1 AS k,
  tensor_sum(tensor_mul(u.val, v.val)) AS val
FROM "A_by_dim_0_dim_1" AS u
JOIN "B_by_dim_0_dim_1" AS v
  ON u.dim_1 = v.dim_0
GROUP BY
  u.dim_0,
  v.dim_1;
