"""Sums of rows of an array that aggregates compute in their own memory are those that `tensor_gather_sum` returns."""

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from sql_errors import expect_error

import sparseeinsum as se
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.duckdb.collected_tuples import table_in_memory
from sparseeinsum.kernels.duckdb.library import require_library
from sparseeinsum.language.tensors import DEMOTED, Axis, Decomposition, Tensor

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle")

Connection = duckdb.DuckDBPyConnection
TYPES = {"DOUBLE": "float64", "FLOAT": "float32"}
ROWS, POSITIONS, WIDTH = 5000, 300, 5
OPERANDS = "a.handle, i, b.handle, {width}, {fill}::{sql_type}"


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """Entries e in two thirds of the rows, and the rows x of an array."""
    connection: Connection = shared_db.connection
    connection.execute(
        f"CREATE TABLE gathered_e AS SELECT n * 7919 % {ROWS} AS i, n * n % {POSITIONS} AS j, n % 17 - 8 AS val "
        f"FROM range(9000) AS t(n) WHERE n * 7919 % {ROWS} % 3 > 0 ORDER BY hash(n)"
    )
    connection.execute(
        f"CREATE TABLE gathered_x AS SELECT j, list_transform(range({WIDTH}), lambda k: j * 3 - k) AS val "
        f"FROM range({POSITIONS}) AS t(j)"
    )
    return connection


@pytest.fixture(params=[1, 4], ids=["one thread", "four threads"], autouse=True)
def threads(nothing_stays: None, connection: Connection, request: pytest.FixtureRequest) -> Iterator[None]:
    connection.execute(f"SET threads = {request.param}")
    yield
    connection.execute("RESET threads")


def operands(sql_type: str = "DOUBLE", entries: str = "gathered_e", array: str = "gathered_x") -> str:
    """Handles a of entries and b of an array, crossed with all rows i."""
    return (
        f"(SELECT tensor_compressed(val::{sql_type}, i, j, {ROWS}) AS handle FROM {entries}) AS a "
        f"CROSS JOIN (SELECT tensor_resident(val::{sql_type}[], j, {POSITIONS}, 0::{sql_type}) AS handle FROM {array})"
        f" AS b CROSS JOIN range({ROWS}) AS r(i)"
    )


def arguments(sql_type: str = "DOUBLE", fill: int = 0, width: int = WIDTH) -> str:
    return OPERANDS.format(sql_type=sql_type, fill=fill, width=width)


def sums(connection: Connection, of: str, sql_type: str, fill: int = 0) -> dict[int, list[float]]:
    """What `tensor_gather_sum` returns, by row."""
    query = f"SELECT i, tensor_gather_sum({arguments(sql_type, fill)}) AS val FROM {of}"
    return dict(connection.execute(f"SELECT * FROM ({query}) WHERE val IS NOT NULL").fetchall())


def collected(connection: Connection, query: str, dtype: str, keys: int = ROWS) -> dict[int, list[float]]:
    axes = Axis("i", keys), Axis("k", WIDTH)
    ((handle,),) = connection.execute(query).fetchall()
    table = table_in_memory(require_library(), handle, Schema(Tensor("Y", axes, dtype), Decomposition((1, DEMOTED))))
    return dict(zip(table.column("i").to_pylist(), table.column("val").to_pylist(), strict=True))


def reserved(rows: int = ROWS, size: int = WIDTH, sql_type: str = "DOUBLE") -> str:
    return f"(SELECT tensor_reserved({rows}, {size}, -1::{sql_type}, uuid()::VARCHAR) AS handle) AS m"


@pytest.mark.parametrize("sql_type", TYPES)
def test_sums_are_collected(connection: Connection, sql_type: str) -> None:
    of = operands(sql_type)
    query = f"SELECT tensor_keep(tensor_collected({arguments(sql_type)}, i)) FROM {of}"
    expected = sums(connection, of, sql_type)
    assert 3000 < len(expected) < ROWS
    assert collected(connection, query, TYPES[sql_type]) == expected


@pytest.mark.parametrize("sql_type", TYPES)
def test_sums_are_written_to_reserved_memory(connection: Connection, sql_type: str) -> None:
    of = operands(sql_type)
    handle = f"SELECT tensor_resident({arguments(sql_type)}, m.handle, {ROWS} - 1 - i) AS handle FROM {of} CROSS JOIN "
    query = (
        f"SELECT {ROWS} - 1 - j, tensor_row(v.handle, j, {WIDTH}, 0::{sql_type}) "
        f"FROM ({handle}{reserved(sql_type=sql_type)}) AS v CROSS JOIN range({ROWS}) AS t(j)"
    )
    expected = sums(connection, of, sql_type)
    rows = dict(connection.execute(query).fetchall())
    assert rows == {i: expected.get(i, [-1.0] * WIDTH) for i in range(ROWS)}


def test_nulls(connection: Connection) -> None:
    """No handle of an array stands for fills, no number for no tuple, no entries for no sums."""
    of = operands(array="gathered_x WHERE false")
    query = f"SELECT tensor_keep(tensor_collected({arguments(fill=2)}, CASE WHEN i % 7 > 0 THEN i END)) FROM {of}"
    expected = sums(connection, of, "DOUBLE", 2)
    assert collected(connection, query, "float64") == {i: val for i, val in expected.items() if i % 7 > 0}
    none = operands(entries="gathered_e WHERE false")
    assert connection.execute(f"SELECT tensor_collected({arguments()}, i) FROM {none}").fetchall() == [(None,)]
    written = f"tensor_resident({arguments()}, m.handle, CASE WHEN i % 7 > 0 THEN i END)"
    rows = f"SELECT {written} AS handle FROM {operands()} CROSS JOIN {reserved()}"
    counted = f"SELECT count(*) FROM ({rows}) AS v, range({ROWS}) AS t(j) WHERE tensor_row(v.handle, j, 5, 0.0)[1] = -1"
    present = [i for i in sums(connection, operands(), "DOUBLE") if i % 7 > 0]
    assert connection.execute(counted).fetchone()[0] >= ROWS - len(present)  # type: ignore[index]


def test_several_operands_and_groups(connection: Connection) -> None:
    """In one vector; each group has its sums, of its operands."""
    halves = [
        f"SELECT {half} AS half, tensor_compressed(val::DOUBLE, i, j, {ROWS}) AS handle FROM gathered_e "
        f"WHERE i % 2 = {half}"
        for half in (0, 1)
    ]
    array = f"(SELECT tensor_resident(val::DOUBLE[], j, {POSITIONS}, 0::DOUBLE) AS handle FROM gathered_x) AS b"
    rows = f"range({ROWS}) AS r(i) CROSS JOIN ({' UNION ALL '.join(halves)}) AS a CROSS JOIN {array}"
    query = f"SELECT i % 3 AS g, tensor_keep(tensor_collected({arguments()}, i)) AS handle FROM {rows} GROUP BY ALL"
    expected = sums(connection, operands(), "DOUBLE")
    of_all: dict[int, list[float]] = {}
    for group, handle in connection.execute(query).fetchall():
        of_group = {} if handle is None else collected(connection, f"SELECT {handle}::BIGINT", "float64")
        assert all(i % 3 == group for i in of_group)
        of_all |= of_group
    assert of_all == expected


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("tensor_collected(a.handle, i + 5000, b.handle, 5, 0.0::DOUBLE, i)", ("row", 5000)),
        ("tensor_collected(a.handle, i, b.handle, -1, 0.0::DOUBLE, i)", ("size", -1)),
        ("tensor_collected(a.handle, i, b.handle, 6, 0.0::DOUBLE, i)", ("6 elements each", 1500)),
        ("tensor_collected(b.handle, i, b.handle, 5, 0.0::DOUBLE, i)", ("another type",)),
        ("tensor_collected(a.handle, i, b.handle + 1024, 5, 0.0::DOUBLE, i)", ("no array is resident",)),
        ("tensor_collected(a.handle, i, b.handle, 5, 0.0::FLOAT, i)", ("another type",)),
        ("tensor_resident(a.handle, i, b.handle, 5, 0.0::DOUBLE, m.handle, i + 1)", ("position", 5000)),
        ("tensor_resident(a.handle, i, b.handle, 5, 0.0::DOUBLE, m.handle, 0)", ("row 0", "written already")),
        ("tensor_resident(a.handle, i, b.handle, 4, 0.0::DOUBLE, m.handle, i)", (4, 5)),
        ("tensor_resident(a.handle, i, b.handle, 5, 0.0::DOUBLE, b.handle, i)", ("no memory is reserved",)),
        ("tensor_resident(a.handle, i, b.handle, 5, 0.0::DOUBLE, 7, i)", ("no memory is reserved",)),
    ],
)
def test_wrong_calls_are_refused(connection: Connection, call: str, words: tuple[object, ...]) -> None:
    query = f"SELECT {call} IS NULL FROM {operands()} CROSS JOIN {reserved()}"
    expect_error(connection, query, call.split("(")[0], *words)


def test_memory_of_other_statements_is_not_read(connection: Connection) -> None:
    ((handle,),) = connection.execute("SELECT tensor_compressed(1.0::DOUBLE, 0, 0, 1) AS h FROM range(1)").fetchall()
    expect_error(connection, f"SELECT tensor_collected({handle}, 0, NULL, 1, 0.0::DOUBLE, 0)", "tensor_collected", "no")


def test_sums_without_elements(connection: Connection) -> None:
    none = operands(array="gathered_x WHERE false")
    query = f"SELECT tensor_keep(tensor_collected({arguments(width=0)}, i)) FROM {none}"
    empty: list[float] = []
    assert collected(connection, query, "float64") == dict.fromkeys(sums(connection, operands(), "DOUBLE"), empty)


def test_results_of_programs_are_numpys(connection: Connection) -> None:
    """Sums of a result that most keys have are written in one place, others are collected."""
    rng = np.random.default_rng(0)
    a, x = np.zeros((3000, 400)), rng.normal(size=(400, 60))
    for share in (0.97, 0.5):
        rows = rng.random(3000) < share
        a[:] = 0
        a[rows, rng.integers(0, 400, rows.sum())] = rng.normal(size=rows.sum())
        with se.connect() as db:
            db.tensor("A", a, promoted=("dim_0", "dim_1"))
            db.tensor("X", x, promoted=("dim_0",))
            plan = db.plan("Y[I, k] = sum(A[I, J] * X[J, k])", layout="any")
            for _ in range(3):
                (result,) = db.run(plan, replan=False, progress=False).values()
                np.testing.assert_allclose(result.to_numpy(), a @ x, rtol=1e-12, atol=1e-12)
