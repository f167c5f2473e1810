"""Engines: the interface to a database that the rest of the package uses, the same for every database."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import pyarrow as pa
from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.clusters.transfers import Cluster
from sparseeinsum.engines.kept_memory import KeptMemory
from sparseeinsum.engines.prepared import PreparedQuery, PreparedWrite, SuppliedTable, TransactionMark
from sparseeinsum.errors import EngineError
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.render.table_distribution import TableDistribution
from sparseeinsum.statistics.scan_cache import ScanCache, TableState


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a query.

    Attributes:
        name: The name as the database spells it.
        sql_type: The type as `statistics.columns` spells it, or as the database does if that module lacks the type.
    """

    name: str
    sql_type: str


@dataclass(frozen=True, slots=True)
class DatabaseRelation:
    """A table or view.

    Attributes:
        catalog: The database that contains it; None for the current one.
        schema: Its schema in that database.
        name: The name as the database spells it.
        comment: The comment that the database stores for it; None if there is none.
    """

    catalog: str | None
    schema: str
    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class RelationAccess:
    """A relation that is to be read or written.

    Attributes:
        title: What messages call it, as in `tensor A`.
        table: The relation, with its schema.
        owner: The role that recorded it in the catalogue; None if the user names the relation.
        is_written: Whether rows are to be added to it as well.
    """

    title: str
    table: exp.Table
    owner: str | None = None
    is_written: bool = False

    @property
    def schema_and_name(self) -> tuple[str, str]:
        """The schema of the relation and its name."""
        return self.table.db, self.table.name


class Engine(Protocol):
    """A connection to a database that has the functions of this package.

    A statement that the database refuses raises EngineError, whose cause is the driver's error.
    """

    @property
    def title(self) -> str:
        """The engine's name, for messages."""

    @property
    def place(self) -> str:
        """Where the database is, for people: its file, or its name and its server; nothing is asked of it."""

    @property
    def is_server(self) -> bool:
        """Whether the database runs in processes of its own, whose memory is not that of this process."""

    @property
    def connection(self) -> Any:  # noqa: ANN401  # each driver has a type of its own
        """The open connection of the database's Python driver."""

    @property
    def scans(self) -> ScanCache:
        """What scans of tensors on this connection returned."""

    @property
    def dialect(self) -> Dialect:
        """How SQL is written for this engine."""

    @property
    def dialect_name(self) -> str:
        """The name of the SQL dialect."""

    @property
    def constants_name(self) -> str:
        """The name under which the constants of the cost model are calibrated and stored."""

    def rows(self, statement: exp.Expr | str) -> Sequence[tuple[object, ...]]:
        """Run a query and return all its rows."""

    def execute(self, statement: exp.Expr | str) -> None:
        """Run a statement and ignore its rows."""

    def stage_namer(self, seconds: float) -> Callable[[str], exp.Table]:
        """Return a function that names the stages of a plan; `seconds` is the plan's predicted time."""

    def create_temporary(self, table: exp.Table, query: exp.Select) -> int:
        """Create a table for the duration of a run from a query; return the number of its rows."""

    def stage(self, statement: SqlStatement) -> int:
        """Run a statement that stores its rows in a stage; return their number."""

    def replace_table(
        self,
        table: exp.Table,
        query: exp.Select,
        key: Sequence[str] = (),
        distribution: TableDistribution | None = None,
        records_changes: bool = False,
        passes: Sequence[exp.Select] = (),
    ) -> int:
        """Create a permanent table from a query, or replace the table of that name.

        Args:
            table: The table, which `query` may read if it exists.
            query: Its rows.
            key: Columns that identify a row, if there are any; an engine may create an index for them.
            distribution: How a cluster distributes the rows over its machines.
            records_changes: Whether `change_tokens` should notice changes of the table, where the database can do that.
            passes: Queries of more rows, which may read the table as it was, too; of a table without `records_changes`.

        Returns:
            The number of rows.
        """

    def change_tokens(self, tables: Sequence[exp.Table]) -> list[object]:
        """Return a value for every table that differs after every change of its rows or columns.

        None stands for a table whose changes are not recorded.
        """

    @property
    def kept_memory(self) -> KeptMemory | None:
        """What stays in memory between runs of this connection; None if nothing does."""

    def state_token(self) -> object:
        """Return a value that is the same later only if nobody has changed any permanent table of the database since.

        None if changes may go on now, or if the database does not tell.
        """

    def own_tables(self) -> frozenset[tuple[str, str]]:
        """Return the schemas and names of the tables in which `state_token` tells of every change of rows.

        They are permanent tables of this database alone, without columns that are computed when they are read.
        """

    def supplied_table(self, name: str, rows: pa.Table) -> SuppliedTable:
        """Make a relation of this connection whose rows the client supplies; those of `rows` at first."""

    def prepared_query(
        self, name: str, query: exp.Select | str, supplied: Sequence[SuppliedTable] = (), is_small: bool = False
    ) -> PreparedQuery:
        """Prepare a query.

        Args:
            name: Its name, which no other query of this connection has.
            query: The query.
            supplied: Tables of `supplied_table` that it may read.
            is_small: Whether it reads and returns so few rows that to optimise it takes longer than it saves.
        """

    def prepared_tuples(
        self,
        name: str,
        statement: SqlStatement,
        schema: Schema,
        count: float,
        supplied: Sequence[SuppliedTable],
        is_small: bool,
    ) -> PreparedQuery:
        """Prepare the query of a statement for `tuples`.

        Args:
            name: Its name, which no other query of this connection has.
            statement: The statement.
            schema: What it returns.
            count: About how many tuples it returns.
            supplied: Tables of `supplied_table` that it may read.
            is_small: As for `prepared_query`.
        """

    def prepared_write(self, name: str, statement: str) -> PreparedWrite:
        """Prepare an INSERT, UPDATE or DELETE under a name that no other statement of this connection has."""

    def optimize(self, enabled: bool) -> bool:
        """Let the database optimise statements of this connection, or run them as they are written.

        DuckDB keeps the plan of a prepared statement only if it is not optimised.

        Args:
            enabled: Whether to optimise from now on.

        Returns:
            Whether the database optimised before.
        """

    def empty_table(self, table: exp.Table) -> None:
        """Remove all rows of a table, and the space that they and earlier rows take."""

    def free_rows(self, table: exp.Table) -> None:
        """Free at once what the rows of a table take that the open transaction created, which is then only dropped."""

    def claimed(self, purpose: str) -> AbstractContextManager[bool]:
        """Claim a purpose in the context, for this connection alone.

        Yields:
            Whether it is claimed; False if another connection to the same database has claimed it.
        """

    def transaction_mark(self, is_reading: bool = False) -> TransactionMark:
        """Return the mark of the open transaction, which may take a number unless it `is_reading`."""

    def unguarded(self) -> AbstractContextManager[None]:
        """Run queries that need no common snapshot, because `mark_after` tells whether tables stayed as they were."""

    def mark_after(self, mark: TransactionMark, queries: int) -> TransactionMark | None:
        """Return the mark of a context `unguarded` that has run nothing but some queries.

        None if anybody may have changed tables between the transaction of `mark` and the end of the last query.
        """

    def insert(self, table: exp.Table, query: exp.Select) -> int:
        """Add the rows of a query to a permanent table; return their number."""

    def load_table(
        self, table: exp.Table, rows: pa.Table, distribution: TableDistribution | None = None
    ) -> TableState | None:
        """Create the table of a tensor from an Arrow table, or replace it; see `replace_table`.

        Returns:
            The table as it is then; None if changes are not recorded.
        """

    def cluster(self) -> Cluster | None:
        """Return the machines that tables are distributed over; None if there is only one."""

    def table_distribution(self, table: exp.Table) -> TableDistribution | None:
        """Return how a table is distributed over machines; None for a view or if one machine has all rows."""

    def arrow(self, statement: exp.Expr | str) -> pa.Table:
        """Run a query and return its result as an Arrow table."""

    def tuples(self, statement: SqlStatement, schema: Schema, count: float) -> pa.Table:
        """Run the query of a statement, and return its tuples, about `count`, as an Arrow table.

        Args:
            statement: The statement, which has no table.
            schema: The schema of the tuples, whose names of columns the database may shorten.
            count: About how many tuples there are.
        """

    def batches(self, statement: exp.Expr | str, rows: int) -> Iterator[pa.Table]:
        """Yield the result of a query in tables of `rows` rows while it is computed: at least one, perhaps empty.

        The connection accepts no other statement until the last batch, or until the generator is closed.
        """

    def columns(self, query: exp.Expr | str) -> list[Column]:
        """Return the columns of a query without running it."""

    def columns_of(self, table: exp.Table) -> list[Column] | None:
        """Return the columns of a table or view; None if it does not exist."""

    def transaction(self) -> AbstractContextManager[None]:
        """Run the statements of the context in a transaction: all of them take effect, or none."""

    def snapshot(self, is_reading: bool = False) -> AbstractContextManager[None]:
        """Run the statements of the context in a transaction in which all see the same data, whoever writes meanwhile.

        This holds for the relations that `check_access` was called for in the context.

        Args:
            is_reading: Whether the statements change no permanent table; then `state_token` may tell more.
        """

    def own_snapshot(self) -> AbstractContextManager[None]:
        """Open a snapshot where it is known that this connection has no transaction, or one that had a snapshot before.

        It takes fewer statements than `snapshot` where an engine must find that out.
        """

    def reading(self) -> AbstractContextManager[None]:
        """Run statements that change no permanent table: `protected`, and in a snapshot if no transaction is open."""

    def protected(self) -> AbstractContextManager[None]:
        """Keep relations that were checked unchanged, and fix what names in this package's SQL refer to.

        The context may be inside a transaction. An engine whose users cannot interfere with each other does nothing.
        """

    def another_connection(self) -> AbstractContextManager[Self]:
        """Open another connection to the same database, which sees committed data even if this connection failed."""

    def registered(self, rows: object, name: str) -> AbstractContextManager[exp.Table]:
        """Make data readable as a table named `name`.

        Args:
            rows: An Arrow table, batches that can be read once, or a relation of this database.
            name: The name of the table.
        """

    def has_relation(self, relation: object) -> bool:
        """Return whether a relation of DuckDB's Python API belongs to this database."""

    def location(self) -> tuple[str, str]:
        """Return the database and the schema in which a table is created if its name has no schema."""

    def catalogue_columns(self, schema: str, name: str) -> Mapping[str, str] | None:
        """Return the columns of a table of the catalogue with their types; None if it does not exist.

        Raises:
            RightsError: It belongs to a role whose triggers and policies the user should not run.
        """

    def check_access(self, accesses: Sequence[RelationAccess]) -> None:
        """Refuse relations that would run other roles' code with the user's rights; keep the rest unchanged.

        Raises:
            RightsError: Names the first such relation and the reason.
            EngineError: A relation cannot be kept unchanged, or was changed already; see `is_conflict`.
        """

    def role_owns(self, role: str | None, table: exp.Table) -> bool:
        """Return whether `table` belongs to the role that recorded it, so that it may be dropped with its tensor."""

    def is_conflict(self, error: EngineError) -> bool:
        """Return whether a transaction failed only because of concurrent writes, so that it can be retried."""

    def grant(self, role: str) -> None:
        """Let a role use the catalogue, which must exist.

        Raises:
            EngineError: There is no such role, or the user may not grant this.
        """

    def is_permission_error(self, error: EngineError) -> bool:
        """Return whether a statement was refused because the user lacks a privilege."""

    def relations_named(self, name: str) -> Sequence[DatabaseRelation]:
        """Return the relations that a name without a schema may refer to; the first is the one that it refers to."""

    def is_out_of_memory_error(self, error: EngineError) -> bool:
        """Return whether a statement failed because memory, or disk space to spill to, ran out."""

    def overflows_float32(self, value: exp.Expr) -> exp.Expr:
        """Return a condition: a finite number of type DOUBLE becomes infinite as a float32."""

    def is_changed_by_cast(self, value: exp.Expr, sql_type: str, dtype: str) -> exp.Expr:
        """Return a condition: `value` of type `sql_type` differs after a cast to `dtype`.

        One of the two types is an integer or Boolean type.
        """

    def memory_limit(self) -> int:
        """Return how many bytes the database may use."""

    def memory_in_use(self) -> int:
        """Return how many bytes of this process the database uses now: none if it is a server."""

    def memory_limited_to(self, limit_bytes: float, threads: int) -> AbstractContextManager[Callable[[float], None]]:
        """Limit the database's memory in this process, and its threads, in the context; a server stays as it is.

        Yields:
            A function that sets another limit, which makes the database return free memory to the system.
        """

    def single_threaded(self) -> AbstractContextManager[None]:
        """Run the statements of the context, which is in a transaction, in one thread that reads tables in order."""

    def measured_progress(self) -> AbstractContextManager[Callable[[], float | None]]:
        """Measure in the context how much of a statement is done.

        Yields:
            A function for other threads, while this one runs a statement: the share that is done, from 0 to 1; None if
            the database does not tell.
        """

    def threads(self) -> int:
        """Return how many threads the database runs statements with."""

    def capacity(self) -> tuple[int, int]:
        """Return what `memory_limit` and `threads` return, in less time."""

    def close(self) -> None:
        """Close the connection if it was opened here."""
