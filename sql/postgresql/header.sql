-- sparseeinsum $version: functions and aggregates of arrays, generated from the list of kernels.
\echo Use "CREATE EXTENSION sparseeinsum" or "ALTER EXTENSION sparseeinsum UPDATE" to run this file. \quit

DO $$block$$
BEGIN
    IF EXISTS (
        SELECT FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
        WHERE p.proname = 'sparseeinsum_version' AND l.lanname = 'sql'
    ) THEN
        RAISE EXCEPTION 'this database has the portable variant of sparseeinsum; the extension cannot be beside it'
            USING HINT = 'Remove that one first: sparseeinsum remove postgres --portable URL.';
    END IF;
END
$$block$$;

-- First, because it fails if the library is of another version.
CREATE$or_replace FUNCTION sparseeinsum_version() RETURNS text
    AS 'MODULE_PATHNAME', '$symbol'
    LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION sparseeinsum_version() IS 'Version of the extension and of its library.';
