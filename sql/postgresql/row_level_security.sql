-- Every role that may use the catalogue sees all rows, adds rows of its own, and changes only the rows of its roles.
CREATE SCHEMA IF NOT EXISTS sparseeinsum_dictionaries;
ALTER TABLE sparseeinsum.tensors ENABLE ROW LEVEL SECURITY;
ALTER TABLE sparseeinsum.dictionaries ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_are_seen ON sparseeinsum.tensors FOR SELECT USING (TRUE);
CREATE POLICY all_are_seen ON sparseeinsum.dictionaries FOR SELECT USING (TRUE);
CREATE POLICY own_are_added ON sparseeinsum.tensors FOR INSERT WITH CHECK (owner = CURRENT_USER);
CREATE POLICY own_are_added ON sparseeinsum.dictionaries FOR INSERT WITH CHECK (owner = CURRENT_USER);
CREATE POLICY own_are_removed ON sparseeinsum.tensors FOR DELETE USING (
  EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = owner AND pg_catalog.pg_has_role(r.oid, 'USAGE'))
);
CREATE POLICY own_are_removed ON sparseeinsum.dictionaries FOR DELETE USING (
  EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = owner AND pg_catalog.pg_has_role(r.oid, 'USAGE'))
);
CREATE POLICY own_are_extended ON sparseeinsum.dictionaries FOR UPDATE USING (
  EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = owner AND pg_catalog.pg_has_role(r.oid, 'USAGE'))
);
