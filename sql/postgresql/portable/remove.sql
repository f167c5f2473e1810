DO $block$
DECLARE
    gone text;
BEGIN
    SET LOCAL search_path = pg_catalog;
    SELECT string_agg(oid::regprocedure::text, ', ') INTO gone FROM pg_catalog.pg_proc
    WHERE obj_description(oid, 'pg_proc') LIKE '%@marker@';
    IF gone IS NULL THEN
        RAISE EXCEPTION 'this database has no portable variant of sparseeinsum';
    END IF;
    EXECUTE 'DROP ROUTINE ' || gone;
END
$block$;
