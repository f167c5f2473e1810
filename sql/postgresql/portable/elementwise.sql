-- Arithmetic of arrays, and functions that return one number of an array.

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_check_same(caller text, u anyarray, v anyarray) RETURNS void
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF cardinality(u) <> cardinality(v) THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.LENGTHS_DIFFER@, cardinality(u), cardinality(v));
    END IF;
END
$$;

-- `operation`: a function of two numbers, as programs name it.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_combine(caller text, operation text, u anyarray, v anyarray)
RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    PERFORM @extschema@.sparseeinsum_check_same(caller, u, v);
    RETURN @extschema@.sparseeinsum_evaluate(ARRAY['u', 'v', operation], u, v, false);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_scale(factor anyelement, u anyarray) RETURNS anyarray
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    FOR i IN 1..cardinality(u) LOOP
        u[i] := @extschema@.sparseeinsum_mul(factor, u[i]);
    END LOOP;
    RETURN u;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_outer(caller text, u anyarray, v anyarray) RETURNS anyarray
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    n integer := cardinality(v);
    w u%TYPE;
BEGIN
    w := array_fill(@extschema@.sparseeinsum_identity_of('sum', u), ARRAY[@extschema@.sparseeinsum_held(
        caller, cardinality(u)::bigint * n, @extschema@.sparseeinsum_item_bytes(u)
    )]);
    FOR i IN 1..cardinality(u) LOOP
        FOR j IN 1..n LOOP
            w[(i - 1) * n + j] := @extschema@.sparseeinsum_mul(u[i], v[j]);
        END LOOP;
    END LOOP;
    RETURN w;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_norm(u float8[]) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    total float8[];
BEGIN
    total := @extschema@.sparseeinsum_einsum(
        'tensor_norm', ARRAY[1, cardinality(u), cardinality(u), 1, cardinality(u), 1, 1, 0], u, u
    );
    RETURN @extschema@.sparseeinsum_sqrt(total[1]);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_nnz(u anyarray, fill anyelement) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    number bigint := 0;
BEGIN
    FOR i IN 1..cardinality(u) LOOP
        IF @extschema@.sparseeinsum_differs(u[i], fill) THEN
            number := number + 1;
        END IF;
    END LOOP;
    RETURN number;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_nnz(u anyarray) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN @extschema@.sparseeinsum_nnz(u, @extschema@.sparseeinsum_identity_of('sum', u));
END
$$;

-- The least or greatest element that is not the fill.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_extreme(aggregate text, u anyarray, fill anyelement) RETURNS anyelement
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    found fill%TYPE := @extschema@.sparseeinsum_identity_of(aggregate, u);
    element fill%TYPE;
BEGIN
    FOREACH element IN ARRAY u LOOP
        IF NOT @extschema@.sparseeinsum_differs(element, fill) THEN
            CONTINUE;
        ELSIF aggregate = 'min' THEN
            found := @extschema@.sparseeinsum_min(found, element);
        ELSE
            found := @extschema@.sparseeinsum_max(found, element);
        END IF;
    END LOOP;
    RETURN found;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_check_finite(caller text, name text, u anyarray, fill anyelement)
RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    element fill%TYPE;
BEGIN
    PERFORM @extschema@.sparseeinsum_flat(caller, 2, u);
    FOREACH element IN ARRAY u LOOP
        IF NOT @extschema@.sparseeinsum_is_finite(element) AND @extschema@.sparseeinsum_differs(element, fill) THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @elementwise.NOT_FINITE@, name);
        END IF;
    END LOOP;
    RETURN u;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_check_finite(caller text, name text, u float8, fill float8)
RETURNS float8 LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF NOT @extschema@.sparseeinsum_is_finite(u) AND @extschema@.sparseeinsum_differs(u, fill) THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @elementwise.NOT_FINITE@, name);
    END IF;
    RETURN u;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_all_finite(u anyarray) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    FOR i IN 1..cardinality(u) LOOP
        IF NOT @extschema@.sparseeinsum_is_finite(u[i]) THEN
            RETURN 0;
        END IF;
    END LOOP;
    RETURN 1;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_map_number(program text[], u float8, is_single boolean) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    mapped float8[] := @extschema@.sparseeinsum_evaluate(program, ARRAY[u], ARRAY[u], is_single);
BEGIN
    RETURN mapped[1];
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_map_number(program text[], u bigint, is_single boolean) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    mapped bigint[] := @extschema@.sparseeinsum_evaluate(program, ARRAY[u], ARRAY[u], is_single);
BEGIN
    RETURN mapped[1];
END
$$;

-- `likes`: an array of the numbers' type, which is not read.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_fill(caller text, size bigint, value anyelement, likes anyarray)
RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF size NOT BETWEEN 0 AND @layout.MAX_ELEMENTS@ THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.BAD_SIZE@, size);
    END IF;
    RETURN array_fill(
        value, ARRAY[@extschema@.sparseeinsum_held(caller, size, @extschema@.sparseeinsum_item_bytes(likes))]
    );
END
$$;
