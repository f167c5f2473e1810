"""Rows of two sparse matrices are matched by position as by an outer join in Python; wrong calls are named."""

from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from sql_errors import expect_error

import sparseeinsum as se
from sparseeinsum.kernels.duckdb.library import require_library

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle")

ROWS = 200
Entries = dict[tuple[int, int], int]


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> duckdb.DuckDBPyConnection:
    connection: duckdb.DuckDBPyConnection = shared_db.connection
    return connection


def create(connection: duckdb.DuckDBPyConnection, name: str, seed: int, columns: int, count: int) -> Entries:
    """Make a table of distinct entries with the columns i, j and val; returns them."""
    rng = np.random.default_rng(seed)
    places: NDArray[Any] = rng.permutation(np.unique(rng.integers(0, ROWS * columns, count)))
    values = rng.integers(-4, 5, len(places))
    columns_of = {"i": places // columns, "j": places % columns, "val": values}
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT unnest($i) AS i, unnest($j) AS j, unnest($val) AS val",
        {key: column.tolist() for key, column in columns_of.items()},
    )
    return {(i, j): value for i, j, value in zip(*(column.tolist() for column in columns_of.values()), strict=True)}


def handle(table: str, sql_type: str = "DOUBLE") -> str:
    return f"(SELECT tensor_compressed(val::{sql_type}, i, j, {ROWS}) AS handle FROM {table})"


def matched(sql_type: str, fills: tuple[int | None, int | None], together: int = 30) -> str:
    written = ", ".join(f"{'NULL' if fill is None else fill}::{sql_type}" for fill in fills)
    return (
        f"SELECT i, m.position, m.u, m.v FROM (SELECT row_number AS i, unnest(tensor_matched_row(u.handle, row_number, "
        f"v.handle, {written})) AS m FROM tensor_row_numbers({ROWS}, {together}) CROSS JOIN {handle('a', sql_type)} "
        f"AS u CROSS JOIN {handle('b', sql_type)} AS v)"
    )


@pytest.mark.parametrize("counts", [(3000, 2000), (1, 5000), (2000, 1), (0, 100), (100, 0)])
@pytest.mark.parametrize("columns", [40, 1, 400_000])  # more than 2^17 are hashed
@pytest.mark.parametrize("fills", [(None, None), (0, 0), (7, None), (None, -5)])
@pytest.mark.parametrize("sql_type", ["DOUBLE", "FLOAT", "BIGINT"])
def test_matches_are_those_of_a_join(
    connection: duckdb.DuckDBPyConnection,
    sql_type: str,
    fills: tuple[int | None, int | None],
    columns: int,
    counts: tuple[int, int],
) -> None:
    left, right = (create(connection, name, seed, columns, counts[seed]) for seed, name in enumerate("ab"))
    common = next(iter(right), (0, 0))
    if counts[0] > 0 and common not in left:  # there may be no other pair among many columns
        connection.execute("INSERT INTO a VALUES (?, ?, 9)", common)
        left[common] = 9
    expected = {
        key: (left.get(key, fills[0]), right.get(key, fills[1]))
        for key in {**left, **right}
        if (key in left or fills[0] is not None) and (key in right or fills[1] is not None)
    }
    records = connection.execute(matched(sql_type, fills)).fetchall()
    assert len(records) == len(expected)
    assert {(i, j): (u, v) for i, j, u, v in records} == expected
    assert require_library().count_residents() == 0


@pytest.mark.parametrize("columns", [40, 400_000])
@pytest.mark.parametrize("table", ["a", "b"])
def test_an_entry_twice(connection: duckdb.DuckDBPyConnection, table: str, columns: int) -> None:
    for name in "ab":
        create(connection, name, 0, columns, 100)
    connection.execute(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1")
    for fills in ((None, None), (0, 0)):
        expect_error(connection, matched("DOUBLE", fills), "tensor_matched_row", "twice")


def test_wrong_calls(connection: duckdb.DuckDBPyConnection) -> None:
    create(connection, "a", 1, 10, 50)
    query = f"SELECT tensor_matched_row(u.handle, 0, u.handle, 0::DOUBLE, 0::DOUBLE) FROM {handle('a')} AS u"
    assert len(connection.execute(query).fetchall()) == 1
    for wrong, word in (
        (query.replace(" 0, u.handle", f" {ROWS}, u.handle"), "row"),
        (query.replace(" 0, u.handle", " -1, u.handle"), "row"),
        (query.replace("0, u.handle,", "0, u.handle + 1,"), "resident"),
        (query.replace("0::DOUBLE", "0::FLOAT"), "type"),
    ):
        expect_error(connection, wrong, "tensor_matched_row", word)
    calls = "tensor_matched_row(NULL, 0, NULL, 0::FLOAT, 0), tensor_matched_row(NULL, NULL, NULL, 0::DOUBLE, 0)"
    assert connection.execute(f"SELECT {calls}").fetchall() == [([], None)]
