
DO $$block$$
BEGIN
    IF NOT EXISTS (
        SELECT
        FROM pg_catalog.pg_opclass AS c
        WHERE c.opcname = 'tensor_ops' AND c.opcintype = 'tensor'::regtype
    ) THEN
        CREATE OPERATOR CLASS tensor_ops DEFAULT FOR TYPE tensor USING btree AS
            OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
            FUNCTION 1 tensor_cmp(tensor, tensor);
        CREATE OPERATOR CLASS tensor_ops DEFAULT FOR TYPE tensor USING hash AS
            OPERATOR 1 =, FUNCTION 1 tensor_hash_key(tensor);
    END IF;
END
$$block$$;
