-- Tells whether a tensor relation still holds the rows that were measured: their number and a sum of hashes.
-- `relation` and `columns` (all keys, then the value) are replaced.
SELECT
  COUNT(*) AS tuples,
  SUM(HASH(columns)) AS fingerprint
FROM relation
