"""Engines: what the rest of the package may ask of a database, whichever it is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import pyarrow as pa
from sqlglot import exp

from sparseeinsum.decompose.clusters.distribution import Cluster
from sparseeinsum.errors import EngineError
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.statements import Statement
from sparseeinsum.render.table_distribution import TableDistribution


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a query.

    Attributes:
        name: As the database spells it.
        sql_type: In the spelling of `statistics.columns`, or the database's own where that does not know the type.
    """

    name: str
    sql_type: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view.

    Attributes:
        catalog: The database that it lies in; None for the current one.
        schema: Of that database.
        name: As the database spells it.
        comment: That the database keeps with it.
    """

    catalog: str | None
    schema: str
    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class RelationAccess:
    """A relation that is to be read.

    Attributes:
        title: What messages call it, as in `tensor A`.
        table: The relation, with its schema.
        owner: The role that entered it in the catalogue; None where the user names it.
        is_written: Whether rows are to be added to it, too.
    """

    title: str
    table: exp.Table
    owner: str | None = None
    is_written: bool = False

    @property
    def parts(self) -> tuple[str, str]:
        """Its schema and its name."""
        return self.table.db, self.table.name


class Engine(Protocol):
    """A connection to a database that has the functions of this package.

    Statements that the database refuses raise EngineError, whose cause is the error of its driver.
    """

    @property
    def title(self) -> str:
        """The engine's name, for messages."""

    @property
    def connection(self) -> Any:  # noqa: ANN401  # each driver has a type of its own
        """The driver's connection."""

    @property
    def dialect(self) -> Dialect:
        """How statements are written."""

    @property
    def dialect_name(self) -> str:
        """Name of the SQL dialect."""

    @property
    def constants_name(self) -> str:
        """Name of the constants of its costs."""

    def rows(self, statement: exp.Expr | str) -> Sequence[tuple[object, ...]]:
        """All rows of a query."""

    def execute(self, statement: exp.Expr | str) -> None:
        """Run a statement whose rows do not matter."""

    def stage_namer(self, seconds: float) -> Callable[[str], exp.Table]:
        """Names tables that keep results while a plan of so many expected seconds runs."""

    def create_temporary(self, table: exp.Table, query: exp.Select) -> int:
        """Create a table that is there for a run from a query; returns its rows."""

    def stage(self, statement: Statement) -> int:
        """Run a statement that keeps its rows in a temporary table; returns how many there are."""

    def replace_table(
        self, table: exp.Table, query: exp.Select, key: Sequence[str] = (), spread: TableDistribution | None = None
    ) -> int:
        """Create a permanent table from a query, which may read a table of that name that it replaces; its rows.

        No two rows have the same values in all columns of the key, if there is one; an engine may have use for that.
        On a cluster, its rows are spread over the machines where that is asked for.
        """

    def insert(self, table: exp.Table, query: exp.Select) -> int:
        """Add the rows of a query to a permanent table; returns how many."""

    def load_table(self, table: exp.Table, rows: pa.Table, spread: TableDistribution | None = None) -> None:
        """Create a permanent table from an Arrow table, in place of one of that name; see `replace_table`."""

    def cluster(self) -> Cluster | None:
        """The machines that tables are spread over; None where there is only one."""

    def spread_of(self, table: exp.Table) -> TableDistribution | None:
        """How the rows of a table are spread over machines; None where one has them, or where it is a view."""

    def arrow(self, statement: exp.Expr | str) -> pa.Table:
        """The result of a query as an Arrow table."""

    def batches(self, statement: exp.Expr | str, rows: int) -> Iterator[pa.Table]:
        """The result of a query while it is computed, so many rows at once; one table at least, which may be empty.

        Until the last one, or until the generator is closed, the connection takes no other statement.
        """

    def columns(self, query: exp.Expr | str) -> list[Column]:
        """Columns of a query; it is not run."""

    def columns_of(self, table: exp.Table) -> list[Column] | None:
        """Columns of a table or view; None where there is none of that name."""

    def transaction(self) -> AbstractContextManager[None]:
        """All of the statements within take effect, or none."""

    def snapshot(self) -> AbstractContextManager[None]:
        """A transaction in which all statements see the data as they were at one time, whoever writes meanwhile.

        That holds of relations that `check_access` was asked for within.
        """

    def protected(self) -> AbstractContextManager[None]:
        """Within, what was checked stays as it is, and names in SQL of ours mean what is meant.

        That is so within a transaction, too. Where nobody but the user could change that, nothing is done.
        """

    def another_connection(self) -> AbstractContextManager[Self]:
        """Another connection to the same database, which sees what is committed, whatever happens on this one."""

    def registered(self, rows: object, name: str) -> AbstractContextManager[exp.Table]:
        """An Arrow table, batches that are read once, or a relation of the database's, as a table of that name."""

    def has_relation(self, relation: object) -> bool:
        """Whether a relation of DuckDB's Python is one of this database."""

    def location(self) -> tuple[str, str]:
        """The database and the schema in which a bare name stands for a new table."""

    def catalogue_columns(self, schema: str, name: str) -> Mapping[str, str] | None:
        """Columns of a table of the catalogue, with their types; None where there is none.

        Raises:
            RightsError: It belongs to a role whose triggers and policies the user should not run.
        """

    def check_access(self, readings: Sequence[RelationAccess]) -> None:
        """Refuse relations that would run what other roles wrote with the rights of the user; hold the rest.

        Raises:
            RightsError: Naming the first such relation, and why.
            EngineError: The relations cannot be held as they are, or somebody has changed one; see `is_conflict`.
        """

    def role_owns(self, role: str | None, table: exp.Table) -> bool:
        """Whether a table belongs to the role that entered it in the catalogue, so that it may be dropped with that."""

    def is_conflict(self, error: EngineError) -> bool:
        """Whether a transaction failed only because of what others wrote at the same time, and may be tried again."""

    def grant(self, role: str) -> None:
        """Let a role use the catalogue, which is there.

        Raises:
            EngineError: There is no such role, or the user may not grant that.
        """

    def is_permission_error(self, error: EngineError) -> bool:
        """Whether a statement was refused because the user has no right to it."""

    def relations_named(self, name: str) -> Sequence[Relation]:
        """What a bare name may mean, first what it does mean."""

    def is_missing_column_error(self, error: EngineError) -> bool:
        """Whether a statement was refused because there is no column of some name."""

    def is_out_of_memory_error(self, error: EngineError) -> bool:
        """Whether a statement failed because its memory, or the disk that it spills to, was not enough."""

    def overflows_float32(self, value: exp.Expr) -> exp.Expr:
        """Whether a number of type DOUBLE, which is no infinity, would become one as a float32."""

    def is_changed_by_cast(self, value: exp.Expr, sql_type: str, dtype: str) -> exp.Expr:
        """Whether a number of a type would be another one as a dtype; one of them is of whole numbers or truth."""

    def memory_limit(self) -> int:
        """Bytes that the database may use."""

    def memory_in_use(self) -> int | None:
        """Bytes of this process's memory that the database takes now; None for a server, which has its own."""

    def memory_limited_to(self, limit_bytes: float, threads: int) -> AbstractContextManager[Callable[[float], None]]:
        """Within, the database may use so much of this process's memory, and so many threads; a server stays as it is.

        What comes sets another limit, and returns memory that is free to the system.
        """

    def single_threaded(self) -> AbstractContextManager[None]:
        """Within a transaction, statements run in one thread, which reads tables from their beginning."""

    def threads(self) -> int:
        """Threads that the database runs statements with."""

    def close(self) -> None:
        """Close the connection, if it was opened here."""
