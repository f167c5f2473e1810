-- Counts the entries at every index of a demoted axis. Placeholders: `relation`, `value`, `fill`, `position` (of the
-- axis among those of the arrays) and `extents` (of the arrays).
SELECT
  unnested.number - 1 AS place,
  unnested.entries
FROM (
  SELECT TENSOR_NNZ_ALONG(value, position, extents, fill) AS counts FROM relation
) AS counted
CROSS JOIN LATERAL UNNEST(counted.counts) WITH ORDINALITY AS unnested(entries, number)
