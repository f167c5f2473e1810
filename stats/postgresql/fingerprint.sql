-- Tells whether a tensor relation still holds the rows that were measured: their number, the types of their columns, and
-- a sum of hashes. `relation` and `columns` (all keys, then the value) are replaced; what mentions `each` is repeated
-- for each of them.
SELECT
  COUNT(*) AS tuples,
  (SELECT CONCAT(PG_TYPEOF(each)) FROM relation LIMIT 1) AS types,
  SUM(HASH_RECORD_EXTENDED(ROW(columns), 0)) AS fingerprint
FROM relation
