
-- PostgreSQL's own SUM is an error where it should be infinite. The sum of an aggregate without rows is NULL, as there.
CREATE$or_replace AGGREGATE tensor_sum(u double precision) (
    SFUNC = tensor_add,
    STYPE = double precision,
    COMBINEFUNC = tensor_add,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE tensor_sum(double precision) IS 'Sum of numbers, infinite where it is too large for one. Example: tensor_sum(u)';
