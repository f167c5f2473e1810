-- Counts the entries at every index of an axis inside the arrays, if there is any. `relation`, `value`, `fill`,
-- `position` (of the axis among those inside) and `extents` (of those) are replaced.
SELECT
  unnested.number - 1 AS place,
  unnested.entries
FROM (
  SELECT TENSOR_NNZ_ALONG(value, position, extents, fill) AS counts FROM relation
) AS counted
CROSS JOIN LATERAL UNNEST(counted.counts) WITH ORDINALITY AS unnested(entries, number)
