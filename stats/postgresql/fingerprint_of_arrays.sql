-- As fingerprint_of_numbers.sql, of a relation whose values are arrays of type DOUBLE PRECISION[]. NULL in an array, which
-- kernels refuse, is for others to tell; arrays without stay as they are.
SELECT
  COUNT(*) AS tuples,
  (SELECT CONCAT(PG_TYPEOF(each)) FROM relation LIMIT 1) AS types,
  SUM(
    HASHINT8EXTENDED(
      TENSOR_HASH(ARRAY_REPLACE(CAST(value AS DOUBLE PRECISION[]), NULL, 'NaN')),
      HASHINT8EXTENDED(CAST(key AS BIGINT), 0)
    )
  ) AS fingerprint
FROM relation
