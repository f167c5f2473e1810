
DO $$block$$
BEGIN
    IF NOT EXISTS (
        SELECT
        FROM pg_catalog.pg_cast AS c
        WHERE c.castsource = '$source'::regtype AND c.casttarget = '$target'::regtype
    ) THEN
        CREATE CAST ($source AS $target) WITH FUNCTION $function($source) AS $context;
    END IF;
END
$$block$$;
