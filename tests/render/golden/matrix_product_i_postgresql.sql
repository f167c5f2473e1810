WITH "B_whole" AS (
  /* B[dim_0, dim_1] */
  SELECT
    COALESCE(
      tensor_stack(t.val, t.dim_0, 4, 5, CAST(0 AS DOUBLE PRECISION)),
      tensor_fill(20, CAST(0 AS DOUBLE PRECISION))
    ) AS val
  FROM main.b AS t
), "C" AS (
  /* C[I, k] = sum(A[I, j] * B[j, k]) */
  SELECT
    u.dim_0 AS i,
    tensor_matmul(u.val, v.val, ARRAY[1, 4, 5]) AS val
  FROM main.a AS u
  JOIN "B_whole" AS v
    ON (
      u.dim_0 IS NULL
    ) = (
      v.val IS NULL
    )
  ORDER BY
    CAST(NULL AS INT)
)
/* C[I, K] */
SELECT
  s.i,
  s.k,
  s.val
FROM (
  SELECT
    t.i,
    GENERATE_SERIES(0, 4) AS k,
    UNNEST(t.val) AS val
  FROM "C" AS t
) AS s
WHERE
  s.val <> 0;
