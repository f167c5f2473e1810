WITH C AS (
  /* C[I, k] = sum(A[I, J] * B[J, k]) */
  SELECT
    u.dim_0 AS i,
    tensor_sum_scaled(u.val, v.val) AS val
  FROM main.A AS u
  JOIN main.B AS v
    ON u.dim_1 = v.dim_0
  GROUP BY
    u.dim_0
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
