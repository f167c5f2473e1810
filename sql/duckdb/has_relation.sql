-- Whether a table or view exists, by its name alone or qualified by a schema, a database, or both.
SELECT
  1
FROM (
  SELECT database_name, schema_name, table_name AS name FROM duckdb_tables()
  UNION ALL
  SELECT database_name, schema_name, view_name AS name FROM duckdb_views()
) AS relations
WHERE
  LOWER(name) = LOWER($name)
  AND CASE
    WHEN $catalog IS NOT NULL THEN LOWER(database_name) = LOWER($catalog) AND LOWER(schema_name) = LOWER($schema)
    WHEN $schema IS NOT NULL THEN
      (database_name = current_database() AND LOWER(schema_name) = LOWER($schema))
      OR (LOWER(database_name) = LOWER($schema) AND schema_name = 'main')
    ELSE database_name = current_database() AND schema_name = current_schema()
  END
