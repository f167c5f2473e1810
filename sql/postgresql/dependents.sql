-- The objects that depend on a table and would be dropped with it: views, and constraints of other tables.
SELECT DISTINCT
  COALESCE(
    CASE v.relkind WHEN 'm' THEN 'the materialized view ' ELSE 'the view ' END || CAST(r.ev_class AS REGCLASS)::TEXT,
    pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid)
  ) AS dependent
FROM pg_catalog.pg_depend AS d
LEFT JOIN pg_catalog.pg_rewrite AS r
  ON d.classid = CAST('pg_catalog.pg_rewrite' AS REGCLASS)
  AND r.oid = d.objid
LEFT JOIN pg_catalog.pg_class AS v
  ON v.oid = r.ev_class
WHERE
  d.refclassid = CAST('pg_catalog.pg_class' AS REGCLASS)
  AND d.refobjid = pg_catalog.TO_REGCLASS($1)
  AND d.deptype = 'n'
ORDER BY
  dependent
