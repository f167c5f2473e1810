WITH A_by_dim_0 AS (
  /* A[DIM_0, dim_1] */
  SELECT
    t.dim_0,
    tensor_stack(t.val, t.dim_1, 4, CAST(0 AS DOUBLE)) AS val
  FROM main.A AS t
  GROUP BY
    t.dim_0
), B_whole AS (
  /* B[dim_0, dim_1] */
  SELECT
    COALESCE(tensor_stack(t.val, t.dim_0, 4, 5, CAST(0 AS DOUBLE)), tensor_fill(20, CAST(0 AS DOUBLE))) AS val
  FROM main.B AS t
), C AS MATERIALIZED (
  /* C[I, k] = sum(A[I, j] * B[j, k]) */
  SELECT
    u.dim_0 AS i,
    tensor_matmul(u.val, v.val, [1, 4, 5]) AS val
  FROM A_by_dim_0 AS u
  CROSS JOIN B_whole AS v
)
/* C[I, K] */
SELECT
  s.i,
  s.k,
  s.val
FROM (
  SELECT
    t.i,
    UNNEST(RANGE(5)) AS k,
    UNNEST(t.val) AS val
  FROM C AS t
) AS s
WHERE
  s.val <> 0;
