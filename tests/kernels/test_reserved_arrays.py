"""Arrays in memory that all threads of a statement write have the rows that were written, and the fill elsewhere."""

import duckdb
import numpy as np
import pytest
from sql_errors import expect_error

import sparseeinsum as se
from sparseeinsum.kernels.duckdb.library import require_library

pytestmark = [
    pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle"),
    pytest.mark.usefixtures("nothing_stays"),
]

Connection = duckdb.DuckDBPyConnection
TYPES = {"DOUBLE": np.float64, "FLOAT": np.float32, "BIGINT": np.int64}


def reserved(rows: int, size: int, fill: str = "-1::DOUBLE") -> str:
    return f"(SELECT tensor_reserved({rows}, {size}, {fill}, uuid()::VARCHAR) AS handle)"


def written(rows: int, size: int, source: str, fill: str = "-1::DOUBLE") -> str:
    """The query of an array of rows `val` at `j` of a source."""
    memory = reserved(rows, size, fill)
    return f"SELECT tensor_resident(m.handle, x.val, x.j) AS handle FROM {source} AS x CROSS JOIN {memory} AS m"


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    connection: Connection = shared_db.connection
    return connection


@pytest.mark.parametrize("sql_type", TYPES)
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(("rows", "size"), [(1, 1), (5, 3), (300_000, 2), (3_000, 700), (4, 0)])
def test_rows_are_those_that_were_written(
    connection: Connection, rows: int, size: int, threads: int, sql_type: str
) -> None:
    values = f"list_transform(range({size}), lambda k: j * 10 + k)::{sql_type}[]"
    source = f"(SELECT j, {values} AS val FROM range({rows}) AS t(j) WHERE j % 7 <> 3)"
    fill = f"-1::{sql_type}"
    connection.execute(f"SET threads = {threads}")
    try:
        columns = connection.execute(
            f"WITH v AS ({written(rows, size, source, fill)}) "
            f"SELECT j, tensor_row(v.handle, j, {size}, {fill}) AS val FROM range({rows}) AS t(j) CROSS JOIN v"
        ).fetchnumpy()
    finally:
        connection.execute("RESET threads")
    expected = (np.arange(rows)[:, None] * 10 + np.arange(size)).astype(TYPES[sql_type])
    expected[np.arange(rows) % 7 == 3] = -1
    np.testing.assert_array_equal(np.array(list(columns["val"])), expected[columns["j"]])


def test_arrays_of_one_size_have_memory_of_their_own(connection: Connection) -> None:
    """DuckDB computes equal subqueries once, unless they have a volatile argument."""
    first, second = (
        f"(SELECT j, [j + {shift}]::DOUBLE[] AS val FROM range(1000) AS t(j) WHERE j % 2 = {shift})" for shift in (0, 1)
    )
    query = f"""
        WITH a AS ({written(1000, 1, first)}), b AS ({written(1000, 1, second)})
        SELECT j, tensor_row(a.handle, j, 1, 0::DOUBLE)[1] AS a, tensor_row(b.handle, j, 1, 0::DOUBLE)[1] AS b
        FROM range(1000) AS t(j) CROSS JOIN a CROSS JOIN b ORDER BY j"""
    columns = connection.execute(query).fetchnumpy()
    j = np.arange(1000)
    np.testing.assert_array_equal(columns["a"], np.where(j % 2 == 0, j, -1))
    np.testing.assert_array_equal(columns["b"], np.where(j % 2 == 1, j + 1, -1))


def test_nulls_are_no_rows(connection: Connection) -> None:
    source = "(VALUES (0, [1, 2]::DOUBLE[]), (NULL, [3, 4]), (2, NULL)) AS x(j, val)"
    query = f"SELECT tensor_resident(m.handle, val, j) AS handle FROM {source} CROSS JOIN {reserved(3, 2)} AS m"
    rows = f"SELECT tensor_row(v.handle, j, 2, 0::DOUBLE) FROM ({query}) AS v, range(3) AS t(j) ORDER BY j"
    assert connection.execute(rows).fetchall() == [([1, 2],), ([-1, -1],), ([-1, -1],)]
    assert connection.execute(f"{query} WHERE j = 7").fetchall() == [(None,)]
    assert connection.execute("SELECT tensor_reserved(NULL, 2, 0::DOUBLE, '')").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("val", "position", "words"),
    [
        ("[1, 2]::DOUBLE[]", "-1", ("position", -1)),
        ("[1, 2]::DOUBLE[]", "3", ("position", 3)),
        ("[1, NULL]::DOUBLE[]", "1", ("argument 2", "NULL")),
        ("[1]::DOUBLE[]", "1", (1, 2)),
        ("[1, 2, 3]::DOUBLE[]", "1", (3, 2)),
        ("[1, 2]::FLOAT[]", "1", ("no memory is reserved",)),
        ("[1, 2]::DOUBLE[]", "j // 2", ("row 0", "written already")),
    ],
)
def test_invalid_rows_are_refused(connection: Connection, val: str, position: str, words: tuple[object, ...]) -> None:
    query = f"SELECT tensor_resident(m.handle, {val}, {position}) FROM range(2) AS t(j) CROSS JOIN {reserved(3, 2)} m"
    expect_error(connection, query, "tensor_resident", *words)


@pytest.mark.parametrize(
    ("rows", "size", "words"),
    [
        ("-1", "2", ("size", -1)),
        ("2", "-1", ("size", -1)),
        ("2", "1099511627777", ("size",)),
        ("1099511627776", "2", ("2^40",)),
        ("1099511627776", "1", ("bytes",)),
    ],
)
def test_invalid_sizes_are_refused(connection: Connection, rows: str, size: str, words: tuple[object, ...]) -> None:
    expect_error(connection, f"SELECT tensor_reserved({rows}, {size}, 0::DOUBLE, '')", "tensor_reserved", *words)


def test_memory_is_reserved_once(connection: Connection) -> None:
    query = "SELECT tensor_reserved(2, 2, 0::DOUBLE, '') FROM range(2)"
    expect_error(connection, query, "tensor_reserved", "already")


def test_rows_of_a_group_are_in_one_memory(connection: Connection) -> None:
    memory = f"(SELECT * FROM {reserved(2, 1)} UNION ALL SELECT * FROM {reserved(2, 1)})"
    expect_error(connection, f"SELECT tensor_resident(handle, [1]::DOUBLE[], 0) FROM {memory}", "earlier row")


def test_handles_are_for_their_use_alone(connection: Connection) -> None:
    """What is reserved can be neither read nor kept, and what is written is written no more."""
    memory = reserved(2, 2)
    for call in (
        "tensor_row(m.handle, 0, 2, 0::DOUBLE)",
        "tensor_keep(m.handle)",
        "tensor_gather_sum(m.handle, 0, NULL, 2, 0::DOUBLE)",
        "tensor_resident(m.handle + 1024, [1, 2]::DOUBLE[], 0)",
        "tensor_resident(7, [1, 2]::DOUBLE[], 0)",
    ):
        expect_error(connection, f"SELECT {call} FROM {memory} AS m", call.split("(")[0])
    whole = written(2, 2, "(SELECT j, [j, j]::DOUBLE[] AS val FROM range(2) AS t(j))")
    again = f"SELECT tensor_resident(v.handle, [1, 2]::DOUBLE[], 0) FROM ({whole}) AS v"
    expect_error(connection, again, "tensor_resident", "no memory is reserved")


def test_windows_are_refused_or_right(connection: Connection) -> None:
    """A window function merges and finalises states again."""
    query = f"""
        SELECT tensor_row(handle, j, 1, 0::DOUBLE)[1] FROM (
            SELECT j, tensor_resident(m.handle, [j]::DOUBLE[], j) OVER (ORDER BY j ROWS 1 PRECEDING) AS handle
            FROM range(5000) AS t(j) CROSS JOIN {reserved(5000, 1)} AS m)"""
    try:
        values = connection.execute(query).fetchall()
    except duckdb.InvalidInputException as error:
        assert "reserved" in str(error) or "no array is resident" in str(error) or "written already" in str(error)
    else:
        assert values == [(j,) for j in range(5000)]


def test_an_array_that_is_kept_has_its_rows(connection: Connection) -> None:
    whole = written(3, 2, "(SELECT j, [j, -j]::DOUBLE[] AS val FROM range(2) AS t(j))")
    ((handle,),) = connection.execute(f"SELECT tensor_keep(handle) FROM ({whole})").fetchall()
    try:
        rows = connection.execute(f"SELECT tensor_row({handle}, j, 2, 0::DOUBLE) FROM range(3) AS t(j)").fetchall()
        assert sorted(rows) == [([-1, -1],), ([0, 0],), ([1, -1],)]
    finally:
        assert require_library().release(handle)
