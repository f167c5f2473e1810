WITH A_by_dim_1 AS (
  /* A[dim_0, DIM_1] */
  SELECT
    t.dim_1,
    tensor_stack(t.val, t.dim_0, 3, CAST(0 AS DOUBLE)) AS val
  FROM main.A AS t
  GROUP BY
    t.dim_1
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
), C AS (
  /* C[i, K] = sum(A[i, J] * B[J, K]) */
  SELECT
    v.dim_1 AS k,
    tensor_sum_scaled(v.val, u.val) AS val
  FROM A_by_dim_1 AS u
  JOIN B_by_dim_0_dim_1 AS v
    ON u.dim_1 = v.dim_0
  GROUP BY
    v.dim_1
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
