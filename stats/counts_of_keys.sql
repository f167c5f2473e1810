-- Counts the entries at every index of a key column, if tuples have arrays. Placeholders: `relation`, `axis`, `value`
-- and `fill`.
SELECT
  axis AS place,
  CAST(SUM(TENSOR_NNZ(value, fill)) AS BIGINT) AS entries
FROM relation
GROUP BY
  axis
