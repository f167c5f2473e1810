
CREATE OR REPLACE FUNCTION @extschema@.@name@(@parameters@) RETURNS @returns@
LANGUAGE sql IMMUTABLE@strict@ PARALLEL SAFE
RETURN @body@;
COMMENT ON FUNCTION @extschema@.@name@(@types@) IS @comment@;
