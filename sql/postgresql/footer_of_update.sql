
-- Drop the functions of earlier versions that this version does not have: the library lacks their symbols.
DO $$block$$
DECLARE
    old record;
BEGIN
    FOR old IN
        SELECT p.oid::regprocedure AS signature, p.prokind
        FROM pg_catalog.pg_depend AS d
            JOIN pg_catalog.pg_extension AS e ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid
            JOIN pg_catalog.pg_proc AS p ON d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid
            LEFT JOIN pg_catalog.pg_aggregate AS a ON a.aggfnoid = p.oid
            JOIN pg_catalog.pg_proc AS c ON c.oid = coalesce(a.aggtransfn, p.oid)
            JOIN pg_catalog.pg_language AS l ON l.oid = c.prolang
        WHERE e.extname = 'sparseeinsum' AND d.deptype = 'e' AND l.lanname = 'c' AND c.prosrc NOT LIKE '$symbols'
        ORDER BY p.prokind -- aggregates before functions
    LOOP
        EXECUTE pg_catalog.format(
            'DROP %s %s', CASE old.prokind WHEN 'a' THEN 'AGGREGATE' ELSE 'FUNCTION' END, old.signature
        );
    END LOOP;
END
$$block$$;
