-- Computes a fingerprint of a tensor relation, which changes with its rows: their number, the types of their columns,
-- and a sum of hashes. Placeholders: `relation` and `columns` (all keys, then the value). An argument that mentions
-- `any_column` is repeated for every one of these columns.
SELECT
  COUNT(*) AS tuples,
  (SELECT CONCAT(PG_TYPEOF(any_column)) FROM relation LIMIT 1) AS types,
  SUM(HASH_RECORD_EXTENDED(ROW(columns), 0)) AS fingerprint
FROM relation
