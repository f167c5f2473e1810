"""Entries that are ordered by row in memory give the sums that numpy gives, or an error that names what is wrong."""

from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sql_errors import expect_error

import sparseeinsum as se
from sparseeinsum.kernels.compression import LARGEST, MOST_CAPACITY
from sparseeinsum.kernels.residents import MAX_RESIDENTS

pytestmark = [
    pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle"),
    pytest.mark.usefixtures("nothing_stays"),
]

Connection = duckdb.DuckDBPyConnection
TYPES = {"DOUBLE": np.float64, "FLOAT": np.float32, "BIGINT": np.int64}
ROWS, POSITIONS, WIDTH, ENTRIES = 700, 500, 5, 9000


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """Entries e in random order, some of them twice, in most of the rows; and the rows x of an array, some absent."""
    connection: Connection = shared_db.connection
    connection.execute(
        f"CREATE TABLE e AS SELECT n * 7919 % {ROWS - 20} AS i, n * n % {POSITIONS} AS j, n % 17 - 8 AS val "
        f"FROM range({ENTRIES}) AS t(n) ORDER BY hash(n)"
    )
    connection.execute(
        f"CREATE TABLE x AS SELECT j, list_transform(range({WIDTH}), lambda k: j * 3 - k) AS val "
        f"FROM range({POSITIONS}) AS t(j) WHERE j % 11 <> 0"
    )
    return connection


def arrays(connection: Connection, fill: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """The entries as a dense matrix, with those of one place added up, and the array that they are multiplied with."""
    left, right = np.zeros((ROWS, POSITIONS)), np.full((POSITIONS, WIDTH), float(fill))
    i, j, val = connection.execute("SELECT i, j, val FROM e").fetchnumpy().values()
    np.add.at(left, (i, j), val)
    for position, row in connection.execute("SELECT j, val FROM x").fetchall():
        right[position] = row
    return left, right


def product(sql_type: str = "DOUBLE", fill: int = 0, entries: str = "e", array: str = "x") -> str:
    return (
        f"WITH a AS (SELECT tensor_compressed(val::{sql_type}, i, j, {ROWS}) AS handle FROM {entries}), "
        f"b AS (SELECT tensor_resident(val::{sql_type}[], j, {POSITIONS}, {fill}::{sql_type}) AS handle FROM {array}) "
        f"SELECT i, tensor_gather_sum(a.handle, i, b.handle, {WIDTH}, {fill}::{sql_type}) AS val "
        f"FROM range({ROWS}) AS r(i) CROSS JOIN a CROSS JOIN b"
    )


@pytest.mark.parametrize("fill", [0, 2])
@pytest.mark.parametrize("sql_type", TYPES)
def test_sums_are_numpys(connection: Connection, sql_type: str, fill: int) -> None:
    present = f"SELECT * FROM ({product(sql_type, fill)}) WHERE val IS NOT NULL ORDER BY i"
    columns = connection.execute(present).fetchnumpy()
    left, right = arrays(connection, fill)
    assert [(i,) for i in columns["i"]] == connection.execute("SELECT DISTINCT i FROM e ORDER BY i").fetchall()
    result = np.stack(list(columns["val"]))
    assert result.dtype == TYPES[sql_type]
    np.testing.assert_allclose(result, (left @ right)[columns["i"]], rtol=1e-6 if sql_type == "FLOAT" else 1e-12)


@pytest.mark.parametrize("sql_type", TYPES)
def test_products_with_arrays_are_numpys(connection: Connection, sql_type: str) -> None:
    """Of all rows at once, and of several handles in one vector."""
    left, right = arrays(connection)
    half, numbers = f"SELECT * FROM e WHERE i < {ROWS // 2}", right.astype(int).ravel().tolist()
    entries = ("SELECT * FROM e", half, "SELECT * FROM e WHERE false")
    handles = " UNION ALL ".join(
        f"SELECT {n} AS n, tensor_compressed(val::{sql_type}, i, j, {ROWS}) AS handle FROM ({rows})"
        for n, rows in enumerate(entries)
    )
    call = f"tensor_sparse_matmul(handle, {ROWS}, {numbers}::{sql_type}[], {WIDTH})"
    both, first, none = (
        value for _, value in sorted(connection.execute(f"SELECT n, {call} FROM ({handles})").fetchall())
    )
    expected = left @ right
    np.testing.assert_allclose(np.reshape(both, expected.shape), expected, rtol=1e-6)
    expected[ROWS // 2 :] = 0
    np.testing.assert_allclose(np.reshape(first, expected.shape), expected, rtol=1e-6)
    assert none == [0] * expected.size
    of_null = call.replace(f"{numbers}", "NULL"), call.replace(f"{ROWS},", "NULL,", 1)
    assert connection.execute(f"SELECT DISTINCT {', '.join(of_null)} FROM ({handles})").fetchall() == [(None, None)]


@pytest.mark.parametrize("sql_type", TYPES)
@pytest.mark.parametrize(
    ("lists", "arguments"),
    [
        ("i, list(j::INTEGER) AS j, list(val) AS val FROM e GROUP BY i", "i, [], 0, j"),
        ("j, list(i::INTEGER) AS i, list(val) AS val FROM e GROUP BY j", "0, i, j, []"),
        ("i // 9 AS i, list((i % 9)::INTEGER) AS k, list(j::INTEGER) AS j, list(val) AS val FROM e GROUP BY ALL",
         "9 * i, k, 0, j"),
        ("i, j // 64 AS j, list((j % 64)::INTEGER) AS k, list(val) AS val FROM e GROUP BY ALL", "i, [], 64 * j, k"),
        ("list(i::INTEGER) AS i, list(j::INTEGER) AS j, list(val) AS val FROM e", "0, i, 0, j"),
        ("i, j, [val] AS val FROM e", "i, []::INTEGER[], j, [0]"),
    ],
)  # fmt: skip
def test_lists_of_entries(connection: Connection, lists: str, arguments: str, sql_type: str) -> None:
    """They give the rows that the same entries give one by one."""
    one_by_one = product(sql_type)
    handle = f"tensor_compressed(val::{sql_type}[], {arguments}, {ROWS}) AS handle FROM (SELECT {lists})"
    listed = one_by_one.replace(f"tensor_compressed(val::{sql_type}, i, j, {ROWS}) AS handle FROM e", handle)
    assert "[]" in listed
    expected = connection.execute(f"{one_by_one} ORDER BY i").fetchall()
    assert connection.execute(f"{listed} ORDER BY i").fetchall() == expected


def test_lists_that_are_null_or_empty_have_no_entries(connection: Connection) -> None:
    none = "(NULL::DOUBLE[], 0, [1]), ([2.0], NULL, [1]), ([2.0], 0, NULL), ([]::DOUBLE[], 0, [])"
    query = f"""
        SELECT tensor_gather_sum(tensor_compressed(val, i, [], 0, j, 1), 0, NULL, 1, 1::DOUBLE)
        FROM (VALUES {none}, ([3.0], 0, [1])) AS t(val, i, j)"""
    assert connection.execute(query).fetchall() == [([3.0],)]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("order", ["i, j", "hash(n)"])
def test_many_chunks_of_entries(connection: Connection, threads: int, order: str) -> None:
    """There are several row groups, so that states are merged, and several chunks in a state."""
    count = 5 * MOST_CAPACITY
    connection.execute(f"SET threads = {threads}")
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE many AS SELECT n % 1000 AS i, n // 1000 AS j, 1 AS val "
        f"FROM range({count}) AS t(n) ORDER BY {order}"
    )
    query = f"""
        WITH a AS (SELECT tensor_compressed(val::DOUBLE, i, j, 1000) AS handle FROM many),
        b AS (SELECT tensor_resident([j]::DOUBLE[], j, {count // 1000 + 1}, 0::DOUBLE) AS handle
              FROM range({count // 1000 + 1}) AS t(j))
        SELECT i, tensor_gather_sum(a.handle, i, b.handle, 1, 0::DOUBLE) AS val
        FROM range(1000) AS r(i) CROSS JOIN a CROSS JOIN b ORDER BY i"""
    sums = connection.execute(query).fetchall()
    connection.execute("RESET threads")
    n = np.arange(count)
    expected = np.bincount(n % 1000, weights=n // 1000)
    assert sums == [(row, [value]) for row, value in enumerate(expected)]


def test_an_array_without_rows_is_all_fill(connection: Connection) -> None:
    left, _ = arrays(connection)
    records = connection.execute(product("BIGINT", 3, array="x WHERE false")).fetchall()
    assert dict(records) == {
        row: [3 * int(left[row].sum())] * WIDTH if row < ROWS - 20 else None for row in range(ROWS)
    }


def test_no_entries_and_null_arguments_give_null(connection: Connection) -> None:
    assert connection.execute(f"SELECT DISTINCT val FROM ({product(entries='e WHERE false')})").fetchall() == [(None,)]
    some = "(SELECT CASE WHEN j > 3 THEN val END AS val, i, j FROM e)"
    few = dict(connection.execute(product("BIGINT", entries=some)).fetchall())
    many = dict(connection.execute(product("BIGINT", entries="e WHERE j > 3")).fetchall())
    assert few == many
    for arguments in ("NULL, 2, 0::DOUBLE", "1, NULL, 0::DOUBLE", "1, 2, NULL::DOUBLE"):
        row, size, fill = arguments.split(", ")
        call = f"tensor_gather_sum(a.handle, {row}, NULL, {size}, {fill})"
        query = f"SELECT {call} FROM (SELECT tensor_compressed(1::DOUBLE, 1, 1, 3) AS handle) AS a"
        assert connection.execute(query).fetchall() == [(None,)]


def test_rows_of_no_elements(connection: Connection) -> None:
    query = "SELECT tensor_gather_sum(handle, 1, NULL, 0, 0::DOUBLE) FROM (SELECT tensor_compressed(1::DOUBLE, 1, 0, 2)"
    assert connection.execute(f"{query} AS handle)").fetchall() == [([],)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("tensor_compressed(1.0::DOUBLE, -1, 0, 3)", ("row -1", "position 0", "0 to 2")),
        ("tensor_compressed(1.0::DOUBLE, 3, 0, 3)", ("row 3",)),
        ("tensor_compressed(1.0::DOUBLE, 0, 0, 0)", ("row 0",)),
        ("tensor_compressed(1.0::DOUBLE, 0, -1, 3)", ("position -1",)),
        (f"tensor_compressed(1.0::DOUBLE, 0, {LARGEST}, 3)", (f"position {LARGEST}",)),
        (f"tensor_compressed(1.0::DOUBLE, 0, 0, {LARGEST + 1})", ("rows is", LARGEST + 1)),
        ("tensor_compressed(1.0::DOUBLE, 0, 0, -1)", ("rows is -1",)),
        ("tensor_compressed([1.0, 2.0]::DOUBLE[], 0, [], 0, [1], 3)", ("2 elements", "has 1")),
        ("tensor_compressed([1.0, 2.0]::DOUBLE[], 0, [0, 1, 2], 0, [], 3)", ("2 elements", "has 3")),
        ("tensor_compressed([1.0, 2.0]::DOUBLE[], 0, [0, 3], 0, [], 3)", ("row 3", "position 0", "0 to 2")),
        ("tensor_compressed([1.0, 2.0]::DOUBLE[], 1, [], 0, [0, -1], 3)", ("row 1", "position -1")),
        ("tensor_compressed([1.0, NULL]::DOUBLE[], 0, [], 0, [0, 1], 3)", ("holds NULL",)),
        ("tensor_compressed([1.0, 2.0]::DOUBLE[], 0, [], 0, [0, NULL], 3)", ("holds NULL",)),
        ("tensor_compressed(1.0::DOUBLE, 0, 0, n) FROM (VALUES (1), (2)) AS t(n)", ("row", 2, 1)),
    ],
)
def test_invalid_entries_are_refused(connection: Connection, call: str, words: tuple[object, ...]) -> None:
    expect_error(connection, f"SELECT {call}", "tensor_compressed", *words)


@pytest.mark.parametrize("sql_type", TYPES)
def test_arrays_have_an_element_for_every_entry(connection: Connection, sql_type: str) -> None:
    """Numbers, and elements of arrays of another type, row by row; and products with other numbers."""
    left, right = arrays(connection)
    of_rows, of_positions = np.arange(ROWS) * 3, np.arange(POSITIONS) + 0.5
    calls = (
        f"tensor_entries(handle, 0::{sql_type})",
        f"tensor_at_rows(handle, {of_rows.tolist()}::BIGINT[])",
        f"tensor_at_positions(handle, {of_positions.tolist()}::FLOAT[])",
        f"tensor_sparse_matmul(handle, {ROWS}, {right.ravel().tolist()}::DOUBLE[], {WIDTH}, "
        f"list_transform(tensor_entries(handle, 0::{sql_type}), lambda x: x::DOUBLE * 2))",
    )
    handle = f"SELECT tensor_compressed(val::{sql_type}, i, j, {ROWS}) AS handle FROM e"
    ((*found, product),) = connection.execute(f"SELECT {', '.join(calls)} FROM ({handle})").fetchall()
    entries = connection.execute("SELECT i, j, val FROM e").fetchall()
    expected = sorted((of_rows[i], of_positions[j], val) for i, j, val in entries)
    assert sorted((row, position, val) for val, row, position in zip(*found, strict=True)) == expected
    assert found[1] == sorted(found[1])
    np.testing.assert_allclose(np.reshape(product, (ROWS, WIDTH)), 2 * left @ right, rtol=1e-6)


def test_arrays_without_entries(connection: Connection) -> None:
    of_null = ("tensor_entries(NULL, 1.5::DOUBLE)", "tensor_at_rows(NULL, [1])", "tensor_at_positions(NULL, [1])")
    assert connection.execute(f"SELECT {', '.join(of_null)}").fetchall() == [([], [], [])]
    handle = f"SELECT tensor_compressed(val, i, j, {ROWS}) AS handle FROM e"
    calls = ("tensor_at_rows(handle, NULL::DOUBLE[])", "tensor_at_positions(handle, NULL::DOUBLE[])")
    assert connection.execute(f"SELECT {', '.join(calls)} FROM ({handle})").fetchall() == [(None, None)]


def gather(row: str = "1", array: str = "b.handle", size: str = "2", fill: str = "0::DOUBLE") -> str:
    return f"tensor_gather_sum(a.handle, {row}, {array}, {size}, {fill})"


def multiply(handle: str = "a.handle", rows: str = "3", array: str = "[1.0, 2.0, 3.0]", size: str = "1") -> str:
    return f"tensor_sparse_matmul({handle}, {rows}, {array}, {size})"


def aggregate(
    semiring: str = "min(u + v)", handle: str = "a.handle", rows: str = "3", array: str = "[1.0, 2.0, 3.0]"
) -> str:
    return f"tensor_sparse_matvec('{semiring}', {handle}, {rows}, {array}, 9::DOUBLE, 5::DOUBLE)"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (aggregate(semiring="min(u - v)"), ("the semiring is none of", "min(u + v)")),
        (aggregate(rows="2"), ("3 rows, not 2",)),
        (aggregate(rows="-1"), ("rows is -1",)),
        (aggregate(handle="NULL", rows="4294967296"), ("rows is 4294967296",)),
        (aggregate(array="[1.0, 2.0]"), ("position 2", "2 rows of 1 elements")),
        (aggregate(array="[1.0, NULL, 2.0]"), ("argument 4", "NULL")),
        (aggregate(array="[]::DOUBLE[]"), ("position 2", "0 rows")),
        (aggregate(handle="a.handle + 1"), ("no array is resident",)),
        (aggregate(handle="b.handle"), ("another type",)),
        (gather(row="-1"), ("row -1", "0 to 2")),
        (gather(row="3"), ("row 3",)),
        (gather(row="9223372036854775807"), ("row 9223372036854775807",)),
        (gather(size="3"), ("row 2", "3 elements", "6")),
        (gather(size="-1"), ("size -1",)),
        (gather(size="4611686018427387904"), ("2^40",)),
        (gather(size="1099511627776"), ("bytes",)),
        (gather(fill="0::FLOAT"), ("another type",)),
        (gather(fill="0::BIGINT"), ("another type",)),
        (gather(array="a.handle"), ("another type",)),
        (gather(array="b.handle + 1"), ("no array is resident",)),
        (gather().replace("a.handle", "b.handle"), ("another type",)),
        (gather().replace("a.handle", "a.handle + 1024"), ("no array is resident",)),
        (multiply(array="[1.0, 2.0]"), ("position 2", "2 rows of 1 elements")),
        (multiply(size="2"), ("position 2", "1 rows of 2 elements")),
        (multiply(size="-1"), ("size -1",)),
        (multiply(rows="2"), ("3 rows, not 2",)),
        (multiply(rows="-1"), ("rows is -1",)),
        (multiply(handle="NULL", rows="4294967296"), ("rows is 4294967296",)),
        (multiply(handle="NULL", rows="2147483647", size="1099511627776"), ("more than the limit of",)),
        (multiply(size="4611686018427387904"), ("2^40",)),
        (multiply(array="[1.0, NULL, 2.0]"), ("argument 3", "NULL")),
        (multiply(array="[1.0::FLOAT]"), ("another type",)),
        (multiply(handle="a.handle + 1"), ("no array is resident",)),
        (multiply(handle="b.handle"), ("another type",)),
        (multiply(size="1, [1.0, 2.0]"), ("3 entries", "2 numbers")),
        (multiply(size="1, [1.0, NULL, 2.0]"), ("argument 5", "NULL")),
        (multiply(handle="b.handle", size="1, [1.0, 2.0, 3.0]"), ("no array is resident",)),
        ("tensor_entries(a.handle, 0::FLOAT)", ("another type",)),
        ("tensor_entries(b.handle, 0::DOUBLE)", ("another type",)),
        ("tensor_at_rows(a.handle + 1, [1, 2, 3])", ("no array is resident",)),
        ("tensor_at_rows(b.handle, [1, 2, 3])", ("no array is resident",)),
        ("tensor_at_rows(a.handle, [1, 2])", ("position 2", "2 rows of 1 elements")),
        ("tensor_at_positions(a.handle, [1, 2])", ("position 2", "2 rows of 1 elements")),
        ("tensor_at_positions(a.handle, [1, NULL, 2])", ("argument 2", "NULL")),
        ("tensor_row(a.handle, 0, 1, 0::DOUBLE)", ("another type",)),
        ("tensor_row(a.handle, 0, 1, 0::BIGINT)", ("another type",)),
    ],
)
def test_invalid_reads_are_refused(connection: Connection, call: str, words: tuple[object, ...]) -> None:
    """The entries have positions 0 to 2; the array has three rows of two elements."""
    handles = """
        a AS (SELECT tensor_compressed(1::DOUBLE, j, j, 3) AS handle FROM range(3) AS t(j)),
        b AS (SELECT tensor_resident([j, j]::DOUBLE[], j, 3, 0::DOUBLE) AS handle FROM range(3) AS t(j))"""
    function = call[: call.index("(")]
    expect_error(connection, f"WITH {handles} SELECT {call} FROM a CROSS JOIN b", function, *words)


def test_overflow_is_an_error(connection: Connection) -> None:
    query = f"""
        WITH a AS (SELECT tensor_compressed({2**62}, 0, j, 1) AS handle FROM range(2) AS t(j)),
        b AS (SELECT tensor_resident([1], j, 2, 0) AS handle FROM range(2) AS t(j))
        SELECT tensor_gather_sum(a.handle, 0, b.handle, 1, 0) FROM a CROSS JOIN b"""
    expect_error(connection, query, "tensor_gather_sum", "int64 overflow")
    query = f"SELECT tensor_sparse_matmul(tensor_compressed({2**62}, 0, j, 1), 1, [1, 1], 1) FROM range(2) AS t(j)"
    expect_error(connection, query, "tensor_sparse_matmul", "int64 overflow")


def test_products_in_a_semiring(connection: Connection) -> None:
    """Numbers of rows start from 9; a row without entries has 5."""
    query = f"""
        WITH a AS (SELECT tensor_compressed(val, i, j, 3) AS handle
            FROM (VALUES (4::DOUBLE, 0, 2), (1::DOUBLE, 2, 0), (7::DOUBLE, 2, 1)) AS t(val, i, j))
        SELECT {aggregate()}, {aggregate("max(u * v)")}, {aggregate(handle="NULL", rows="2")},
            {aggregate(array="NULL")}, {aggregate(rows="NULL::BIGINT")}, {aggregate(handle="NULL", rows="0")} FROM a"""
    expected: tuple[object, ...] = ([7, 5, 2], [12, 5, 14], [5, 5], None, None, [])
    assert connection.execute(query).fetchall() == [expected]


@pytest.mark.parametrize("frame", ["", "ORDER BY n ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"])
def test_windows_give_sums_or_an_error(connection: Connection, frame: str) -> None:
    """A window function reads, merges and finalises states again."""
    query = f"""
        SELECT n, tensor_gather_sum(handle, 0, NULL, 1, 1::BIGINT) FROM (
            SELECT n, tensor_compressed(n, 0, 0, 1) OVER ({frame}) AS handle FROM range(40) AS t(n)) ORDER BY n"""
    try:
        sums = connection.execute(query).fetchall()
    except duckdb.InvalidInputException as error:  # the engine may give up states once it has their results
        assert "no array is resident" in str(error) or "ordered already" in str(error)
        return
    for n, (total,) in sums:
        assert total == sum(range(max(n - 2, 0), min(n + 2, 40)) if frame else range(40))


def test_too_many_are_refused(connection: Connection) -> None:
    handles = ", ".join(f"tensor_compressed({number}, 0, 0, 1)" for number in range(MAX_RESIDENTS + 1))
    expect_error(connection, f"SELECT {handles}", "tensor_compressed", MAX_RESIDENTS)


def test_a_handle_ends_with_its_statement(connection: Connection) -> None:
    ((handle,),) = connection.execute("SELECT tensor_compressed(1::DOUBLE, 0, 0, 1)").fetchall()
    expect_error(connection, f"SELECT tensor_gather_sum({handle}, 0, NULL, 1, 0::DOUBLE)", "tensor_gather_sum", handle)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(("rows", "together"), [(0, 5), (1, 1), (10, 3), (10_000, 7), (300_000, 2048), (9000, 10**12)])
def test_all_rows_are_numbered(connection: Connection, rows: int, together: int, threads: int) -> None:
    connection.execute(f"SET threads = {threads}")
    numbers = connection.execute(f"SELECT row_number FROM tensor_row_numbers({rows}, {together})").fetchnumpy()
    connection.execute("RESET threads")
    np.testing.assert_array_equal(np.sort(numbers["row_number"]), np.arange(rows))


@pytest.mark.parametrize("arguments", ["-3, 5", "NULL, 5", "0, 0"])
def test_no_rows_are_numbered(connection: Connection, arguments: str) -> None:
    assert connection.execute(f"FROM tensor_row_numbers({arguments})").fetchall() == []


def test_rows_are_numbered_again_in_one_statement(connection: Connection) -> None:
    query = (
        "SELECT count(*) FROM tensor_row_numbers(500, 9) AS a JOIN tensor_row_numbers(700, 0) AS b USING (row_number)"
    )
    prepared = f"PREPARE numbered AS {query}"
    for statement in (query, prepared, "EXECUTE numbered", "EXECUTE numbered"):
        result = connection.execute(statement).fetchall()
        assert result in ([(500,)], []) or statement == prepared
    connection.execute("DEALLOCATE numbered")


_INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(_INTEGERS, _INTEGERS, _INTEGERS, _INTEGERS)
def test_invented_handles_are_refused(connection: Connection, entries: int, row: int, array: int, size: int) -> None:
    query = "SELECT tensor_gather_sum(CASE WHEN i = 1 THEN $1 ELSE $1 END, $2, $3, $4, 0::DOUBLE) FROM range(3) AS t(i)"
    with pytest.raises(duckdb.InvalidInputException, match="tensor_gather_sum"):
        connection.execute(query, [entries, row, array, size]).fetchall()


@given(st.data())
def test_random_entries(connection: Connection, data: st.DataObject) -> None:
    rows, positions, width = (data.draw(st.integers(1, 6)) for _ in range(3))
    entry = st.tuples(st.integers(-9, 9), st.integers(0, rows - 1), st.integers(0, positions - 1))
    entries = data.draw(st.lists(entry, min_size=1, max_size=30))
    array = np.arange(positions * width).reshape(positions, width) % 7 - 3
    values = ", ".join(map(str, entries))
    lines = ", ".join(f"({position}, {line.tolist()})" for position, line in enumerate(array))
    query = f"""
        WITH e AS (SELECT * FROM (VALUES {values}) AS t(val, i, j)), x AS (SELECT * FROM (VALUES {lines}) AS t(j, val)),
        a AS (SELECT tensor_compressed(val::BIGINT, i, j, {rows}) AS handle FROM e),
        b AS (SELECT tensor_resident(val::BIGINT[], j, {positions}, 0::BIGINT) AS handle FROM x)
        SELECT tensor_gather_sum(a.handle, i, b.handle, {width}, 0::BIGINT)
        FROM range({rows}) AS r(i) CROSS JOIN a CROSS JOIN b ORDER BY i"""
    expected: dict[int, NDArray[Any]] = {}
    for value, row, position in entries:
        expected[row] = expected.get(row, np.zeros(width, int)) + value * array[position]
    result = [row for (row,) in connection.execute(query).fetchall()]
    assert result == [list(expected[row]) if row in expected else None for row in range(rows)]
