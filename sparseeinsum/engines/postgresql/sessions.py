"""Engines: the interface of PostgreSQL sessions, which run statements from a client or inside the server."""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Protocol, Self

import pyarrow as pa

from sparseeinsum.engines.engine import Column
from sparseeinsum.errors import EngineError

# PostgreSQL's names of types, its own and SQL's, in the spelling of `statistics.columns`.
_TYPES = {
    **dict.fromkeys(("bool", "boolean"), "BOOLEAN"),
    **dict.fromkeys(("int2", "smallint"), "SMALLINT"),
    **dict.fromkeys(("int4", "integer"), "INTEGER"),
    **dict.fromkeys(("int8", "bigint"), "BIGINT"),
    **dict.fromkeys(("float4", "real"), "FLOAT"),
    **dict.fromkeys(("float8", "double precision"), "DOUBLE"),
    "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMPTZ",
}
_DECIMAL = re.compile(r"numeric\((\d+), ?(-?\d+)\)\Z")


def column_type(shown: str) -> str:
    """Return a type that PostgreSQL shows in the spelling of `statistics.columns`; unknown types stay as they are.

    >>> column_type("double precision[]"), column_type("numeric(9,2)"), column_type("text")
    ('DOUBLE[]', 'DECIMAL(9,2)', 'TEXT')
    """
    decimal = _DECIMAL.match(shown)
    if decimal is not None:
        return f"DECIMAL({decimal[1]},{decimal[2]})"
    element = shown.removesuffix("[]")
    return _TYPES.get(element, element.upper()) + shown[len(element) :]


def sqlstate(error: EngineError) -> str | None:
    """Return the SQLSTATE of an error of the server; None for other errors."""
    return getattr(error.__cause__, "sqlstate", None)


class Isolation(StrEnum):
    """The isolation level of a transaction."""

    READ_COMMITTED = "read committed"
    REPEATABLE_READ = "repeatable read"


ISOLATION = "SELECT pg_catalog.current_setting('transaction_isolation')"


def has_snapshot(isolation: object) -> bool:
    """Return whether all statements of a transaction see the same data, by its isolation level.

    >>> has_snapshot("repeatable read"), has_snapshot("read committed")
    (True, False)
    """
    return not str(isolation).startswith("read")


class DatabaseSession(Protocol):
    """Runs SQL text; a statement that the server refuses raises EngineError, whose cause has the `sqlstate`."""

    @property
    def connection(self) -> Any:  # noqa: ANN401  # each driver has a type of its own
        """The open connection of psycopg; inside the server, the module plpy."""

    @property
    def place(self) -> str:
        """The name of the database and its server."""

    @property
    def version(self) -> int:
        """The version of the server as a number, such as 150018."""

    def fetch(self, text: str, *parameters: str) -> Sequence[tuple[object, ...]]:
        """Run a query with the parameters $1, $2, ... and return all its rows."""

    def write(self, text: str) -> int:
        """Run a statement; return how many rows it wrote."""

    def columns(self, query: str) -> list[Column]:
        """Return the columns of a query without running it."""

    def read(self, query: str, arrays_as_bytes: bool = False) -> pa.Table:
        """Run a query and return its result as an Arrow table.

        Args:
            query: The query.
            arrays_as_bytes: Whether arrays may be sent as the bytes of their elements, which takes functions of ours.
        """

    def read_bytes(self, query: str, item_bytes: int = 1) -> bytes | memoryview | None:
        """Run a query that returns one computed value; return its bytes, None if it is NULL or there is no row.

        Args:
            query: The query.
            item_bytes: The bytes of an element if the value is an array of numbers; 1 if the value is bytes.
        """

    def read_small(self, query: str, parameters: Sequence[bytes | None]) -> pa.Table:
        """Run a query of few rows, which the server parses once, and return its result as an Arrow table.

        Args:
            query: The query.
            parameters: The values of $1, $2, ... in the binary format of the types that the query casts them to.
        """

    def batches(self, query: str, rows: int) -> Iterator[pa.Table]:
        """Yield the result of a query in tables of `rows` rows while it is computed: at least one, perhaps empty."""

    def load(self, rows: pa.Table | pa.RecordBatchReader, name: str) -> None:
        """Add the rows of an Arrow table, or batches, to the table with the qualified, quoted name `name`."""

    def is_in_transaction(self) -> bool:
        """Return whether a transaction is open."""

    def has_snapshot(self) -> bool:
        """Return whether all statements of the open transaction see the same data."""

    def lock_for_reading(self, relations: str) -> None:
        """Prevent that others replace relations until the transaction ends; their quoted names, as LOCK TABLE takes."""

    def transaction(self, isolation: Isolation | None = None) -> AbstractContextManager[None]:
        """Run the statements of the context in a transaction, or in a savepoint of one that is open.

        Args:
            isolation: The isolation level of a transaction that begins here; None for the user's default.
        """

    def another_connection(self) -> AbstractContextManager[Self]:
        """Open a session that can look for the reason of an error of this one."""

    def close(self) -> None:
        """Close the connection if it was opened here."""
