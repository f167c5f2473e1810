"""Engines: what prepared programs need of a connection: rows that the client supplies, and prepared queries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from sqlglot import exp


class SuppliedTable(Protocol):
    """A relation of one connection, whose rows the client replaces without another statement being planned."""

    @property
    def table(self) -> exp.Table:
        """The relation, for a FROM clause."""

    def supply(self, rows: pa.Table) -> None:
        """Replace all rows, by rows of the same columns, for queries that are prepared to read them.

        Other statements read them after `fill`.
        """

    def fill(self) -> None:
        """Let all statements of the open transaction read the rows that were supplied last."""

    def drop(self) -> None:
        """Remove the relation from the connection."""


class PreparedQuery(Protocol):
    """A query that the database has parsed once."""

    @property
    def reads_filled_tables(self) -> bool:
        """Whether the supplied tables that it reads must be filled before it runs."""

    @property
    def takes_one_number(self) -> bool:
        """Whether a run outside of a transaction takes no more than one number of transactions."""

    def arrow(self) -> pa.Table:
        """Run the query and return its result as an Arrow table."""

    def drop(self) -> None:
        """Remove the query from the connection."""


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query that the database plans whenever it runs, in the way in which large results take least time.

    Attributes:
        arrow: Runs the query and returns its result as an Arrow table.
        reads_filled_tables: As for `PreparedQuery`.
        takes_one_number: As for `PreparedQuery`.
    """

    arrow: Callable[[], pa.Table]
    reads_filled_tables: bool
    takes_one_number: bool

    def drop(self) -> None:
        """Do nothing: the database does not know the query."""


class PreparedWrite(Protocol):
    """An INSERT, UPDATE or DELETE that the database has parsed once."""

    def run(self) -> int:
        """Run the statement; return how many rows it wrote."""

    def drop(self) -> None:
        """Remove the statement from the connection."""


@dataclass(frozen=True, slots=True)
class TransactionMark:
    """What tells whether anybody may have changed permanent tables between two transactions of one connection.

    Attributes:
        first: The number of the first of the consecutive transactions that lead to this one. Numbers grow by 1 with
            every transaction that may change tables.
        last: The number of this transaction.
        is_alone: Whether no other transaction is open that began earlier.
        session: The database, schema and role that names and rights depend on.
    """

    first: int
    last: int
    is_alone: bool
    session: tuple[object, ...]

    def follows(self, earlier: "TransactionMark | None") -> bool:
        """Whether nothing was changed since `earlier`, the mark of a transaction that itself only read tables."""
        return (
            earlier is not None
            and self.is_alone
            and earlier.is_alone
            and self.first == earlier.last + 1
            and self.session == earlier.session
        )
