CREATE OR REPLACE FUNCTION sparseeinsum.$call(function text, arguments jsonb) RETURNS jsonb
    LANGUAGE plpython3u $volatility AS
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
COMMENT ON FUNCTION sparseeinsum.$call(text, jsonb) IS 'Internal: calls Python for the other functions.';

CREATE OR REPLACE FUNCTION sparseeinsum.$result(function text, arguments jsonb) RETURNS jsonb
    LANGUAGE plpgsql $volatility AS
$$body$$
DECLARE
    answer CONSTANT jsonb := sparseeinsum.$call(function, pg_catalog.jsonb_strip_nulls(arguments));
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
COMMENT ON FUNCTION sparseeinsum.$result(text, jsonb) IS 'Internal: raises the errors of the other functions.';
