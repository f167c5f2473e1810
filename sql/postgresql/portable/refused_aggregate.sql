
CREATE OR REPLACE AGGREGATE @extschema@.@name@(@parameters@) (
    SFUNC = @extschema@.@transition@,
    STYPE = @state@,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.@name@(@types@) IS @comment@;
