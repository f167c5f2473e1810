-- Real numbers as in IEEE 754: PostgreSQL's own operators fail on overflow and underflow, and NaN equals itself.
-- Functions in SQL are inlined; those in PL/pgSQL are for rare cases.

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_add_large(a float8, b float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    half float8;
BEGIN
    IF abs(a) IN ('inf', 'nan') OR abs(b) IN ('inf', 'nan') THEN
        RETURN a + b;
    END IF;
    half := a / 2 + b / 2;
    IF abs(half) >= power(2::float8, 1023) THEN
        RETURN sign(half) * 'inf'::float8;
    END IF;
    RETURN a + b;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_add(a float8, b float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN a BETWEEN -8e307 AND 8e307 AND b BETWEEN -8e307 AND 8e307 THEN a + b
    ELSE @extschema@.sparseeinsum_add_large(a, b)
END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sub(a float8, b float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN a BETWEEN -8e307 AND 8e307 AND b BETWEEN -8e307 AND 8e307 THEN a - b
    ELSE @extschema@.sparseeinsum_add_large(a, -b)
END;

-- A product or quotient out of range whose logarithm is about `size`: infinite or 0, with the sign of the result.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_out_of_range(size float8, is_negative boolean) RETURNS float8
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN size > 0 THEN 'inf'::float8 ELSE 0::float8 END * CASE WHEN is_negative THEN -1 ELSE 1 END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_mul_extreme(a float8, b float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    larger float8 := greatest(abs(a), abs(b));
    smaller float8 := least(abs(a), abs(b));
    size float8;
BEGIN
    IF smaller = 0 OR larger IN ('inf', 'nan') THEN
        RETURN a * b;
    END IF;
    size := ln(larger) + ln(smaller);
    IF size BETWEEN -745 AND 709.7 THEN
        RETURN a * b;
    -- Near the limits, scaled numbers decide to what the product is rounded.
    ELSIF size NOT BETWEEN -760 AND 720
        OR (size > 0 AND larger * power(2::float8, -60) * smaller >= power(2::float8, 964))
        OR (size < 0 AND smaller * power(2::float8, 60) * larger <= power(2::float8, -1015)) THEN
        RETURN @extschema@.sparseeinsum_out_of_range(size, (a < 0) <> (b < 0));
    END IF;
    RETURN a * b;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_mul(a float8, b float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN abs(a) BETWEEN 1e-150 AND 1e150 AND abs(b) BETWEEN 1e-150 AND 1e150 OR a = 0 OR b = 0 THEN a * b
    ELSE @extschema@.sparseeinsum_mul_extreme(a, b)
END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_div_extreme(a float8, b float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    size float8;
BEGIN
    IF b = 0 THEN
        IF a = 0 OR a = 'nan' THEN
            RETURN 'nan';
        END IF;
        RETURN @extschema@.sparseeinsum_out_of_range(1, (a < 0) <> (b::text = '-0'));
    ELSIF a = 0 OR abs(a) IN ('inf', 'nan') OR abs(b) IN ('inf', 'nan') THEN
        RETURN a / b;
    END IF;
    size := ln(abs(a)) - ln(abs(b));
    IF size BETWEEN -745 AND 709.7 THEN
        RETURN a / b;
    ELSIF size NOT BETWEEN -760 AND 720
        OR (size > 0 AND abs(a) * power(2::float8, -60) / abs(b) >= power(2::float8, 964))
        OR (size < 0 AND abs(a) * power(2::float8, 60) / abs(b) <= power(2::float8, -1015)) THEN
        RETURN @extschema@.sparseeinsum_out_of_range(size, (a < 0) <> (b < 0));
    END IF;
    RETURN a / b;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_div(a float8, b float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN abs(b) BETWEEN 1e-150 AND 1e150 AND (a = 0 OR abs(a) BETWEEN 1e-150 AND 1e150) THEN a / b
    ELSE @extschema@.sparseeinsum_div_extreme(a, b)
END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_exp(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN a = 'nan' THEN a
    WHEN a > 709.782712893384 THEN 'inf'::float8
    WHEN a < -746 THEN 0::float8
    WHEN a < -700 THEN @extschema@.sparseeinsum_mul_extreme(exp(a / 2), exp(a / 2))
    ELSE exp(a)
END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_log(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN a > 0 THEN ln(a) WHEN a = 0 THEN '-inf'::float8 ELSE 'nan'::float8 END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sqrt(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN a >= 0 THEN sqrt(a) ELSE 'nan'::float8 END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sign(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN a = 'nan' THEN a ELSE sign(a) END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_relu(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN a <= 0 THEN 0::float8 ELSE a END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sigmoid(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN a BETWEEN -700 AND 700 THEN 1 / (1 + exp(-a))
    WHEN a = 'nan' THEN a
    WHEN a > 0 THEN 1
    ELSE @extschema@.sparseeinsum_div_extreme(1, @extschema@.sparseeinsum_exp(-a))
END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_tanh(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN tanh(a);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_neg(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN -a;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_abs(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN abs(a);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_conj(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_pow_extreme(a float8, b float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    is_whole boolean := b = floor(b);
    is_odd boolean := is_whole AND b / 2 <> floor(b / 2);
    is_negative boolean := is_odd AND (a < 0 OR a::text = '-0');
    size float8;
    root float8;
BEGIN
    IF a = 'nan' OR b = 'nan' OR b = 0 OR a = 1 OR abs(b) = 'inf' THEN
        RETURN power(a, b);
    ELSIF a = 0 OR abs(a) = 'inf' THEN
        RETURN @extschema@.sparseeinsum_out_of_range(CASE WHEN (a = 0) = (b < 0) THEN 1 ELSE -1 END, is_negative);
    ELSIF a < 0 AND NOT is_whole THEN
        RETURN 'nan';
    END IF;
    size := @extschema@.sparseeinsum_mul(b, ln(abs(a)));
    IF size BETWEEN -700 AND 700 THEN
        RETURN power(a, b);
    ELSIF size NOT BETWEEN -800 AND 800 THEN
        RETURN @extschema@.sparseeinsum_out_of_range(size, is_negative);
    END IF;
    root := power(abs(a), b / 2);
    root := @extschema@.sparseeinsum_mul(root, root);
    RETURN CASE WHEN is_negative THEN -root ELSE root END;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_pow(a float8, b float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN b = 2 THEN @extschema@.sparseeinsum_mul(a, a) ELSE @extschema@.sparseeinsum_pow_extreme(a, b) END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_min(a float8, b float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN a = 'nan' OR b = 'nan' THEN 'nan'::float8 ELSE least(a, b) END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_max(a float8, b float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(a, b);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_log_of_sum(a float8, b float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    distance float8;
BEGIN
    IF a = 'nan' OR b = 'nan' THEN
        RETURN 'nan';
    END IF;
    distance := CASE WHEN a = b THEN 0 ELSE abs(@extschema@.sparseeinsum_sub(a, b)) END;
    IF distance > 40 THEN -- what is added is rounded away
        RETURN greatest(a, b);
    END IF;
    RETURN greatest(a, b) + ln(1 + exp(-distance));
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_less(a float8, b float8) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a < b AND b <> 'nan';

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_at_most(a float8, b float8) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a <= b AND b <> 'nan';

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_differs(a float8, b float8) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a <> b OR a = 'nan';

-- Equal as bits, so that NaN equals NaN.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_same(a float8, b float8) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a = b;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_true(a float8) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a <> 0;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_finite(a float8) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN abs(a) < 'inf';

-- Whether products of any two numbers of such arrays, and sums of the products, stay in range for PostgreSQL's operators.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_plain(u float8[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    a float8;
BEGIN
    FOREACH a IN ARRAY u LOOP
        IF abs(a) NOT BETWEEN 1e-75 AND 1e75 AND a <> 0 THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$$;

-- Whether such sums can be added to the elements of an array without overflow.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_bounded(u float8[]) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN 1e300::float8 > ALL (u) AND -1e300::float8 < ALL (u);

-- The value of a number in an expression: infinite or 0 if it is out of range.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_number_of(digits text) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    parts text[] := string_to_array(digits, 'e');
    is_zero boolean := parts[1] !~ '[1-9]';
    size numeric;
BEGIN
    IF is_zero OR length(parts[2]) > 5 THEN
        RETURN @extschema@.sparseeinsum_out_of_range(CASE WHEN is_zero OR parts[2] ~ '^-' THEN -1 ELSE 1 END, false);
    END IF;
    IF coalesce(parts[2], '0')::integer NOT BETWEEN -1000 AND 1000 THEN
        RETURN @extschema@.sparseeinsum_out_of_range(parts[2]::float8, false);
    END IF;
    size := ('0' || parts[1] || 'e' || coalesce(parts[2], '0'))::numeric;
    IF size >= 1.7976931348623158e308 THEN
        RETURN @extschema@.sparseeinsum_out_of_range(1, false);
    ELSIF size < 2.4703282292062328e-324 THEN
        RETURN @extschema@.sparseeinsum_out_of_range(-1, false);
    END IF;
    RETURN digits::float8;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_floor(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN floor(a);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_ceil(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ceil(a);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_round(a float8) RETURNS float8
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN round(a);

-- The value of a literal in a program.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_literal(literal text, likes float8[]) RETURNS float8
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN literal::float8;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_identity_of(aggregate text, likes float8[]) RETURNS float8
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE aggregate @operators.IDENTITIES_OF_REALS@ END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_from_integer(a bigint, likes float8[]) RETURNS float8
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN a::float8;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_to_integer(a float8) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN a::bigint;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_item_bytes(likes float8[]) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 8;

-- A number rounded to float32: infinite or 0 where a cast would fail.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_narrow(a float8) RETURNS real
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN abs(a) BETWEEN 7.006492321624086e-46 AND 3.4028235677973362e38 OR a = 0 OR a = 'nan' THEN a::real
    WHEN a < -1 THEN '-inf'::real
    WHEN a > 1 THEN 'inf'::real
    WHEN a < 0 THEN '-0'::real
    WHEN a > 0 THEN 0::real
END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_narrow(u float8[]) RETURNS real[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF @extschema@.sparseeinsum_is_plain(u) AND 1e38 > ALL (u) AND -1e38 < ALL (u) AND NOT EXISTS (
        SELECT FROM unnest(u) AS a WHERE abs(a) < 1e-40 AND a <> 0
    ) THEN
        RETURN u::real[];
    END IF;
    RETURN ARRAY(SELECT @extschema@.sparseeinsum_narrow(a) FROM unnest(u) AS a);
END
$$;
