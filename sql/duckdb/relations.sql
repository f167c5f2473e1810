-- The tables and views that an unqualified name may mean, ignoring case; the one that it does mean comes first.
SELECT
  CASE WHEN temporary THEN database_name END AS catalog,
  schema_name,
  name,
  comment
FROM (
  SELECT database_name, schema_name, table_name AS name, temporary, internal, comment FROM duckdb_tables()
  UNION ALL
  SELECT database_name, schema_name, view_name AS name, temporary, internal, comment FROM duckdb_views()
) AS relations
WHERE
  LOWER(name) = LOWER($name)
  AND NOT internal
  AND (temporary OR (database_name = current_database() AND schema_name = current_schema()))
ORDER BY
  temporary DESC
