-- Parts of arrays: slices, splits and tiles; and scans along an axis, one slice at a time.

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_check_axis(
    caller text, operand integer, size bigint, axis bigint, extents bigint[]
) RETURNS void LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    PERFORM @extschema@.sparseeinsum_check_extents(caller, operand, size, extents);
    IF axis NOT BETWEEN 0 AND cardinality(extents) - 1 THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @layout.BAD_AXIS@, axis, cardinality(extents));
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_scan(
    caller text, aggregate text, u anyarray, axis bigint, extents bigint[]
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    strides bigint[];
    stride bigint;
    steps bigint;
    offsets integer[];
    state u%TYPE;
    w u%TYPE := u;
BEGIN
    PERFORM @extschema@.sparseeinsum_check_axis(caller, 2, cardinality(u), axis, extents);
    IF cardinality(u) = 0 THEN
        RETURN u;
    END IF;
    strides := @extschema@.sparseeinsum_strides_of(extents);
    stride := strides[axis + 1];
    steps := extents[axis + 1];
    extents[axis + 1] := 1;
    offsets := @extschema@.sparseeinsum_offsets(extents, strides);
    state := array_fill(@extschema@.sparseeinsum_identity_of(aggregate, u), ARRAY[cardinality(offsets)]);
    FOR step IN 0..steps - 1 LOOP
        state := @extschema@.sparseeinsum_fold(
            aggregate, state, NULL, @extschema@.sparseeinsum_gather(u, step * stride, offsets)
        );
        FOR i IN 1..cardinality(offsets) LOOP
            w[1 + step * stride + offsets[i]] := state[i];
        END LOOP;
    END LOOP;
    RETURN w;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_slice(
    caller text, u anyarray, axis bigint, at_position bigint, extents bigint[]
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    strides bigint[];
    stride bigint;
BEGIN
    PERFORM @extschema@.sparseeinsum_check_axis(caller, 1, cardinality(u), axis, extents);
    IF at_position NOT BETWEEN 0 AND extents[axis + 1] - 1 THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @layout.BAD_POSITION@, at_position, extents[axis + 1]);
    END IF;
    strides := @extschema@.sparseeinsum_strides_of(extents);
    stride := strides[axis + 1];
    extents[axis + 1] := 1;
    RETURN @extschema@.sparseeinsum_gather(
        u, at_position * stride, @extschema@.sparseeinsum_offsets(extents, strides)
    );
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_split(caller text, u anyarray, axes bigint[], extents bigint[])
RETURNS SETOF anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    strides bigint[];
    rest bigint[] := extents;
    parts bigint := 1;
    chosen_extents bigint[] := '{}';
    chosen_strides bigint[] := '{}';
    offsets integer[];
    start integer;
BEGIN
    PERFORM @extschema@.sparseeinsum_check_extents(caller, 1, cardinality(u), extents);
    FOR i IN 1..cardinality(axes) LOOP
        IF axes[i] NOT BETWEEN 0 AND cardinality(extents) - 1 OR axes[i] = ANY (axes[:i - 1]) THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @layout.BAD_AXIS@, axes[i], cardinality(extents));
        END IF;
    END LOOP;
    strides := @extschema@.sparseeinsum_strides_of(extents);
    FOR i IN 1..cardinality(axes) LOOP
        parts := parts * extents[axes[i] + 1];
        chosen_extents := chosen_extents || extents[axes[i] + 1];
        chosen_strides := chosen_strides || strides[axes[i] + 1];
        rest[axes[i] + 1] := 1;
    END LOOP;
    parts := @extschema@.sparseeinsum_held(caller, parts, 8);
    IF cardinality(u) = 0 THEN
        FOR part IN 1..parts LOOP
            RETURN NEXT u;
        END LOOP;
        RETURN;
    END IF;
    offsets := @extschema@.sparseeinsum_offsets(rest, strides);
    FOREACH start IN ARRAY @extschema@.sparseeinsum_offsets(chosen_extents, chosen_strides) LOOP
        RETURN NEXT @extschema@.sparseeinsum_gather(u, start, offsets);
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_split_tiles(caller text, u anyarray, tiles bigint[], extents bigint[])
RETURNS SETOF anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    strides bigint[];
    counts bigint[] := extents;
    blocks bigint := 1;
    lengths bigint[] := extents;
    rest bigint;
    start bigint;
    first bigint;
BEGIN
    IF cardinality(tiles) <> cardinality(extents) THEN
        PERFORM @extschema@.sparseeinsum_refuse(
            caller, @tiles.TILES_MISSING@, cardinality(tiles), cardinality(extents)
        );
    END IF;
    PERFORM @extschema@.sparseeinsum_check_extents(caller, 1, cardinality(u), extents);
    IF 0 > ANY (tiles) THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @tiles.BAD_TILE@, @extschema@.sparseeinsum_least_of(tiles));
    END IF;
    strides := @extschema@.sparseeinsum_strides_of(extents);
    FOR axis IN 1..cardinality(extents) LOOP
        counts[axis] := CASE
            WHEN tiles[axis] = 0 THEN 1 WHEN extents[axis] = 0 THEN 0 ELSE (extents[axis] - 1) / tiles[axis] + 1
        END;
        blocks := blocks * counts[axis];
    END LOOP;
    blocks := @extschema@.sparseeinsum_held(caller, blocks, 8);
    FOR block IN 0..blocks - 1 LOOP
        rest := block;
        start := 0;
        FOR axis IN REVERSE cardinality(extents)..1 LOOP
            first := rest % counts[axis] * tiles[axis];
            rest := rest / counts[axis];
            start := start + first * strides[axis];
            lengths[axis] := CASE
                WHEN tiles[axis] = 0 THEN extents[axis] ELSE least(tiles[axis], extents[axis] - first)
            END;
        END LOOP;
        RETURN NEXT @extschema@.sparseeinsum_gather(u, start, @extschema@.sparseeinsum_offsets(lengths, strides));
    END LOOP;
END
$$;
