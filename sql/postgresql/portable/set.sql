
CREATE OR REPLACE FUNCTION @extschema@.@name@(@parameters@) RETURNS @returns@
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT @result@ FROM @body@ AS parts (part);
END;
COMMENT ON FUNCTION @extschema@.@name@(@types@) IS @comment@;
