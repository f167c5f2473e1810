-- A table of the database, and the columns that identify its rows by an index, one row for each index: what identifies
-- the table, the rows that it is expected to have, whether `rowid` numbers its rows, and the names of the columns. Views, and tables that others inherit
-- from, have none. Placeholders: `named_schema` and `named_table`.
SELECT
  CAST(c.oid AS BIGINT) AS id,
  CAST(c.reltuples AS BIGINT) AS row_count,
  FALSE AS has_row_ids,
  (
    SELECT ARRAY_AGG(CAST(a.attname AS TEXT))
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
  ) AS unique_columns
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n
  ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_index AS i
  ON i.indrelid = c.oid
  AND i.indisunique
  AND i.indisvalid
  AND i.indimmediate
  AND i.indpred IS NULL
  AND i.indexprs IS NULL
WHERE
  c.relkind = 'r'
  AND NOT EXISTS(SELECT 1 FROM pg_catalog.pg_inherits AS h WHERE h.inhparent = c.oid)
  AND n.nspname = named_schema
  AND c.relname = named_table
