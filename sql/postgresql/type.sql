
-- The type tensor, for expressions: a flat array of numbers in the format of float8[]. It stays as it is in an update.
DO $$block$$
BEGIN
    IF NOT EXISTS (
        SELECT
        FROM pg_catalog.pg_type AS t
            JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid
            JOIN pg_catalog.pg_extension AS e
                ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid
        WHERE e.extname = 'sparseeinsum' AND d.deptype = 'e' AND t.typname = 'tensor'
    ) THEN
        CREATE TYPE tensor;
    END IF;
END
$$block$$;

CREATE OR REPLACE FUNCTION tensor_in(cstring, oid, integer) RETURNS tensor
    AS 'MODULE_PATHNAME', '$tensor_in'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tensor_in(cstring, oid, integer) IS 'Part of the type tensor: reads {1,2} or [1,2].';
CREATE OR REPLACE FUNCTION tensor_out(tensor) RETURNS cstring
    AS 'array_out'
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tensor_out(tensor) IS 'Part of the type tensor: writes {1,2}.';
CREATE OR REPLACE FUNCTION tensor_recv(internal, oid, integer) RETURNS tensor
    AS 'MODULE_PATHNAME', '$tensor_recv'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tensor_recv(internal, oid, integer) IS 'Part of the type tensor: reads the bytes of float8[].';
CREATE OR REPLACE FUNCTION tensor_send(tensor) RETURNS bytea
    AS 'array_send'
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tensor_send(tensor) IS 'Part of the type tensor: writes the bytes of float8[].';

DO $$block$$
BEGIN
    IF NOT (
        SELECT t.typisdefined
        FROM pg_catalog.pg_type AS t
        WHERE t.typname = 'tensor' AND t.typnamespace = pg_catalog.current_schema()::regnamespace
    ) THEN
        CREATE TYPE tensor (
            INPUT = tensor_in, OUTPUT = tensor_out, RECEIVE = tensor_recv, SEND = tensor_send,
            ALIGNMENT = double, STORAGE = external
        );
    END IF;
END
$$block$$;
COMMENT ON TYPE tensor IS 'A flat array of numbers, with operators.';

CREATE OR REPLACE FUNCTION tensor_to_array(tensor) RETURNS double precision[]
    AS 'MODULE_PATHNAME', '$tensor_cast'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tensor_to_array(tensor) IS 'Part of the type tensor: its cast to float8[].';
CREATE OR REPLACE FUNCTION array_to_tensor(double precision[]) RETURNS tensor
    AS 'MODULE_PATHNAME', '$tensor_cast'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION array_to_tensor(double precision[]) IS 'Part of the type tensor: its cast from float8[].';
CREATE OR REPLACE FUNCTION tensor_cmp(tensor, tensor) RETURNS integer
    AS 'btarraycmp'
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tensor_cmp(tensor, tensor) IS 'Part of the type tensor: compares for indexes.';
CREATE OR REPLACE FUNCTION tensor_hash_key(tensor) RETURNS integer
    AS 'hash_array'
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tensor_hash_key(tensor) IS 'Part of the type tensor: its hash for joins and groups.';
