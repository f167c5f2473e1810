-- For each relation to be read: whether the caller trusts its owner, and if not, whether reading it would run functions of
-- others with the rights of the caller, as views, policies and expressions of indexes do.
--
-- $1: [{"number": 1, "schema": "main", "name": "edges", "owner": "the role that entered it in the catalogue, or null"}]
WITH RECURSIVE caller AS (
  SELECT r.oid, r.rolsuper
  FROM pg_catalog.pg_roles AS r
  WHERE r.rolname = CURRENT_USER
),
member_of AS (
  SELECT oid FROM caller
  UNION
  SELECT m.roleid
  FROM pg_catalog.pg_auth_members AS m
  JOIN member_of AS r ON r.oid = m.member
  CROSS JOIN caller AS c
  WHERE NOT c.rolsuper -- whoever may make a superuser a member of a role must gain nothing by it
),
trusted AS (
  SELECT oid FROM member_of
  UNION
  SELECT oid FROM pg_catalog.pg_roles WHERE rolsuper -- who can do all that the caller can
),
wanted AS (
  SELECT
    w.number, c.oid, c.relkind, c.relowner, c.relrowsecurity, c.relhassubclass, c.relhasrules,
    c.relowner IN (SELECT oid FROM trusted) AS is_trusted,
    -- A role that the caller does not trust, or that is no more, entered a relation of which it is no owner.
    w.owner IS NOT NULL
      AND (
        e.oid IS NULL
        OR e.oid NOT IN (SELECT oid FROM trusted) AND NOT pg_catalog.pg_has_role(e.oid, c.relowner, 'MEMBER')
      ) AS is_of_another
  FROM pg_catalog.jsonb_to_recordset(CAST($1 AS JSONB)) AS w (number INT, schema TEXT, name TEXT, owner TEXT)
  JOIN pg_catalog.pg_namespace AS n
    ON CASE WHEN w.schema = 'pg_temp' THEN n.oid = pg_catalog.pg_my_temp_schema() ELSE n.nspname = w.schema END
  JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = w.name
  LEFT JOIN pg_catalog.pg_roles AS e ON e.rolname = w.owner
)
SELECT
  w.number,
  CAST(w.oid AS TEXT),
  CAST(w.relkind AS TEXT),
  CAST(pg_catalog.pg_get_userbyid(w.relowner) AS TEXT),
  w.is_trusted,
  CASE
    WHEN w.is_of_another THEN 'of another'
    WHEN w.is_trusted THEN NULL
    WHEN w.relkind <> 'r' OR w.relhassubclass OR w.relhasrules THEN 'no ordinary table'
    WHEN w.relrowsecurity THEN 'row-level security'
    WHEN EXISTS (
      SELECT FROM pg_catalog.pg_attribute AS a
      WHERE a.attrelid = w.oid AND a.attnum > 0 AND NOT a.attisdropped AND CAST(a.atttypid AS BIGINT) >= 16384
    ) THEN 'types'
    WHEN EXISTS (
      SELECT
      FROM (
        SELECT CAST('pg_catalog.pg_class' AS REGCLASS), i.indexrelid FROM pg_catalog.pg_index AS i WHERE i.indrelid = w.oid
        UNION ALL
        SELECT CAST('pg_catalog.pg_constraint' AS REGCLASS), k.oid FROM pg_catalog.pg_constraint AS k
        WHERE k.conrelid = w.oid
        UNION ALL
        SELECT CAST('pg_catalog.pg_statistic_ext' AS REGCLASS), s.oid FROM pg_catalog.pg_statistic_ext AS s
        WHERE s.stxrelid = w.oid
      ) AS part (class, oid)
      JOIN pg_catalog.pg_depend AS d ON d.classid = part.class AND d.objid = part.oid
      WHERE CAST(d.refobjid AS BIGINT) >= 16384 -- an object of users; what PostgreSQL brings is below
        AND d.refclassid IN (
          CAST('pg_catalog.pg_proc' AS REGCLASS),
          CAST('pg_catalog.pg_operator' AS REGCLASS),
          CAST('pg_catalog.pg_opclass' AS REGCLASS),
          CAST('pg_catalog.pg_opfamily' AS REGCLASS),
          CAST('pg_catalog.pg_type' AS REGCLASS),
          CAST('pg_catalog.pg_collation' AS REGCLASS)
        )
    ) THEN 'expressions'
  END
FROM wanted AS w
ORDER BY w.number
