-- Tells whether a tensor relation still holds the rows that were measured: their number, the types of their columns, and
-- a sum of hashes. `relation` and `columns` (all keys, then the value) are replaced.
SELECT
  COUNT(*) AS tuples,
  ANY_VALUE(TYPEOF(ROW(columns))) AS types,
  SUM(HASH(columns)) AS fingerprint
FROM relation
