-- The rights that a role needs to use the catalogue; row-level security protects the rows of other roles.
GRANT USAGE ON SCHEMA sparseeinsum TO $role;
GRANT SELECT, INSERT, DELETE ON sparseeinsum.tensors TO $role;
GRANT SELECT, INSERT, DELETE, UPDATE (size) ON sparseeinsum.dictionaries TO $role;
GRANT USAGE, CREATE ON SCHEMA sparseeinsum_dictionaries TO $role;
GRANT USAGE ON SCHEMA $functions TO $role;
