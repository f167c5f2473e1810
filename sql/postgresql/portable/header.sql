-- sparseeinsum @version@, portable: functions and aggregates of arrays in SQL and PL/pgSQL, for servers that load no
-- libraries; generated from the list of kernels. Running this script, or that of another version, again replaces them.

BEGIN;

DO $block$
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION 'this server is PostgreSQL %; version 15 or later is needed', current_setting('server_version');
    ELSIF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'sparseeinsum') THEN
        RAISE EXCEPTION 'this database has the extension sparseeinsum, which is faster; the portable variant cannot be beside it'
            USING HINT = 'To have the portable variant instead, DROP EXTENSION sparseeinsum first.';
    ELSIF EXISTS (
        SELECT FROM pg_catalog.pg_proc
        WHERE proname = 'sparseeinsum_version' AND pronamespace <> pg_catalog.to_regnamespace(@schema_name@)
    ) THEN
        RAISE EXCEPTION 'this database has the portable variant of sparseeinsum in another schema than %', @schema_name@
            USING HINT = 'Install it there, or remove that one first: sparseeinsum remove postgres --portable URL.';
    END IF;
END
$block$;

SET LOCAL client_min_messages = warning;
SET LOCAL search_path = pg_catalog;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_version() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '@version@';
COMMENT ON FUNCTION @extschema@.sparseeinsum_version() IS 'Version of the functions. @marker@';

