-- sparseeinsum_python $version: functions that plan and run programs inside the server, with the rights of their caller.
\echo Use "CREATE EXTENSION sparseeinsum_python" or "ALTER EXTENSION sparseeinsum_python UPDATE" to run this file. \quit

CREATE OR REPLACE FUNCTION sparseeinsum.call_python(function text, arguments jsonb) RETURNS jsonb
    LANGUAGE plpython3u AS
$$python$$
if "answer" not in SD:
    import json
    import os
    import signal
    import sys

    def refusal(message, hint):
        return json.dumps({"error": {"sqlstate": "55000", "message": message, "hint": hint}})

    def import_answer(folders):
        before = list(sys.path)
        sys.path[:] = folders + before
        # The server's signals are for its own thread: those that libraries begin when they are loaded get none, and
        # linear algebra, of which planning needs none, begins none at all.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            import sparseeinsum
            from sparseeinsum.server_functions import answer
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            sys.path[:] = before + folders
        return sparseeinsum.__version__, answer

    version = "{}.{}".format(*sys.version_info)
    if version != "$python":
        return refusal(
            "the server's Python is {}, and sparseeinsum was installed for $python".format(version),
            "run `sparseeinsum install postgres --python` from a Python {}, and create the extension anew".format(version),
        )
    folders = $folders
    try:
        version, answer = import_answer(folders)
    except (ImportError, OSError) as error:
        return refusal(
            "the server's Python cannot import sparseeinsum: {}".format(error),
            "the user that runs the server must be able to read {}; where sparseeinsum is elsewhere by now, run "
            "`sparseeinsum install postgres --python` from there, and create the extension anew".format(folders),
        )
    if version != "$version":
        return refusal(
            "the extension is of version $version, and Python has sparseeinsum {}".format(version),
            "run `sparseeinsum install postgres --python`, and ALTER EXTENSION sparseeinsum_python UPDATE",
        )
    SD["answer"] = answer
return SD["answer"](plpy, function, arguments)
$$python$$;
COMMENT ON FUNCTION sparseeinsum.call_python(text, jsonb) IS 'Internal: calls Python for the other functions.';

CREATE OR REPLACE FUNCTION sparseeinsum.python_result(function text, arguments jsonb) RETURNS jsonb
    LANGUAGE plpgsql AS
$$body$$
DECLARE
    answer CONSTANT jsonb := sparseeinsum.call_python(function, pg_catalog.jsonb_strip_nulls(arguments));
    state CONSTANT text := answer OPERATOR(pg_catalog.#>>) CAST('{error,sqlstate}' AS pg_catalog.text[]);
    message CONSTANT text := answer OPERATOR(pg_catalog.#>>) CAST('{error,message}' AS pg_catalog.text[]);
    detail CONSTANT text := answer OPERATOR(pg_catalog.#>>) CAST('{error,detail}' AS pg_catalog.text[]);
    hint CONSTANT text := answer OPERATOR(pg_catalog.#>>) CAST('{error,hint}' AS pg_catalog.text[]);
BEGIN
    IF message IS NULL THEN
        RETURN answer OPERATOR(pg_catalog.->) CAST('result' AS pg_catalog.text);
    ELSIF detail IS NULL AND hint IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
    ELSIF detail IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = hint;
    ELSIF hint IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail;
    END IF;
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint;
END
$$body$$;
COMMENT ON FUNCTION sparseeinsum.python_result(text, jsonb) IS 'Internal: raises the errors of the other functions.';

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

CREATE OR REPLACE FUNCTION sparseeinsum.einsum(
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
SELECT found.*
FROM pg_catalog.jsonb_to_recordset(sparseeinsum.python_result('einsum', pg_catalog.jsonb_build_object(
    'program', $$1, 'replace', $$2, 'optimizer', $$3, 'memory_limit', $$4, 'outputs', $$5, 'nonfinite', $$6,
    'estimator', $$7, 'tiles', $$8, 'layout', $$9, 'pin', $$10, 'rewrite', $$11
))) AS found (tensor text, "table" regclass, shape bigint[], dtype text, fill text, tuples bigint)
$$body$$;
COMMENT ON FUNCTION sparseeinsum.einsum(text, boolean, text, text, text[], text, text, text, text, jsonb, boolean) IS
    'Plans and runs a program in the transaction of its caller, and stores its results as tensors in tables of the same names. Example: SELECT * FROM sparseeinsum.einsum(''C[i, k] = sum(A[i, j] * B[j, k])'', replace => true).';

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
