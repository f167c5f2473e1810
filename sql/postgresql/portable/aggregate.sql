
CREATE OR REPLACE AGGREGATE @extschema@.@name@(@parameters@) (
    SFUNC = @extschema@.@transition@,
    STYPE = @state@,
    SSPACE = @state_bytes@,
    COMBINEFUNC = @extschema@.@combine@,@finish@
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.@name@(@types@) IS @comment@;
