
CREATE OR REPLACE FUNCTION $function($parameters) RETURNS $returns
    LANGUAGE $language IMMUTABLE STRICT PARALLEL SAFE
    $definition;
COMMENT ON FUNCTION $function($parameters) IS $comment;
DO $$block$$
BEGIN
    IF NOT EXISTS ( -- without a function, it is only announced as the commutator or negator of another one
        SELECT
        FROM pg_catalog.pg_operator AS o
        WHERE o.oid = pg_catalog.to_regoperator('$symbol($left, $right)') AND o.oprcode <> 0
    ) THEN
        CREATE OPERATOR $symbol ($options);
    END IF;
END
$$block$$;
COMMENT ON OPERATOR $symbol ($left, $right) IS $comment;
