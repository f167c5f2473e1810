"""PostgreSQL's functions that put rows together in one value return what SQL and Python do; wrong calls give errors."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from test_postgres_errors import error_of
from test_postgres_functions import force_workers
from test_postgres_row_products import TYPES, compressed, create, product
from test_row_products import INNER, ROWS, random_entries

from sparseeinsum.operators.semirings import SEMIRINGS

LENGTHS = (None, 0, 1, 3)  # of arrays; None is a number
FILLS = {("NULL", "NULL"): "JOIN", ("0", "3"): "FULL JOIN", ("7", "NULL"): "RIGHT JOIN", ("NULL", "-5"): "LEFT JOIN"}
COLUMNS = {"few": 40, "one": 1, "many": 400_000}  # more than 2^17 are hashed


@pytest.fixture(scope="module")
def connection(postgres_connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """One connection for this module; its process survives all errors."""
    ((before,),) = postgres_connection.execute("SELECT pg_backend_pid()").fetchall()
    yield postgres_connection
    assert postgres_connection.execute("SELECT pg_backend_pid()").fetchall() == [(before,)]


def value_of(connection: psycopg.Connection, query: str) -> Any:  # noqa: ANN401  # what the query returns
    ((value,),) = connection.execute(query).fetchall()
    return value


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_collected_tuples(connection: psycopg.Connection, kind: str, length: int | None) -> None:
    """Their memory grows many times; groups have tuples of their own."""
    value = f"(i * 3)::{kind}" if length is None else f"array_fill((i * 3)::{kind}, ARRAY[{length}])"
    call, count = f"tensor_collected(i * 10, {value})", 5000
    dtype, size = np.dtype(TYPES[kind][0]), 1 if length is None else length
    groups = connection.execute(f"SELECT i % 2, {call} FROM generate_series(1, {2 * count}) AS i GROUP BY 1")
    for group, collected in groups.fetchall():
        numbers = np.arange(2 - group, 2 * count + 1, 2)
        assert len(collected) == count * (8 + size * dtype.itemsize)
        np.testing.assert_array_equal(np.frombuffer(collected, np.int64, count), numbers * 10)
        elements = np.frombuffer(collected, dtype, count * size, 8 * count)
        np.testing.assert_array_equal(elements, np.repeat(numbers * 3, size))


def test_no_tuples_are_null(connection: psycopg.Connection) -> None:
    assert value_of(connection, "SELECT tensor_collected(1, 2::float8) WHERE false") is None
    empty = "SELECT tensor_compressed_rows(e, 0, 3, 0::float8) FROM (VALUES (NULL::bytea), (''), ('')) AS t(e)"
    assert value_of(connection, empty) is None


def test_one_process_collects(connection: psycopg.Connection) -> None:
    connection.execute("DROP TABLE IF EXISTS collected_rows")
    connection.execute("CREATE TABLE collected_rows AS SELECT i FROM generate_series(0, 99999) AS i")
    force_workers(connection, 2)
    collected = value_of(connection, "SELECT tensor_collected(i, i::float8) FROM collected_rows")
    force_workers(connection, 0)
    assert sorted(np.frombuffer(collected, np.int64, 100_000).tolist()) == list(range(100_000))


@pytest.mark.parametrize("kind", TYPES)
def test_rows_of_products_are_ordered_as_their_entries(connection: psycopg.Connection, kind: str) -> None:
    """The rows come in any order."""
    create(connection, "a", random_entries(0, ROWS - 20, INNER, 2000))
    create(connection, "b", random_entries(1, INNER, 500, 1500))
    of_rows = f"SELECT r, {product(SEMIRINGS[0], kind)} AS e FROM generate_series(0, {ROWS - 1}) AS r"
    rows = f"({of_rows} ORDER BY random() OFFSET 0) AS t"
    size = 8 + np.dtype(TYPES[kind][0]).itemsize
    split = f"octet_length(e) / {size} * 8"
    positions = f"unnest(tensor_of_bytes(substr(e, 1, {split}), 0::bigint)) AS j"
    numbers = f"unnest(tensor_of_bytes(substr(e, {split} + 1), 0::{kind})) AS val"
    entries = f"(SELECT r AS i, {positions}, {numbers} FROM ({of_rows} OFFSET 0) AS t) AS s"
    expected = value_of(connection, f"SELECT tensor_compressed(val, i, j, {ROWS}) FROM {entries}")
    assert value_of(connection, f"SELECT tensor_compressed_rows(e, r, {ROWS}, 0::{kind}) FROM {rows}") == expected


def matched(kind: str, columns: int, fills: tuple[str, str], rows: int = ROWS) -> str:
    """The call for the tables u and v."""
    left, right = compressed("u", rows, kind), compressed("v", rows, kind)
    return f"tensor_matched({left}, {right}, {columns}, {fills[0]}::{kind}, {fills[1]}::{kind})"


def matches_of(value: bytes, kind: str) -> list[tuple[float, ...]]:
    dtype = np.dtype(TYPES[kind][0])
    count = len(value) // (8 + 2 * dtype.itemsize)
    columns: list[NDArray[Any]] = [np.frombuffer(value, np.int64, count)]
    columns += [np.frombuffer(value, dtype, count, (8 + part * dtype.itemsize) * count) for part in range(2)]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("fills", FILLS)
@pytest.mark.parametrize("counts", [(3000, 2000), (1, 5000), (0, 100), (100, 0), (0, 0)])
def test_matches_are_those_of_a_join(
    connection: psycopg.Connection, kind: str, columns: int, fills: tuple[str, str], counts: tuple[int, int]
) -> None:
    for seed, (name, count) in enumerate(zip("uv", counts, strict=True)):
        create(connection, name, random_entries(seed, ROWS, columns, min(count, ROWS * columns // 2)))
    if all(counts):  # many columns may have no other match
        connection.execute("DELETE FROM u WHERE (i, j) = (SELECT i, j FROM v LIMIT 1)")
        connection.execute("INSERT INTO u SELECT i, j, 9 FROM v LIMIT 1")
    keys = f"coalesce(u.i, v.i) * {columns}::bigint + coalesce(u.j, v.j)"
    values = f"coalesce(u.val, {fills[0]})::float8, coalesce(v.val, {fills[1]})::float8"
    expected = connection.execute(f"SELECT {keys}, {values} FROM u {FILLS[fills]} v USING (i, j)").fetchall()
    assert matches_of(value_of(connection, f"SELECT {matched(kind, columns, fills)}"), kind) == sorted(expected)


def test_matrices_of_different_numbers_of_rows(connection: psycopg.Connection) -> None:
    """Rows that one of them lacks have no entries there."""
    create(connection, "u", random_entries(0, 3, 4, 8))
    create(connection, "v", random_entries(1, 9, 4, 20))
    call = matched("float8", 4, ("0", "0")).replace(f"i, j, {ROWS}) FROM u", "i, j, 3) FROM u")
    assert value_of(connection, f"SELECT {call}") == value_of(connection, f"SELECT {matched('float8', 4, ('0', '0'))}")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("tensor_collected(n, CASE WHEN n > 1 THEN 2::float8 END)", ("NULL",)),
        ("tensor_collected(CASE WHEN n > 1 THEN 2 END, 2::float8)", ("NULL",)),
        ("tensor_collected(n, array_fill(1::float8, ARRAY[n]))", ("2 elements", "has 1")),
        ("tensor_collected(n, ARRAY[NULL]::float8[])", ("NULL",)),
        ("tensor_compressed_rows('12345'::bytea, 0, 1, 0::float8)", ("5 bytes", "16")),
        ("tensor_compressed_rows(entry, 3, 3, 0::float8)", ("row 3", "0 to 2")),
        ("tensor_compressed_rows(entry, -1, 3, 0::float8)", ("row -1",)),
        ("tensor_compressed_rows(entry, 0, n, 0::float8)", ("2, not 1",)),
        ("tensor_compressed_rows(entry, 0, -1, 0::float8)", ("rows is -1",)),
        ("tensor_compressed_rows(decode(repeat('ff', 16), 'hex'), 0, 1, 0::float8)", ("position -1",)),
        ("tensor_compressed_rows(decode(repeat('7f', 16), 'hex'), 0, 1, 0::float8)", ("position",)),
        ("tensor_matched(max(a), max(a), 1, 0::float8, 0::float8)", ("positions is 1", "at least 2")),
        ("tensor_matched(max(a), NULL, 2147483648, 0::float8, 0::float8)", ("positions is 2147483648",)),
        ("tensor_matched(max(a), max(a), 2, 0::float4, 0::float4)", ("argument 2", "701", "700")),
        ("tensor_matched(max(a), max(c), 2, 0::float8, 0::float8)", ("entry twice",)),
        ("tensor_matched(max(c), max(a), 2, 0::float8, 0::float8)", ("entry twice",)),
        ("sparseeinsum_collected_float64_transition(NULL, 1, 1::float8)", ("does not exist",)),
    ],
)
def test_invalid_calls_are_refused(connection: psycopg.Connection, call: str, words: tuple[str, ...]) -> None:
    values = """(SELECT n, decode(repeat('00', 16), 'hex') AS entry,
        (SELECT tensor_compressed(1::float8, 0, 1, 1)) AS a,
        (SELECT tensor_compressed(1::float8, 0, 1, 1) FROM generate_series(0, 1)) AS c
        FROM generate_series(1, 2) AS n) AS t"""
    message = str(error_of(connection, f"SELECT {call} FROM {values}"))
    assert all(word in message for word in words), message


def test_other_arrays_give_errors_or_matches(connection: psycopg.Connection) -> None:
    """Any word of compressed entries may be any other one: the server survives."""
    create(connection, "a", random_entries(0, 6, 6, 20))
    ((words,),) = connection.execute(f"SELECT {compressed('a', 6, 'float8')}").fetchall()
    chance, states = random.Random(0), set[str | None]()
    for _ in range(2000):
        arrays = [list(words) for _ in range(2)]
        for array in arrays:
            for _ in range(chance.choice((0, 0, 1, 1, 2))):
                values = (-1, 0, 1, 5, 7, 1 << 20, 2**31, 2**32 + 3, 7 * 2**32 + 6, -(2**63), 2**63 - 1)
                array[chance.randrange(len(array) if chance.random() < 0.5 else 13)] = chance.choice(values)
        left, right = (array[: chance.choice((None, None, None, None, -1, 3))] for array in arrays)
        fills = [chance.choice(("NULL", "0")) for _ in range(2)]
        call = f"tensor_matched(%s::bigint[], %s::bigint[], %s, {fills[0]}::float8, {fills[1]}::float8)"
        try:
            connection.execute(f"SELECT {call}", [left, right, chance.choice((6, 1 << 20, 0))]).fetchall()
            states.add("")
        except psycopg.Error as error:
            states.add(error.sqlstate)
    assert {"", "22000"} <= states <= {"", "22000", "22023", "42804"}
