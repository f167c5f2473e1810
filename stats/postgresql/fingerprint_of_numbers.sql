-- As fingerprint.sql, for a relation whose values are numbers of type DOUBLE PRECISION: the hash of each key is the
-- seed of the next hash. Placeholders: `relation` and `value`; the call that mentions `key` is nested for all keys; the
-- argument that mentions `any_column` is repeated for all keys and the value. The casts allow for columns whose type
-- has changed.
SELECT
  COUNT(*) AS tuples,
  (SELECT CONCAT(PG_TYPEOF(any_column)) FROM relation LIMIT 1) AS types,
  SUM(HASHFLOAT8EXTENDED(CAST(value AS DOUBLE PRECISION), HASHINT8EXTENDED(CAST(key AS BIGINT), 0))) AS fingerprint
FROM relation
