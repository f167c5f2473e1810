"""A malformed call in PostgreSQL raises an SQLSTATE that names the function, and the server survives."""

import random
import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest
import test_complex_functions
import test_sql_function_errors
from postgres_sql import in_postgres
from psycopg import errors

from sparseeinsum.kernels.array_functions import ArrayFunction, ValueType
from sparseeinsum.kernels.postgresql.declared_functions import supported_functions

FUNCTIONS = tuple(supported_functions())


@pytest.fixture(scope="module")
def connection(postgres_connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """One connection for all errors of this module; its process survives them."""
    ((before,),) = postgres_connection.execute("SELECT pg_backend_pid()").fetchall()
    yield postgres_connection
    assert postgres_connection.execute("SELECT pg_backend_pid()").fetchall() == [(before,)]


def error_of(connection: psycopg.Connection, query: str) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(query).fetchall()
    assert connection.execute("SELECT tensor_add(ARRAY[1], ARRAY[2]), tensor_sum(ARRAY[3])").fetchall() == [([3], [3])]
    return caught.value


# Calls with other messages or functions in PostgreSQL.
_OTHERWISE = re.compile(r"range\(|chr\(0\)|ä")
MEANT_OTHERWISE = {"tensor_split([], [1], [0, 1099511627776])", "tensor_split_tiles([], [1, 0], [1099511627776, 0])"}

MALFORMED = [
    (call, words)
    for call, words in (*test_sql_function_errors.MALFORMED, *test_complex_functions.MALFORMED)
    if not _OTHERWISE.search(call)
]


@pytest.mark.parametrize(("call", "words"), MALFORMED, ids=[call for call, _ in MALFORMED])
def test_message(connection: psycopg.Connection, call: str, words: tuple[object, ...]) -> None:
    error = error_of(connection, f"SELECT {in_postgres(call)}")
    assert error.sqlstate in ("22023", "22004", "22003", "54000"), error
    for word in (call.split("(")[0], *(() if call in MEANT_OTHERWISE else words)):
        assert re.search(rf"(?<![\w-]){re.escape(str(word))}(?!\w)", str(error)), str(error)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("tensor_add(ARRAY[1.0], ARRAY[1.0, 2.0])", errors.InvalidParameterValue),
        ("tensor_add(ARRAY[1.0, NULL], ARRAY[1.0, 2.0])", errors.NullValueNotAllowed),
        ("tensor_fill(1099511627776, 0.0)", errors.ProgramLimitExceeded),
        ("tensor_add(ARRAY[9223372036854775807], ARRAY[1::bigint])", errors.NumericValueOutOfRange),
        ("tensor_add(ARRAY[1e400], ARRAY[1.0])", errors.NumericValueOutOfRange),
        ("tensor_add(ARRAY['a'], ARRAY[1.0])", errors.UndefinedFunction),
        ("tensor_einsum(repeat('i', 5000) || '->', ARRAY[1.0], ARRAY[1])", errors.ProgramLimitExceeded),
        ("tensor_fill(134217728, 1.0)", errors.ProgramLimitExceeded),
        ("tensor_outer(tensor_fill(20000, 1.0), tensor_fill(20000, 1.0))", errors.ProgramLimitExceeded),
        ("tensor_stack(1.0, 0, 200000000, 0)", errors.ProgramLimitExceeded),
        ("tensor_stack(1.0::real, 0, 268435456, 0)", errors.ProgramLimitExceeded),
        ("sparseeinsum_sum_float64_transition(NULL, ARRAY[1.0])", errors.ExternalRoutineInvocationException),
        ("sparseeinsum_sum_float64_combine(ARRAY[1.0], ARRAY[1.0])", errors.ExternalRoutineInvocationException),
        ("sparseeinsum_stack_float64_finish('\\x00')", errors.ExternalRoutineInvocationException),
    ],
)
def test_sqlstate(connection: psycopg.Connection, call: str, kind: type[psycopg.Error]) -> None:
    assert isinstance(error_of(connection, f"SELECT {call}"), kind)


STORED = {
    "plain": "'{1,2,3}'",
    "lower bounds": "'[5:7]={1,2,3}'",
    "two dimensions": "'{{1},{2},{3}}'",
    "two dimensions with bounds": "'[2:4][-1:-1]={{1},{2},{3}}'",
    "a slice": "('{0,1,2,3,4}'::float8[])[2:4]",
    "a slice of NULLs": "('{NULL,1,2,3}'::float8[])[2:]",
    "appended": "array_append('{1,2}'::float8[], 3)",
}


@pytest.mark.parametrize("value", STORED.values(), ids=STORED)
def test_arrays_of_any_form_are_flat(connection: psycopg.Connection, value: str) -> None:
    call = "tensor_add(u, ARRAY[10, 20, 30]), tensor_einsum('ij->j', u, ARRAY[3, 1]), tensor_nnz(u)"
    expected = [([11.0, 22.0, 33.0], [6.0], 3)]
    assert connection.execute(f"SELECT {call} FROM (SELECT {value}::float8[] AS u) AS t").fetchall() == expected
    connection.execute(f"CREATE TEMP TABLE stored AS SELECT {value}::float8[] AS u")  # with a short header
    assert connection.execute(f"SELECT {call} FROM stored").fetchall() == expected
    assert connection.execute("SELECT tensor_sum(u) FROM stored, generate_series(1, 3)").fetchall() == [([3, 6, 9],)]
    connection.execute("DROP TABLE stored")


STORAGES = [(storage, size) for storage in ("MAIN", "EXTERNAL", "EXTENDED") for size in (10, 400, 100_000)]


@pytest.mark.parametrize(("storage", "size"), [("PLAIN", 10), ("PLAIN", 400), *STORAGES])
def test_arrays_of_every_kind_of_storage(connection: psycopg.Connection, storage: str, size: int) -> None:
    connection.execute("CREATE TEMP TABLE stored (i int, u float8[], v float4[])")
    connection.execute(f"ALTER TABLE stored ALTER u SET STORAGE {storage}, ALTER v SET STORAGE {storage}")
    ramp = f"ARRAY(SELECT n % 7 FROM generate_series(1, {size}) AS n)"
    connection.execute(
        f"INSERT INTO stored SELECT i, {ramp}::float8[], {ramp}::float4[] FROM generate_series(1, 3) AS i"
    )
    expected = np.arange(1, size + 1) % 7
    ((u, v, total),) = connection.execute(
        "SELECT tensor_sum(u), tensor_stack(v, i - 1, 3, 1, 0), sum(tensor_dot(u, u)) FROM stored"
    ).fetchall()
    np.testing.assert_array_equal(u, 3 * expected)
    np.testing.assert_array_equal(v, np.repeat(expected, 3))
    assert total == 3 * (expected**2).sum()
    connection.execute("DROP TABLE stored")


def test_elements_in_a_domain(connection: psycopg.Connection) -> None:
    connection.execute("CREATE DOMAIN positive AS float8 CHECK (VALUE > 0)")
    assert connection.execute("SELECT tensor_sum('{1,2}'::positive[])").fetchall() == [([1.0, 2.0],)]


def test_sets(connection: psycopg.Connection) -> None:
    """In FROM: with ordinality, of many rows, with LIMIT, and of no rows."""
    query = "SELECT n, p FROM tensor_split(ARRAY[1, 2, 3, 4], ARRAY[1], ARRAY[2, 2]) WITH ORDINALITY AS t(p, n)"
    assert connection.execute(query).fetchall() == [(1, [1, 3]), (2, [2, 4])]
    relation = "generate_series(1, 2000) AS i, tensor_split(ARRAY[i, 1], ARRAY[0], ARRAY[2]) AS p"
    assert connection.execute(f"SELECT count(*), sum(p[1]) FROM {relation}").fetchall() == [
        (4000, 2000 * 2001 / 2 + 2000)
    ]
    stopped = "SELECT tensor_split(tensor_fill(9, i), ARRAY[0], ARRAY[9]) FROM generate_series(1, 5) AS i LIMIT 11"
    assert len(connection.execute(stopped).fetchall()) == 11
    for nothing in ("NULL::float8[], ARRAY[0], ARRAY[2]", "'{}'::float8[], ARRAY[0], ARRAY[0, 3]"):
        assert connection.execute(f"SELECT * FROM tensor_split({nothing})").fetchall() == []


def test_wrong_declarations_of_superusers(connection: psycopg.Connection) -> None:
    """The library checks what SQL declares of its functions as far as possible."""
    ((library, symbol),) = connection.execute(
        "SELECT probin, prosrc FROM pg_proc WHERE oid = 'tensor_add(float8[], float8[])'::regprocedure"
    ).fetchall()
    for name, arguments in (("few", "float8[]"), ("other", "float4[], float4[]"), ("texts", "text[], text[]")):
        declared = f"CREATE FUNCTION {name}({arguments}) RETURNS float8[] AS '{library}', '{symbol}' LANGUAGE C STRICT"
        connection.execute(declared)
    assert isinstance(error_of(connection, "SELECT few('{1}')"), errors.InvalidFunctionDefinition)
    assert isinstance(error_of(connection, "SELECT other('{1}', '{2}')"), errors.DatatypeMismatch)
    assert isinstance(error_of(connection, "SELECT texts('{1}', '{2}')"), errors.DatatypeMismatch)


@pytest.mark.parametrize(
    ("initial", "kind"),
    [
        ("", errors.DataException),
        ("00", errors.DataException),
        ("ff" * 172, errors.DataException),
        ("00000000" + "02" + "00" * 7 + "00" * 160 + "00" * 8, errors.DataException),
        ("00000000" + "ff" * 8 + "00" * 160, errors.DataException),
        ("00000000" + "00" * 32 + "ff" * 8 + "00" * 128, errors.DataException),
    ],
)
def test_damaged_states(connection: psycopg.Connection, initial: str, kind: type[psycopg.Error]) -> None:
    """User-defined aggregates may begin with any state."""
    connection.execute(
        "CREATE OR REPLACE AGGREGATE damaged(float8, bigint, bigint, float8) ("
        "SFUNC = sparseeinsum_stack_numbers_float64_transition, STYPE = bytea, "
        f"FINALFUNC = sparseeinsum_stack_numbers_float64_finish, INITCOND = '\\x{initial}')"
    )
    for rows in ("generate_series(1, 0)", "generate_series(1, 2)"):
        error = error_of(connection, f"SELECT damaged(1, 0, 3, 0) FROM {rows}")
        assert isinstance(error, kind | errors.InvalidParameterValue)
    assert isinstance(error_of(connection, "SELECT damaged(1, 0, 3, 0)"), errors.DataException)


def test_states_of_arrays_that_do_not_fit(connection: psycopg.Connection) -> None:
    for initial, kind in (("{1,2,3}", errors.InvalidParameterValue), ("{1,NULL}", errors.NullValueNotAllowed)):
        connection.execute(
            "CREATE OR REPLACE AGGREGATE begun(float8[]) ("
            f"SFUNC = sparseeinsum_sum_float64_transition, STYPE = float8[], INITCOND = '{initial}')"
        )
        assert isinstance(error_of(connection, "SELECT begun('{1,2}')"), kind)


# Values of random arguments, by type, each for some dtype.
_WORDS: dict[ValueType, list[str]] = {
    ValueType.TEXT: [
        "''",
        "'ij,jk->ik'",
        "'i->'",
        "'->'",
        "'u +'",
        "'exp(u'",
        "repeat('(', 900)",
        "'ä'",
        "'sum'",
        "NULL::text",
    ],
    ValueType.INTEGER: ["-1", "0", "1", "9", "9223372036854775807", "-9223372036854775808", "NULL::bigint"],
    ValueType.POSITIONS: [
        "'{}'::int[]",
        "ARRAY[0]",
        "ARRAY[1, 0]",
        "ARRAY[NULL]::int[]",
        "ARRAY[-1]",
        "'{{0, 1}}'::int[]",
    ],
    ValueType.INTEGERS: [
        "'{}'::bigint[]",
        "ARRAY[2]::bigint[]",
        "ARRAY[-1, 3]::bigint[]",
        "ARRAY[1, NULL]::bigint[]",
        "ARRAY[4294967296, 4294967296]",
        "ARRAY[1048576, 0, 1048576]::bigint[]",
        "'{{1,2},{3,4}}'::bigint[]",
        "'[7:8]={2,2}'::bigint[]",
        "ARRAY(SELECT generate_series(1::bigint, 40))",
    ],
    ValueType.NUMBER: ["0::{0}", "-1::{0}", "9::{0}", "NULL::{0}"],
    ValueType.TENSOR: [
        "'{{}}'::{0}[]",
        "'{{1}}'::{0}[]",
        "'{{1,2,3,4}}'::{0}[]",
        "'{{1,NULL}}'::{0}[]",
        "'[-3:-2][9:9]={{{{1}},{{2}}}}'::{0}[]",
        "array_fill(1::{0}, ARRAY[3000])",
        "NULL::{0}[]",
    ],
}
_WORDS[ValueType.BYTES] = ["''::bytea", r"'\x00'::bytea", r"'\x000000000000f03f'::bytea", "NULL::bytea"]
_WORDS[ValueType.ENTRIES] = [*_WORDS[ValueType.BYTES], "decode(repeat('00', 48), 'hex')"]
_WORDS[ValueType.COMPRESSED] = [
    *_WORDS[ValueType.INTEGERS],
    "(SELECT tensor_compressed(1::{0}, i, i % 2, 9) FROM generate_series(0, 8) AS i)",
    "(SELECT tensor_compressed(1::float8, i, 4, 2) FROM generate_series(0, 1) AS i)",
    "ARRAY[701, 1, 1, 1, 1, 0, 1, 0, 0]",  # one row with one entry
    "ARRAY[701, 1, 1, 1, 1, 0, 1, 4294967295, 0]",
    "ARRAY[701, 1, 1, 1, 1, -9, 99999999, 0, 0]",
    "ARRAY[701, 9223372036854775807, 1, 1, 1, 0, 1, 0, 0]",
    "NULL::bigint[]",
]
_WORDS[ValueType.RESIDENT] = _WORDS[ValueType.TENSOR]
_WORDS[ValueType.COMPLEX] = _WORDS[ValueType.COMPLEX_TENSOR] = _WORDS[ValueType.TENSOR]
_TYPES = {"f64": "float8", "f32": "float4", "i64": "int8", "c128": "float8", "c64": "float4"}


def random_call(rng: random.Random, function: ArrayFunction) -> str:
    kind = _TYPES[rng.choice(function.dtypes)]
    words = [rng.choice(_WORDS[argument.type]) for argument in function.arguments]
    arguments = [word.format(kind) if "{0}" in word else word for word in words]
    return f"{function.name}({', '.join(arguments)})"


_TRY_CALLS = """
CREATE FUNCTION pg_temp.sqlstate_of(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT ' || call;
    RETURN '';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$"""


def test_ten_thousand_malformed_calls(connection: psycopg.Connection) -> None:
    """Calls with odd arguments; well-formed ones among them do not count."""
    rng, states = random.Random(0), Counter[str]()
    connection.execute(_TRY_CALLS)
    while states.total() - states[""] < 10_000:
        calls = [random_call(rng, rng.choice(FUNCTIONS)) for _ in range(1000)]
        rows = connection.execute("SELECT pg_temp.sqlstate_of(call) FROM unnest(%s::text[]) AS call", [calls])
        states.update(state for (state,) in rows.fetchall())
    damaged = {"22000", "42804"}  # arrays of words that hold no compressed entries, or those of another type
    assert set(states) <= {"", "22023", "22004", "22003", "54000", *damaged}, states
    assert connection.execute("SELECT tensor_add(ARRAY[1], ARRAY[2])").fetchall() == [([3],)]


def test_a_long_product_can_be_cancelled(connection: psycopg.Connection) -> None:
    connection.execute("SET statement_timeout = '100ms'")
    product = "tensor_matmul(u, u, ARRAY[4000, 4000, 4000])"
    error = error_of(connection, f"SELECT {product} FROM (SELECT tensor_fill(16000000, random()) AS u) AS t")
    connection.execute("SET statement_timeout = 0")
    assert isinstance(error, errors.QueryCanceled)


def test_arrays_in_variables(connection: psycopg.Connection) -> None:
    """PL/pgSQL holds arrays in expanded form, and updates them in place."""
    connection.execute("""
        CREATE FUNCTION grow(n int) RETURNS float8[] LANGUAGE plpgsql AS $$
        DECLARE u float8[] := '{}'; v float8[];
        BEGIN
            FOR i IN 1..n LOOP
                u := u || i::float8;
                v := tensor_add(u, tensor_fill(i, 1.0::float8));
                u[i] := tensor_dot(u, u) - tensor_dot(v, v);
            END LOOP;
            RETURN u;
        END $$""")
    expected: list[float] = []
    for i in range(1, 501):
        expected.append(float(i))
        u = np.array(expected)
        expected[-1] = u @ u - (u + 1) @ (u + 1)
    ((result,),) = connection.execute("SELECT grow(500)").fetchall()
    np.testing.assert_allclose(result, expected, rtol=1e-9)


def test_indexes_and_generated_columns(connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE measured (u float8[], n float8 GENERATED ALWAYS AS (tensor_norm(u)) STORED)")
    connection.execute("CREATE INDEX by_count ON measured (tensor_nnz(u))")
    connection.execute("INSERT INTO measured VALUES ('{3,4}'), ('{0,1}')")
    connection.execute("SET enable_seqscan = off")
    assert connection.execute("SELECT n FROM measured WHERE tensor_nnz(u) = 1").fetchall() == [(1.0,)]
    connection.execute("RESET enable_seqscan")
    assert isinstance(error_of(connection, "INSERT INTO measured VALUES ('{1,NULL}')"), errors.NullValueNotAllowed)
