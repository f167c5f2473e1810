-- Measures a tensor relation that holds one number a tuple, in one scan: T (entries), V of every axis (distinct), where
-- the values lie that are not the fill, and whether its data are sound. `relation`, `value`, `fill` and `coordinate`
-- (all keys as one) are replaced; projections that mention `axis` are repeated for every key column.
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
