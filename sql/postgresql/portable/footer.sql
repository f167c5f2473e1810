
-- Functions without a comment get one, by which removal finds them; functions of earlier versions are dropped.
DO $block$
DECLARE
    part record;
    gone text;
BEGIN
    FOR part IN
        SELECT oid::regprocedure AS signature FROM pg_catalog.pg_proc
        WHERE pronamespace = pg_catalog.to_regnamespace(@schema_name@) AND proname LIKE 'sparseeinsum\_%'
            AND xmin = pg_catalog.pg_current_xact_id()::xid AND obj_description(oid, 'pg_proc') IS NULL
    LOOP
        EXECUTE format('COMMENT ON FUNCTION %s IS %L', part.signature, 'Part of the functions. @marker@');
    END LOOP;
    SELECT string_agg(oid::regprocedure::text, ', ') INTO gone FROM pg_catalog.pg_proc
    WHERE pronamespace = pg_catalog.to_regnamespace(@schema_name@)
        AND xmin <> pg_catalog.pg_current_xact_id()::xid AND obj_description(oid, 'pg_proc') LIKE '%@marker@';
    IF gone IS NOT NULL THEN
        EXECUTE 'DROP ROUTINE ' || gone;
    END IF;
END
$block$;

COMMIT;
