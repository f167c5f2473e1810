-- As fingerprint_of_numbers.sql, for a relation whose values are arrays of type DOUBLE PRECISION[]. Kernels refuse NULL
-- in an array, so that it is replaced here, for later checks to report; arrays without NULL stay as they are.
SELECT
  COUNT(*) AS tuples,
  (SELECT CONCAT(PG_TYPEOF(any_column)) FROM relation LIMIT 1) AS types,
  SUM(
    HASHINT8EXTENDED(
      TENSOR_HASH(ARRAY_REPLACE(CAST(value AS DOUBLE PRECISION[]), NULL, 'NaN')),
      HASHINT8EXTENDED(CAST(key AS BIGINT), 0)
    )
  ) AS fingerprint
FROM relation
