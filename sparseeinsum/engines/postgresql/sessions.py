"""Engines: where statements for PostgreSQL run: over a client's connection, or in the server, for a function of it."""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Protocol, Self

import pyarrow as pa

from sparseeinsum.engines.engine import Column

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
    """A type as PostgreSQL shows it, in the spelling of `statistics.columns`; others stay as they are.

    >>> column_type("double precision[]"), column_type("numeric(9,2)"), column_type("text")
    ('DOUBLE[]', 'DECIMAL(9,2)', 'TEXT')
    """
    decimal = _DECIMAL.match(shown)
    if decimal is not None:
        return f"DECIMAL({decimal[1]},{decimal[2]})"
    element = shown.removesuffix("[]")
    return _TYPES.get(element, element.upper()) + shown[len(element) :]


class Isolation(StrEnum):
    """What a transaction sees of what others commit while it lasts."""

    READ_COMMITTED = "read committed"
    REPEATABLE_READ = "repeatable read"


class Session(Protocol):
    """Runs text; what the server refuses raises EngineError, whose cause has the `sqlstate`."""

    @property
    def connection(self) -> Any:  # noqa: ANN401  # each driver has a type of its own
        """The driver's connection."""

    @property
    def version(self) -> int:
        """Of the server, as in 150018."""

    def fetch(self, text: str, *parameters: str) -> Sequence[tuple[object, ...]]:
        """All rows of a query, whose parameters are $1, $2, ..."""

    def write(self, text: str) -> int:
        """Run a statement; returns how many rows it wrote, where it writes any."""

    def columns(self, query: str) -> list[Column]:
        """Columns of a query; it is not run."""

    def read(self, query: str) -> pa.Table:
        """The result of a query as an Arrow table."""

    def batches(self, query: str, rows: int) -> Iterator[pa.Table]:
        """The result of a query while it is computed, so many rows at once; one table at least, which may be empty."""

    def load(self, rows: pa.Table | pa.RecordBatchReader, name: str) -> None:
        """Add the rows of an Arrow table, or batches, to a table, of which the whole name is given as SQL has it."""

    def is_in_transaction(self) -> bool:
        """Whether statements are in a transaction that somebody began."""

    def transaction(self, isolation: Isolation | None = None) -> AbstractContextManager[None]:
        """All of the statements within take effect, or none; in a transaction that is open, once that is committed.

        Args:
            isolation: That one that begins here has; else it is what the user has by default.
        """

    def another_connection(self) -> AbstractContextManager[Self]:
        """A session that goes on after an error of this one, as far as that is needed to look for the reason."""

    def close(self) -> None:
        """Close the connection."""
