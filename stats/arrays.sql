-- Measures a tensor relation with an array in every tuple, in one scan: T (entries), V of every axis (distinct for
-- keys, occupied for axes of the arrays), the range of the values that are not the fill, and whether the data are
-- sound. Placeholders: `relation`, `value`, `fill`, `size` (elements of an array), `extents` (of the arrays) and
-- `coordinate` (all keys as one value). Projections that mention `axis` are repeated for every key column, those that
-- mention `position` for every demoted axis, and those that mention `tiled` for every tiled axis, whose tiles are
-- numbered by `key` (arrays of the last tile may be shorter).
SELECT
  COUNT(*) AS tuples,
  COALESCE(SUM(TENSOR_NNZ(value, fill)), 0) AS entries,
  MIN(TENSOR_LEAST(value, fill)) FILTER (WHERE TENSOR_NNZ(value, fill) > 0) AS lowest,
  MAX(TENSOR_GREATEST(value, fill)) FILTER (WHERE TENSOR_NNZ(value, fill) > 0) AS highest,
  COUNT(*) FILTER (WHERE value IS NULL) AS value_nulls,
  COUNT(*) FILTER (WHERE LEN(value) <> size) AS wrong_lengths,
  COUNT(DISTINCT coordinate) AS coordinates,
  COUNT(DISTINCT axis) FILTER (WHERE TENSOR_NNZ(value, fill) > 0) AS distinct_axis,
  COUNT(*) FILTER (WHERE axis IS NULL) AS nulls_axis,
  MIN(axis) AS least_axis,
  MAX(axis) AS greatest_axis,
  TENSOR_NNZ(TENSOR_NNZ_ALONG(value, position, extents, fill), 0) AS occupied_position,
  (
    SELECT SUM(TENSOR_NNZ(counts, 0))
    FROM (SELECT TENSOR_NNZ_ALONG(value, tiled, extents, fill) AS counts FROM relation GROUP BY key) AS of_keys
  ) AS occupied_tiled
FROM relation
