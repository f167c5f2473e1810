-- sparseeinsum $version: functions and aggregates of arrays, generated from the catalogue of kernels.
\echo Use "CREATE EXTENSION sparseeinsum" or "ALTER EXTENSION sparseeinsum UPDATE" to run this file. \quit

-- Here first: a library of another version does not have it.
CREATE$or_replace FUNCTION sparseeinsum_version() RETURNS text
    AS 'MODULE_PATHNAME', '$symbol'
    LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION sparseeinsum_version() IS 'Version of the extension and of its library.';
