-- Tables and views that a bare name may mean, whatever its case; first what it does mean: temporary ones, then those in
-- the schema of the search_path that comes first.
SELECT
  CASE WHEN c.relpersistence = 't' THEN 'pg_temp' ELSE CAST(n.nspname AS TEXT) END,
  CAST(c.relname AS TEXT),
  OBJ_DESCRIPTION(c.oid, 'pg_class')
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n
  ON n.oid = c.relnamespace
WHERE
  LOWER(c.relname) = LOWER($1)
  AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname = ANY (CURRENT_SCHEMAS(TRUE))
  AND n.nspname <> 'pg_catalog'
ORDER BY
  ARRAY_POSITION(CURRENT_SCHEMAS(TRUE), n.nspname),
  c.relname <> $1
