-- What a role needs to use the catalogue; row-level security keeps rows of other roles as they are.
GRANT USAGE ON SCHEMA sparseeinsum TO $role;
GRANT SELECT, INSERT, DELETE ON sparseeinsum.tensors TO $role;
GRANT SELECT, INSERT, DELETE, UPDATE (size) ON sparseeinsum.dictionaries TO $role;
GRANT USAGE, CREATE ON SCHEMA sparseeinsum_dictionaries TO $role;
GRANT USAGE ON SCHEMA $functions TO $role;
