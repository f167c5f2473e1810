-- Functions that all array functions use; most exist once for float8[] and once for bigint[].

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_refuse(caller text, code integer, VARIADIC parts anycompatiblearray) RETURNS void
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RAISE EXCEPTION USING
        MESSAGE = caller || ': ' || format((@messages@)[-code], VARIADIC parts),
        ERRCODE = (@sqlstates@)[-code];
END
$$;

-- An array with one dimension, counted from 1, as all functions below expect; an array with NULL is an error.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_flat(caller text, argument integer, u anyarray) RETURNS anyarray
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF array_ndims(u) > 1 OR array_lower(u, 1) <> 1 THEN
        u := ARRAY(SELECT unnest(u));
    END IF;
    IF array_position(u, NULL) IS NOT NULL THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.HOLDS_NULL@, argument, cardinality(u));
    END IF;
    RETURN u;
END
$$;

-- The size of a result; an error if it does not fit into an array.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_held(caller text, size bigint, item_bytes integer) RETURNS integer
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF size > @largest_result@ / item_bytes THEN
        PERFORM @extschema@.sparseeinsum_refuse(
            caller, @descriptors.RESULT_TOO_LARGE@, size * item_bytes, @largest_result@::bigint
        );
    END IF;
    RETURN size;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_least_of(u bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT min(a) FROM unnest(u) AS a);

-- The number of elements of an array, as layout.product_of in udfs.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_product_of(caller text, extents bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    size bigint := 1;
    extent bigint;
BEGIN
    FOREACH extent IN ARRAY extents LOOP
        IF extent < 0 THEN
            PERFORM @extschema@.sparseeinsum_refuse(
                caller, @layout.BAD_EXTENT@, @extschema@.sparseeinsum_least_of(extents)
            );
        ELSIF size > @layout.MAX_ELEMENTS@ / greatest(extent, 1) THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @layout.TOO_LARGE@, 0);
        END IF;
        size := size * greatest(extent, 1);
    END LOOP;
    RETURN CASE WHEN 0 = ANY (extents) THEN 0 ELSE size END;
END
$$;

-- An error unless the size of an operand, by its number among the arguments, is the product of its extents.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_check_extents(
    caller text, operand integer, size bigint, extents bigint[]
) RETURNS void LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    expected bigint;
BEGIN
    IF cardinality(extents) > @layout.MAX_AXES@ THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.TOO_MANY_EXTENTS@, cardinality(extents));
    END IF;
    expected := @extschema@.sparseeinsum_product_of(caller, extents);
    IF size <> expected THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.WRONG_LENGTH@, operand, size, expected);
    END IF;
END
$$;

-- The distance between neighbours along every axis, in C order.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_strides_of(extents bigint[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    strides bigint[] := extents;
    stride bigint := 1;
BEGIN
    FOR axis IN REVERSE cardinality(extents)..1 LOOP
        strides[axis] := stride;
        stride := stride * greatest(extents[axis], 1);
    END LOOP;
    RETURN strides;
END
$$;

-- The offsets of all positions along some axes, the last of them varying fastest.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_offsets(extents bigint[], strides bigint[]) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    offsets integer[] := '{0}';
BEGIN
    IF 0 = ANY (extents) THEN
        RETURN '{}';
    END IF;
    FOR axis IN 1..cardinality(extents) LOOP
        IF extents[axis] > 1 THEN
            offsets := ARRAY(
                SELECT (first + strides[axis] * generate_series(0, extents[axis] - 1))::integer
                FROM unnest(offsets) AS first
            );
        END IF;
    END LOOP;
    RETURN offsets;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_gather(u anyarray, start bigint, offsets integer[]) RETURNS anyarray
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY(SELECT u[1 + start + place] FROM unnest(offsets) AS place);
END
$$;
