-- sparseeinsum_python $version: functions that plan and run programs inside the server, with the rights of their caller.
\echo Use "CREATE EXTENSION sparseeinsum_python" or "ALTER EXTENSION sparseeinsum_python UPDATE" to run this file. \quit

-- The result of einsum was a table of the tables that it filled, as einsum_into returns it now.
DROP FUNCTION IF EXISTS sparseeinsum.einsum(
    text, boolean, text, text, text[], text, text, text, text, jsonb, boolean
);

$volatile_calls
$stable_calls
CREATE OR REPLACE FUNCTION sparseeinsum.tensor_from_table(
    name text,
    relation regclass,
    index_columns text[],
    value_column text DEFAULT NULL,
    shape bigint[] DEFAULT NULL,
    axes text[] DEFAULT NULL,
    dtype text DEFAULT NULL,
    fill numeric DEFAULT NULL,
    keys jsonb DEFAULT NULL
) RETURNS text
    LANGUAGE sql AS
$$body$$
SELECT sparseeinsum.python_result('tensor_from_table', pg_catalog.jsonb_build_object(
    'name', $$1, 'relation', $$2::text, 'index_columns', $$3, 'value_column', $$4, 'shape', $$5, 'axes', $$6,
    'dtype', $$7, 'fill', $$8::text, 'keys', $$9
)) OPERATOR(pg_catalog.#>>) CAST('{}' AS pg_catalog.text[])
$$body$$;
COMMENT ON FUNCTION sparseeinsum.tensor_from_table(
    text, regclass, text[], text, bigint[], text[], text, numeric, jsonb
) IS
    'Registers a table or view as a tensor, with one entry in each row; nothing is copied. Natural keys, such as names or dates, need dictionaries, as in keys => ''{"src": "person"}''. Example: SELECT sparseeinsum.tensor_from_table(''A'', ''edges'', ARRAY[''src'', ''dst''], ''weight'', ARRAY[100, 100]).';

CREATE OR REPLACE FUNCTION sparseeinsum.lock_for_reading(relations text) RETURNS void
    LANGUAGE plpgsql AS
$$body$$
BEGIN
    EXECUTE pg_catalog.concat('LOCK TABLE ', relations, ' IN ACCESS SHARE MODE');
END
$$body$$;
COMMENT ON FUNCTION sparseeinsum.lock_for_reading(text) IS
    'Internal: keeps relations from being replaced until the transaction ends, also for functions that are STABLE.';

CREATE OR REPLACE FUNCTION sparseeinsum.set_locally(settings jsonb) RETURNS jsonb
    LANGUAGE sql STABLE AS
$$body$$
SELECT pg_catalog.jsonb_object_agg(s.name, s.before)
FROM (
    SELECT
        each.key AS name,
        pg_catalog.current_setting(each.key) AS before,
        pg_catalog.set_config(each.key, each.value, TRUE) AS after
    FROM pg_catalog.jsonb_each_text($$1) AS each
) AS s
WHERE s.after IS NOT NULL
$$body$$;
COMMENT ON FUNCTION sparseeinsum.set_locally(jsonb) IS
    'Internal: changes settings for the rest of the transaction, and returns what they were.';

-- STABLE: all its queries see the rows that the statement of its caller sees.
CREATE OR REPLACE FUNCTION sparseeinsum.einsum_rows(
    columns text,
    program text,
    output text,
    optimizer text,
    memory_limit text,
    nonfinite text,
    estimator text,
    tiles text,
    pin jsonb,
    rewrite boolean
) RETURNS SETOF record
    LANGUAGE plpgsql STABLE AS
$$body$$
DECLARE
    planned CONSTANT jsonb := sparseeinsum.result_of_reading('einsum', pg_catalog.jsonb_build_object(
        'columns', $$1, 'program', $$2, 'output', $$3, 'optimizer', $$4, 'memory_limit', $$5, 'nonfinite', $$6,
        'estimator', $$7, 'tiles', $$8, 'pin', $$9, 'rewrite', $$10
    ));
    before CONSTANT jsonb := sparseeinsum.set_locally(
        planned OPERATOR(pg_catalog.->) CAST('settings' AS pg_catalog.text)
    );
    message text;
    hint text;
BEGIN
    RETURN QUERY EXECUTE planned OPERATOR(pg_catalog.->>) CAST('query' AS pg_catalog.text);
    PERFORM sparseeinsum.set_locally(before);
EXCEPTION
    WHEN invalid_parameter_value THEN -- of array functions, whose messages say what to do after a semicolon
        GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
        hint := pg_catalog.split_part(message, '; ', 2);
        IF pg_catalog.length(hint) OPERATOR(pg_catalog.=) 0 THEN
            RAISE;
        END IF;
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value', MESSAGE = pg_catalog.split_part(message, '; ', 1), HINT = hint;
END
$$body$$;
COMMENT ON FUNCTION sparseeinsum.einsum_rows(text, text, text, text, text, text, text, text, jsonb, boolean) IS
    'Internal: returns what einsum returns; its first argument is the column definition list of the caller.';

CREATE OR REPLACE FUNCTION sparseeinsum.einsum(
    program text,
    output text DEFAULT NULL,
    optimizer text DEFAULT NULL,
    memory_limit text DEFAULT NULL,
    nonfinite text DEFAULT NULL,
    estimator text DEFAULT NULL,
    tiles text DEFAULT NULL,
    pin jsonb DEFAULT NULL,
    rewrite boolean DEFAULT NULL
) RETURNS SETOF record
    AS '$$libdir/sparseeinsum', '$with_columns'
    LANGUAGE C STABLE;
COMMENT ON FUNCTION sparseeinsum.einsum(text, text, text, text, text, text, text, jsonb, boolean) IS
    'Plans and runs a program on the data that the statement sees, and returns the rows of its result: index columns, then the column val. Of several results, output selects one. Example: SELECT * FROM sparseeinsum.einsum(''C[i, k] = sum(A[i, j] * B[j, k])'') AS c(i bigint, k bigint, val float8).';

CREATE OR REPLACE FUNCTION sparseeinsum.einsum_columns(program text, output text DEFAULT NULL) RETURNS text
    LANGUAGE sql STABLE AS
$$body$$
SELECT sparseeinsum.result_of_reading('einsum_columns', pg_catalog.jsonb_build_object(
    'program', $$1, 'output', $$2
)) OPERATOR(pg_catalog.#>>) CAST('{}' AS pg_catalog.text[])
$$body$$;
COMMENT ON FUNCTION sparseeinsum.einsum_columns(text, text) IS
    'Returns the column definition list that a query with einsum needs. Example: SELECT sparseeinsum.einsum_columns(''C[i, k] = sum(A[i, j] * B[j, k])'') gives i bigint, k bigint, val double precision.';

CREATE OR REPLACE FUNCTION sparseeinsum.einsum_into(
    program text,
    replace boolean DEFAULT NULL,
    optimizer text DEFAULT NULL,
    memory_limit text DEFAULT NULL,
    outputs text[] DEFAULT NULL,
    nonfinite text DEFAULT NULL,
    estimator text DEFAULT NULL,
    tiles text DEFAULT NULL,
    layout text DEFAULT NULL,
    pin jsonb DEFAULT NULL,
    rewrite boolean DEFAULT NULL
) RETURNS TABLE (tensor text, "table" regclass, shape bigint[], dtype text, fill text, tuples bigint)
    LANGUAGE sql AS
$$body$$
SELECT written.*
FROM pg_catalog.jsonb_to_recordset(sparseeinsum.python_result('einsum_into', pg_catalog.jsonb_build_object(
    'program', $$1, 'replace', $$2, 'optimizer', $$3, 'memory_limit', $$4, 'outputs', $$5, 'nonfinite', $$6,
    'estimator', $$7, 'tiles', $$8, 'layout', $$9, 'pin', $$10, 'rewrite', $$11
))) AS written (tensor text, "table" regclass, shape bigint[], dtype text, fill text, tuples bigint)
$$body$$;
COMMENT ON FUNCTION sparseeinsum.einsum_into(text, boolean, text, text, text[], text, text, text, text, jsonb, boolean) IS
    'Plans and runs a program in the transaction of its caller, and stores its results as tensors in tables of the same names. Example: SELECT * FROM sparseeinsum.einsum_into(''C[i, k] = sum(A[i, j] * B[j, k])'', replace => true).';

CREATE OR REPLACE FUNCTION sparseeinsum.iterate(
    program text,
    steps bigint DEFAULT NULL,
    until text DEFAULT NULL,
    state jsonb DEFAULT NULL,
    into_tensors jsonb DEFAULT NULL,
    history text[] DEFAULT NULL,
    resume boolean DEFAULT NULL,
    optimizer text DEFAULT NULL,
    nonfinite text DEFAULT NULL
) RETURNS TABLE (steps bigint, reason text, history regclass)
    LANGUAGE sql AS
$$body$$
SELECT ended.*
FROM pg_catalog.jsonb_to_record(sparseeinsum.python_result('iterate', pg_catalog.jsonb_build_object(
    'program', $$1, 'steps', $$2, 'until', $$3, 'state', $$4, 'into_tensors', $$5, 'history', $$6, 'resume', $$7,
    'optimizer', $$8, 'nonfinite', $$9
))) AS ended (steps bigint, reason text, history regclass)
$$body$$;
COMMENT ON FUNCTION sparseeinsum.iterate(text, bigint, text, jsonb, jsonb, text[], boolean, text, text) IS
    'Runs a program in steps, each of which replaces its state, in the transaction of its caller. Returns the number of steps, why they ended (condition or steps), and the table with what every step returned. Example: SELECT * FROM sparseeinsum.iterate(''state x; next_x[i] = sum(A[i, j] * x[j])'', steps => 50).';

CREATE OR REPLACE FUNCTION sparseeinsum.einsum_sql(
    program text,
    style text DEFAULT NULL,
    optimizer text DEFAULT NULL,
    memory_limit text DEFAULT NULL,
    outputs text[] DEFAULT NULL,
    nonfinite text DEFAULT NULL,
    estimator text DEFAULT NULL,
    tiles text DEFAULT NULL,
    layout text DEFAULT NULL,
    pin jsonb DEFAULT NULL,
    rewrite boolean DEFAULT NULL
) RETURNS text
    LANGUAGE sql AS
$$body$$
SELECT sparseeinsum.python_result('einsum_sql', pg_catalog.jsonb_build_object(
    'program', $$1, 'style', $$2, 'optimizer', $$3, 'memory_limit', $$4, 'outputs', $$5, 'nonfinite', $$6,
    'estimator', $$7, 'tiles', $$8, 'layout', $$9, 'pin', $$10, 'rewrite', $$11
)) OPERATOR(pg_catalog.#>>) CAST('{}' AS pg_catalog.text[])
$$body$$;
COMMENT ON FUNCTION sparseeinsum.einsum_sql(text, text, text, text, text[], text, text, text, text, jsonb, boolean) IS
    'Returns the SQL of a program for the current data, one statement for each result. Example: SELECT sparseeinsum.einsum_sql(''C[i, k] = sum(A[i, j] * B[j, k])'').';

CREATE OR REPLACE FUNCTION sparseeinsum.explain(
    program text,
    run boolean DEFAULT NULL,
    optimizer text DEFAULT NULL,
    memory_limit text DEFAULT NULL,
    outputs text[] DEFAULT NULL,
    nonfinite text DEFAULT NULL,
    estimator text DEFAULT NULL,
    tiles text DEFAULT NULL,
    layout text DEFAULT NULL,
    pin jsonb DEFAULT NULL,
    rewrite boolean DEFAULT NULL
) RETURNS TABLE ("QUERY PLAN" text)
    LANGUAGE sql AS
$$body$$
SELECT pg_catalog.jsonb_array_elements_text(sparseeinsum.python_result('explain', pg_catalog.jsonb_build_object(
    'program', $$1, 'run', $$2, 'optimizer', $$3, 'memory_limit', $$4, 'outputs', $$5, 'nonfinite', $$6,
    'estimator', $$7, 'tiles', $$8, 'layout', $$9, 'pin', $$10, 'rewrite', $$11
)))
$$body$$;
COMMENT ON FUNCTION sparseeinsum.explain(text, boolean, text, text, text[], text, text, text, text, jsonb, boolean) IS
    'Shows the plan of a program and the plans that it was preferred to; runs the program if "run" is true. Example: SELECT * FROM sparseeinsum.explain(''C[i, k] = sum(A[i, j] * B[j, k])'').';
