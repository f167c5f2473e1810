
CREATE$or_replace AGGREGATE $name($parameters) (
    SFUNC = $transition,
    STYPE = $state,
    SSPACE = $state_bytes,$combine$finish
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE $name($types) IS $comment;
