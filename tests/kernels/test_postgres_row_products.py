"""Products of sparse matrices and arrays on PostgreSQL are those of numpy; other arrays of words give errors."""

import random
import struct
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest
from test_postgres_errors import error_of
from test_postgres_functions import force_workers
from test_row_products import INNER, ROWS, Array, expected_product, random_entries

from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.semirings import SEMIRINGS, Semiring

TYPES = {"float8": ("float64", "d"), "float4": ("float32", "f"), "bigint": ("int64", "q")}
COLUMNS = {"few": 150, "one": 1, "many": 3_000_000}  # columns beyond 65,536 are hashed
SUM = SEMIRINGS[0]


@pytest.fixture(scope="module")
def connection(postgres_connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """One connection for this module; its process survives all errors."""
    ((before,),) = postgres_connection.execute("SELECT pg_backend_pid()").fetchall()
    yield postgres_connection
    assert postgres_connection.execute("SELECT pg_backend_pid()").fetchall() == [(before,)]


def create(connection: psycopg.Connection, name: str, entries: Array) -> None:
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(
        f"CREATE TEMP TABLE {name} AS SELECT * FROM unnest(%s::int[], %s::int[], %s::int[]) AS t(i, j, val)",
        [axis.tolist() for axis in entries],
    )


def compressed(table: str, rows: int, kind: str) -> str:
    return f"(SELECT tensor_compressed(val::{kind}, i, j, {rows}) FROM {table})"


def start_of(semiring: Semiring, kind: str) -> str:
    """The identity of a semiring's aggregate in SQL."""
    start = AGGREGATES[semiring.aggregate].identity(TYPES[kind][0])
    return f"'{int(start.real) if kind == 'bigint' else float(start.real)}'::{kind}"


def rows_of(connection: psycopg.Connection, call: str, kind: str) -> dict[tuple[int, int], float]:
    """The entries of all rows r that a call returns, each of which has a position once."""
    entries = []
    for row, value in connection.execute(f"SELECT r, {call} FROM generate_series(0, {ROWS - 1}) AS r"):
        count = len(value) // (8 + struct.calcsize(TYPES[kind][1]))
        numbers = struct.unpack(f"<{count}q{count}{TYPES[kind][1]}", value)
        entries += [
            ((row, position), number) for position, number in zip(numbers[:count], numbers[count:], strict=True)
        ]
    assert len(dict(entries)) == len(entries)
    return dict(entries)


def product(semiring: Semiring, kind: str) -> str:
    left, right = compressed("a", ROWS, kind), compressed("b", INNER, kind)
    return f"tensor_product_row('{semiring.text}', {left}, r, {right}, {start_of(semiring, kind)})"


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_products_are_numpys(connection: psycopg.Connection, columns: int, kind: str) -> None:
    left, right = (
        random_entries(0, ROWS - 20, INNER, 2000),
        random_entries(1, INNER, columns, min(1500, INNER * columns)),
    )
    create(connection, "a", left)
    create(connection, "b", right)
    for semiring in SEMIRINGS:
        expected = expected_product(semiring, left, right, TYPES[kind][0])
        assert rows_of(connection, product(semiring, kind), kind) == expected


def test_masked_products_are_numpys(connection: psycopg.Connection) -> None:
    left, right, mask = (
        random_entries(0, ROWS, INNER, 2000),
        random_entries(1, INNER, 300, 1500),
        random_entries(2, ROWS, 300, 9000),
    )
    for name, entries in zip("abm", (left, right, mask), strict=True):
        create(connection, name, entries)
    call = product(SUM, "float8").replace("tensor_product_row", "tensor_masked_product_row")
    masked_product = rows_of(connection, f"{call[:-1]}, {compressed('m', ROWS, 'float8')})", "float8")
    factors = {(i, k): value for i, k, value in mask.T.tolist()}
    products = expected_product(SUM, left, right, "float64")
    assert masked_product == {key: products[key] * factors[key] for key in products.keys() & factors.keys()}


@pytest.mark.parametrize("kind", TYPES)
def test_products_with_a_vector(connection: psycopg.Connection, kind: str) -> None:
    """Rows without products give NULL; the vector lacks some numbers."""
    left, right = random_entries(0, ROWS, INNER, 2000), random_entries(1, INNER, 1, INNER // 2)
    create(connection, "a", left)
    create(connection, "b", right)
    for semiring in SEMIRINGS:
        call = product(semiring, kind).replace("tensor_product_row", "tensor_product_number")
        numbers = connection.execute(f"SELECT r, {call} FROM generate_series(0, {ROWS - 1}) AS r").fetchall()
        expected = expected_product(semiring, left, right, TYPES[kind][0])
        assert dict(numbers) == {row: expected.get((row, 0)) for row in range(ROWS)}


@pytest.mark.parametrize("kind", TYPES)
def test_sums_of_rows_of_two_arrays(connection: psycopg.Connection, kind: str) -> None:
    """Positions are those of pairs of rows; an array has a row that no entry reads."""
    entries, rng = random_entries(5, ROWS, 11 * 7, 2000), np.random.default_rng(6)
    create(connection, "a", entries)
    first, second = rng.integers(-4, 5, (12, 5)), rng.integers(-4, 5, (7, 5))
    arrays = [f"ARRAY{array.ravel().tolist()}::{kind}[]" for array in (first, second)]
    call = f"tensor_gather_product_sum({compressed('a', ROWS, kind)}, r, {', '.join(arrays)}, 5, 1::{kind})"
    expected = np.ones((ROWS, 5))
    np.add.at(expected, entries[0], entries[2][:, None] * first[entries[1] // 7] * second[entries[1] % 7])
    for row, value in connection.execute(f"SELECT r, {call} FROM generate_series(0, {ROWS - 1}) AS r"):
        assert value == (expected[row].tolist() if row in entries[0] else None)
    query = f"SELECT i, j, tensor_scaled_dot(2::{kind}, {arrays[0]}, i, {arrays[1]}, j, 5) FROM generate_series(0, 11) "
    for i, j, value in connection.execute(f"{query} AS i, generate_series(0, 6) AS j"):
        assert value == 2 * first[i] @ second[j]


def test_rows_of_different_lengths(connection: psycopg.Connection) -> None:
    """A row that is hashed follows one with a slot for every column, in the same memory."""
    columns = 70_000
    hub = np.stack([np.full(9, 3), np.arange(9), np.ones(9, int)])
    others = random_entries(3, ROWS, INNER, 700)
    left = np.concatenate([hub, others[:, others[0] != 3]], axis=1)
    full = np.stack([np.full(columns // 2, 8), np.arange(0, columns, 2), np.arange(columns // 2)])
    right = np.concatenate([full, random_entries(4, 8, columns, 500)], axis=1)
    create(connection, "a", left)
    create(connection, "b", right)
    assert rows_of(connection, product(SUM, "float8"), "float8") == expected_product(SUM, left, right, "float64")


def test_lists_and_workers_and_groups(connection: psycopg.Connection) -> None:
    """Lists give the same as their entries; processes compress parts, and groups have entries of their own."""
    entries = random_entries(0, ROWS, INNER, 4000)
    connection.execute("DROP TABLE IF EXISTS entries")
    create(connection, "a", entries)
    connection.execute("CREATE TABLE entries AS SELECT * FROM a ORDER BY i, j")
    ordered = connection.execute("SELECT tensor_compressed(val::float8, i, j, 900) FROM entries").fetchall()
    lists = "(SELECT i, array_agg(j ORDER BY j) AS j, array_agg(val::float8 ORDER BY j) AS val FROM a GROUP BY i) AS t"
    by_row = f"SELECT tensor_compressed(val, i, '{{}}', 0, j, 900) FROM {lists}"
    assert connection.execute(by_row).fetchall() == ordered
    call = "tensor_compressed(val::float8, i, j, 900)"
    force_workers(connection, 2)
    parts = connection.execute(f"SELECT cardinality({call}) FROM entries").fetchall()
    force_workers(connection, 0)
    assert parts == [(len(ordered[0][0]),)]
    grouped = f"SELECT i % 7, {call} FROM entries GROUP BY 1"
    for group, value in connection.execute(grouped).fetchall():
        assert connection.execute(f"SELECT {call} FROM entries WHERE i % 7 = {group}").fetchall() == [(value,)]


def test_rows_with_null_have_no_entry(connection: psycopg.Connection) -> None:
    rows = "(VALUES (NULL, 0, 0), (1, NULL, 0), (1, 0, NULL), (5.0, 1, 1)) AS t(val, i, j)"
    compression = "tensor_compressed(val::float8, i, j, 2)"
    expected = connection.execute("SELECT tensor_compressed(5::float8, 1, 1, 2)").fetchall()
    assert connection.execute(f"SELECT {compression} FROM {rows}").fetchall() == expected
    assert connection.execute(f"SELECT {compression} FROM {rows} WHERE val = 1").fetchall() == [(None,)]
    assert connection.execute(f"SELECT {compression} FROM {rows} WHERE false").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("tensor_compressed(1::float8, 3, 0, 3)", ("row 3", "0 to 2")),
        ("tensor_compressed(1::float8, -1, 0, 3)", ("row -1",)),
        ("tensor_compressed(1::float8, 0, 2147483647, 3)", ("position 2147483647",)),
        ("tensor_compressed(1::float8, 0, 0, -1)", ("rows is -1",)),
        ("tensor_compressed(1::float8, 0, 0, n)", ("2, not 1",)),
        ("tensor_compressed(ARRAY[1.0, 2]::float8[], 0, '{}', 0, ARRAY[1], 3)", ("2", "1")),
        ("tensor_compressed(ARRAY[1.0, NULL]::float8[], 0, '{}', 0, ARRAY[1, 2], 3)", ("NULL",)),
        ("tensor_compressed(ARRAY[1.0]::float8[], 0, '{}', 0, ARRAY[-1], 3)", ("position -1",)),
        ("tensor_product_row('sum(u * v)', max(a), 2, max(a), 0::float8)", ("row 2", "0 to 1")),
        ("tensor_product_row('sum(v)', max(a), 0, max(a), 0::float8)", ("semiring",)),
        ("tensor_product_row('sum(u * v)', max(a), 0, max(a), 0::float4)", ("argument 4", "701", "700")),
        ("tensor_product_row('sum(u * v)', max(a), 0, max(b), 0::float8)", ("row 1", "0 to 0")),
        ("tensor_product_number('sum(u * v)', max(a), 0, max(a), 0::float8)", ("position 1", "vector")),
        ("tensor_masked_product_row('sum(u * v)', max(a), 0, max(a), 0::float8, max(c))", ("mask", "twice")),
        ("tensor_gather_product_sum(max(a), 0, ARRAY[1.0, 2], ARRAY[3.0, 4], 2, 0::float8)", ("row 1 of 2",)),
        ("tensor_gather_product_sum(max(a), 0, ARRAY[1.0, 2], '{}', 2, 0::float8)", ("row 1 of 2",)),
        ("tensor_gather_product_sum(max(a), 0, ARRAY[1.0, 2], ARRAY[3.0], -1, 0::float8)", ("size -1",)),
        ("tensor_gather_product_sum(max(a), 2, ARRAY[1.0], ARRAY[3.0], 1, 0::float8)", ("row 2", "0 to 1")),
        ("tensor_scaled_dot(2::float8, ARRAY[1.0, 2], 1, ARRAY[1.0, 2], 0, 2)", ("row 1 of 2",)),
        ("tensor_scaled_dot(2::float8, ARRAY[1.0, 2], 0, ARRAY[1.0, 2], -1, 2)", ("row -1",)),
        ("tensor_scaled_dot(2::float8, ARRAY[1.0, NULL], 0, ARRAY[1.0, 2], 0, 2)", ("NULL",)),
        ("sparseeinsum_compressed_float64_transition(max(a), 1::float8, 0, 0, 1)", ("inside its aggregate",)),
    ],
)
def test_invalid_calls_are_refused(connection: psycopg.Connection, call: str, words: tuple[str, ...]) -> None:
    values = """(SELECT n, (SELECT tensor_compressed(1::float8, i, 1, 2) FROM generate_series(0, 1) AS i) AS a,
        (SELECT tensor_compressed(1::float8, 0, 0, 1)) AS b,
        (SELECT tensor_compressed(1::float8, 0, 1, 2) FROM generate_series(0, 1)) AS c
        FROM generate_series(1, 2) AS n) AS t"""
    message = str(error_of(connection, f"SELECT {call} FROM {values}"))
    assert all(word in message for word in words), message


def test_other_arrays_give_errors_or_entries(connection: psycopg.Connection) -> None:
    """Any word of compressed entries may be any other one: the server survives, in every function."""
    create(connection, "a", random_entries(0, 6, 6, 20))
    ((words,),) = connection.execute(f"SELECT {compressed('a', 6, 'float8')}").fetchall()
    chance, states = random.Random(0), set[str | None]()
    functions = (
        *("product_row({})", "product_number({})", "masked_product_row({}, %s::bigint[])"),
        "gather_product_sum(%s::bigint[], %s, ARRAY[1.0, 2, 3, 4, 5, 6], ARRAY[5.0, 6], 2, 0)",
    )
    for turn in range(2000):
        arrays = [list(words) for _ in range(3)]
        for array in arrays:
            for _ in range(chance.choice((0, 0, 1, 1, 2))):
                values = (-1, 0, 1, 5, 7, 2**31, 2**32 + 3, 7 * 2**32 + 6, -(2**63), 2**63 - 1)
                array[chance.randrange(len(array) if chance.random() < 0.5 else 13)] = chance.choice(values)
        left, right, mask = (array[: chance.choice((None, None, None, None, -1, 3))] for array in arrays)
        call = functions[turn % 4].format("'sum(u * v)', %s::bigint[], %s, %s::bigint[], 0::float8")
        arguments = [left, chance.randrange(-1, 7), right, mask][: call.count("%s")]
        try:
            connection.execute(f"SELECT tensor_{call}", arguments).fetchall()
            states.add("")
        except psycopg.Error as error:
            states.add(error.sqlstate)
    assert {"", "22000"} <= states <= {"", "22000", "22023", "42804"}


def test_states_are_checked(connection: psycopg.Connection) -> None:
    """An aggregate of a user may begin with any array."""
    for number, state in enumerate(("{}", "{701,9,4,1,1}", "{701,1,1,5,1,-1,0}", "{20,0,0,1,0}", "{{1,2}}")):
        connection.execute(
            f"CREATE AGGREGATE forged_{number}(float8, bigint, bigint, bigint) (SFUNC = "
            "sparseeinsum_compressed_float64_transition, STYPE = bigint[], FINALFUNC = "
            f"sparseeinsum_compressed_float64_finish, INITCOND = '{state}')"
        )
        rows = "1::float8, 0, 0, 5" if number == 2 else "1::float8, 0, 0, 1"
        assert "damaged" in str(error_of(connection, f"SELECT forged_{number}({rows})"))
