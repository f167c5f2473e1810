"""The functions and aggregates in PostgreSQL pass the same calls as in DuckDB."""

import ast
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
import test_complex_functions
import test_integer_functions
import test_sql_aggregates
import test_sql_functions
from postgres_sql import in_postgres, numbers
from sql_rows import Array, Oracle, Rows, arguments_of
from test_sql_vocabulary import EXAMPLE_ROWS as OF_EVERY_ENGINE
from test_sql_vocabulary import ROWS_OF_HANDLES

from sparseeinsum.kernels.array_functions import ArrayFunction
from sparseeinsum.kernels.postgresql.declared_functions import supported_functions

FUNCTIONS = tuple(supported_functions())
EXAMPLE_ROWS = OF_EVERY_ENGINE | {
    "tensor_collected(number, val)": (
        "(VALUES (2, 0.5::DOUBLE), (3, 1.5)) AS t(number, val)",
        struct.pack("<qqdd", 2, 3, 0.5, 1.5),
    ),
    "tensor_collected(number, u)": (
        "(VALUES (2, [0.5, 1.5]::DOUBLE[])) AS t(number, u)",
        struct.pack("<qdd", 2, 0.5, 1.5),
    ),
    "tensor_compressed_rows(entries, row, 3, 0.0)": (
        f"(VALUES ('\\x{struct.pack('<qd', 7, 0.5).hex()}'::BLOB, 1)) AS t(entries, row)",
        [701, 3, 1, 8, 1, 0, 0, 1, 1, 7, *struct.unpack("<q", struct.pack("<d", 0.5))],
    ),
}

ROWS = 300
NULL_EVERY = {"u": 5, "v": 7, "s": 3}
TOLERANCES = {"float64": 1e-12, "float32": 1e-4, "int64": 0.0, "complex128": 1e-12, "complex64": 1e-4}
TYPES = {
    "float64": "float8",
    "float32": "float4",
    "int64": "int8",
    "complex128": "float8",
    "complex64": "float4",
}
_SCALARS = {
    "float": test_sql_functions.SCALARS,
    "int": test_integer_functions.SCALARS,
    "complex": test_complex_functions.SCALARS,
}
_AGGREGATES = {
    "float": test_sql_aggregates.AGGREGATES,
    "int": test_integer_functions.AGGREGATES,
    "complex": test_complex_functions.AGGREGATES,
}
SCALARS = [(call, dtype) for dtype in TYPES for call in _SCALARS[dtype.rstrip("0123456789")]]
AGGREGATES = [(call, dtype) for dtype in TYPES for call in _AGGREGATES[dtype.rstrip("0123456789")]]


def oracle_of(call: str, dtype: str) -> Oracle:
    kind = dtype.rstrip("0123456789")
    return {**_SCALARS[kind], **_AGGREGATES[kind]}[call]


def make_rows(dtype: str) -> Rows:
    """Rows with some numbers 0."""
    rng = np.random.default_rng(0)
    shape = (ROWS, 13)
    if dtype == "int64":
        values: Array = rng.integers(-9, 10, shape)
    else:
        values = rng.uniform(-2, 2, shape) + (1j * rng.uniform(-2, 2, shape) if "complex" in dtype else 0)
        values = (values * (rng.random(shape) < 0.9)).astype(dtype)
    return Rows(values[:, :6], values[:, 6:12], values[:, 12], np.arange(ROWS))


def as_stored(value: Array) -> Any:  # noqa: ANN401  # a number, or numbers
    """A number or an array as the database stores it: complex numbers as re, im, ..."""
    if np.iscomplexobj(value):
        return np.atleast_1d(value).view(value.real.dtype).tolist()
    return value.tolist()


@pytest.fixture(scope="module")
def connection(postgres_connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """Tables of rows."""
    create_rows(postgres_connection)
    yield postgres_connection


def create_rows(connection: psycopg.Connection) -> None:
    """Create tables of rows, by dtype, and views of them with NULLs."""
    for dtype, kind in TYPES.items():
        rows, scalar = make_rows(dtype), f"{kind}[]" if "complex" in dtype else kind
        connection.execute(f"CREATE TABLE rows_{dtype} (i int8, u {kind}[], v {kind}[], s {scalar})")
        with connection.cursor().copy(f"COPY rows_{dtype} FROM STDIN") as copy:
            for i in range(ROWS):
                copy.write_row((i, *(as_stored(values[i]) for values in (rows.u, rows.v, rows.s))))
        columns = ", ".join(
            f"CASE WHEN i % {distance} > 0 THEN {name} END AS {name}" for name, distance in NULL_EVERY.items()
        )
        connection.execute(f"CREATE VIEW nulls_{dtype} AS SELECT i, {columns} FROM rows_{dtype}")


def expect_numbers(result: object, expected: Array, dtype: str) -> None:
    """Compare a result's numbers with an oracle's, up to the rounding of a dtype."""
    actual = np.array(numbers(result))
    flat = np.ascontiguousarray(expected).ravel()
    if np.iscomplexobj(flat):
        flat = flat.view(flat.real.dtype)
    np.testing.assert_allclose(actual, flat, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


@pytest.mark.parametrize(("call", "dtype"), SCALARS)
def test_scalar_over_rows(connection: psycopg.Connection, call: str, dtype: str) -> None:
    rows = connection.execute(f"SELECT {in_postgres(call)} FROM rows_{dtype} ORDER BY i").fetchall()
    with np.errstate(all="ignore"):
        expected = oracle_of(call, dtype)(make_rows(dtype))
    expect_numbers([value for (value,) in rows], expected, dtype)


@pytest.mark.parametrize(("call", "dtype"), SCALARS)
def test_null_in_null_out(connection: psycopg.Connection, call: str, dtype: str) -> None:
    query = f"SELECT i, {in_postgres(call)} FROM nulls_{dtype} WHERE i < 105 ORDER BY i"
    divisors = [NULL_EVERY[name] for name in arguments_of(call) if name in NULL_EVERY]
    for i, value in connection.execute(query).fetchall():
        assert (value is None or value == []) == any(i % divisor == 0 for divisor in divisors)


@pytest.mark.parametrize(("call", "dtype"), AGGREGATES)
def test_aggregate_of_all_rows(connection: psycopg.Connection, call: str, dtype: str) -> None:
    """In one process, and in parts that parallel workers merge."""
    call_here, expected = in_postgres(call), oracle_of(call, dtype)(make_rows(dtype))
    for workers in (0, 2):
        force_workers(connection, workers)
        query = f"SELECT {call_here} FROM rows_{dtype}"
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {query}").fetchall())
        assert ("Partial Aggregate" in plan) == (workers > 0)
        ((result,),) = connection.execute(query).fetchall()
        expect_numbers(result, expected, dtype)
    force_workers(connection, 0)


def force_workers(connection: psycopg.Connection, workers: int) -> None:
    """Make PostgreSQL use this many workers for any query, however small."""
    for setting in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
        connection.execute(f"SET {setting} = 0")
    connection.execute(f"SET max_parallel_workers_per_gather = {workers}")
    forced = "force_parallel_mode" if connection.info.server_version < 160_000 else "debug_parallel_query"
    connection.execute(f"SET {forced} = {'on' if workers else 'off'}")


@pytest.mark.parametrize(("call", "dtype"), AGGREGATES)
def test_aggregate_of_groups_skips_rows_with_null(connection: psycopg.Connection, call: str, dtype: str) -> None:
    rows = make_rows(dtype)
    present = [rows.i % NULL_EVERY[name] > 0 for name in arguments_of(call) if name in NULL_EVERY]
    query = f"SELECT i % 4, {in_postgres(call)} FROM nulls_{dtype} GROUP BY 1"
    results = connection.execute(query).fetchall()
    assert len(results) == 4
    for group, value in results:
        own = rows[np.logical_and.reduce([*present, rows.i % 4 == group])]
        expect_numbers(value, oracle_of(call, dtype)(own), dtype)


@pytest.mark.parametrize(("call", "dtype"), AGGREGATES)
def test_aggregate_over_windows(connection: psycopg.Connection, call: str, dtype: str) -> None:
    window = "OVER (ORDER BY i ROWS BETWEEN 7 PRECEDING AND 1 FOLLOWING)"
    query = f"SELECT i, {in_postgres(call)} {window} FROM rows_{dtype} WHERE i < 40"
    rows = make_rows(dtype)
    for i, value in connection.execute(query).fetchall():
        own = rows[np.arange(max(i - 7, 0), min(i + 2, 40))]
        expect_numbers(value, oracle_of(call, dtype)(own), dtype)
    running = f"SELECT i, {in_postgres(call)} OVER (ORDER BY i) FROM rows_{dtype} WHERE i < 20"
    for i, value in connection.execute(running).fetchall():
        expect_numbers(value, oracle_of(call, dtype)(rows[np.arange(i + 1)]), dtype)


@pytest.mark.parametrize("call", test_sql_aggregates.AGGREGATES)
def test_aggregate_of_no_rows(connection: psycopg.Connection, call: str) -> None:
    for relation in ("rows_float64 WHERE i < 0", "nulls_float64 WHERE i % 105 = 0"):
        assert connection.execute(f"SELECT {in_postgres(call)} FROM {relation}").fetchall() == [(None,)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.example)
def test_examples_run(connection: psycopg.Connection, function: ArrayFunction) -> None:
    if function.example in ROWS_OF_HANDLES:
        query = f"SELECT {function.example} IS NOT NULL FROM {ROWS_OF_HANDLES[function.example]}"
        assert connection.execute(in_postgres(query)).fetchall() == [(True,)]
        return
    if function.is_aggregate:
        relation, expected = EXAMPLE_ROWS[function.example]
        query = in_postgres(f"SELECT {function.example} FROM {relation}")
        ((result,),) = connection.execute(query).fetchall()
        assert result == expected
        return
    call, equals, expected_text = function.example.partition(" = ")
    if not equals:
        assert connection.execute(f"SELECT {in_postgres(call)}").fetchall() == [(True,)]
        return
    ((result,),) = connection.execute(f"SELECT {in_postgres(call)}").fetchall()
    assert numbers(result) == numbers(ast.literal_eval(expected_text))


LITERALS = [
    (call, expected)
    for call, expected in (*test_sql_functions.LITERALS, *test_sql_functions.NUMBER_LITERALS)
    if "TINYINT" not in call  # no type of PostgreSQL's
]


@pytest.mark.parametrize(("call", "expected"), LITERALS)
def test_literals(connection: psycopg.Connection, call: str, expected: object) -> None:
    ((result,),) = connection.execute(f"SELECT {in_postgres(call)}").fetchall()
    np.testing.assert_array_equal(np.array(numbers(result), float), np.array(numbers(expected), float))


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("tensor_add(ARRAY[1.5], ARRAY[2])", "double precision[]"),
        ("tensor_add(ARRAY[1], ARRAY[2])", "bigint[]"),
        ("tensor_add(ARRAY[1], ARRAY[2::bigint])", "bigint[]"),
        ("tensor_add(ARRAY[1.5::real], ARRAY[2.5])", "real[]"),
        ("tensor_add(ARRAY[1.5::real], ARRAY[2.5::float8])", "double precision[]"),
        ("tensor_add('{1,2}'::float8[], '{3,4}')", "double precision[]"),
        ("tensor_div(ARRAY[1], ARRAY[2])", "double precision[]"),
        ("tensor_div(ARRAY[1::bigint], ARRAY[2::bigint])", "double precision[]"),
        ("tensor_scale(2, ARRAY[1.5::real])", "real[]"),
        ("tensor_scale(2.5, ARRAY[1::bigint])", "double precision[]"),
        ("tensor_dot(ARRAY[1], ARRAY[2])", "bigint"),
        ("tensor_norm(ARRAY[1.0::real])", "real"),
        ("tensor_nnz(ARRAY[1.0])", "bigint"),
        ("tensor_fill(3, 1)", "bigint[]"),
        ("tensor_fill(3, 1.5)", "double precision[]"),
        ("tensor_sum(ARRAY[1.0])", "double precision[]"),
        ("tensor_pow(ARRAY[1], 2)", "bigint[]"),
        ("tensor_avg(ARRAY[1])", "double precision[]"),
        ("tensor_avg(ARRAY[1::real])", "real[]"),
        ("tensor_count(ARRAY[1.0])", "bigint[]"),
        ("tensor_sum_scaled(2, ARRAY[1.5::real])", "real[]"),
        ("tensor_stack(1.5, 0, 1, 0)", "double precision[]"),
        ("tensor_nnz_along(ARRAY[1.0], 0, ARRAY[1], 0)", "bigint[]"),
        ("tensor_complex_dot(ARRAY[1, 2], ARRAY[1.5, 0])", "double precision[]"),
        ("tensor_complex_real(ARRAY[1, 2]::real[])", "real[]"),
    ],
)
def test_types_of_literals_choose_the_dtype(connection: psycopg.Connection, call: str, kind: str) -> None:
    assert connection.execute(f"SELECT pg_typeof({call})::text").fetchall() == [(kind,)]
