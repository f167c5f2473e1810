-- Tables that this transaction has locked to read them, and that others emptied, rewrote or made since its snapshot was
-- taken: TRUNCATE and the like leave nothing that an older snapshot could see. The snapshot shows pg_class as it was, the
-- function how it is; it returns NULL for a table that this transaction has dropped.
SELECT
  CAST(CAST(l.relation AS REGCLASS) AS TEXT)
FROM pg_catalog.pg_locks AS l
LEFT JOIN pg_catalog.pg_class AS c ON c.oid = l.relation
WHERE l.pid = pg_catalog.pg_backend_pid()
  AND l.locktype = 'relation'
  AND l.mode = 'AccessShareLock'
  AND pg_catalog.pg_relation_filenode(l.relation) IS NOT NULL
  AND (c.oid IS NULL OR c.relkind IN ('r', 'm') AND c.relfilenode <> pg_catalog.pg_relation_filenode(c.oid))
  AND CAST(l.relation AS BIGINT) >= 16384
LIMIT 1
