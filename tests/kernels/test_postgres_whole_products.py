"""PostgreSQL's functions that compute all rows of a product return what those of single rows do, and can be stopped."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from test_postgres_errors import error_of
from test_postgres_row_products import TYPES, compressed, create, start_of
from test_row_products import INNER, ROWS, random_entries

from sparseeinsum.operators.semirings import SEMIRINGS

# Elements of a row of the array: few rows, and many, are computed together; some rows are larger than those together.
WIDTHS = (1, 3, 64, 40_000)


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
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [1, 2000])
def test_sums_are_those_of_single_rows(connection: psycopg.Connection, kind: str, width: int, count: int) -> None:
    create(connection, "a", random_entries(0, ROWS, 30, min(count, ROWS * 20)))
    entries, fill = compressed("a", ROWS, kind), f"0::{kind}"
    array = f"(SELECT array_agg((i % 97 - 40)::{kind} ORDER BY i) FROM generate_series(1, {30 * width}) AS i)"
    of_row = f"tensor_gather_sum({entries}, r, {array}, {width}, {fill})"
    rows = f"SELECT r, {of_row} AS val FROM generate_series(0, {ROWS - 1}) AS r OFFSET 0"
    expected = value_of(connection, f"SELECT tensor_collected(r, val) FROM ({rows}) AS t WHERE val IS NOT NULL")
    assert value_of(connection, f"SELECT tensor_gather_sums({entries}, {array}, {width}, {fill})") == expected


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_sums_of_products_are_those_of_single_rows(connection: psycopg.Connection, kind: str, width: int) -> None:
    """Of rows of two arrays."""
    create(connection, "a", random_entries(0, ROWS, 30, min(2000, ROWS * 20)))
    entries, start = compressed("a", ROWS, kind), f"3::{kind}"
    left, right = (
        f"(SELECT array_agg((i % 97 - 40)::{kind} ORDER BY i) FROM generate_series(1, {rows * width}) AS i)"
        for rows in (5, 6)
    )
    of_row = f"tensor_gather_product_sum({entries}, r, {left}, {right}, {width}, {start})"
    rows = f"SELECT r, {of_row} AS val FROM generate_series(0, {ROWS - 1}) AS r OFFSET 0"
    expected = value_of(connection, f"SELECT tensor_collected(r, val) FROM ({rows}) AS t WHERE val IS NOT NULL")
    call = f"tensor_gather_product_sums({entries}, {left}, {right}, {width}, {start})"
    assert value_of(connection, f"SELECT {call}") == expected


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("present", [INNER // 2, INNER, 0], ids=["some", "all", "none"])
def test_numbers_are_those_of_single_rows(connection: psycopg.Connection, kind: str, present: int) -> None:
    """The vector has some of its numbers, or all: then its rows need not be looked up."""
    create(connection, "a", random_entries(0, ROWS - 20, INNER, 2000))
    create(connection, "b", random_entries(1, INNER, 1, present))
    matrix, vector = compressed("a", ROWS, kind), compressed("b", INNER, kind)
    for semiring in SEMIRINGS:
        start = start_of(semiring, kind)
        of_row = f"tensor_product_number('{semiring.text}', {matrix}, r, {vector}, {start})"
        rows = f"SELECT r, {of_row} AS val FROM generate_series(0, {ROWS - 1}) AS r OFFSET 0"
        expected = value_of(connection, f"SELECT tensor_collected(r, val) FROM ({rows}) AS t WHERE val IS NOT NULL")
        call = f"tensor_product_numbers('{semiring.text}', {matrix}, {vector}, {start})"
        assert value_of(connection, f"SELECT {call}") == expected
        assert (expected is None) == (present == 0)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("columns", [40, 100_000], ids=["a slot for every column", "by hash"])
@pytest.mark.parametrize("count", [2000, 0], ids=["entries", "none"])
def test_rows_are_those_of_single_rows(connection: psycopg.Connection, kind: str, columns: int, count: int) -> None:
    create(connection, "a", random_entries(0, ROWS - 20, INNER, 2000))
    create(connection, "b", random_entries(1, INNER, columns, count))
    left, right = compressed("a", ROWS, kind), compressed("b", INNER, kind)
    for semiring in SEMIRINGS:
        start = start_of(semiring, kind)
        of_row = f"tensor_product_row('{semiring.text}', {left}, r, {right}, {start})"
        rows = f"SELECT r, {of_row} AS entries FROM generate_series(0, {ROWS - 1}) AS r OFFSET 0"
        expected = f"SELECT tensor_compressed_rows(entries, r, {ROWS}, {start}) FROM ({rows}) AS t"
        product = value_of(connection, f"SELECT tensor_product_rows('{semiring.text}', {left}, {right}, {start})")
        assert product == value_of(connection, expected)
        assert (product is None) == (count == 0)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("columns", [40, 300_000], ids=["a slot for every column", "by hash"])
@pytest.mark.parametrize("count", [2000, 0], ids=["entries", "none"])
def test_masked_rows_are_those_of_single_rows(
    connection: psycopg.Connection, kind: str, columns: int, count: int
) -> None:
    create(connection, "a", random_entries(0, ROWS - 20, INNER, 2000))
    create(connection, "b", random_entries(1, INNER, columns, count))
    create(connection, "m", random_entries(2, ROWS - 10, min(columns, 300), 3000))
    left, right, mask = (compressed(name, rows, kind) for name, rows in {"a": ROWS, "b": INNER, "m": ROWS}.items())
    for semiring in SEMIRINGS:
        start = start_of(semiring, kind)
        of_row = f"tensor_masked_product_row('{semiring.text}', {left}, r, {right}, {start}, {mask})"
        rows = f"SELECT r, {of_row} AS entries FROM generate_series(0, {ROWS - 1}) AS r OFFSET 0"
        expected = f"SELECT tensor_compressed_rows(entries, r, {ROWS}, {start}) FROM ({rows}) AS t"
        call = f"tensor_masked_product_rows('{semiring.text}', {left}, {right}, {start}, {mask})"
        product = value_of(connection, f"SELECT {call}")
        assert product == value_of(connection, expected)
        assert (product is None) == (count == 0)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", [0, 1, 16])
def test_inner_products_are_those_of_single_tuples(connection: psycopg.Connection, kind: str, size: int) -> None:
    """A row, all rows, and tuples of a table."""
    create(connection, "a", random_entries(0, 90, 70, 5000))
    left, right = (
        f"(SELECT array_agg((i % {period} - 5)::{kind} ORDER BY i) FROM generate_series(1, {rows * size}) AS i)"
        if size
        else f"ARRAY[]::{kind}[]"
        for rows, period in ((90, 11), (70, 13))
    )
    entries = compressed("a", 100, kind)
    left = f"({left} || array_fill(1::{kind}, ARRAY[{10 * size}]))"
    of_tuple = f"tensor_scaled_dot(val::{kind}, {left}, i, {right}, j, {size})"
    expected = f"SELECT tensor_compressed({of_tuple}, i, j, 100) FROM a"
    of_row = f"tensor_scaled_dot_row({entries}, r, {left}, {right}, {size})"
    rows = f"SELECT r, {of_row} AS entries FROM generate_series(0, 99) AS r OFFSET 0"
    of_rows = f"SELECT tensor_compressed_rows(entries, r, 100, 0::{kind}) FROM ({rows}) AS t"
    product = value_of(connection, f"SELECT tensor_scaled_dot_rows({entries}, {left}, {right}, {size})")
    assert product == value_of(connection, of_rows) == value_of(connection, expected)
    connection.execute("DELETE FROM a")
    assert value_of(connection, f"SELECT tensor_scaled_dot_rows({entries}, {left}, {right}, {size})") is None


@pytest.mark.parametrize("kind", TYPES)
def test_numbers_are_read_and_replaced(connection: psycopg.Connection, kind: str) -> None:
    create(connection, "a", random_entries(0, ROWS, INNER, 2000))
    entries = compressed("a", ROWS, kind)
    numbers = f"(SELECT array_agg(val::{kind} ORDER BY i, j) FROM a)"
    ordered = f"(SELECT tensor_compressed(val::{kind}, i, j, {ROWS}) FROM (SELECT * FROM a ORDER BY i, j) AS a)"
    assert value_of(connection, f"SELECT tensor_entries({ordered}, 0::{kind}) = {numbers}")
    other = f"(SELECT tensor_compressed((val * 2)::{kind}, i, j, {ROWS}) FROM a)"
    doubled = f"tensor_with_numbers({entries}, tensor_entries({other}, 0::{kind}))"
    assert value_of(connection, f"SELECT {doubled} = {other}")


@pytest.mark.parametrize("function", ["tensor_sparse_matmul", "tensor_sparse_matmul_transposed"])
@pytest.mark.parametrize("numbers", ["", ", (SELECT array_agg(2::float8) FROM generate_series(1, 2000))"])
@pytest.mark.parametrize("width", WIDTHS)
def test_products_with_an_array_are_sums(
    connection: psycopg.Connection, function: str, numbers: str, width: int
) -> None:
    """Rows without entries are 0; threads share the product of wide rows."""
    create(connection, "a", random_entries(0, ROWS - 20, INNER, 2000))
    rows, positions = (INNER, ROWS) if function.endswith("transposed") else (ROWS, INNER)
    array = f"(SELECT array_agg((i % 97 - 40)::float8 ORDER BY i) FROM generate_series(1, {positions * width}) AS i)"
    call = f"{function}({compressed('a', ROWS, 'float8')}, {rows}, {array}, {width}{numbers})"
    entries = connection.execute("SELECT i, j, val FROM a").fetchall()
    matrix = np.zeros((ROWS, INNER))
    for i, j, v in entries:
        matrix[i, j] = 2 if numbers else v
    dense = (np.arange(1, positions * width + 1) % 97 - 40.0).reshape(positions, width)
    expected = (matrix.T if function.endswith("transposed") else matrix) @ dense
    np.testing.assert_allclose(value_of(connection, f"SELECT {call}"), expected.ravel(), rtol=1e-12, atol=1e-9)


def test_null_entries_are_none(connection: psycopg.Connection) -> None:
    call = "tensor_sparse_matmul(NULL::bigint[], {}, ARRAY[1]::float8[], 2)"
    assert value_of(connection, f"SELECT {call.format(3)}") == [0.0] * 6
    assert value_of(connection, f"SELECT {call.format('NULL')}") is None


def test_an_entry_twice_in_a_vector(connection: psycopg.Connection) -> None:
    """As many entries as rows are no full vector."""
    vector = "(SELECT tensor_compressed(v::float8, i, 0, 2) FROM (VALUES (0, 3), (0, 5)) AS t(i, v))"
    matrix = "(SELECT tensor_compressed(10::float8, i, 1 - i, 2) FROM generate_series(0, 1) AS i)"
    call = f"tensor_product_numbers('sum(u * v)', {matrix}, {vector}, 0::float8)"
    expected = value_of(connection, "SELECT tensor_collected(1, 80::float8)")
    assert value_of(connection, f"SELECT {call}") == expected


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("tensor_gather_sums(a, ARRAY[1]::float8[], 1, 0::float8)", ("row 1", "1 element")),
        ("tensor_gather_sums(a, ARRAY[1, 2]::float8[], 2, 0::float8)", ("row 1", "2 elements")),
        ("tensor_gather_sums(a, ARRAY[1, 2]::float8[], -1, 0::float8)", ("-1",)),
        ("tensor_gather_product_sums(a, ARRAY[1]::float8[], ARRAY[1]::float8[], 1, 0::float8)", ("row 1", "1 element")),
        ("tensor_gather_product_sums(a, ARRAY[]::float8[], ARRAY[1]::float8[], 1, 0::float8)", ("row 1", "0 element")),
        ("tensor_gather_sums(a, ARRAY[1, 2]::float4[], 1, 0::float4)", ("argument 1", "701", "700")),
        ("tensor_gather_sums(a[2:], ARRAY[1, 2]::float8[], 1, 0::float8)", ("argument 1",)),
        ("tensor_sparse_matmul(a, 1, ARRAY[1]::float8[], 1)", ("position 1", "1 rows")),
        ("tensor_sparse_matmul(a, 2, ARRAY[1, 2]::float8[], 1)", ("1 rows", "not 2")),
        ("tensor_sparse_matmul(a, -1, ARRAY[1, 2]::float8[], 1)", ("-1",)),
        ("tensor_sparse_matmul(a, 1, ARRAY[1, 2]::float8[], -1)", ("-1",)),
        ("tensor_sparse_matmul(NULL::bigint[], 2000000000, ARRAY[1]::float8[], 1000000)", ("bytes",)),
        ("tensor_sparse_matmul(a, 1, ARRAY[1, 2]::float4[], 1)", ("argument 1", "701", "700")),
        ("tensor_sparse_matmul(a[2:], 1, ARRAY[1, 2]::float8[], 1)", ("argument 1",)),
        ("tensor_sparse_matmul(a, 1, ARRAY[1, 2]::float8[], 1, ARRAY[1, 2]::float8[])", ("1", "2")),
        ("tensor_sparse_matmul_transposed(a, 1, ARRAY[1]::float8[], 1)", ("1",)),
        ("tensor_product_numbers('sum(u * v)', a, a, 0::float8)", ("position 1",)),
        ("tensor_product_numbers('sum(u * v)', a, v, 0::float8)", ("row 1", "0 to 0")),
        ("tensor_scaled_dot_rows(a, ARRAY[]::float8[], ARRAY[1, 2]::float8[], 1)", ("row 0", "1 element")),
        ("tensor_scaled_dot_rows(a, ARRAY[1, 2]::float8[], ARRAY[1]::float8[], 1)", ("row 1", "1 element")),
        ("tensor_scaled_dot_rows(a, ARRAY[1, 2]::float8[], ARRAY[1]::float8[], -1)", ("size -1",)),
        ("tensor_scaled_dot_rows(a[2:], ARRAY[1]::float8[], ARRAY[1]::float8[], 1)", ("argument 1",)),
        ("tensor_scaled_dot_rows(f, ARRAY[4e18]::bigint[], ARRAY[4]::bigint[], 1)", ("overflow",)),
        ("tensor_scaled_dot_row(a, 0, ARRAY[]::float8[], ARRAY[1, 2]::float8[], 1)", ("row 0", "1 element")),
        ("tensor_scaled_dot_row(a, 0, ARRAY[1, 2]::float8[], ARRAY[1]::float8[], 1)", ("row 1", "1 element")),
        ("tensor_scaled_dot_row(a, -1, ARRAY[1]::float8[], ARRAY[1]::float8[], 1)", ("row -1", "0 to 0")),
        ("tensor_scaled_dot_row(a, 1, ARRAY[1]::float8[], ARRAY[1]::float8[], 1)", ("row 1", "0 to 0")),
        ("tensor_scaled_dot_row(a, 0, ARRAY[1]::float8[], ARRAY[1]::float8[], -1)", ("size -1",)),
        ("tensor_entries(a, 0::float4)", ("argument 1", "701", "700")),
        ("tensor_entries(a[2:], 0::float8)", ("argument 1",)),
        ("tensor_with_numbers(a, ARRAY[1, 2]::float8[])", ("1", "2")),
        ("tensor_with_numbers(a[2:], ARRAY[1]::float8[])", ("argument 1",)),
        ("tensor_masked_product_rows('sum(u / v)', v, v, 0::float8, v)", ("semiring is none of",)),
        ("tensor_masked_product_rows('sum(u * v)', a, v, 0::float8, v)", ("row 1", "0 to 0")),
        ("tensor_masked_product_rows('sum(u * v)', v, v, 0::float8, w)", ("2 rows", "not 1")),
        ("tensor_masked_product_rows('sum(u * v)', v, v, 0::float8, v[2:])", ("argument 5",)),
        ("tensor_masked_product_rows('sum(u * v)', v, v, 0::float8, d)", ("twice",)),
        ("tensor_masked_product_rows('sum(u * v)', f, g, 0, f)", ("overflow",)),
        ("tensor_product_numbers('sum(u / v)', v, v, 0::float8)", ("semiring is none of",)),
        ("tensor_product_rows('sum(u / v)', v, v, 0::float8)", ("semiring is none of",)),
        ("tensor_product_rows('sum(u * v)', a, v, 0::float8)", ("row 1", "0 to 0")),
        ("tensor_product_rows('sum(u * v)', a[2:], v, 0::float8)", ("argument 2",)),
        ("tensor_product_rows('sum(u * v)', v, v, 0::float4)", ("argument 2", "701", "700")),
        ("tensor_product_rows('sum(u * v)', f, g, 0)", ("overflow",)),
    ],
)
def test_invalid_calls_are_refused(connection: psycopg.Connection, call: str, words: tuple[str, ...]) -> None:
    values = """(SELECT tensor_compressed(1::float8, 0, 1, 1) AS a, tensor_compressed(1::float8, 0, 0, 1) AS v,
        tensor_compressed(1::float8, 0, 0, 2) AS w,
        (SELECT tensor_compressed(1::float8, 0, 0, 1) FROM generate_series(0, 1)) AS d,
        tensor_compressed(4::bigint, 0, 0, 1) AS f, tensor_compressed((4e18)::bigint, 0, 0, 1) AS g) AS t"""
    message = str(error_of(connection, f"SELECT {call} FROM {values}"))
    assert all(word in message for word in words), message


def test_other_arrays_give_errors_or_products(connection: psycopg.Connection) -> None:
    """Any word of compressed entries may be any other one: the server survives."""
    for seed, (name, columns) in enumerate({"a": 6, "b": 1}.items()):
        create(connection, name, random_entries(seed, 6, columns, 3 * columns))
    words = [value_of(connection, f"SELECT {compressed(name, 6, 'float8')}") for name in "ab"]
    ones, ones_of_b = (f"array_fill(1::float8, ARRAY[{size}])" for size in ("12", "cardinality(%(b)s::bigint[])"))
    calls = (
        "tensor_product_numbers('sum(u * v)', %(a)s::bigint[], %(b)s::bigint[], 0::float8)",
        "tensor_gather_sums(%(a)s::bigint[], array_fill(1::float8, ARRAY[cardinality(%(b)s::bigint[])]), 2, 0::float8)",
        "tensor_product_rows('sum(u * v)', %(a)s::bigint[], %(b)s::bigint[], 0::float8)",
        f"tensor_gather_product_sums(%(a)s::bigint[], {ones}, {ones}, 2, 0::float8)",
        f"tensor_sparse_matmul(%(a)s::bigint[], 6, {ones_of_b}, 2)",
        f"tensor_sparse_matmul_transposed(%(a)s::bigint[], 6, {ones_of_b}, 2)",
        "tensor_masked_product_rows('sum(u * v)', %(a)s::bigint[], %(b)s::bigint[], 0::float8, %(a)s::bigint[])",
        "tensor_masked_product_rows('sum(u * v)', %(a)s::bigint[], %(a)s::bigint[], 0::float8, %(b)s::bigint[])",
        f"tensor_scaled_dot_rows(%(a)s::bigint[], {ones}, {ones}, 2)",
        f"tensor_scaled_dot_row(%(a)s::bigint[], 3, {ones}, {ones}, 2)",
        "tensor_with_numbers(%(a)s::bigint[], tensor_entries(%(b)s::bigint[], 0::float8))",
    )
    chance, states = random.Random(0), set[str | None]()
    for attempt in range(1000 * len(calls)):
        arrays = [list(array) for array in words]
        for array in arrays:
            for _ in range(chance.choice((0, 0, 1, 1, 2))):
                values = (-1, 0, 1, 5, 7, 1 << 20, 2**31, 2**32 + 3, 7 * 2**32 + 6, -(2**63), 2**63 - 1)
                array[chance.randrange(len(array) if chance.random() < 0.5 else 13)] = chance.choice(values)
        left, right = (array[: chance.choice((None, None, None, None, -1, 3))] for array in arrays)
        try:
            connection.execute(f"SELECT {calls[attempt % len(calls)]}", {"a": left, "b": right}).fetchall()
            states.add("")
        except psycopg.Error as error:
            states.add(error.sqlstate)
    assert {"", "22000"} <= states <= {"", "22000", "22023", "42804"}


@pytest.mark.parametrize(
    "call",
    [
        "tensor_matched(a, a, 2, 0::float8, NULL)",
        "tensor_gather_sums(a, ARRAY[1, 2]::float8[], 1, 0::float8)",
        "tensor_sparse_matmul(a, 1, ARRAY[1, 2]::float8[], 1)::text::bytea",
        "tensor_sparse_matmul_transposed(a, 2, ARRAY[1]::float8[], 1)::text::bytea",
        "tensor_product_numbers('sum(u * v)', a, v, 0::float8)",
        "tensor_product_rows('sum(u * v)', a, v, 0::float8)::text::bytea",
        "tensor_masked_product_rows('sum(u * v)', v, w, 0::float8, v)::text::bytea",
        "tensor_scaled_dot_rows(a, ARRAY[1]::float8[], ARRAY[1, 2]::float8[], 1)::text::bytea",
        "tensor_scaled_dot_row(a, 0, ARRAY[1]::float8[], ARRAY[1, 2]::float8[], 1)",
    ],
)
def test_calls_can_be_stopped(connection: psycopg.Connection, call: str) -> None:
    """PostgreSQL itself looks for the wish to stop after a row, of which the last column comes after the call."""
    connection.execute("CREATE TEMP SEQUENCE IF NOT EXISTS after_calls")
    before = value_of(connection, "SELECT nextval('after_calls')")
    values = """(SELECT tensor_compressed(1::float8, 0, 1, 1) AS a,
        (SELECT tensor_compressed(1::float8, i, 0, 2) FROM generate_series(0, 1) AS i) AS v,
        tensor_compressed(1::float8, 0, 0, 1) AS w OFFSET 0) AS t"""
    stopped = f"SELECT pg_cancel_backend(pg_backend_pid()), octet_length({call}), nextval('after_calls') FROM {values}"
    assert error_of(connection, stopped).sqlstate == "57014"
    assert value_of(connection, "SELECT nextval('after_calls')") == before + 1
