-- Whether the caller trusts the catalogue of the role $1: that of a superuser, of a role of which the caller is a member, or
-- of the owner of the database. A superuser trusts superusers alone.
SELECT
  o.rolsuper OR NOT u.rolsuper AND (pg_catalog.pg_has_role(o.oid, 'MEMBER') OR o.oid = d.datdba)
FROM pg_catalog.pg_roles AS o
CROSS JOIN pg_catalog.pg_roles AS u
CROSS JOIN pg_catalog.pg_database AS d
WHERE o.rolname = $1 AND u.rolname = CURRENT_USER AND d.datname = pg_catalog.current_database()
