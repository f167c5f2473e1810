-- Measures a tensor relation with one number in every tuple, in one scan: T (entries), V of every axis (distinct), the
-- range of the values that are not the fill, and whether the data are sound. Placeholders: `relation`, `value`, `fill`
-- and `coordinate` (all keys as one value). Projections that mention `axis` are repeated for every key column.
SELECT
  COUNT(*) AS tuples,
  COUNT(*) FILTER (WHERE value <> fill) AS entries,
  MIN(value) FILTER (WHERE value <> fill) AS lowest,
  MAX(value) FILTER (WHERE value <> fill) AS highest,
  COUNT(*) FILTER (WHERE value IS NULL) AS value_nulls,
  COUNT(DISTINCT coordinate) AS coordinates,
  COUNT(DISTINCT axis) FILTER (WHERE value <> fill) AS distinct_axis,
  COUNT(*) FILTER (WHERE axis IS NULL) AS nulls_axis,
  MIN(axis) AS least_axis,
  MAX(axis) AS greatest_axis
FROM relation
