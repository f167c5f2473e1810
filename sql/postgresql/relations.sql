-- The tables and views that an unqualified name may mean, ignoring case; the one that it does mean comes first: temporary
-- ones, then those of the schemas in $2, the search_path, in order.
SELECT
  CASE WHEN c.relpersistence = 't' THEN 'pg_temp' ELSE CAST(n.nspname AS TEXT) END,
  CAST(c.relname AS TEXT),
  OBJ_DESCRIPTION(c.oid, 'pg_class')
FROM JSONB_ARRAY_ELEMENTS_TEXT(CAST($2 AS JSONB)) WITH ORDINALITY AS searched (schema, place)
JOIN pg_catalog.pg_namespace AS n
  ON n.nspname = searched.schema
JOIN pg_catalog.pg_class AS c
  ON c.relnamespace = n.oid
WHERE
  LOWER(c.relname) = LOWER($1)
  AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname <> 'pg_catalog'
ORDER BY
  searched.place,
  c.relname <> $1
