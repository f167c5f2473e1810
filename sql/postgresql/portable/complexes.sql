-- Complex numbers as points, whose x is the real part; the formulas are those of udfs/complexes.py.

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_add(a point, b point) RETURNS point
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN point(@extschema@.sparseeinsum_add(a[0], b[0]), @extschema@.sparseeinsum_add(a[1], b[1]));

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sub(a point, b point) RETURNS point
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN point(@extschema@.sparseeinsum_sub(a[0], b[0]), @extschema@.sparseeinsum_sub(a[1], b[1]));

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_mul(a point, b point) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    a_real float8 := a[0];
    a_imaginary float8 := a[1];
    b_real float8 := b[0];
    b_imaginary float8 := b[1];
    first float8;
    second float8;
    third float8;
    fourth float8;
BEGIN
    first := @extschema@.sparseeinsum_mul(a_real, b_real);
    second := @extschema@.sparseeinsum_mul(a_imaginary, b_imaginary);
    third := @extschema@.sparseeinsum_mul(a_real, b_imaginary);
    fourth := @extschema@.sparseeinsum_mul(a_imaginary, b_real);
    RETURN point(@extschema@.sparseeinsum_sub(first, second), @extschema@.sparseeinsum_add(third, fourth));
END
$$;

-- Smith's formula: everything is divided by the larger part of b first.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_div(a point, b point) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    x float8 := a[0];
    y float8 := a[1];
    larger float8 := b[0];
    smaller float8 := b[1];
    is_swapped boolean := NOT @extschema@.sparseeinsum_is_at_most(abs(b[1]), abs(b[0]));
    ratio float8;
    factor float8;
    part float8;
BEGIN
    IF b[0] = 0 AND b[1] = 0 THEN
        RETURN point(
            @extschema@.sparseeinsum_div_extreme(x, abs(larger)), @extschema@.sparseeinsum_div_extreme(y, abs(larger))
        );
    END IF;
    IF is_swapped THEN
        larger := b[1];
        smaller := b[0];
        x := a[1];
        y := a[0];
    END IF;
    ratio := @extschema@.sparseeinsum_div(smaller, larger);
    part := @extschema@.sparseeinsum_mul(smaller, ratio);
    factor := @extschema@.sparseeinsum_add(larger, part);
    factor := @extschema@.sparseeinsum_div(1, factor);
    part := @extschema@.sparseeinsum_mul(y, ratio);
    part := @extschema@.sparseeinsum_add(x, part);
    ratio := @extschema@.sparseeinsum_mul(x, ratio);
    ratio := @extschema@.sparseeinsum_sub(y, ratio);
    IF is_swapped THEN
        ratio := -ratio;
    END IF;
    RETURN point(@extschema@.sparseeinsum_mul(part, factor), @extschema@.sparseeinsum_mul(ratio, factor));
END
$$;

-- sqrt(a^2 + b^2), without overflow on the way.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_hypotenuse(a float8, b float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    larger float8 := greatest(abs(a), abs(b));
    smaller float8 := least(abs(a), abs(b));
    ratio float8;
BEGIN
    IF larger = 'inf' OR smaller = 'inf' THEN
        RETURN 'inf';
    ELSIF larger = 'nan' OR smaller = 0 THEN
        RETURN larger;
    END IF;
    ratio := @extschema@.sparseeinsum_div(smaller, larger);
    IF ratio < 1e-10 THEN
        RETURN larger;
    END IF;
    RETURN @extschema@.sparseeinsum_mul(larger, sqrt(1 + ratio * ratio));
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_abs(a point) RETURNS point
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN point(@extschema@.sparseeinsum_hypotenuse(a[0], a[1]), 0);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sign(a point) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    size float8 := @extschema@.sparseeinsum_hypotenuse(a[0], a[1]);
BEGIN
    IF size = 0 THEN
        RETURN point(0, 0);
    ELSIF size = 'inf' AND (abs(a[0]) = 'inf') <> (abs(a[1]) = 'inf') THEN
        RETURN point(
            CASE WHEN abs(a[0]) = 'inf' THEN sign(a[0]) ELSE 0 END,
            CASE WHEN abs(a[1]) = 'inf' THEN sign(a[1]) ELSE 0 END
        );
    END IF;
    RETURN point(@extschema@.sparseeinsum_div(a[0], size), @extschema@.sparseeinsum_div(a[1], size));
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_exp(a point) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    size float8;
    cosine float8 := 'nan';
    sine float8 := 'nan';
BEGIN
    IF a[1] = 0 THEN
        RETURN point(@extschema@.sparseeinsum_exp(a[0]), a[1]);
    ELSIF abs(a[0]) = 'inf' AND NOT @extschema@.sparseeinsum_is_finite(a[1]) THEN
        RETURN CASE WHEN a[0] < 0 THEN point(0, 0) ELSE point('inf', 'nan') END;
    END IF;
    IF @extschema@.sparseeinsum_is_finite(a[1]) THEN
        cosine := cos(a[1]);
        sine := sin(a[1]);
    END IF;
    IF a[0] > 700 AND a[0] <> 'nan' THEN -- a small cosine or sine may bring the result back into range
        size := @extschema@.sparseeinsum_exp(a[0] / 2);
        cosine := @extschema@.sparseeinsum_mul(size, cosine);
        sine := @extschema@.sparseeinsum_mul(size, sine);
    ELSE
        size := @extschema@.sparseeinsum_exp(a[0]);
    END IF;
    RETURN point(@extschema@.sparseeinsum_mul(size, cosine), @extschema@.sparseeinsum_mul(size, sine));
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_log(a point) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    larger float8 := greatest(abs(a[0]), abs(a[1]));
    smaller float8 := least(abs(a[0]), abs(a[1]));
    above float8;
    rounded float8;
    size float8;
BEGIN
    IF larger BETWEEN 0.5 AND 2 THEN -- near |a| = 1 its logarithm is small, and would lose what |a| is rounded by
        above := (larger - 1) * (larger + 1) + CASE WHEN smaller > 1e-150 THEN smaller * smaller ELSE 0 END;
        rounded := 1 + above;
        size := 0.5 * CASE WHEN rounded = 1 THEN above ELSE ln(rounded) * (above / (rounded - 1)) END;
    ELSIF larger > 0 AND larger < 'inf' AND larger <> 'nan' THEN
        size := ln(larger) + @extschema@.sparseeinsum_log(
            @extschema@.sparseeinsum_hypotenuse(1, @extschema@.sparseeinsum_div(smaller, larger))
        );
    ELSE
        size := @extschema@.sparseeinsum_log(@extschema@.sparseeinsum_hypotenuse(a[0], a[1]));
    END IF;
    RETURN point(size, atan2(a[1], a[0]));
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sqrt(a point) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    larger float8 := greatest(abs(a[0]), abs(a[1]));
    scale float8 := 1;
    root float8;
    other float8;
    sign_of_imaginary float8 := CASE WHEN a[1] < 0 OR a[1]::text = '-0' THEN -1 ELSE 1 END;
BEGIN
    IF larger = 0 THEN
        RETURN point(0, a[1]);
    ELSIF abs(a[1]) = 'inf' THEN
        RETURN point('inf', a[1]);
    ELSIF a[0] = 'nan' OR (a[1] = 'nan' AND abs(a[0]) <> 'inf') THEN
        RETURN point('nan', 'nan');
    ELSIF abs(a[0]) = 'inf' THEN
        other := CASE WHEN a[1] = 'nan' THEN a[1] ELSE 0 END;
        RETURN CASE
            WHEN a[0] < 0 THEN point(other, sign_of_imaginary * 'inf'::float8)
            ELSE point(a[0], other * sign_of_imaginary)
        END;
    END IF;
    IF larger > power(2::float8, 1000) THEN
        a := point(a[0] * power(2::float8, -200), a[1] * power(2::float8, -200));
        scale := power(2::float8, 100);
    ELSIF larger < power(2::float8, -900) THEN
        a := point(a[0] * power(2::float8, 200), a[1] * power(2::float8, 200));
        scale := power(2::float8, -100);
    END IF;
    root := sqrt((abs(a[0]) + @extschema@.sparseeinsum_hypotenuse(a[0], a[1])) * 0.5);
    other := @extschema@.sparseeinsum_div(abs(a[1]), 2 * root);
    IF a[0] >= 0 THEN
        RETURN point(scale * root, @extschema@.sparseeinsum_mul(scale * sign_of_imaginary, other));
    END IF;
    RETURN point(@extschema@.sparseeinsum_mul(scale, other), scale * sign_of_imaginary * root);
END
$$;

-- Kahan's formula.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_tanh(a point) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    is_finite boolean := @extschema@.sparseeinsum_is_finite(a[1]);
    turn float8;
    tangent float8;
    sine float8;
    beta float8;
    divisor float8;
BEGIN
    IF abs(a[0]) = 'inf' THEN
        turn := CASE WHEN is_finite THEN sin(a[1]) * cos(a[1]) ELSE a[1] END;
        RETURN point(sign(a[0]), CASE WHEN turn < 0 THEN '-0'::float8 ELSE 0 END);
    ELSIF a[0] = 'nan' OR NOT is_finite THEN
        RETURN point(CASE WHEN a[0] = 0 THEN a[0] ELSE 'nan' END, CASE WHEN a[1] = 0 THEN a[1] ELSE 'nan' END);
    ELSIF abs(a[0]) > 22 THEN
        sine := @extschema@.sparseeinsum_exp(-2 * abs(a[0]));
        turn := 4 * sin(a[1]) * cos(a[1]);
        RETURN point(sign(a[0]), @extschema@.sparseeinsum_mul(turn, sine));
    END IF;
    tangent := tan(a[1]);
    sine := sinh(a[0]);
    IF abs(sine) < 1e-150 OR abs(tangent) > 1e150 THEN -- squares would leave the range
        RETURN point(@extschema@.sparseeinsum_mul(sine, 1 + tangent * tangent), tangent);
    END IF;
    beta := 1 + @extschema@.sparseeinsum_mul(tangent, tangent);
    divisor := 1 + beta * sine * sine;
    RETURN point(beta * sqrt(1 + sine * sine) * sine / divisor, @extschema@.sparseeinsum_div(tangent, divisor));
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_neg(a point) RETURNS point
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN point(-a[0], -a[1]);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_conj(a point) RETURNS point
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN point(a[0], -a[1]);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sigmoid(a point) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    power point := @extschema@.sparseeinsum_exp(point(-a[0], -a[1]));
BEGIN
    RETURN @extschema@.sparseeinsum_div(point(1, 0), @extschema@.sparseeinsum_add(point(1, 0), power));
END
$$;

-- Whole exponents by multiplication, others by logarithms.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_pow(a point, b point) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    times integer;
    product point;
BEGIN
    IF b[0] = 0 AND b[1] = 0 THEN
        RETURN point(1, 0);
    ELSIF a[0] = 0 AND a[1] = 0 THEN
        RETURN CASE WHEN b[0] > 0 AND b[0] <> 'nan' THEN point(0, 0) ELSE point('nan', 'nan') END;
    ELSIF b[1] = 0 AND abs(b[0]) < 100 AND b[0] = floor(b[0]) THEN
        times := abs(b[0]);
        WHILE times > 0 LOOP
            IF times % 2 = 1 THEN
                product := CASE WHEN product IS NULL THEN a ELSE @extschema@.sparseeinsum_mul(product, a) END;
            END IF;
            times := times / 2;
            IF times > 0 THEN
                a := @extschema@.sparseeinsum_mul(a, a);
            END IF;
        END LOOP;
        RETURN CASE WHEN b[0] > 0 THEN product ELSE @extschema@.sparseeinsum_div(point(1, 0), product) END;
    END IF;
    RETURN @extschema@.sparseeinsum_exp(@extschema@.sparseeinsum_mul(b, @extschema@.sparseeinsum_log(a)));
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_differs(a point, b point) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a[0] <> b[0] OR a[0] = 'nan' OR a[1] <> b[1] OR a[1] = 'nan';

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_same(a point, b point) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a[0] = b[0] AND a[1] = b[1];

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_true(a point) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN a[0] <> 0 OR a[1] <> 0;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_finite(a point) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN abs(a[0]) < 'inf' AND abs(a[1]) < 'inf';

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_plain(u point[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    a point;
BEGIN
    FOREACH a IN ARRAY u LOOP
        IF (abs(a[0]) NOT BETWEEN 1e-75 AND 1e75 AND a[0] <> 0) OR (abs(a[1]) NOT BETWEEN 1e-75 AND 1e75 AND a[1] <> 0) THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_is_bounded(u point[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    a point;
BEGIN
    FOREACH a IN ARRAY u LOOP
        IF abs(a[0]) > 1e300 OR abs(a[1]) > 1e300 THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$$;

-- Digits, or digits and j.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_literal(literal text, likes point[]) RETURNS point
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN literal LIKE '%j' THEN point(0, rtrim(literal, 'j')::float8) ELSE point(literal::float8, 0) END;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_identity_of(aggregate text, likes point[]) RETURNS point
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN point(CASE WHEN aggregate IN ('prod', 'all') THEN 1 ELSE 0 END, 0);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_from_integer(a bigint, likes point[]) RETURNS point
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN point(a, 0);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_to_integer(a point) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN a[0]::bigint;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_narrow(a point) RETURNS point
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN point(@extschema@.sparseeinsum_narrow(a[0]), @extschema@.sparseeinsum_narrow(a[1]));

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_item_bytes(likes point[]) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 16;

-- The complex numbers of re, im, re, im, ..., which are argument number `argument` of the caller.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_paired(caller text, argument integer, u float8[]) RETURNS point[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    u := @extschema@.sparseeinsum_flat(caller, argument, u);
    IF cardinality(u) % 2 = 1 THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.ODD_LENGTH@, argument, cardinality(u));
    END IF;
    RETURN ARRAY(SELECT point(u[i - 1], u[i]) FROM generate_series(2, cardinality(u), 2) AS i);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_pair(caller text, argument integer, u float8[]) RETURNS point
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    u := @extschema@.sparseeinsum_flat(caller, argument, u);
    IF cardinality(u) <> 2 THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.NOT_ONE_COMPLEX@, argument, cardinality(u));
    END IF;
    RETURN point(u[1], u[2]);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_parts(u point[]) RETURNS float8[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT CASE part WHEN 1 THEN a[0] ELSE a[1] END FROM unnest(u) WITH ORDINALITY AS t(a, n), generate_series(1, 2) AS part ORDER BY n, part);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_from_real(u float8[]) RETURNS point[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT point(a, 0) FROM unnest(u) AS a);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_real(u point[]) RETURNS float8[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT a[0] FROM unnest(u) AS a);

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_imaginary(u point[]) RETURNS float8[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT a[1] FROM unnest(u) AS a);
