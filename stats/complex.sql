-- As arrays.sql, for arrays of complex numbers: real and imaginary parts in turn. `size` counts complex numbers. The
-- range of the values is that of both parts together, including fills (no part equals NaN).
SELECT
  COUNT(*) AS tuples,
  COALESCE(SUM(TENSOR_COMPLEX_NNZ(value, fill)), 0) AS entries,
  MIN(TENSOR_LEAST(value, 'nan')) AS lowest,
  MAX(TENSOR_GREATEST(value, 'nan')) AS highest,
  COUNT(*) FILTER (WHERE value IS NULL) AS value_nulls,
  COUNT(*) FILTER (WHERE LEN(value) <> 2 * size) AS wrong_lengths,
  COUNT(DISTINCT coordinate) AS coordinates,
  COUNT(DISTINCT axis) FILTER (WHERE TENSOR_COMPLEX_NNZ(value, fill) > 0) AS distinct_axis,
  COUNT(*) FILTER (WHERE axis IS NULL) AS nulls_axis,
  MIN(axis) AS least_axis,
  MAX(axis) AS greatest_axis,
  TENSOR_NNZ(TENSOR_COMPLEX_NNZ_ALONG(value, position, extents, fill), 0) AS occupied_position,
  (
    SELECT SUM(TENSOR_NNZ(counts, 0))
    FROM (SELECT TENSOR_COMPLEX_NNZ_ALONG(value, tiled, extents, fill) AS counts FROM relation GROUP BY key) AS of_keys
  ) AS occupied_tiled
FROM relation
