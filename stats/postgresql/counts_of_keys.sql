-- Counts the entries at every index of a key column, where every tuple holds an array. `relation`, `axis`, `value` and
-- `fill` are replaced.
SELECT
  axis AS place,
  CAST(SUM(TENSOR_NNZ(value, fill)) AS BIGINT) AS entries
FROM relation
GROUP BY
  axis
