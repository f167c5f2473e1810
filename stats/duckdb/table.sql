-- A table of the database, and the columns that identify its rows by a constraint, one row for each constraint: what
-- identifies the table, the rows that it is expected to have, whether `rowid` numbers its rows, as no column has that
-- name, and the names of the columns. Views and files have none.
-- Placeholders: `named_catalog`, which may be NULL, `named_schema` and `named_table`.
SELECT
  t.database_name || '.' || t.table_oid AS id,
  t.estimated_size AS row_count,
  NOT CONTAINS(LOWER(t.sql), 'rowid') AS has_row_ids,
  c.constraint_column_names AS unique_columns
FROM duckdb_tables() AS t
LEFT JOIN duckdb_constraints() AS c
  ON c.database_name = t.database_name
  AND c.table_oid = t.table_oid
  AND c.constraint_type IN ('PRIMARY KEY', 'UNIQUE')
WHERE
  t.database_name IN (COALESCE(named_catalog, CURRENT_DATABASE()), COALESCE(named_catalog, 'temp'))
  AND LOWER(t.schema_name) = LOWER(named_schema)
  AND LOWER(t.table_name) = LOWER(named_table)
