-- Computes a fingerprint of a tensor relation, which changes with its rows: their number, the types of their columns,
-- and a sum of hashes. Placeholders: `relation` and `columns` (all keys, then the value).
SELECT
  COUNT(*) AS tuples,
  ANY_VALUE(TYPEOF(ROW(columns))) AS types,
  SUM(HASH(columns)) AS fingerprint
FROM relation
