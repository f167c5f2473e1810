
CREATE$or_replace FUNCTION $name($parameters) RETURNS $returns
    AS 'MODULE_PATHNAME', '$symbol'
    LANGUAGE C IMMUTABLE$strict PARALLEL SAFE COST $cost;
COMMENT ON FUNCTION $name($types) IS $comment;
