"""What errors of the functions in SQL must be like."""

import re

import duckdb
import pytest

Connection = duckdb.DuckDBPyConnection


def expect_error(connection: Connection, query: str, *words: object) -> None:
    """Assert that a query fails with this message and that the next query succeeds."""
    with pytest.raises(duckdb.Error) as caught:
        connection.execute(query).fetchall()
    for word in words:
        assert re.search(rf"(?<![\w-]){re.escape(str(word))}(?!\w)", str(caught.value)), str(caught.value)
    assert connection.execute("SELECT tensor_add([1], [2]), tensor_sum([3])").fetchall() == [([3.0], [3.0])]
