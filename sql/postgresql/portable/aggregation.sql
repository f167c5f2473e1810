-- The transitions of aggregates. A state is an array of numbers. The state of an aggregate with a background ends with
-- the fill, the shape of the rows, and the number of these numbers.

-- Fold terms into the elements of w at `targets`, counted from 1; if it is NULL, into all elements in order.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_fold(aggregate text, w anyarray, targets integer[], terms anyarray)
RETURNS anyarray LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    units w%TYPE := ARRAY[@extschema@.sparseeinsum_identity_of('prod', w), @extschema@.sparseeinsum_identity_of('sum', w)];
    n integer := cardinality(terms);
    t integer;
BEGIN
    CASE aggregate
    WHEN 'sum' THEN
        IF targets IS NULL AND @extschema@.sparseeinsum_is_bounded(w) AND @extschema@.sparseeinsum_is_bounded(terms) THEN
            FOR i IN 1..n LOOP
                w[i] := w[i] + terms[i];
            END LOOP;
        ELSE
            FOR i IN 1..n LOOP
                t := coalesce(targets[i], i);
                w[t] := @extschema@.sparseeinsum_add(w[t], terms[i]);
            END LOOP;
        END IF;
    @operators.FOLDS@END CASE;
    RETURN w;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_check_state(caller text, size bigint, known bigint) RETURNS void
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF size <> known THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.STATE_LENGTH@, size, known);
    END IF;
END
$$;

-- Fold an array into a state that is NULL before the first row.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_fold_row(caller text, aggregate text, state anyarray, u anyarray)
RETURNS anyarray LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF state IS NULL THEN
        state := array_fill(@extschema@.sparseeinsum_identity_of(aggregate, u), ARRAY[cardinality(u)]);
    END IF;
    PERFORM @extschema@.sparseeinsum_check_state(caller, cardinality(u), cardinality(state));
    RETURN @extschema@.sparseeinsum_fold(aggregate, state, NULL, u);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sum_scaled(caller text, state anyarray, factor anyelement, v anyarray)
RETURNS anyarray LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    n bigint := cardinality(v);
BEGIN
    IF state IS NULL THEN
        state := array_fill(@extschema@.sparseeinsum_identity_of('sum', v), ARRAY[cardinality(v)]);
    END IF;
    PERFORM @extschema@.sparseeinsum_check_state(caller, n, cardinality(state));
    IF @extschema@.sparseeinsum_is_plain(v) AND @extschema@.sparseeinsum_is_plain(ARRAY[factor])
        AND @extschema@.sparseeinsum_is_bounded(state) THEN
        FOR i IN 1..n LOOP
            state[i] := state[i] + factor * v[i];
        END LOOP;
        RETURN state;
    END IF;
    RETURN @extschema@.sparseeinsum_contract(
        ARRAY[1, 1, n, n, n, 0, 1, 1], ARRAY[factor], v, state, @extschema@.sparseeinsum_identity_of('sum', v)
    );
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_gather_rows(
    caller text, u anyarray, positions integer[], v anyarray, size bigint
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    w v%TYPE := @extschema@.sparseeinsum_fill(caller, size, @extschema@.sparseeinsum_identity_of('sum', v), v);
    rows bigint;
BEGIN
    IF cardinality(u) <> cardinality(positions) THEN
        PERFORM @extschema@.sparseeinsum_refuse(
            caller, @descriptors.POSITIONS_MISSING@, cardinality(u), cardinality(positions)
        );
    END IF;
    IF size = 0 THEN
        RETURN w;
    END IF;
    rows := cardinality(v) / size;
    FOR entry IN 1..cardinality(u) LOOP
        IF positions[entry] NOT BETWEEN 0 AND rows - 1 THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.NO_SUCH_ROW@, positions[entry], rows, size);
        END IF;
        w := @extschema@.sparseeinsum_sum_scaled(
            caller, w, u[entry], v[positions[entry] * size + 1 : (positions[entry] + 1) * size]
        );
    END LOOP;
    RETURN w;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_einsum_sum(
    caller text, state anyarray, plan bigint[], u anyarray, v anyarray
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF state IS NULL THEN
        RETURN @extschema@.sparseeinsum_einsum(caller, plan, u, v);
    END IF;
    PERFORM @extschema@.sparseeinsum_check_operand(caller, plan, 1, u);
    PERFORM @extschema@.sparseeinsum_check_operand(caller, plan, 2, v);
    PERFORM @extschema@.sparseeinsum_check_state(caller, plan[4], cardinality(state));
    RETURN @extschema@.sparseeinsum_contract(plan, u, v, state, @extschema@.sparseeinsum_identity_of('sum', u));
END
$$;

-- The state of an aggregate with a background before any row.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_background(
    caller text, size bigint, shape bigint[], fill anyelement, likes anyarray
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    words integer := cardinality(shape);
    state likes%TYPE;
    number bigint;
BEGIN
    state := array_fill(
        fill, ARRAY[@extschema@.sparseeinsum_held(caller, size, @extschema@.sparseeinsum_item_bytes(likes))]
    ) || fill;
    FOREACH number IN ARRAY shape || words::bigint LOOP
        state := state || @extschema@.sparseeinsum_from_integer(CASE WHEN size > 0 THEN number ELSE words END, likes);
    END LOOP;
    RETURN state;
END
$$;

-- Refuse a row of `size` elements and a shape that does not fit into a state. Returns nothing: states are large.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_check_background(
    caller text, state anyarray, size bigint, shape bigint[]
) RETURNS void LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    words integer := cardinality(shape);
    known integer := cardinality(state);
    number bigint := @extschema@.sparseeinsum_to_integer(state[known]);
BEGIN
    PERFORM @extschema@.sparseeinsum_check_state(caller, size, known - 2 - number);
    IF size > 0 AND number <> words THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.STATE_SHAPE@, words, number);
    END IF;
    FOR word IN 1..words LOOP
        number := @extschema@.sparseeinsum_to_integer(state[known - 1 - words + word]);
        IF size > 0 AND number <> shape[word] THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.STATE_SHAPE@, shape[word], number);
        END IF;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_without_background(state anyarray) RETURNS anyarray
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN trim_array(state, 2 + @extschema@.sparseeinsum_to_integer(state[cardinality(state)])::integer);
END
$$;

-- Copy into one state what the other one has that is not its fill.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_overlay(caller text, state anyarray, other anyarray) RETURNS anyarray
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    known integer := cardinality(other);
    words integer := @extschema@.sparseeinsum_to_integer(other[known]);
    size integer := known - 2 - words;
    shape bigint[] := '{}';
BEGIN
    FOR word IN 1..words LOOP
        shape := shape || @extschema@.sparseeinsum_to_integer(other[size + 1 + word]);
    END LOOP;
    PERFORM @extschema@.sparseeinsum_check_background(caller, state, size, shape);
    FOR i IN 1..size LOOP
        IF NOT @extschema@.sparseeinsum_is_same(other[i], other[size + 1]) THEN
            state[i] := other[i];
        END IF;
    END LOOP;
    RETURN state;
END
$$;

-- The elements of `size` arrays side by side, of which one goes to a position.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_stacked(caller text, length bigint, at_position bigint, size bigint)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF at_position < 0 OR at_position >= size THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @layout.BAD_POSITION@, at_position, size);
    ELSIF length > 0 AND size > @layout.MAX_ELEMENTS@ / length THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.STACK_TOO_LARGE@, size, length);
    END IF;
    RETURN size * length;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_stack(
    caller text, state anyarray, val anyarray, at_position bigint, size bigint, inside bigint, fill anyelement
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    length integer := cardinality(val);
    elements bigint;
    target bigint;
BEGIN
    IF inside < 0 OR (inside = 0 AND length > 0) OR (inside > 0 AND length % inside <> 0) THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.BAD_INNER@, length, inside);
    END IF;
    elements := @extschema@.sparseeinsum_stacked(caller, length, at_position, size);
    IF state IS NULL THEN
        state := @extschema@.sparseeinsum_background(caller, elements, ARRAY[size, inside], fill, val);
    ELSE
        PERFORM @extschema@.sparseeinsum_check_background(caller, state, elements, ARRAY[size, inside]);
    END IF;
    IF length = inside THEN -- as one slice, whatever the state's size, nothing is taken apart
        target := at_position * inside;
        IF inside > 0 THEN
            state[target + 1:target + inside] := val;
        END IF;
        RETURN state;
    END IF;
    FOR block IN 0..length / greatest(inside, 1) - 1 LOOP
        target := (block * size + at_position) * inside;
        FOR i IN 1..inside LOOP
            state[target + i] := val[block * inside + i];
        END LOOP;
    END LOOP;
    RETURN state;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_stack_numbers(
    caller text, state anyarray, val anyelement, at_position bigint, size bigint, fill anyelement
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    elements bigint := @extschema@.sparseeinsum_stacked(caller, 1, at_position, size);
BEGIN
    IF state IS NULL THEN
        state := @extschema@.sparseeinsum_background(caller, elements, '{}', fill, ARRAY[fill]);
    ELSE
        PERFORM @extschema@.sparseeinsum_check_background(caller, state, elements, '{}');
    END IF;
    state[at_position + 1:at_position + 1] := ARRAY[val];
    RETURN state;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_place(
    caller text, state anyarray, val anyarray, starts bigint[], extents bigint[], sizes bigint[], fill anyelement
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    size bigint;
    strides bigint[];
    start bigint := 0;
    offsets integer[];
    place integer;
BEGIN
    IF cardinality(starts) <> cardinality(extents) OR cardinality(sizes) <> cardinality(extents) THEN
        PERFORM @extschema@.sparseeinsum_refuse(
            caller, @tiles.STARTS_MISSING@, cardinality(starts), cardinality(extents), cardinality(sizes)
        );
    END IF;
    PERFORM @extschema@.sparseeinsum_check_extents(caller, 1, cardinality(val), extents);
    size := @extschema@.sparseeinsum_product_of(caller, sizes);
    strides := @extschema@.sparseeinsum_strides_of(sizes);
    FOR axis IN 1..cardinality(sizes) LOOP
        IF starts[axis] < 0 OR extents[axis] > sizes[axis] - starts[axis] THEN
            PERFORM @extschema@.sparseeinsum_refuse(
                caller, @tiles.OUTSIDE@, extents[axis], starts[axis], sizes[axis], axis - 1
            );
        END IF;
        start := start + starts[axis] * strides[axis];
    END LOOP;
    IF state IS NULL THEN
        state := @extschema@.sparseeinsum_background(caller, size, sizes, fill, val);
    ELSE
        PERFORM @extschema@.sparseeinsum_check_background(caller, state, size, sizes);
    END IF;
    offsets := @extschema@.sparseeinsum_offsets(extents, strides);
    FOR i IN 1..cardinality(val) LOOP
        place := start + 1 + offsets[i];
        state[place] := val[i];
    END LOOP;
    RETURN state;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_nnz_along(
    caller text, state bigint[], u anyarray, axis bigint, extents bigint[], fill anyelement
) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    extent bigint;
    inside bigint;
    place bigint;
BEGIN
    PERFORM @extschema@.sparseeinsum_check_extents(caller, 1, cardinality(u), extents);
    IF axis NOT BETWEEN 0 AND cardinality(extents) - 1 THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @layout.BAD_AXIS@, axis, cardinality(extents));
    END IF;
    extent := extents[axis + 1];
    IF state IS NULL THEN
        state := array_fill(0::bigint, ARRAY[@extschema@.sparseeinsum_held(caller, extent, 8)]);
    END IF;
    PERFORM @extschema@.sparseeinsum_check_state(caller, extent, cardinality(state));
    inside := (@extschema@.sparseeinsum_strides_of(extents))[axis + 1];
    FOR i IN 1..cardinality(u) LOOP
        IF @extschema@.sparseeinsum_differs(u[i], fill) THEN
            place := (i - 1) / inside % extent + 1;
            state[place] := state[place] + 1;
        END IF;
    END LOOP;
    RETURN state;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_count(caller text, state bigint[], u anyarray) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    fills u%TYPE := ARRAY[@extschema@.sparseeinsum_identity_of('sum', u)];
BEGIN
    IF state IS NULL THEN
        state := array_fill(0::bigint, ARRAY[cardinality(u)]);
    END IF;
    PERFORM @extschema@.sparseeinsum_check_state(caller, cardinality(u), cardinality(state));
    FOR i IN 1..cardinality(u) LOOP
        IF @extschema@.sparseeinsum_differs(u[i], fills[1]) THEN
            state[i] := state[i] + 1;
        END IF;
    END LOOP;
    RETURN state;
END
$$;

-- The state of an average: the sums, then the number of rows.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_avg(caller text, state float8[], u float8[]) RETURNS float8[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF state IS NULL THEN
        state := array_fill(0::float8, ARRAY[cardinality(u) + 1]);
    END IF;
    PERFORM @extschema@.sparseeinsum_check_state(caller, cardinality(u), cardinality(state) - 1);
    RETURN @extschema@.sparseeinsum_fold('sum', state, NULL, u || 1::float8);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_avg_combined(caller text, state float8[], other float8[])
RETURNS float8[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    PERFORM @extschema@.sparseeinsum_check_state(caller, cardinality(other) - 1, cardinality(state) - 1);
    RETURN @extschema@.sparseeinsum_fold('sum', state, NULL, other);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_avg_finished(state float8[]) RETURNS float8[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    n integer := cardinality(state) - 1;
BEGIN
    FOR i IN 1..n LOOP
        state[i] := @extschema@.sparseeinsum_div(state[i], state[n + 1]);
    END LOOP;
    RETURN trim_array(state, 1);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_sum_of_numbers(state float8, u float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN @extschema@.sparseeinsum_add(state, u);
END
$$;

-- PostgreSQL's own SUM fails on overflow; this one returns infinity. Without rows, both return NULL.
CREATE OR REPLACE AGGREGATE @extschema@.tensor_sum(u double precision) (
    SFUNC = @extschema@.sparseeinsum_sum_of_numbers,
    STYPE = double precision,
    COMBINEFUNC = @extschema@.sparseeinsum_sum_of_numbers,
    PARALLEL = SAFE
);
COMMENT ON AGGREGATE @extschema@.tensor_sum(double precision) IS 'Sum of numbers; infinite if it is too large for a floating-point number. Example: tensor_sum(u). @marker@';
