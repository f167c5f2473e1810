
-- PostgreSQL's own SUM fails on overflow; this one returns infinity. Without rows, both return NULL.
CREATE$or_replace AGGREGATE tensor_sum(u double precision) (
    SFUNC = tensor_add,
    STYPE = double precision,
    COMBINEFUNC = tensor_add,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE tensor_sum(double precision) IS 'Sum of numbers; infinite if it is too large for a floating-point number. Example: tensor_sum(u)';
