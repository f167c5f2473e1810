-- For every table of this database whose changes are recorded: what identifies it and its triggers, and its last change.
-- The number of a change is never used again, even if its transaction is undone.
SELECT
  tables.schema_name,
  tables.table_name,
  tables.table_oid,
  tables.sql AS definition,
  triggers.definitions,
  changes.count,
  changes.last
FROM duckdb_tables() AS tables
JOIN (
  SELECT schema_name, table_name, list((trigger_oid, sql) ORDER BY trigger_oid) AS definitions
  FROM duckdb_triggers()
  WHERE database_name = current_database() AND trigger_name IN ($triggers) AND contains(sql, $log_name)
  GROUP BY ALL
  HAVING count(*) = $number_of_triggers
) AS triggers
  ON tables.schema_name = triggers.schema_name AND tables.table_name = triggers.table_name
JOIN (
  SELECT table_name, count(*) AS count, max(number) AS last FROM $log GROUP BY ALL
) AS changes
  ON changes.table_name = tables.schema_name || '.' || tables.table_name
WHERE
  tables.database_name = current_database() AND tables.check_constraint_count > 0
