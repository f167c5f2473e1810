WITH A_whole AS (
  /* A[dim_0, dim_1] */
  SELECT
    COALESCE(
      tensor_stack(t.val, CAST(t.dim_0 AS BIGINT) * 4 + t.dim_1, 12, CAST(0 AS DOUBLE)),
      tensor_fill(12, CAST(0 AS DOUBLE))
    ) AS val
  FROM main.A AS t
), B_by_dim_0_dim_1 AS (
  /* B[DIM_0, DIM_1] */
  SELECT
    s.dim_0,
    s.dim_1,
    s.val
  FROM (
    SELECT
      t.dim_0,
      UNNEST(RANGE(5)) AS dim_1,
      UNNEST(t.val) AS val
    FROM main.B AS t
  ) AS s
), B_by_dim_1 AS (
  /* B[dim_0, DIM_1] */
  SELECT
    t.dim_1,
    tensor_stack(t.val, t.dim_0, 4, CAST(0 AS DOUBLE)) AS val
  FROM B_by_dim_0_dim_1 AS t
  GROUP BY
    t.dim_1
), C AS MATERIALIZED (
  /* C[i, K] = sum(A[i, j] * B[j, K]) */
  SELECT
    v.dim_1 AS k,
    tensor_matmul(u.val, v.val, [3, 4, 1]) AS val
  FROM A_whole AS u
  CROSS JOIN B_by_dim_1 AS v
)
/* C[I, K] */
SELECT
  s.i,
  s.k,
  s.val
FROM (
  SELECT
    t.k,
    UNNEST(RANGE(3)) AS i,
    UNNEST(t.val) AS val
  FROM C AS t
) AS s
WHERE
  s.val <> 0;
