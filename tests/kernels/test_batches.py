"""Functions compute the rows of a chunk at once where they can be one batch, with the results of single rows."""

import numpy as np
import pytest
from sql_errors import expect_error
from sql_rows import Connection

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="chunks are of DuckDB")

ROWS = 5000  # more than two chunks
TEXTS = {
    "short": "'exp'",
    "long": "'exp(u) * 1 + 0 * u'",
    "columns of short texts": "CASE WHEN i >= 0 THEN 'exp' END",
    "columns of long texts": "'exp(u) * 1 + 0 * ' || CASE WHEN i % 3 = 0 THEN 'u' ELSE chr(117) END",
}
NULLS = {
    "no row": "false",
    "the first row": "i = 0",
    "the last row": f"i = {ROWS - 1}",
    "the end of a word": "i = 63",
    "the start of a word": "i = 64",
    "the last word of a chunk": "i IN (2040, 2047)",
    "many rows": "i % 7 = 3",
}


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """One connection for all tests of this module."""
    connection: Connection = shared_db.connection
    return connection


def table(value: str, null: str) -> str:
    """A query of rows i with numbers x, which are NULL where a condition holds."""
    return f"(SELECT i, CASE WHEN NOT ({null}) THEN {value} END AS x FROM range({ROWS}) AS t (i))"


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("expression", TEXTS)
def test_numbers(connection: Connection, expression: str, null: str, kind: str) -> None:
    source = table(f"(i / {ROWS})::{kind}", NULLS[null])
    query = f"SELECT {NULLS[null]}, x, tensor_map({TEXTS[expression]}, x) FROM {source} ORDER BY i"
    is_null, x, y = zip(*connection.execute(query).fetchall(), strict=True)
    assert [number is None for number in y] == [number is None for number in x] == list(is_null)
    numbers = [np.array([number for number in column if number is not None]) for column in (x, y)]
    np.testing.assert_allclose(numbers[1], np.exp(numbers[0]), rtol=1e-6)


def test_expressions_that_differ_between_rows(connection: Connection) -> None:
    expression = "CASE WHEN i = 2047 THEN 'u * 2' WHEN i = 4000 THEN 'u * 2 + 4 - 3 - 1 + 5' ELSE 'exp' END"
    query = f"SELECT i, tensor_map({expression}, x) FROM {table('(i / 5000)::DOUBLE', 'false')} ORDER BY i"
    expected = np.exp(np.arange(ROWS) / ROWS)
    expected[2047], expected[4000] = 2 * 2047 / ROWS, 2 * 4000 / ROWS + 5
    np.testing.assert_allclose([value for _, value in connection.execute(query).fetchall()], expected)


@pytest.mark.parametrize("null", NULLS)
def test_checked_numbers(connection: Connection, null: str) -> None:
    source = table("i::DOUBLE", NULLS[null])
    query = f"SELECT count(*) FROM {source} WHERE tensor_finite('W', x, 0) IS DISTINCT FROM x"
    assert connection.execute(query).fetchone() == (0,)


@pytest.mark.parametrize("row", [0, 1, 2047, 2048, ROWS - 1])
@pytest.mark.parametrize("value", ["x", "[x]", "[1, x]"])
def test_checked_numbers_that_are_not_finite(connection: Connection, value: str, row: int) -> None:
    source = table(f"CASE WHEN i = {row} THEN 'nan'::DOUBLE ELSE i END", "false")
    query = f"SELECT sum(hash(tensor_finite('W', {value}, 0))) FROM {source}"
    expect_error(connection, query, "W turned NaN or infinite")


@pytest.mark.parametrize("value", ["x", "[x, 2]"])
def test_fills_that_differ_between_rows(connection: Connection, value: str) -> None:
    source = table("CASE WHEN i % 5 = 0 THEN 'inf'::DOUBLE ELSE i END", "false")
    check = f"SELECT count(*) FROM {source} WHERE tensor_finite('W', {value}, {{}}) IS DISTINCT FROM {value}"
    assert connection.execute(check.format("x")).fetchone() == (0,)
    fill = "CASE WHEN i = 4005 THEN 0.0::DOUBLE ELSE x END"
    expect_error(connection, check.format(fill), "W turned NaN or infinite")


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("distance", [0, 1, 2])
def test_arrays_of_equal_size(connection: Connection, size: int, distance: int) -> None:
    """One constant array, adjacent ones, or parts of longer ones."""
    element = "i + {}" if distance > 0 else "{}"
    long = "list_value(" + ", ".join(element.format(k) for k in range(size * max(distance, 1))) + ")"
    part = f"({long}::DOUBLE[])[1:{size}]"
    query = f"SELECT i, tensor_map('2 * u', {part}) FROM range({ROWS}) AS t (i) ORDER BY i"
    for i, result in connection.execute(query).fetchall():
        assert result == [2.0 * (i * (distance > 0) + k) for k in range(size)]


@pytest.mark.parametrize("fill", ["[0, 0]", "[i, 1]"])
def test_checked_complex_numbers(connection: Connection, fill: str) -> None:
    check = "SELECT count(*) FROM range(5000) AS t (i) WHERE tensor_complex_finite('W', {0}, {1}) IS DISTINCT FROM {0}"
    fill = f"{fill}::DOUBLE[]"
    assert connection.execute(check.format("[i, 1]::DOUBLE[]", fill)).fetchone() == (0,)
    infinite = "[i, CASE WHEN i = 4000 THEN 'inf'::DOUBLE ELSE 1 END, i, 1]"
    expect_error(connection, check.format(infinite, fill), "W turned NaN or infinite")
