-- Functions from which random numbers are made; udfs/random_numbers.py and operators/normal_quantile.py give the sources.

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_threefry(a bigint, b bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    mask CONSTANT bigint := 4294967295;
    rotations CONSTANT integer[] := ARRAY[13, 15, 26, 6, 17, 29, 16, 24];
    keys bigint[] := ARRAY[a >> 32 & mask, a & mask];
    x bigint := (b >> 32 & mask) + keys[1] & mask;
    y bigint := (b & mask) + keys[2] & mask;
    rotation integer;
BEGIN
    keys := keys || (keys[1] # keys[2] # @random_numbers.PARITY@);
    FOR step IN 0..19 LOOP
        rotation := rotations[step % 8 + 1];
        x := x + y & mask;
        y := (((y << rotation) | (y >> (32 - rotation))) & mask) # x;
        IF step % 4 = 3 THEN
            x := x + keys[(step / 4 + 1) % 3 + 1] & mask;
            y := y + keys[(step / 4 + 2) % 3 + 1] + step / 4 + 1 & mask;
        END IF;
    END LOOP;
    RETURN (x << 20) + (y >> 12);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_threefry(a float8, b float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN a IS NULL OR b IS NULL THEN NULL
    WHEN abs(a) <= @operators.LARGEST@ AND abs(b) <= @operators.LARGEST@ AND floor(a) = a AND floor(b) = b
    THEN @extschema@.sparseeinsum_threefry(a::bigint, b::bigint)::float8
    ELSE 'nan'::float8
END;

-- The value of a polynomial whose coefficients begin with that of the highest power.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_polynomial(coefficients float8[], a float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    value float8 := 0;
    coefficient float8;
BEGIN
    FOREACH coefficient IN ARRAY coefficients LOOP
        value := value * a + coefficient;
    END LOOP;
    RETURN value;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_normal_quantile(a float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    distance float8;
    argument float8;
    mantissa float8;
    exponent float8 := 0;
    ratio float8;
    root float8;
BEGIN
    IF a IN (0, 1) THEN
        RETURN CASE a WHEN 0 THEN '-inf' ELSE 'inf' END::float8;
    ELSIF a = 'nan' OR a < 0 OR a > 1 THEN
        RETURN 'nan';
    END IF;
    distance := a - 0.5::float8;
    IF abs(distance) <= @operators.CENTRAL@ THEN
        argument := 0.180625::float8 - @extschema@.sparseeinsum_mul(distance, distance);
        RETURN distance * @extschema@.sparseeinsum_polynomial(@operators.CENTRAL_ABOVE@, argument)
            / @extschema@.sparseeinsum_polynomial(@operators.CENTRAL_BELOW@, argument);
    END IF;
    mantissa := CASE WHEN distance < 0 THEN a ELSE 1 - a END;
    WHILE mantissa < @operators.SQRT_HALF@ LOOP
        mantissa := mantissa * 2;
        exponent := exponent - 1;
    END LOOP;
    ratio := (mantissa - 1) / (mantissa + 1);
    root := sqrt(-(exponent * @operators.LN_2@
        + 2 * ratio * @extschema@.sparseeinsum_polynomial(@operators.LOGARITHM@, ratio * ratio)));
    IF root > 5 THEN
        RETURN sign(distance) * @extschema@.sparseeinsum_polynomial(@operators.FAR_TAIL_ABOVE@, root - 5)
            / @extschema@.sparseeinsum_polynomial(@operators.FAR_TAIL_BELOW@, root - 5);
    END IF;
    RETURN sign(distance) * @extschema@.sparseeinsum_polynomial(@operators.TAIL_ABOVE@, root - 1.6::float8)
        / @extschema@.sparseeinsum_polynomial(@operators.TAIL_BELOW@, root - 1.6::float8);
END
$$;

