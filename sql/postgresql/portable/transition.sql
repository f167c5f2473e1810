
CREATE OR REPLACE FUNCTION @extschema@.@name@(@parameters@) RETURNS @returns@
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF @is_null@ THEN
        RETURN state;
    END IF;
    RETURN @body@;
END
$$;
COMMENT ON FUNCTION @extschema@.@name@(@types@) IS @comment@;
