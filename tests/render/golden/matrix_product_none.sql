WITH A_compressed AS (
  /* A[DIM_0, DIM_1], ordered by dim_0 in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, t.dim_0, t.dim_1, 3) AS handle
  FROM main.A AS t
), B_whole AS (
  /* B[dim_0, dim_1] */
  SELECT
    COALESCE(tensor_stack(t.val, t.dim_0, 4, 5, CAST(0 AS DOUBLE)), tensor_fill(20, CAST(0 AS DOUBLE))) AS val
  FROM main.B AS t
), C AS (
  /* C[i, k] = sum(A[i, j] * B[j, k]) */
  SELECT
    tensor_sparse_matmul(u.handle, 3, v.val, 5) AS val
  FROM B_whole AS v
  CROSS JOIN A_compressed AS u
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
