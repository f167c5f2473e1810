-- As fingerprint.sql, of a relation whose values are numbers of type DOUBLE PRECISION: the hash of each key is the seed of
-- the next one. `relation` and `value` are replaced; the call that mentions `key` is put into itself for every key; what
-- mentions `each` is repeated for all keys and the value. Casts let a column whose type was changed be read.
SELECT
  COUNT(*) AS tuples,
  (SELECT CONCAT(PG_TYPEOF(each)) FROM relation LIMIT 1) AS types,
  SUM(HASHFLOAT8EXTENDED(CAST(value AS DOUBLE PRECISION), HASHINT8EXTENDED(CAST(key AS BIGINT), 0))) AS fingerprint
FROM relation
