-- The columns of the table $1 and their types, the owner of the table, and the current user.
SELECT
  CAST(a.attname AS TEXT),
  pg_catalog.format_type(a.atttypid, a.atttypmod),
  CAST(pg_catalog.pg_get_userbyid(c.relowner) AS TEXT),
  CAST(CURRENT_USER AS TEXT)
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
WHERE a.attrelid = pg_catalog.to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
