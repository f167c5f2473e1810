
CREATE OR REPLACE FUNCTION @extschema@.@name@(@parameters@) RETURNS @returns@
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    PERFORM @extschema@.sparseeinsum_refuse(@caller@, @descriptors.NOT_PORTABLE@, 0);
END
$$;
COMMENT ON FUNCTION @extschema@.@name@(@types@) IS @comment@;
