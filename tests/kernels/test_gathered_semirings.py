"""Rows of products of entries and an array in any semiring are numpy's, or an error names what is wrong."""

from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_runs import random_runs
from sql_errors import expect_error

import sparseeinsum as se
from sparseeinsum.operators.semirings import SEMIRINGS

pytestmark = [
    pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle"),
    pytest.mark.usefixtures("nothing_stays"),
]

Connection = duckdb.DuckDBPyConnection
TYPES = {"DOUBLE": np.float64, "FLOAT": np.float32, "BIGINT": np.int64}
AGGREGATIONS: dict[str, Any] = {"sum": np.sum, "min": np.min, "max": np.max, "any": np.any}
PRODUCTS: dict[str, Any] = {
    "mul": np.multiply,
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.logical_and,
}
ROWS, POSITIONS, WIDTH = 40, 30, 5
OF_REAL_NUMBERS = [semiring for semiring in SEMIRINGS if semiring.aggregate != "any"]


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    connection: Connection = shared_db.connection
    return connection


def handles(sql_type: str, entries: str = "e", array: str = "x") -> str:
    return (
        f"a AS (SELECT tensor_compressed(val::{sql_type}, i, j, {ROWS}) AS handle FROM {entries}), "
        f"b AS (SELECT tensor_resident(val::{sql_type}[], j, {POSITIONS}, 3::{sql_type}) AS handle FROM {array})"
    )


def call(semiring: str, sql_type: str = "DOUBLE", row: str = "i", array: str = "b.handle", size: int = WIDTH) -> str:
    return f"tensor_gather_reduce({semiring}, a.handle, {row}, {array}, {size}, 3::{sql_type})"


@pytest.mark.parametrize("sql_type", TYPES)
def test_random_rows_are_numpys(connection: Connection, sql_type: str) -> None:
    """Rows of several semirings in one vector, of entries that may be there twice."""

    @random_runs(25)
    @given(st.integers(0, 2**32 - 1), st.integers(0, 300), st.integers(0, POSITIONS))
    def run(seed: int, count: int, stored: int) -> None:
        rng = np.random.default_rng(seed)
        i, j = rng.integers(0, ROWS, count), rng.integers(0, POSITIONS, count)
        numbers = rng.integers(-9, 10, count)
        right = np.full((POSITIONS, WIDTH), 3)
        right[:stored] = rng.integers(-9, 10, (stored, WIDTH))
        connection.execute("CREATE OR REPLACE TEMP TABLE e (i INT, j INT, val INT)")
        if count:
            values = [*zip(i.tolist(), j.tolist(), numbers.tolist(), strict=True)]
            connection.execute(f"INSERT INTO e VALUES {', '.join(map(str, values))}")
        connection.execute("CREATE OR REPLACE TEMP TABLE x (j INT, val INT[])")
        if stored:
            connection.execute(f"INSERT INTO x VALUES {', '.join(str((j, right[j].tolist())) for j in range(stored))}")
        texts = ", ".join(f"('{semiring.text}')" for semiring in OF_REAL_NUMBERS)
        query = (
            f"WITH {handles(sql_type)} SELECT t, i, {call('t', sql_type)} AS val "
            f"FROM (VALUES {texts}) AS s(t) CROSS JOIN range({ROWS}) AS r(i) CROSS JOIN a CROSS JOIN b"
        )
        results = {(text, row): val for text, row, val in connection.execute(query).fetchall()}
        assert len(results) == ROWS * len(OF_REAL_NUMBERS)
        for semiring in OF_REAL_NUMBERS:
            for row in range(ROWS):
                of_row = i == row
                products = PRODUCTS[semiring.function](numbers[of_row, None], right[j[of_row]])
                expected = AGGREGATIONS[semiring.aggregate](products, axis=0).tolist() if of_row.any() else None
                assert results[semiring.text, row] == expected

    run()


def test_truth_values(connection: Connection) -> None:
    """They are whole numbers 0 and 1."""
    entries = "(VALUES (0, 1, 1), (0, 2, 1), (1, 1, 0)) AS e(i, j, val)"
    array = "(VALUES (1, [0, 1, 0, 0, 0]), (2, [0, 0, 1, 0, 0])) AS x(j, val)"
    query = f"WITH {handles('BIGINT', entries, array)} SELECT {call(repr('any(u and v)'), 'BIGINT')}"
    rows = connection.execute(f"{query} FROM range(3) AS r(i) CROSS JOIN a CROSS JOIN b ORDER BY i").fetchall()
    assert rows == [([0, 1, 1, 0, 0],), ([0, 0, 0, 0, 0],), (None,)]


def test_null_arguments_give_null(connection: Connection) -> None:
    entries, array = "(SELECT 1 AS val, 1 AS i, 1 AS j)", "(SELECT [1, 2, 3, 4, 5] AS val, 1 AS j WHERE false)"
    query = f"WITH {handles('DOUBLE', entries, array)} SELECT "
    calls = (call("'min(u + v)'", row="1"), call("NULL", row="1"), call("'min(u + v)'", row="NULL"))
    assert connection.execute(f"{query} {', '.join(calls)} FROM a, b").fetchall() == [([4.0] * WIDTH, None, None)]


def test_nan_stays(connection: Connection) -> None:
    entries = "(VALUES (0, 0, 'nan'::DOUBLE), (0, 1, 2.0)) AS e(i, j, val)"
    array = "(VALUES (0, [1, 1, 1, 1, 1]), (1, [1, 1, 1, 1, 1])) AS x(j, val)"
    for semiring in OF_REAL_NUMBERS:
        query = f"WITH {handles('DOUBLE', entries, array)} SELECT {call(repr(semiring.text), row='0')} FROM a, b"
        ((gathered,),) = connection.execute(query).fetchall()
        np.testing.assert_array_equal(gathered, np.full(WIDTH, np.nan))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"semiring": "'min(u - v)'"}, ("the semiring is none of", "min(u + v)")),
        ({"semiring": "''"}, ("the semiring is none of",)),
        ({"semiring": "'min(u + v)'", "row": "40"}, ("row 40", "0 to 39")),
        ({"semiring": "'min(u + v)'", "row": "-1"}, ("row -1",)),
        ({"semiring": "'min(u + v)'", "size": 6}, ("6 elements",)),
        ({"semiring": "'min(u + v)'", "size": -1}, ("size -1",)),
        ({"semiring": "'min(u + v)'", "array": "b.handle + 1"}, ("no array is resident",)),
        ({"semiring": "'min(u + v)'", "array": "a.handle"}, ("another type",)),
        ({"semiring": "'min(u + v)'", "sql_type": "FLOAT"}, ("another type",)),
    ],
)
def test_invalid_reads_are_refused(connection: Connection, arguments: dict[str, Any], words: tuple[str, ...]) -> None:
    entries = f"(SELECT 1 AS val, i, i % {POSITIONS} AS j FROM range({ROWS}) AS t(i))"
    array = f"(SELECT j, [1, 2, 3, 4, 5] AS val FROM range({POSITIONS}) AS t(j))"
    query = f"WITH {handles('DOUBLE', entries, array)} SELECT {call(**({'row': '29'} | arguments))} FROM a, b"
    expect_error(connection, query, "tensor_gather_reduce", *words)


def test_overflow_is_an_error(connection: Connection) -> None:
    entries, array = f"(SELECT {2**62} AS val, 0 AS i, 0 AS j)", f"(SELECT [{2**62}] AS val, 0 AS j)"
    query = f"WITH {handles('BIGINT', entries, array)} SELECT {call(repr('min(u + v)'), 'BIGINT', '0', size=1)}"
    expect_error(connection, f"{query} FROM a, b", "tensor_gather_reduce", "int64 overflow")
