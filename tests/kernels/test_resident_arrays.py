"""Resident arrays are readable only within the statement that holds them."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sql_errors import expect_error

import sparseeinsum as se
from sparseeinsum.kernels.duckdb.library import require_library
from sparseeinsum.kernels.residents import MAX_RESIDENTS

pytestmark = [
    pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle"),
    pytest.mark.usefixtures("nothing_stays"),
]

Connection = duckdb.DuckDBPyConnection
ROWS, WIDTH = 3000, 7
ABSENT = 1234
TYPES = {"DOUBLE": np.float64, "FLOAT": np.float32, "BIGINT": np.int64}
SHARED = f"SELECT tensor_resident(val, j, {ROWS}, -1::DOUBLE) AS handle FROM x"


def row_of(table: str, position: str, size: int = WIDTH) -> str:
    return f"tensor_row({table}.handle, {position}, {size}, -1::DOUBLE)"


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """A relation x of rows j, one of them absent, and 10,000 edges that read x."""
    connection: Connection = shared_db.connection
    elements = f"list_transform(range({WIDTH}), lambda k: j * 10 + k)"
    connection.execute(
        f"CREATE TABLE x AS SELECT j, {elements}::DOUBLE[] AS val FROM range({ROWS}) AS t(j) WHERE j <> {ABSENT}"
    )
    connection.execute(
        f"CREATE TABLE edges AS SELECT n % 211 AS i, n * 7919 % {ROWS} AS j, n / 2 AS w FROM range(10000) AS t(n)"
    )
    return connection


def expected_rows(dtype: type = np.float64) -> NDArray[Any]:
    rows: NDArray[Any] = (np.arange(ROWS)[:, None] * 10 + np.arange(WIDTH)).astype(dtype)
    rows[ABSENT] = -1
    return rows


@pytest.mark.parametrize("sql_type", TYPES)
def test_rows_are_those_of_the_array(connection: Connection, sql_type: str) -> None:
    columns = connection.execute(
        f"WITH v AS (SELECT tensor_resident(val::{sql_type}[], j, {ROWS}, -1::{sql_type}) AS handle FROM x) "
        f"SELECT u.j, tensor_row(v.handle, u.j, {WIDTH}, -1::{sql_type}) AS val FROM edges AS u CROSS JOIN v"
    ).fetchnumpy()
    rows = np.array(list(columns["val"]))
    assert rows.dtype == TYPES[sql_type]
    np.testing.assert_array_equal(rows, expected_rows(TYPES[sql_type])[columns["j"]])


@pytest.mark.parametrize("materialized", ["", "MATERIALIZED", "NOT MATERIALIZED"])
@pytest.mark.parametrize("threads", [1, 4])
def test_sums_over_groups(connection: Connection, materialized: str, threads: int) -> None:
    query = f"""
        WITH v AS {materialized} ({SHARED})
        SELECT u.i, tensor_sum_scaled(u.w, {row_of("v", "u.j")}) AS val FROM edges AS u CROSS JOIN v
        GROUP BY u.i ORDER BY u.i"""
    connection.execute(f"SET threads = {threads}")
    try:
        result = np.array([val for _, val in connection.execute(query).fetchall()])
    finally:
        connection.execute("RESET threads")
    i, j, w = np.array(connection.execute("SELECT i, j, w FROM edges").fetchall()).T
    i, j = i.astype(int), j.astype(int)
    expected = np.zeros((211, WIDTH))
    np.add.at(expected, i, w[:, None] * expected_rows()[j])
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_many_threads_fill_one_array(connection: Connection) -> None:
    """There are several row groups, so that states are merged."""
    connection.execute("SET threads = 4")
    row = connection.execute(
        "WITH x AS (SELECT j, [j, -j]::DOUBLE[] AS val FROM range(300000) AS t(j)), "
        "v AS (SELECT tensor_resident(val, j, 300000, 0::DOUBLE) AS handle FROM x) "
        "SELECT COUNT(*) FROM x AS u CROSS JOIN v WHERE tensor_row(v.handle, u.j, 2, 0::DOUBLE) = u.val"
    ).fetchone()
    connection.execute("RESET threads")
    assert row == (300000,)


@pytest.mark.parametrize(
    "shape",
    [
        "CREATE OR REPLACE TEMP TABLE kept AS {query}",
        "CREATE OR REPLACE TEMP VIEW seen AS {query}",
        "CREATE OR REPLACE TEMP TABLE kept AS SELECT * FROM ({query}) UNION ALL ({query})",
        "CREATE OR REPLACE TEMP TABLE kept AS SELECT j, any_value(val) AS val FROM ({query}) GROUP BY j ORDER BY j",
        "CREATE OR REPLACE TEMP TABLE kept AS SELECT * FROM ({query}) ORDER BY val DESC LIMIT 500",
        "CREATE OR REPLACE TEMP TABLE kept AS SELECT a.* FROM ({query}) AS a JOIN ({query}) AS b USING (j, val)",
    ],
)
def test_statements_of_every_shape(connection: Connection, shape: str) -> None:
    plain = f"WITH v AS ({SHARED}) SELECT u.j, {row_of('v', 'u.j')} AS val FROM edges AS u CROSS JOIN v"
    connection.execute(shape.format(query=plain))
    columns = connection.execute(f"SELECT j, val FROM {shape.split()[5]}").fetchnumpy()
    assert len(columns["j"]) >= 500
    np.testing.assert_array_equal(np.array(list(columns["val"])), expected_rows()[columns["j"]])


def test_a_scalar_subquery_and_a_correlated_one(connection: Connection) -> None:
    scalar = f"SELECT j, tensor_row(({SHARED}), j, {WIDTH}, -1::DOUBLE) AS val FROM edges"
    lateral = f"SELECT u.j, r.val FROM edges AS u, ({SHARED}) AS v, LATERAL (SELECT {row_of('v', 'u.j')} AS val) AS r"
    for query in (scalar, lateral):
        columns = connection.execute(query).fetchnumpy()
        np.testing.assert_array_equal(np.array(list(columns["val"])), expected_rows()[columns["j"]])


def test_functions_that_build_lists_leave_the_array_alone(connection: Connection) -> None:
    query = f"""
        WITH v AS ({SHARED}), read AS (SELECT u.j, {row_of("v", "u.j")} AS r, v.handle FROM edges AS u CROSS JOIN v),
        changed AS (
            SELECT j, handle, CASE WHEN j % 2 = 0 THEN r ELSE list_reverse(r) END AS a, r || [5::DOUBLE] AS b,
            coalesce(CASE WHEN j % 3 = 0 THEN NULL ELSE r END, [9::DOUBLE]) AS c, list_sort(r, 'DESC') AS d FROM read)
        SELECT j, a, b, c, d, {row_of("changed", "j")} AS again FROM changed"""
    expected = expected_rows()
    for j, a, b, c, d, again in connection.execute(query).fetchall():
        row = list(expected[j])
        assert again == row
        assert a == (row if j % 2 == 0 else row[::-1])
        assert b == [*row, 5]
        assert c == ([9] if j % 3 == 0 else row)
        assert d == sorted(row, reverse=True)


def test_rows_of_several_arrays_in_one_chunk(connection: Connection) -> None:
    query = f"""
        WITH v AS (SELECT j % 3 AS part, tensor_resident(val, j, {ROWS}, 0::DOUBLE) AS handle FROM x GROUP BY part)
        SELECT u.j, v.part, tensor_row(v.handle, u.j, {WIDTH}, 0::DOUBLE) AS val FROM edges AS u JOIN v ON v.part < 3"""
    try:
        records = connection.execute(query).fetchall()
    except duckdb.InvalidInputException as error:  # the engine may give up groups once it has their results
        assert "no array is resident" in str(error)
        return
    expected = expected_rows()
    expected[ABSENT] = 0
    for j, part, val in records:
        assert val == list(expected[j] if j % 3 == part else np.zeros(WIDTH))


def test_an_array_without_rows_is_all_fill(connection: Connection) -> None:
    query = f"WITH v AS ({SHARED} WHERE false) SELECT DISTINCT {row_of('v', 'u.j')} FROM edges AS u CROSS JOIN v"
    assert connection.execute(query).fetchall() == [([-1.0] * WIDTH,)]
    assert connection.execute("SELECT tensor_row(NULL, 3, 0, 0.5)").fetchall() == [([],)]


def test_null_arguments_give_null(connection: Connection) -> None:
    query = f"WITH v AS ({SHARED}) SELECT {{}} FROM v"
    calls = (
        row_of("v", "NULL::BIGINT"),
        "tensor_row(v.handle, 1, NULL, 0::DOUBLE)",
        "tensor_row(v.handle, 1, 1, NULL::DOUBLE)",
    )
    for call in calls:
        assert connection.execute(query.format(call)).fetchall() == [(None,)]
    some = f"SELECT j, {row_of('v', 'CASE WHEN j % 2 = 0 THEN j END')} FROM edges CROSS JOIN v"
    for j, row in connection.execute(f"WITH v AS ({SHARED}) {some}").fetchall():
        assert row == (list(expected_rows()[j]) if j % 2 == 0 else None)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (row_of("v", "-1"), (-1, WIDTH)),
        (row_of("v", str(ROWS)), (ROWS, WIDTH, ROWS * WIDTH)),
        (row_of("v", "9223372036854775807"), (9223372036854775807, "row")),
        (row_of("v", "-9223372036854775808"), ("row",)),
        (row_of("v", "1", 2**62), ("row",)),
        (row_of("v", "0", ROWS * WIDTH + 1), ("row",)),
        (row_of("v", "1", -1), ("size", -1)),
        (f"tensor_row(v.handle, 1, {WIDTH}, 0::FLOAT)", ("another type",)),
        (f"tensor_row(v.handle, 1, {WIDTH}, 0::BIGINT)", ("another type",)),
        (f"tensor_row(v.handle + 1, 1, {WIDTH}, 0::DOUBLE)", ("no array is resident",)),
        (f"tensor_row(-v.handle, 1, {WIDTH}, 0::DOUBLE)", ("no array is resident",)),
        (f"tensor_row(v.handle - 1024, 1, {WIDTH}, 0::DOUBLE)", ("no array is resident",)),
        (f"tensor_row(0, 1, {WIDTH}, 0::DOUBLE)", ("no array is resident",)),
        ("tensor_row(NULL, -1, 2, 0::DOUBLE)", ("row", -1)),
        ("tensor_row(NULL, 1, -2, 0::DOUBLE)", ("size", -2)),
        ("tensor_row(NULL, 1, 1099511627776, 0::DOUBLE)", ("bytes",)),
    ],
)
def test_invalid_reads_are_refused(connection: Connection, call: str, words: tuple[object, ...]) -> None:
    expect_error(connection, f"WITH v AS ({SHARED}) SELECT {call} FROM edges CROSS JOIN v", "tensor_row", *words)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("tensor_resident([1, 2], -1, 3, 0)", ("position", -1)),
        ("tensor_resident([1, 2], 3, 3, 0)", ("position", 3)),
        ("tensor_resident([1, NULL], 1, 3, 0)", ("argument 1", "NULL")),
        ("tensor_resident([1, 2], 1, 1099511627776, 0)", ("2^40",)),
        ("tensor_resident(u, 1, 3, 0) FROM (VALUES ([1, 2]), ([1])) AS t(u)", ("row", 3, 6)),
        ("tensor_resident([1], 0, n, 0) FROM (VALUES (1), (2)) AS t(n)", ("row",)),
    ],
)
def test_invalid_arrays_are_refused(connection: Connection, call: str, words: tuple[object, ...]) -> None:
    expect_error(connection, f"SELECT {call}", "tensor_resident", *words)


def test_a_handle_ends_with_its_statement(connection: Connection) -> None:
    ((handle,),) = connection.execute(SHARED).fetchall()
    expect_error(connection, f"SELECT tensor_row({handle}, 1, {WIDTH}, 0::DOUBLE)", "tensor_row", handle)


@contextmanager
def interrupting(connection: Connection) -> Iterator[None]:
    """Interrupt repeatedly, since an interrupt before a statement begins has no effect."""
    is_over = threading.Event()

    def interrupt() -> None:
        while not is_over.wait(0.3):
            connection.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_errors_and_interrupts_leave_nothing(connection: Connection) -> None:
    triples = "edges AS a CROSS JOIN edges AS b CROSS JOIN edges AS c"
    slow = f"""WITH v AS ({SHARED}) SELECT sum(list_sum({row_of("v", "a.j")})) FROM {triples} CROSS JOIN v"""
    with interrupting(connection), pytest.raises(duckdb.InterruptException):
        connection.execute(slow).fetchall()
    assert require_library().count_residents() == 0
    failing = f"WITH v AS ({SHARED}) SELECT {row_of('v', 'u.j')}, error('stop') FROM edges AS u CROSS JOIN v"
    with pytest.raises(duckdb.Error):
        connection.execute(failing).fetchall()


def test_too_many_arrays_are_refused(connection: Connection) -> None:
    arrays = ", ".join(f"tensor_resident([{number}], 0, 1, 0)" for number in range(MAX_RESIDENTS + 1))
    expect_error(connection, f"SELECT {arrays}", "tensor_resident", MAX_RESIDENTS)


def test_a_prepared_statement_keeps_one_array_at_most(connection: Connection) -> None:
    connection.execute(f"PREPARE again AS WITH v AS ({SHARED}) SELECT {row_of('v', '$1')} FROM v")
    for position in (0, 5, ABSENT):
        assert connection.execute(f"EXECUTE again({position})").fetchall() == [(list(expected_rows()[position]),)]
        assert require_library().count_residents() <= 1
    connection.execute("DEALLOCATE again")


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_invented_handles_are_refused(connection: Connection, handle: int, position: int, size: int) -> None:
    query = "SELECT tensor_row(CASE WHEN i = 1 THEN $1 ELSE $1 END, $2, $3, 0::DOUBLE) FROM range(3) AS t(i)"
    with pytest.raises(duckdb.InvalidInputException, match="tensor_row"):
        connection.execute(query, [handle, position, size]).fetchall()


def test_arrays_that_end_while_others_read_them(connection: Connection) -> None:
    """One thread holds a handle for a moment, others read by it: they get right rows, or an error."""
    expected, problems, refused, right = expected_rows(), [], [0], [0]
    handles: list[int] = []
    is_done = threading.Event()

    def read() -> None:
        with connection.cursor() as cursor:
            while not is_done.is_set():
                if not handles:
                    continue
                query = f"SELECT j, tensor_row({handles[-1]}, j, {WIDTH}, 0::DOUBLE) FROM edges"
                try:
                    rows = cursor.execute(query).fetchall()
                except duckdb.Error as error:
                    refused[0] += 1
                    if "no array is resident" not in str(error):
                        problems.append(str(error))
                    continue
                right[0] += 1
                problems.extend(j for j, row in rows[:: ROWS // 10] if row != list(expected[j]))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    ends = time.monotonic() + 2
    with connection.cursor() as owner:
        while time.monotonic() < ends:
            batches = owner.execute(f"WITH v AS ({SHARED}) SELECT v.handle FROM v CROSS JOIN range(400000)")
            first = batches.fetchmany(1)
            handles.append(first[0][0])
            time.sleep(0.01)
    is_done.set()
    for reader in readers:
        reader.join()
    assert not problems
    assert refused[0] > 0
