WITH A_compressed AS (
  /* A[DIM_0, DIM_1, DIM_2], ordered by dim_0, dim_1 in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, CAST(t.dim_0 AS BIGINT) * 30 + t.dim_1, CAST(t.dim_0 AS BIGINT) * 4 + t.dim_2, 60) AS handle
  FROM main.A AS t
), B_compressed AS (
  /* B[DIM_0, DIM_1, DIM_2], ordered by dim_0, dim_1 in memory while the statement runs */
  SELECT
    tensor_compressed(t.val, CAST(t.dim_0 AS BIGINT) * 4 + t.dim_1, t.dim_2, 8) AS handle
  FROM main.B AS t
)
/* C[B, I, K] = min(A[B, I, J] + B[B, J, K]) */
/* what has no row holds inf */
SELECT
  s.row_number // 30 AS b,
  s.row_number % 30 AS i,
  s.entry.position AS k,
  s.entry.val AS val
FROM (
  SELECT
    CAST(r.row_number AS INT) AS row_number,
    unnest(tensor_product_row('min(u + v)', u.handle, r.row_number, v.handle, CAST('inf' AS DOUBLE))) AS entry
  FROM (
    SELECT
      range AS row_number
    FROM RANGE(0, 60)
  ) AS r
  CROSS JOIN A_compressed AS u
  CROSS JOIN B_compressed AS v
) AS s;
