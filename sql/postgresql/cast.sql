
CREATE OR REPLACE FUNCTION array_to_tensor($array) RETURNS tensor
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN array_to_tensor($$1::double precision[]);
COMMENT ON FUNCTION array_to_tensor($array) IS 'Part of the type tensor: its cast from $array.';
