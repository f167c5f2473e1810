"""DuckDB converts arrays to the bytes that they have in memory, and back."""

import duckdb
import numpy as np
import pytest

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="the functions and their SQL are DuckDB's")

TYPES = {"DOUBLE": np.float64, "FLOAT": np.float32, "BIGINT": np.int64}


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> duckdb.DuckDBPyConnection:
    connection: duckdb.DuckDBPyConnection = shared_db.connection
    return connection


@pytest.mark.parametrize("kind", TYPES)
def test_bytes_are_those_of_memory(connection: duckdb.DuckDBPyConnection, kind: str) -> None:
    numbers = np.array([0, -1, 3, 1 << 20], TYPES[kind])
    query = f"SELECT tensor_bytes(?::{kind}[]), tensor_of_bytes(?, 5::{kind})"
    row = connection.execute(query, [numbers.tolist(), numbers.tobytes()]).fetchone()
    assert row == (numbers.tobytes(), numbers.tolist())


def test_arrays_of_many_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Of all lengths, with NULL among them, in a table."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE many AS SELECT i, CASE WHEN i % 7 <> 3 THEN list_transform(range(i % 50), "
        "lambda k: k * 0.5 + i) END::DOUBLE[] AS v FROM range(5000) AS t(i)"
    )
    connection.execute("CREATE OR REPLACE TEMP TABLE kept AS SELECT i, tensor_bytes(v) AS u FROM many")
    is_same = "CAST(tensor_of_bytes(u, 0.0) IS NOT DISTINCT FROM v AS INT)"
    query = f"SELECT count(*), count(u), sum({is_same}) FROM kept JOIN many USING (i)"
    assert connection.execute(query).fetchone() == (5000, 5000 - 714, 5000)


def test_null_gives_null(connection: duckdb.DuckDBPyConnection) -> None:
    no_element = "tensor_of_bytes(unhex(''), NULL::DOUBLE)"
    query = f"SELECT tensor_bytes(NULL::DOUBLE[]), tensor_of_bytes(NULL, 0.0::DOUBLE), {no_element}"
    assert connection.execute(query).fetchone() == (None, None, None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("tensor_bytes([1.0::DOUBLE, NULL])", "tensor_bytes: argument 1, .*holds NULL"),
        ("tensor_of_bytes(unhex('0000000000'), 0.0::DOUBLE)", "tensor_of_bytes: 5 bytes .* 8 bytes each"),
        ("tensor_of_bytes(unhex('000000'), 0::FLOAT)", "tensor_of_bytes: 3 bytes .* 4 bytes each"),
    ],
)
def test_refused(connection: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        connection.execute(f"SELECT {call}").fetchall()
