-- Contractions: reading a spec into a plan, and the loops over it. A plan is an array of integers: the numbers of labels,
-- of elements of u, of v and of the result, then for every label its extent and its strides in u, v and the result, as in
-- udfs/contraction_plan.py.

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_plan(caller text, spec text, operands integer, extents bigint[])
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    joined text := regexp_replace(spec, '[^A-Za-z]', '', 'g');
    labels text[] := '{}';
    label text;
    parts text[];
    plan bigint[];
    place integer;
BEGIN
    IF octet_length(spec) > @descriptors.MAX_TEXT@ THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.TEXT_TOO_LONG@, octet_length(spec), @descriptors.MAX_TEXT@);
    ELSIF cardinality(extents) > @contraction_plan.MAX_LABELS@ THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @descriptors.TOO_MANY_EXTENTS@, cardinality(extents));
    ELSIF spec ~ '[^A-Za-z, >-]' OR spec ~ '(^|[^-])>' OR spec ~ '-($|[^>])' OR spec ~ '>.*>' THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @contraction_plan.BAD_CHARACTER@, 0);
    END IF;
    FOREACH label IN ARRAY regexp_split_to_array(joined, '') LOOP
        IF label <> '' AND label <> ALL (labels) THEN
            labels := labels || label;
        END IF;
    END LOOP;
    IF cardinality(labels) > @contraction_plan.MAX_LABELS@ THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @contraction_plan.TOO_MANY_LABELS@, 0);
    ELSIF cardinality(labels) <> cardinality(extents) THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @contraction_plan.WRONG_EXTENTS@, cardinality(extents), cardinality(labels));
    ELSIF 0 > ANY (extents) THEN
        PERFORM @extschema@.sparseeinsum_refuse(
            caller, @contraction_plan.NEGATIVE_EXTENT@, @extschema@.sparseeinsum_least_of(extents)
        );
    END IF;
    parts := regexp_split_to_array(replace(spec, ' ', ''), ',|->');
    IF cardinality(parts) <> operands + 1 OR spec !~ '->[^,]*$' THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @contraction_plan.WRONG_OPERANDS@, operands);
    END IF;
    IF operands = 1 THEN
        parts := ARRAY[parts[1], '', parts[2]];
    END IF;
    plan := ARRAY[cardinality(labels), 1, 1, 1]::bigint[] || array_fill(0::bigint, ARRAY[4 * cardinality(labels)]);
    FOR part IN 1..3 LOOP
        FOREACH label IN ARRAY regexp_split_to_array(reverse(parts[part]), '') LOOP
            CONTINUE WHEN label = '';
            place := array_position(labels, label);
            IF part = 3 AND plan[4 * place + 4] <> 0 THEN
                PERFORM @extschema@.sparseeinsum_refuse(caller, @contraction_plan.REPEATED_OUTPUT_LABEL@, 0);
            ELSIF plan[1 + part] > @layout.MAX_ELEMENTS@ / greatest(extents[place], 1) THEN
                PERFORM @extschema@.sparseeinsum_refuse(caller, @contraction_plan.TOO_LARGE@, 0);
            END IF;
            plan[4 * place + 1 + part] := plan[4 * place + 1 + part] + plan[1 + part]; -- one that stands twice walks a diagonal
            plan[1 + part] := plan[1 + part] * greatest(extents[place], 1);
        END LOOP;
    END LOOP;
    FOR place IN 1..cardinality(labels) LOOP
        plan[4 * place + 1] := extents[place];
        IF plan[4 * place + 2] = 0 AND plan[4 * place + 3] = 0 THEN
            PERFORM @extschema@.sparseeinsum_refuse(caller, @contraction_plan.UNKNOWN_OUTPUT_LABEL@, 0);
        END IF;
        FOR part IN 1..3 LOOP
            IF extents[place] = 0 AND plan[4 * place + 1 + part] <> 0 THEN
                plan[1 + part] := 0;
            END IF;
        END LOOP;
    END LOOP;
    RETURN @extschema@.sparseeinsum_simplified(plan);
END
$$;

-- A plan without labels of extent 1, in which labels that every array walks as one longer label are merged.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_simplified(plan bigint[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    first integer;
    second integer;
BEGIN
    FOR label IN REVERSE plan[1]..1 LOOP
        IF plan[4 * label + 1] = 1 THEN
            plan := plan[:4 * label] || plan[4 * label + 5:];
            plan[1] := plan[1] - 1;
        END IF;
    END LOOP;
    LOOP
        first := NULL;
        FOR outside IN 1..plan[1] LOOP
            FOR inside IN 1..plan[1] LOOP
                IF outside <> inside AND plan[4 * outside + 2] = plan[4 * inside + 2] * plan[4 * inside + 1]
                    AND plan[4 * outside + 3] = plan[4 * inside + 3] * plan[4 * inside + 1]
                    AND plan[4 * outside + 4] = plan[4 * inside + 4] * plan[4 * inside + 1] THEN
                    first := outside;
                    second := inside;
                END IF;
            END LOOP;
        END LOOP;
        EXIT WHEN first IS NULL;
        plan[4 * second + 1] := plan[4 * second + 1] * plan[4 * first + 1];
        plan := plan[:4 * first] || plan[4 * first + 5:];
        plan[1] := plan[1] - 1;
    END LOOP;
    RETURN plan;
END
$$;

-- The plan of 'ij,jk->ik'.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_product_plan(caller text, extents bigint[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF cardinality(extents) <> 3 THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @contraction_plan.WRONG_EXTENTS@, cardinality(extents), 3);
    ELSIF @contraction_plan._MAX_EXTENT@ < ANY (extents) THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @contraction_plan.TOO_LARGE@, 0);
    END IF;
    RETURN @extschema@.sparseeinsum_plan(caller, 'ij,jk->ik', 2, extents);
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_check_operand(caller text, plan bigint[], operand integer, u anyarray)
RETURNS void LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF cardinality(u) <> plan[1 + operand] THEN
        PERFORM @extschema@.sparseeinsum_refuse(
            caller, @descriptors.WRONG_LENGTH@, operand, cardinality(u), plan[1 + operand]
        );
    END IF;
END
$$;

-- Add the contraction of u and v to w. The innermost loop is over a label that is summed, if there is a long one.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_contract(
    plan bigint[], u anyarray, v anyarray, w anyarray, zero anyelement
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    is_plain boolean := @extschema@.sparseeinsum_is_plain(u) AND @extschema@.sparseeinsum_is_plain(v)
        AND @extschema@.sparseeinsum_is_bounded(w);
    extents bigint[] := '{}';
    strides_u bigint[] := '{}';
    strides_v bigint[] := '{}';
    strides_w bigint[] := '{}';
    offsets_u integer[];
    offsets_v integer[];
    offsets_w integer[];
    line integer;
    worth bigint;
    longest bigint := 0;
    last integer := 0; -- of the line, from 0
    in_u integer := 0;
    in_v integer := 0;
    in_w integer := 0;
    at_u integer;
    at_v integer;
    at_w integer;
    total zero%TYPE;
    product zero%TYPE;
BEGIN
    FOR label IN 1..plan[1] LOOP
        IF plan[4 * label + 1] = 0 THEN
            RETURN w;
        END IF;
        worth := plan[4 * label + 1] * (CASE WHEN plan[4 * label + 4] = 0 THEN 4 ELSE 1 END);
        IF worth > longest THEN
            longest := worth;
            line := label;
        END IF;
    END LOOP;
    IF line IS NOT NULL THEN
        last := plan[4 * line + 1] - 1;
        in_u := plan[4 * line + 2];
        in_v := plan[4 * line + 3];
        in_w := plan[4 * line + 4];
    END IF;
    FOR label IN 1..plan[1] LOOP
        CONTINUE WHEN label = line;
        extents := extents || plan[4 * label + 1];
        strides_u := strides_u || plan[4 * label + 2];
        strides_v := strides_v || plan[4 * label + 3];
        strides_w := strides_w || plan[4 * label + 4];
    END LOOP;
    offsets_u := @extschema@.sparseeinsum_offsets(extents, strides_u);
    offsets_v := @extschema@.sparseeinsum_offsets(extents, strides_v);
    offsets_w := @extschema@.sparseeinsum_offsets(extents, strides_w);
    FOR step IN 1..cardinality(offsets_w) LOOP
        at_u := offsets_u[step] + 1;
        at_v := offsets_v[step] + 1;
        at_w := offsets_w[step] + 1;
        IF in_w = 0 AND is_plain THEN
            total := zero;
            FOR i IN 0..last LOOP
                total := total + u[at_u + i * in_u] * v[at_v + i * in_v];
            END LOOP;
            w[at_w] := w[at_w] + total;
        ELSIF is_plain THEN
            FOR i IN 0..last LOOP
                w[at_w + i * in_w] := w[at_w + i * in_w] + u[at_u + i * in_u] * v[at_v + i * in_v];
            END LOOP;
        ELSE
            FOR i IN 0..last LOOP
                product := @extschema@.sparseeinsum_mul(u[at_u + i * in_u], v[at_v + i * in_v]);
                total := w[at_w + i * in_w];
                w[at_w + i * in_w] := @extschema@.sparseeinsum_add(total, product);
            END LOOP;
        END IF;
    END LOOP;
    RETURN w;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_einsum(caller text, plan bigint[], u anyarray, v anyarray)
RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    zeros u%TYPE;
BEGIN
    PERFORM @extschema@.sparseeinsum_check_operand(caller, plan, 1, u);
    PERFORM @extschema@.sparseeinsum_check_operand(caller, plan, 2, v);
    zeros := array_fill(
        @extschema@.sparseeinsum_identity_of('sum', u),
        ARRAY[@extschema@.sparseeinsum_held(caller, plan[4], @extschema@.sparseeinsum_item_bytes(u))]
    );
    RETURN @extschema@.sparseeinsum_contract(plan, u, v, zeros, @extschema@.sparseeinsum_identity_of('sum', u));
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_einsum_of_one(caller text, plan bigint[], u anyarray)
RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN @extschema@.sparseeinsum_einsum(caller, plan, u, ARRAY[@extschema@.sparseeinsum_identity_of('prod', u)]);
END
$$;

-- The inner product.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_dot(caller text, u anyarray, v anyarray) RETURNS anyelement
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    n bigint := cardinality(u);
    total u%TYPE;
BEGIN
    PERFORM @extschema@.sparseeinsum_check_same(caller, u, v);
    total := @extschema@.sparseeinsum_einsum(caller, ARRAY[1, n, n, 1, n, 1, 1, 0], u, v);
    RETURN total[1];
END
$$;

-- Fold an expression of u and v over the labels that the result lacks, about 2^16 terms at a time.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_reduce(
    caller text, aggregate text, program text[], plan bigint[], u anyarray, v anyarray, is_single boolean
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    w u%TYPE;
    outside integer;
    longest bigint := -1;
    extents bigint[] := '{}';
    strides_u bigint[] := '{}';
    strides_v bigint[] := '{}';
    strides_w bigint[] := '{}';
    offsets_u integer[];
    offsets_v integer[];
    offsets_w integer[];
    run bigint;
    in_u bigint := 0;
    in_v bigint := 0;
    in_w bigint := 0;
    start bigint := 0;
    terms_u u%TYPE;
    terms_v u%TYPE;
    targets integer[];
BEGIN
    PERFORM @extschema@.sparseeinsum_check_operand(caller, plan, 1, u);
    PERFORM @extschema@.sparseeinsum_check_operand(caller, plan, 2, v);
    w := array_fill(
        @extschema@.sparseeinsum_identity_of(aggregate, u),
        ARRAY[@extschema@.sparseeinsum_held(caller, plan[4], @extschema@.sparseeinsum_item_bytes(u))]
    );
    FOR label IN 1..plan[1] LOOP
        IF plan[4 * label + 1] > longest THEN
            longest := plan[4 * label + 1];
            outside := label;
        END IF;
        IF plan[4 * label + 1] = 0 THEN
            RETURN w;
        END IF;
    END LOOP;
    FOR label IN 1..plan[1] LOOP
        CONTINUE WHEN label = outside;
        extents := extents || plan[4 * label + 1];
        strides_u := strides_u || plan[4 * label + 2];
        strides_v := strides_v || plan[4 * label + 3];
        strides_w := strides_w || plan[4 * label + 4];
    END LOOP;
    offsets_u := @extschema@.sparseeinsum_offsets(extents, strides_u);
    offsets_v := @extschema@.sparseeinsum_offsets(extents, strides_v);
    offsets_w := @extschema@.sparseeinsum_offsets(extents, strides_w);
    run := greatest(65536 / cardinality(offsets_u), 1);
    IF outside IS NULL THEN
        longest := 1;
    ELSE
        in_u := plan[4 * outside + 2];
        in_v := plan[4 * outside + 3];
        in_w := plan[4 * outside + 4];
    END IF;
    WHILE start < longest LOOP
        SELECT
            array_agg(u[1 + place.of_u + step * in_u]),
            array_agg(v[1 + place.of_v + step * in_v]),
            array_agg((1 + place.of_w + step * in_w)::integer)
        INTO terms_u, terms_v, targets
        FROM generate_series(start, least(start + run, longest) - 1) AS step,
            unnest(offsets_u, offsets_v, offsets_w) AS place(of_u, of_v, of_w);
        terms_u := @extschema@.sparseeinsum_evaluate(program, terms_u, terms_v, is_single);
        w := @extschema@.sparseeinsum_fold(aggregate, w, targets, terms_u);
        start := start + run;
    END LOOP;
    RETURN w;
END
$$;

CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_reduce_one(
    caller text, aggregate text, program text[], plan bigint[], u anyarray, is_single boolean
) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN @extschema@.sparseeinsum_reduce(
        caller, aggregate, program, plan, u, ARRAY[@extschema@.sparseeinsum_identity_of('prod', u)], is_single
    );
END
$$;

-- The name of an aggregate; an error if it is not defined for these numbers.
CREATE OR REPLACE FUNCTION @extschema@.sparseeinsum_aggregate(caller text, aggregate text, numbers text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF aggregate <> ALL (@operators.AGGREGATES@) THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @aggregation.UNKNOWN_AGGREGATE@, 0);
    ELSIF numbers = 'integer' AND aggregate = ANY (@operators.AGGREGATES_NOT_OF_INTEGERS@) THEN
        PERFORM @extschema@.sparseeinsum_refuse(caller, @integers.NOT_OF_INTEGERS@, 0);
    END IF;
    RETURN aggregate;
END
$$;
