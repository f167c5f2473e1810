WITH A_whole AS (
  /* A[dim_0, dim_1] */
  SELECT
    COALESCE(
      tensor_stack(t.val, CAST(t.dim_0 AS BIGINT) * 4 + t.dim_1, 12, CAST(0 AS DOUBLE)),
      tensor_fill(12, CAST(0 AS DOUBLE))
    ) AS val
  FROM main.A AS t
), B_whole AS (
  /* B[dim_0, dim_1] */
  SELECT
    COALESCE(tensor_stack(t.val, t.dim_0, 4, 5, CAST(0 AS DOUBLE)), tensor_fill(20, CAST(0 AS DOUBLE))) AS val
  FROM main.B AS t
), C AS MATERIALIZED (
  /* C[i, k] = sum(A[i, j] * B[j, k]) */
  SELECT
    tensor_matmul(u.val, v.val, [3, 4, 5]) AS val
  FROM A_whole AS u
  CROSS JOIN B_whole AS v
)
/* C[I, K] */
SELECT
  s.position // 5 AS i,
  s.position % 5 AS k,
  s.val
FROM (
  SELECT
    UNNEST(RANGE(15)) AS position,
    UNNEST(t.val) AS val
  FROM C AS t
) AS s
WHERE
  s.val <> 0;
