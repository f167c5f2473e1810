-- Measures a tensor relation that holds an array a tuple, in one scan: T (entries), V of every axis (distinct for
-- keys, occupied for axes inside the arrays), where the values lie that are not the fill, and whether its data are
-- sound. `relation`, `value`, `fill`, `size` (elements of an array), `extents` (of the axes inside) and `coordinate`
-- (all keys as one) are replaced; projections that mention `axis` are repeated for every key column, those that
-- mention `position` for every axis that lies inside alone, those that mention `tiled` for every axis whose `key` stands
-- for a tile of several indices (whose arrays may be shorter at its end).
SELECT
  COUNT(*) AS tuples,
  COALESCE(SUM(TENSOR_NNZ(value, fill)), 0) AS entries,
  MIN(TENSOR_LEAST(value, fill)) FILTER (WHERE TENSOR_NNZ(value, fill) > 0) AS lowest,
  MAX(TENSOR_GREATEST(value, fill)) FILTER (WHERE TENSOR_NNZ(value, fill) > 0) AS highest,
  COUNT(*) FILTER (WHERE value IS NULL) AS value_nulls,
  COUNT(*) FILTER (WHERE CARDINALITY(value) <> size) AS wrong_lengths,
  COUNT(DISTINCT coordinate) AS coordinates,
  COUNT(DISTINCT axis) FILTER (WHERE TENSOR_NNZ(value, fill) > 0) AS distinct_axis,
  COUNT(*) FILTER (WHERE axis IS NULL) AS nulls_axis,
  MIN(axis) AS least_axis,
  MAX(axis) AS greatest_axis,
  CARDINALITY(ARRAY_REMOVE(TENSOR_NNZ_ALONG(value, position, extents, fill), 0)) AS occupied_position,
  (
    SELECT SUM(CARDINALITY(ARRAY_REMOVE(counts, 0)))
    FROM (SELECT TENSOR_NNZ_ALONG(value, tiled, extents, fill) AS counts FROM relation GROUP BY key) AS of_keys
  ) AS occupied_tiled
FROM relation
