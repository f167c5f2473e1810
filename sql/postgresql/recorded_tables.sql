-- For each of the tables $tables whose changes are all recorded: its position in the list, its number, and what identifies
-- it, its columns, its triggers, and what they write. Rows of the system catalogue have another xmin and ctid after every
-- change of them, and the table another filenode after every change that no trigger sees.
--
-- Statements on parents change rows of children, and fire no triggers of these. A crash empties tables that are unlogged.
--
-- $$1: the MD5 of the function's source
WITH recorder AS (
  SELECT
    f.oid,
    pg_catalog.concat_ws(
      ' ', (pg_catalog.pg_control_system()).system_identifier, f.oid, f.xmin, f.ctid, l.oid, l.xmin, l.ctid, l.relfilenode
    ) AS identity
  FROM pg_catalog.pg_namespace AS s
  JOIN pg_catalog.pg_proc AS f ON f.pronamespace = s.oid AND f.proname = 'record_change' AND f.pronargs = 0
  JOIN pg_catalog.pg_class AS l ON l.relnamespace = s.oid AND l.relname = 'changes'
  WHERE s.nspname = 'sparseeinsum'
    AND f.prosecdef AND pg_catalog.md5(f.prosrc) = $$1
    AND l.relkind = 'r' AND l.relpersistence = 'p'
    AND NOT (l.relrowsecurity OR l.relhasrules OR l.relhastriggers OR l.relhassubclass)
    AND pg_catalog.has_schema_privilege(s.oid, 'USAGE') AND pg_catalog.has_table_privilege(l.oid, 'SELECT')
)
SELECT
  n.position,
  CAST(c.oid AS BIGINT),
  pg_catalog.concat_ws(' ', r.identity, c.oid, c.xmin, c.ctid, c.relfilenode, t.identity, a.identity)
FROM recorder AS r
CROSS JOIN pg_catalog.unnest(ARRAY[$tables]) WITH ORDINALITY AS n (name, position)
JOIN pg_catalog.pg_class AS c ON c.oid = pg_catalog.to_regclass(n.name)
CROSS JOIN LATERAL (
  SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', t.oid, t.xmin, t.ctid), ' ' ORDER BY t.tgtype) AS identity
  FROM pg_catalog.pg_trigger AS t
  WHERE t.tgrelid = c.oid AND t.tgfoid = r.oid AND t.tgqual IS NULL AND CAST(t.tgattr AS TEXT) = ''
    AND (t.tgtype, t.tgenabled) IN ((62, 'A'), (29, 'R')) -- before statements, always; after rows, by replication
  HAVING COUNT(*) = 2 AND COUNT(DISTINCT t.tgtype) = 2
) AS t
CROSS JOIN LATERAL (
  SELECT
    pg_catalog.string_agg(pg_catalog.concat_ws(' ', a.attnum, a.attname, a.xmin, a.ctid), ' ' ORDER BY a.attnum) AS identity
  FROM pg_catalog.pg_attribute AS a
  WHERE a.attrelid = c.oid AND a.attnum > 0
  HAVING COALESCE(pg_catalog.bool_and(a.attgenerated = ''), TRUE)
) AS a
WHERE c.relkind = 'r' AND c.relpersistence = 'p'
  AND NOT (c.relrowsecurity OR c.relhasrules OR c.relhassubclass OR c.relispartition)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = c.oid)
ORDER BY n.position
