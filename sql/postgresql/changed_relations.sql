-- Tables that this transaction has locked to read them, and that others emptied, rewrote or made since its snapshot was
-- taken: TRUNCATE and the like leave nothing that an older snapshot could see. The snapshot shows pg_class as it was, the
-- function how it is; it returns NULL for a table that this transaction has dropped.
--
-- Then the names among $names that stand for another relation now than in the snapshot: queries find relations by their
-- present names.
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
UNION ALL
SELECT w.name
FROM pg_catalog.unnest(ARRAY[$names]) AS w (name)
WHERE pg_catalog.to_regclass(w.name) IS NOT NULL
  AND NOT EXISTS (
    SELECT
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = pg_catalog.to_regclass(w.name)
      AND pg_catalog.parse_ident(w.name) = ARRAY[
        CASE WHEN n.oid = pg_catalog.pg_my_temp_schema() THEN 'pg_temp' ELSE CAST(n.nspname AS TEXT) END,
        CAST(c.relname AS TEXT)
      ]
  )
LIMIT 1
