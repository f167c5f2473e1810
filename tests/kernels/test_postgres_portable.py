"""The functions in PL/pgSQL give the results and errors of the compiled extension."""

import ast
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from postgres_server import PostgresServer
from postgres_sql import in_postgres, numbers
from program_cases import check
from psycopg import errors
from random_programs import FAMILIES, cases
from random_runs import random_runs
from sql_rows import arguments_of
from test_postgres_errors import MALFORMED, MEANT_OTHERWISE, random_call
from test_postgres_functions import (
    AGGREGATES,
    EXAMPLE_ROWS,
    FUNCTIONS,
    NULL_EVERY,
    SCALARS,
    TOLERANCES,
    create_rows,
    expect_numbers,
    force_workers,
    make_rows,
    oracle_of,
)
from test_sql_vocabulary import ROWS_OF_HANDLES

import sparseeinsum as se
from sparseeinsum import cli
from sparseeinsum.engines.postgresql import installed_functions
from sparseeinsum.kernels.array_functions import ArrayFunction, FunctionKind, array_functions
from sparseeinsum.operators.normal_quantile import normal_quantiles
from sparseeinsum.operators.random_numbers import threefry

ROWS = 12  # few, since functions are slow, but enough to meet 0
IN_PARTS = ("float32",)  # dtypes of aggregates that are also computed in parallel
WITHOUT_SQL = (
    *("tensor_sort", "tensor_largest", "tensor_inverse", "tensor_compressed"),
    *("tensor_product_row", "tensor_product_number", "tensor_masked_product_row"),
    *("tensor_gather_product_sum", "tensor_scaled_dot"),
    *("tensor_compressed_rows", "tensor_collected", "tensor_matched"),
    *("tensor_product_numbers", "tensor_product_rows", "tensor_masked_product_rows"),
    *("tensor_scaled_dot_row", "tensor_scaled_dot_rows", "tensor_entries", "tensor_with_numbers"),
    "tensor_gather_product_sums",
    *("tensor_sparse_matmul", "tensor_sparse_matmul_transposed"),
)
REFUSED = [
    function
    for function in FUNCTIONS
    if function.name.startswith("tensor_complex_") or function.name in WITHOUT_SQL or function.kernel == "gather_sum"
]
COMPUTED = [f for f in FUNCTIONS if f not in REFUSED and f.kind != FunctionKind.CONVERSION]
SCALARS_COMPUTED, AGGREGATES_COMPUTED = (
    [(call, dtype) for call, dtype in calls if not (dtype.startswith("complex") or call.startswith(WITHOUT_SQL))]
    for calls in (SCALARS, AGGREGATES)
)
USER = "a_user"  # without any rights


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> str:
    """An empty database of a user without further rights."""
    with postgres.connect() as maintenance:
        maintenance.execute(f"CREATE ROLE {USER} LOGIN")
        maintenance.execute(f"CREATE DATABASE portable OWNER {USER}")
    return postgres.url("portable").replace("postgres@", f"{USER}@")


@pytest.fixture(scope="module")
def installed(url: str) -> str:
    """The same database with the portable functions."""
    assert cli.main(["install", "postgres", "--portable", url]) == 0
    return url


@pytest.fixture(scope="module")
def connection(installed: str) -> Iterator[psycopg.Connection]:
    """Tables of rows, by dtype, beside the functions."""
    with psycopg.connect(installed, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA of_rows; SET search_path = of_rows, public")
        create_rows(connection)
        yield connection


@pytest.fixture(scope="module")
def extension(postgres: PostgresServer) -> Iterator[psycopg.Connection]:
    """A database with the extension."""
    with postgres.connect() as maintenance:
        maintenance.execute("CREATE DATABASE beside_portable")
    with postgres.connect("beside_portable") as connection:
        connection.execute("CREATE EXTENSION sparseeinsum")
        yield connection


KEEPING = ("tensor_keep", "tensor_kept", "tensor_kept_bytes", "tensor_release")
SIGNATURES = """
    SELECT p.proname, p.prokind, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.provolatile,
        p.proparallel
    FROM pg_proc AS p
    WHERE p.proname LIKE 'tensor\\_%' OR p.proname = 'sparseeinsum_version'"""


def test_functions_equal_those_of_the_extension(connection: psycopg.Connection, extension: psycopg.Connection) -> None:
    """Names, arguments, results, volatility and parallel safety.

    Those for clusters, of the type tensor, and of what sessions keep in memory are left out.
    """
    signatures = set(connection.execute(SIGNATURES).fetchall())
    assert len(signatures) > 300
    of_clusters = {function.name for function in array_functions() if function.kind == FunctionKind.CONVERSION}
    assert signatures == {
        (name, kind, arguments, result, *others)
        for name, kind, arguments, result, *others in extension.execute(SIGNATURES).fetchall()
        if name not in {*of_clusters, *KEEPING} and "tensor" not in re.split(", | ", f"{arguments}, {result}")
    }


def test_comments_say_that_they_are_slower(connection: psycopg.Connection) -> None:
    query = "SELECT obj_description(oid, 'pg_proc') FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
    comments = [comment for (comment,) in connection.execute(query).fetchall()]
    assert all("slower than the extension" in comment for comment in comments)


@pytest.mark.parametrize(("call", "dtype"), SCALARS_COMPUTED)
def test_scalar_over_rows(connection: psycopg.Connection, call: str, dtype: str) -> None:
    query = f"SELECT {in_postgres(call)} FROM rows_{dtype} WHERE i < {ROWS} ORDER BY i"
    rows = connection.execute(query).fetchall()
    with np.errstate(all="ignore"):
        expected = oracle_of(call, dtype)(make_rows(dtype)[np.arange(ROWS)])
    expect_numbers([value for (value,) in rows], expected, dtype)


@pytest.mark.parametrize(("call", "dtype"), AGGREGATES_COMPUTED)
def test_aggregate_of_all_rows(connection: psycopg.Connection, call: str, dtype: str) -> None:
    rows = make_rows(dtype)
    expected = oracle_of(call, dtype)(rows)
    for workers in (0, 2) if dtype in IN_PARTS else (0,):
        force_workers(connection, workers)
        ((result,),) = connection.execute(f"SELECT {in_postgres(call)} FROM rows_{dtype}").fetchall()
        expect_numbers(result, expected, dtype)
    force_workers(connection, 0)


@pytest.mark.parametrize(("call", "dtype"), [case for case in AGGREGATES if case[1] == "int64"])
def test_aggregate_of_groups_skips_rows_with_null(connection: psycopg.Connection, call: str, dtype: str) -> None:
    rows = make_rows(dtype)
    present = [rows.i % NULL_EVERY[name] > 0 for name in arguments_of(call) if name in NULL_EVERY]
    for group, value in connection.execute(f"SELECT i % 4, {in_postgres(call)} FROM nulls_{dtype} GROUP BY 1"):
        own = rows[np.logical_and.reduce([*present, rows.i % 4 == group])]
        expect_numbers(value, oracle_of(call, dtype)(own), dtype)


@pytest.mark.parametrize("function", COMPUTED, ids=lambda function: function.example)
def test_examples_run(connection: psycopg.Connection, function: ArrayFunction) -> None:
    if function.is_aggregate:
        relation, expected = EXAMPLE_ROWS[function.example]
        ((result,),) = connection.execute(in_postgres(f"SELECT {function.example} FROM {relation}")).fetchall()
        assert result == expected
        return
    call, _, expected_text = function.example.partition(" = ")
    ((result,),) = connection.execute(f"SELECT {in_postgres(call)}").fetchall()
    assert numbers(result) == numbers(ast.literal_eval(expected_text))


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.example)
def test_functions_without_sql_are_refused(connection: psycopg.Connection, function: ArrayFunction) -> None:
    if function.is_aggregate:
        relation = ROWS_OF_HANDLES.get(function.example) or EXAMPLE_ROWS[function.example][0]
        query = f"SELECT {function.example} FROM {relation}"
    else:
        query = f"SELECT {function.example.partition(' = ')[0]}"
    with pytest.raises(psycopg.Error, match=f"^{function.name}: not available without the library; install"):
        connection.execute(in_postgres(query)).fetchall()


def test_unavailable_functions_are_refused(installed: str) -> None:
    """The error says that they need the library."""
    with se.connect(installed) as db:
        db.connection.execute("CREATE SCHEMA refused; SET search_path = refused, public")
        db.tensor("X", np.array([0.5, 1.5]))
        db.tensor("Z", np.array([0.5j, 1.5]))
        for text in ("Y[i] = erf(X[i])", "Y[i] = mod(X[i], 2)", "Y[i] = Z[i] * Z[i]", "Y[] = sum(Z[i])"):
            with pytest.raises(se.EngineError, match="not available without the library"):
                db.run(text)
        db.connection.execute("SET client_min_messages = error; DROP SCHEMA refused, sparseeinsum CASCADE")


@pytest.mark.parametrize(
    ("call", "words"),
    [case for case in MALFORMED if "complex" not in case[0] and not case[0].startswith(WITHOUT_SQL)],
    ids=str,
)
def test_message(connection: psycopg.Connection, call: str, words: tuple[object, ...]) -> None:
    if call == "tensor_map('exp', [1, NULL])":
        words = ("int64", "exp")  # an expression is read when a query is planned
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(f"SELECT {in_postgres(call)}").fetchall()
    assert caught.value.sqlstate in ("22023", "22004", "22003", "54000")
    for word in (call.split("(")[0], *(() if call in MEANT_OTHERWISE else words)):
        assert re.search(rf"(?<![\w-]){re.escape(str(word))}(?!\w)", str(caught.value)), str(caught.value)


RESULT_OF = """
CREATE FUNCTION pg_temp.result_of(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found text[];
BEGIN
    EXECUTE 'SELECT ARRAY(SELECT (' || call || ')::text)' INTO found;
    RETURN array_to_string(found, ';', 'nothing');
EXCEPTION WHEN OTHERS THEN
    RETURN 'error ' || SQLSTATE;
END $$"""
WELL_FORMED = [
    *("tensor_map('{}', '{{nan,1e308,-inf,0}}'::float8[])", "tensor_map('{}', '{{1e-200,0.1,inf,-0}}'::float8[])"),
    *("tensor_map('{}', '{{0.1,-2.5,3e38,1e-44}}'::real[])", "tensor_map('{}', '{{5,-3,0,3037000500}}'::bigint[])"),
    "tensor_reduce('logsumexp', '{}', 'ij->j', '{{1,2,800,-3,inf,0}}'::float8[], ARRAY[3, 2])",
]
EXPRESSIONS = [
    *("u * 1e200 * u", "u / 1e-200 / u", "u ^ 0.5", "u ^ -3", "-2 ^ u", "exp(u * 400)", "log(u) + sqrt(u)", "u == 0.1"),
    *(
        "where(u < 1, u - 1, not u)",
        "max(u, 0.5) - min(u, 2)",
        "sigmoid(u) - tanh(u)",
        "sin(u) + cos(u)",
        "tan(u) - atan(u)",
        "asin(u) * acos(u)",
        "sinh(u) + cosh(u)",
        "floor(u) + 2 * ceil(u) + 4 * round(u)",
        "clip(u, -1, 2)",
        "logaddexp(u, v)",
        "relu(-u) + sign(u)",
        "abs(u) <= 3",
    ),
    *(
        "u or 0 and u != 2",
        "1e400 - u",
        "u + 9e99 * (u > 5)",
        "2j * u",
        "conj(u) / (u + 1j)",
        "7 - 3 - u",
        "u < v",
        "(u",
    ),
]


def test_random_calls_as_in_the_extension(connection: psycopg.Connection, extension: psycopg.Connection) -> None:
    """Odd and ordinary arguments; of several errors in a call, either is right. Hashes differ between variants."""
    rng = random.Random(0)
    candidates = [function for function in COMPUTED if function.name != "tensor_hash"]
    calls = [random_call(rng, rng.choice(candidates)) for _ in range(1000)]
    calls += [call.format(expression) for call in WELL_FORMED for expression in EXPRESSIONS]
    results, expected = (_results(session, calls) for session in (connection, extension))
    for call, result, wanted in zip(calls, results, expected, strict=True):
        if "error" in wanted or "nothing" in wanted or result == wanted:
            assert result.split()[:1] == wanted.split()[:1], (call, result, wanted)
            continue
        tolerance = TOLERANCES["float32" if "float4" in call or "real" in call else "float64"]
        given_numbers, wanted_numbers = (np.array(re.findall(r"[\w.+-]+", text), float) for text in (result, wanted))
        np.testing.assert_allclose(given_numbers, wanted_numbers, rtol=tolerance, err_msg=call)


def _results(connection: psycopg.Connection, calls: list[str]) -> list[str]:
    connection.execute("SET extra_float_digits = 1")
    connection.execute(RESULT_OF)
    query = "SELECT pg_temp.result_of(call) FROM unnest(%s::text[]) AS call"
    return [result for (result,) in connection.execute(query, [calls]).fetchall()]


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in ("complex", "mixed")])
def test_programs_give_numpys_results(installed: str, family: str) -> None:
    with se.connect(installed) as database:
        database.connection.execute("CREATE SCHEMA programs; SET search_path = programs, public")

        @random_runs(20, "postgresql")
        @given(st.data())
        def run(data: st.DataObject) -> None:
            case = data.draw(cases(family, data.draw(st.sampled_from(["dp", "relational", "dense"]))))
            assume(not re.search(r"\b(erf|mod)\(", case.text))  # which are not available
            check(database, case)

        run()
        database.connection.execute("SET client_min_messages = error; DROP SCHEMA programs, sparseeinsum CASCADE")


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_random_bits_are_those_of_numpy(connection: psycopg.Connection, dtype: str) -> None:
    rng, kind = np.random.default_rng(0), {"int64": "bigint", "float64": "float8"}[dtype]
    most = (1 << 53) if dtype == "float64" else (1 << 63) - 1
    key, counter = rng.integers(-most, most, (2, 50)).astype(dtype)
    query = f"SELECT tensor_threefry(%s::{kind}[], %s::{kind}[])"
    ((result,),) = connection.execute(query, [key.tolist(), counter.tolist()]).fetchall()
    np.testing.assert_array_equal(np.array(result, dtype), threefry(key, counter))


def test_normal_quantiles_are_those_of_numpy(connection: psycopg.Connection) -> None:
    powers = 2.0 ** -np.arange(2, 54, 7)
    chances = np.concatenate([np.random.default_rng(0).random(50), powers, 1 - powers])
    query = "SELECT tensor_map('normal_quantile', %s::float8[])"
    ((result,),) = connection.execute(query, [[*chances.tolist(), 0.0, 1.0, -1.0]]).fetchall()
    np.testing.assert_array_equal(result, [*normal_quantiles(chances), -np.inf, np.inf, np.nan])


def test_arrays_of_any_form_are_flat(connection: psycopg.Connection) -> None:
    for value in ("{1,2,3}", "[5:7]={1,2,3}", "{{1},{2},{3}}", "[2:4][-1:-1]={{1},{2},{3}}"):
        call = "tensor_add(u, ARRAY[10, 20, 30]), tensor_sum(u), tensor_norm(u)"
        rows = connection.execute(f"SELECT {call} FROM (SELECT '{value}'::float8[] AS u) AS t GROUP BY u").fetchall()
        assert rows == [([11, 22, 33], [1, 2, 3], np.sqrt(14))]


def test_any_search_path(connection: psycopg.Connection) -> None:
    """Functions call the portable functions for any search_path, and no others of the same name."""
    connection.execute("CREATE SCHEMA elsewhere")
    decoy = "CREATE FUNCTION elsewhere.sparseeinsum_mul(float8, float8) RETURNS float8 LANGUAGE sql RETURN 666"
    connection.execute(decoy)
    connection.execute("SET search_path = elsewhere")
    query = "SELECT public.tensor_scale(2, ARRAY[3.5]), public.tensor_sum_scaled(2, ARRAY[1.5])"
    assert connection.execute(query).fetchall() == [([7.0], [3.0])]
    connection.execute("DROP SCHEMA elsewhere CASCADE; SET search_path = of_rows, public")


@pytest.fixture
def empty(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a new empty database for one test."""
    with postgres.connect() as maintenance:
        maintenance.execute("CREATE DATABASE of_one_portable")
    yield postgres.url("of_one_portable")
    with postgres.connect() as maintenance:
        maintenance.execute("DROP DATABASE of_one_portable (FORCE)")


def test_installed_again_and_removed(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views stay valid, functions of earlier versions go, and another version of the package names the remedy."""
    monkeypatch.setattr(installed_functions, "__version__", "0.0.9")
    assert installed_functions.install_portable(empty) == "public"
    monkeypatch.undo()
    with pytest.raises(se.EngineError, match=r"version 0\.0\.9.*sparseeinsum install postgres --portable"):
        se.connect(empty)
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("CREATE VIEW summed AS SELECT tensor_sum(u) FROM (VALUES (ARRAY[1.5]), (ARRAY[2])) AS t(u)")
        connection.execute("CREATE FUNCTION sparseeinsum_old() RETURNS int LANGUAGE sql RETURN 1")
        ((comment,),) = connection.execute(
            "SELECT obj_description('tensor_norm(float8[])'::regprocedure, 'pg_proc')"
        ).fetchall()
        connection.execute(f"COMMENT ON FUNCTION sparseeinsum_old() IS $${comment}$$")
        connection.execute("CREATE FUNCTION tensor_mine() RETURNS int LANGUAGE sql RETURN 1")
        assert cli.main(["install", "postgres", "--portable", empty]) == 0
        assert connection.execute("SELECT * FROM summed").fetchall() == [([3.5],)]
        with se.connect(empty):
            pass
        assert cli.main(["remove", "postgres", "--portable", empty]) == 1  # a view uses them
        connection.execute("DROP VIEW summed")
        left = "SELECT proname FROM pg_proc WHERE proname ~ '^(tensor|sparseeinsum)_' ORDER BY 1"
        assert ("sparseeinsum_old",) not in connection.execute(left).fetchall()
        assert cli.main(["remove", "postgres", "--portable", empty]) == 0
        assert connection.execute(left).fetchall() == [("tensor_mine",)]


def test_never_beside_the_extension(empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION sparseeinsum")
        assert cli.main(["install", "postgres", "--portable", empty]) == 1
        assert "DROP EXTENSION sparseeinsum" in capsys.readouterr().err
        connection.execute("DROP EXTENSION sparseeinsum")
        connection.execute("CREATE SCHEMA numbers")
        assert cli.main(["install", "postgres", "--schema", "numbers", "--portable", empty]) == 0
        with pytest.raises(errors.RaiseException, match=r"portable variant[^$]*remove postgres --portable"):
            connection.execute("CREATE EXTENSION sparseeinsum")
        assert cli.main(["install", "postgres", "--portable", empty]) == 1
        assert "another schema" in capsys.readouterr().err
        assert connection.execute("SELECT numbers.tensor_add(ARRAY[1.5], ARRAY[2])").fetchall() == [([3.5],)]


def test_script_for_psql(empty: str, tmp_path: Path) -> None:
    assert cli.main(["build", "postgres", "--portable", "--output", str(tmp_path), "--schema", "Of Arrays"]) == 0
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "Of Arrays"')
        command = ["psql", "--quiet", "--no-psqlrc", "--file", str(tmp_path / "sparseeinsum_portable.sql"), empty]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""
        query = """SELECT "Of Arrays".tensor_matmul(ARRAY[1.0, 2], ARRAY[3, 4], ARRAY[1, 2, 1])"""
        assert connection.execute(query).fetchall() == [([11.0],)]


def test_options_of_the_other_variant_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: str, status: int = 2) -> str:
        assert cli.main(arguments) == status
        return capsys.readouterr().err

    assert "--pg-config is for the extension" in refused("install", "postgres", "--pg-config", "x", "--portable", "url")
    assert "--pg-config is for the extension" in refused("remove", "postgres", "--pg-config", "x", "--portable", "url")
    assert "--schema is for --portable" in refused("build", "postgres", "--schema", "s", "--output", str(tmp_path))
    assert "--version is for the" in refused(
        *("build", "postgres", "--portable", "--version", "16", "--output", str(tmp_path))
    )
    unreachable = "postgresql://nobody@/none?host=/none"
    assert "connection" in refused("install", "postgres", "--portable", unreachable, status=1)
