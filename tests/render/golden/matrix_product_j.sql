WITH A_by_dim_1 AS (
  /* A[dim_0, DIM_1] */
  SELECT
    t.dim_1,
    tensor_stack(t.val, t.dim_0, 3, CAST(0 AS DOUBLE)) AS val
  FROM main.A AS t
  GROUP BY
    t.dim_1
), C AS (
  /* C[i, k] = sum(A[i, J] * B[J, k]) */
  SELECT
    COALESCE(tensor_einsum_sum('i,j->ij', u.val, v.val, [3, 5]), tensor_fill(15, CAST(0 AS DOUBLE))) AS val
  FROM A_by_dim_1 AS u
  JOIN main.B AS v
    ON u.dim_1 = v.dim_0
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
