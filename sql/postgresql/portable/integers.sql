-- int64: PostgreSQL's operators refuse what leaves its range.

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_add(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a + b;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sub(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a - b;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_mul(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a * b;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sign(a bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN a > 0 THEN 1 WHEN a < 0 THEN -1 ELSE 0 END::bigint;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_relu(a bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(a, 0::bigint);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_neg(a bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN -a;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_abs(a bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN abs(a);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_conj(a bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a;

-- By squaring.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_pow(a bigint, b bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    product bigint := 1;
BEGIN
    IF b < 0 THEN
        PERFORM @extschema@.sparseeinsum_refuse('power of int64', @integers.NEGATIVE_EXPONENT@, 0);
    END IF;
    WHILE b > 0 LOOP
        IF b % 2 = 1 THEN
            product := product * a;
        END IF;
        b := b / 2;
        IF b > 0 THEN
            a := a * a;
        END IF;
    END LOOP;
    RETURN product;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_min(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(a, b);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_max(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(a, b);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_less(a bigint, b bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a < b;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_at_most(a bigint, b bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a <= b;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_differs(a bigint, b bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a <> b;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_same(a bigint, b bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a = b;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_true(a bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a <> 0;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_plain(u bigint[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN true;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_bounded(u bigint[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN true;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_floor(a bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN a;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_ceil(a bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN a;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_round(a bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN a;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_literal(literal text, likes bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN literal::bigint;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_identity_of(aggregate text, likes bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE aggregate @operators.IDENTITIES_OF_INTEGERS@ END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_from_integer(a bigint, likes bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN a;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_to_integer(a bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN a;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_item_bytes(likes bigint[]) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 8;
