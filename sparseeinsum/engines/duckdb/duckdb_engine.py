"""Engines: DuckDB, embedded in this process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import duckdb
import pyarrow as pa
from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.absent_features import NoRoles, OneMachine
from sparseeinsum.engines.byte_sizes import parse_bytes
from sparseeinsum.engines.duckdb import casts
from sparseeinsum.engines.duckdb.arrow_batches import batch_rows
from sparseeinsum.engines.duckdb.claims import claimed_in_process
from sparseeinsum.engines.duckdb.collected_tuples import ELEMENT_BYTES, table_in_memory, text_in_memory
from sparseeinsum.engines.duckdb.duckdb_prepared import (
    DuckDBAdaptingQuery,
    DuckDBCollectedQuery,
    DuckDBPreparedQuery,
    DuckDBPreparedWrite,
    DuckDBSuppliedTable,
    RepeatedQueries,
)
from sparseeinsum.engines.duckdb.fetched_tables import MOST_FETCHED, fetched_table
from sparseeinsum.engines.duckdb.freed_rows import free_rows
from sparseeinsum.engines.duckdb.query_optimizer import optimize, optimized_unless
from sparseeinsum.engines.duckdb.query_progress import measured_progress
from sparseeinsum.engines.duckdb.recorded_changes import (
    can_record_changes,
    change_tokens,
    recorded_table,
    start_recording,
)
from sparseeinsum.engines.duckdb.registered_views import registered_view
from sparseeinsum.engines.duckdb.relations import catalogue_columns, has_relation, own_tables, relations_named
from sparseeinsum.engines.duckdb.settings import DuckDBSettings
from sparseeinsum.engines.duckdb.table_replacement import empty_table, replace_in_passes
from sparseeinsum.engines.duckdb.transactions import CAPACITY, DuckDBTransactions
from sparseeinsum.engines.duckdb.translated_errors import translated_errors
from sparseeinsum.engines.engine import Column, DatabaseRelation
from sparseeinsum.engines.kept_memory import KeptMemory
from sparseeinsum.engines.prepared import PlannedQuery, PreparedQuery, SuppliedTable, TransactionMark
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import EngineError
from sparseeinsum.kernels.duckdb.library import require_library
from sparseeinsum.kernels.duckdb.sql_functions import REQUEST_FUNCTION
from sparseeinsum.render.dialects import DUCKDB, Dialect, write_sql
from sparseeinsum.render.sql_statement import SqlStatement, create_table_as
from sparseeinsum.render.table_distribution import TableDistribution
from sparseeinsum.statistics.scan_cache import ScanCache, TableState

_ROWS = temporary_name("rows")


class DuckDBEngine(OneMachine, NoRoles):
    """A connection to a DuckDB database that has the functions of this package."""

    title = "DuckDB"
    dialect: Dialect = DUCKDB
    is_server: bool = False

    def __init__(self, connection: duckdb.DuckDBPyConnection, is_owned: bool, place: str = "") -> None:
        self.connection = connection
        self.place = place
        self._is_owned = is_owned
        self.scans = ScanCache()
        self._settings = DuckDBSettings(self.rows, self.another_connection)
        self._repeated = RepeatedQueries(connection)
        self._transactions = DuckDBTransactions(connection, self._repeated.rows, self.execute)
        self.kept_memory = KeptMemory(require_library)

    @property
    def dialect_name(self) -> str:
        """The name of the SQL dialect."""
        return self.dialect.name

    @property
    def constants_name(self) -> str:
        """The name under which the constants of the cost model are calibrated and stored."""
        return self.dialect.name

    def rows(self, statement: exp.Expr | str) -> Sequence[tuple[object, ...]]:
        """Run a query and return all its rows."""
        with translated_errors(statement) as text:
            return self.connection.execute(text).fetchall()

    def execute(self, statement: exp.Expr | str) -> None:
        """Run a statement and ignore its rows."""
        with translated_errors(statement) as text:
            self.connection.execute(text)

    def arrow(self, statement: exp.Expr | str, row_bytes: int = 0) -> pa.Table:
        """Run a query and return its result as an Arrow table; it takes least time if rows have about so many bytes."""
        with translated_errors(statement) as text:
            return self.connection.sql(text).to_arrow_table(batch_rows(row_bytes))

    def tuples(self, statement: SqlStatement, schema: Schema, count: float) -> pa.Table:
        """Run the query of a statement, and return its tuples, about `count`, as an Arrow table."""
        text = text_in_memory(statement, schema, count)
        if text is None and count > MOST_FETCHED:
            return self.arrow(statement.text, ELEMENT_BYTES * schema.list_length)
        if text is None:
            with translated_errors(statement.text) as query:
                return fetched_table(self.connection.execute(query))
        ((handle,),) = self.rows(text)
        return table_in_memory(require_library(), None if handle is None else int(str(handle)), schema)

    def batches(self, statement: exp.Expr | str, rows: int) -> Iterator[pa.Table]:
        """Yield the result of a query in tables of `rows` rows while it is computed: at least one, perhaps empty."""
        with translated_errors(statement) as text:
            reader = self.connection.sql(text).to_arrow_reader(rows)
        try:
            yield reader.schema.empty_table()
            while True:
                with translated_errors(text):
                    batch = next(reader, None)
                if batch is None:
                    return
                yield pa.Table.from_batches([batch])
        finally:
            reader.close()  # or the connection would stay busy

    def create_temporary(self, table: exp.Table, query: exp.Select) -> int:
        """Create a temporary table from a query; return the number of its rows."""
        return self._written_rows(create_table_as(table, query))

    def stage(self, statement: SqlStatement) -> int:
        """Run a statement that stores its rows in a stage; return their number."""
        return sum(map(self._written_rows, statement.texts))

    def replace_table(
        self,
        table: exp.Table,
        query: exp.Select,
        key: Sequence[str] = (),
        distribution: TableDistribution | None = None,
        records_changes: bool = False,
        passes: Sequence[exp.Select] = (),
    ) -> int:
        """Create a permanent table from a query, or replace the table of that name; return the number of rows.

        `key` is ignored: no plan would use the index, and to build it takes memory and several times as long.
        """
        if passes:
            return replace_in_passes(self, table, (query, *passes))
        if records_changes and can_record_changes(self.rows):
            return self._replace_recorded(table, write_sql(query, self.dialect))[0]
        return self._written_rows(exp.Create(this=table.copy(), kind="TABLE", expression=query, replace=True))

    def _replace_recorded(self, table: exp.Table, query: str) -> tuple[int, TableState]:
        """Replace a table whose changes are recorded; return the number of its rows and what it is then."""
        self.execute(recorded_table(table, self.columns(query)))
        written = self._written_rows(f"INSERT INTO {table.sql(self.dialect_name)} {query}")
        return written, start_recording(self.rows, table)

    def insert(self, table: exp.Table, query: exp.Select) -> int:
        """Add the rows of a query to a permanent table; return their number."""
        return self._written_rows(exp.insert(query, table.copy()))

    def load_table(
        self, table: exp.Table, rows: pa.Table, distribution: TableDistribution | None = None
    ) -> TableState | None:
        """Create a permanent table from an Arrow table, or replace the table of that name."""
        with registered_view(self.connection, rows, _ROWS):
            if can_record_changes(self.rows):
                return self._replace_recorded(table, f"SELECT * FROM {_ROWS}")[1]
            self.replace_table(table, exp.select("*").from_(_ROWS))
            return None

    def change_tokens(self, tables: Sequence[exp.Table]) -> list[object]:
        """Return a value for every table that differs after every change of it; None if changes are not recorded."""
        if not tables:
            return []
        tokens = change_tokens(self._repeated.rows, self._transactions.database or self.location()[0])
        return [tokens.get((table.db, table.name)) for table in tables]

    def supplied_table(self, name: str, rows: pa.Table) -> DuckDBSuppliedTable:
        """Make a relation of this connection whose rows the client supplies; those of `rows` at first."""
        with translated_errors(f"-- supply {name}"):
            return DuckDBSuppliedTable(self.connection, name, rows)

    def prepared_query(
        self, name: str, query: exp.Select | str, supplied: Sequence[SuppliedTable] = (), is_small: bool = False
    ) -> DuckDBPreparedQuery:
        """Prepare a query under a name that no other one of this connection has."""
        text = query if isinstance(query, str) else write_sql(query, self.dialect)
        with optimized_unless(self.connection, is_small):
            return DuckDBPreparedQuery(self.connection, name, text)

    def prepared_tuples(
        self,
        name: str,
        statement: SqlStatement,
        schema: Schema,
        count: float,
        supplied: Sequence[SuppliedTable],
        is_small: bool,
    ) -> PreparedQuery:
        """Prepare the query of a statement that returns about `count` tuples; see `Engine.prepared_tuples`."""

        def planned(rows: float) -> PlannedQuery:
            rows_of_run = partial(self.tuples, statement, schema, rows)
            return PlannedQuery(rows_of_run, reads_filled_tables=False, takes_one_number=False)

        if schema.is_scalar and count > MOST_FETCHED:
            return planned(count)
        text = text_in_memory(statement, schema, count)
        if text is None:
            prepared = self.prepared_query(name, statement.text, supplied, is_small)
            return DuckDBAdaptingQuery(prepared, MOST_FETCHED, planned)
        with optimized_unless(self.connection, is_small):
            return DuckDBCollectedQuery(self.connection, name, text, schema)

    def prepared_write(self, name: str, statement: str) -> DuckDBPreparedWrite:
        """Prepare an INSERT, UPDATE or DELETE under a name that no other statement of this connection has."""
        return DuckDBPreparedWrite(self.connection, name, statement)

    def optimize(self, enabled: bool) -> bool:
        """Optimise statements of this connection, or run them as they are written; return whether it did before."""
        return optimize(self.connection, enabled)

    def empty_table(self, table: exp.Table) -> None:
        """Replace a table by an empty one: a scan reads rows that DELETE has removed."""
        empty_table(self, table)

    def free_rows(self, table: exp.Table) -> None:
        """Free what the rows of a table take: DROP and DELETE would do so only when the transaction ends."""
        free_rows(table, self.columns_of(table) or (), self.execute)

    def claimed(self, purpose: str) -> AbstractContextManager[bool]:
        """Claim a purpose in the context: all connections to a database that is written to are in this process."""
        ((number,),) = self.rows(f'SELECT {REQUEST_FUNCTION}(\'{{"question": "number"}}\')')
        return claimed_in_process((str(number), purpose))

    def stage_namer(self, seconds: float) -> Callable[[str], exp.Table]:
        """Return a function that names the stages of a plan."""
        schema = self.dialect.temporary_schema
        return lambda name: exp.table_(exp.to_identifier(temporary_name(name)), db=exp.to_identifier(schema))

    def _written_rows(self, statement: exp.Expr | str) -> int:
        """Run a statement; return how many rows it wrote."""
        ((tuples,),) = self.rows(statement)
        return int(str(tuples))

    def columns(self, query: exp.Expr | str) -> list[Column]:
        """Return the columns of a query without running it."""
        with translated_errors(query) as text:
            relation = self.connection.sql(text)
            return [
                Column(name, str(sql_type)) for name, sql_type in zip(relation.columns, relation.types, strict=True)
            ]

    def columns_of(self, table: exp.Table) -> list[Column] | None:
        """Return the columns of a table or view; None if it does not exist."""
        with translated_errors(f"-- look for {table}"):
            exists = has_relation(self.connection, table)
        return self.columns(exp.select("*").from_(table.copy())) if exists else None

    def state_token(self) -> object:
        """Return the token of the open reading transaction; None if there is none."""
        return self._transactions.state_token

    def own_tables(self) -> frozenset[tuple[str, str]]:
        """Return the schemas and names of the tables of this database alone."""
        return own_tables(self.connection)

    def transaction_mark(self, is_reading: bool = False) -> TransactionMark:
        """Return the mark of the open transaction."""
        return self._transactions.mark()

    def unguarded(self) -> AbstractContextManager[None]:
        """Run every query in a transaction of its own."""
        return self.protected()

    def mark_after(self, mark: TransactionMark, queries: int) -> TransactionMark | None:
        """Return the mark of a context `unguarded`; None if anybody may have changed tables since that of `mark`."""
        return self._transactions.mark_after(mark, queries)

    def transaction(self) -> AbstractContextManager[None]:
        """Run the statements of the context in a transaction: all of them take effect, or none.

        Raises:
            EngineError: A transaction is open; as DuckDB has no savepoints, an error in the context would undo it.
        """
        return self._transactions.transaction()

    def snapshot(self, is_reading: bool = False) -> AbstractContextManager[None]:
        """Open a transaction: all its statements see the data of the time when it began."""
        return self._transactions.snapshot(is_reading)

    def own_snapshot(self) -> AbstractContextManager[None]:
        """Open a transaction without finding out whether one is open."""
        return self._transactions.own_snapshot()

    def reading(self) -> AbstractContextManager[None]:
        """Run the statements of the context in a snapshot if no transaction is open."""
        return self._transactions.reading()

    def protected(self) -> AbstractContextManager[None]:
        """React to Ctrl-C at once in the context; a database without roles needs no other protection."""
        return self._transactions.protected()

    @contextmanager
    def another_connection(self) -> Iterator["DuckDBEngine"]:
        """Open another connection to the same database, which sees committed data even if this connection failed."""
        with translated_errors("-- open another connection"):
            cursor = self.connection.cursor()
        try:
            yield DuckDBEngine(cursor, is_owned=False, place=self.place)
        finally:
            cursor.close()

    @contextmanager
    def registered(self, rows: object, name: str) -> Iterator[exp.Table]:
        """Make an Arrow table, batches or a relation of this database readable as a table named `name`.

        Batches, which can be read only once, are copied into a temporary table.
        """
        if isinstance(rows, pa.RecordBatchReader):
            table = exp.table_(name, db=self.dialect.temporary_schema)
            with registered_view(self.connection, rows, _ROWS):
                self.create_temporary(table, exp.select("*").from_(_ROWS))
            yield table
            self.execute(exp.Drop(tables=[table.copy()], kind="TABLE"))
            return
        with registered_view(self.connection, rows, name):
            yield exp.table_(name)

    def has_relation(self, relation: object) -> bool:
        """Return whether a relation of DuckDB's Python API belongs to this database."""
        try:
            with registered_view(self.connection, relation, _ROWS):
                return True
        except EngineError:
            return False

    def location(self) -> tuple[str, str]:
        """Return the database and the schema in which a table is created if its name has no schema."""
        ((database, schema),) = self.rows("SELECT current_database(), current_schema()")
        return str(database), str(schema)

    def catalogue_columns(self, schema: str, name: str) -> Mapping[str, str] | None:
        """Return the columns of a table of the catalogue with their types; None if it does not exist."""
        with translated_errors("-- look for a table"):
            return catalogue_columns(self.connection, schema, name, self._transactions.database)

    def is_conflict(self, error: EngineError) -> bool:
        """Return False: a transaction that conflicted would conflict again."""
        return False

    def relations_named(self, name: str) -> Sequence[DatabaseRelation]:
        """Return the relations that a name without a schema may refer to; the first is the one that it refers to."""
        with translated_errors(f"-- look for {name}"):
            return relations_named(self.connection, name)

    def is_out_of_memory_error(self, error: EngineError) -> bool:
        """Return whether a statement failed because memory, or disk space to spill to, ran out."""
        return isinstance(error.__cause__, duckdb.OutOfMemoryException)

    def overflows_float32(self, value: exp.Expr) -> exp.Expr:
        """Return a condition: a finite number of type DOUBLE becomes infinite as a float32."""
        return casts.overflows_float32(value)

    def is_changed_by_cast(self, value: exp.Expr, sql_type: str, dtype: str) -> exp.Expr:
        """Return a condition: `value` of type `sql_type` differs after a cast to `dtype`."""
        return casts.is_changed_by_cast(value, sql_type, dtype)

    def memory_limit(self) -> int:
        """Return how many bytes the database may use."""
        return parse_bytes(self._settings.read("memory_limit"))

    def capacity(self) -> tuple[int, int]:
        """Return what `memory_limit` and `threads` return, by one query."""
        limit, threads = self._transactions.capacity or self._settings.read_all(CAPACITY)
        return parse_bytes(limit), int(threads)

    def memory_limited_to(self, limit_bytes: float, threads: int) -> AbstractContextManager[Callable[[float], None]]:
        """Limit the memory of the database in bytes, and the number of its threads, in the context.

        Yields:
            A function that sets another limit, on which DuckDB returns free memory to the system.
        """
        self._transactions.forget_capacity()
        return self._settings.limited(limit_bytes, threads)

    def single_threaded(self) -> AbstractContextManager[None]:
        """Run the statements of the context in one thread.

        Raises:
            EngineError: The process lends the database several threads (`external_threads`).
        """
        self._transactions.forget_capacity()
        return self._settings.single_threaded()

    def memory_in_use(self) -> int:
        """Return how many bytes of this process the database uses now."""
        ((used,),) = self.rows("SELECT SUM(memory_usage_bytes)::BIGINT FROM duckdb_memory()")
        return int(str(used))

    def measured_progress(self) -> AbstractContextManager[Callable[[], float | None]]:
        """Measure in the context how much of a statement is done."""
        return measured_progress(self.connection)

    def threads(self) -> int:
        """Return how many threads the database runs statements with."""
        return int(self._settings.read("threads"))

    def close(self) -> None:
        """Close the connection if it was opened here."""
        self.kept_memory.release_all()
        if self._is_owned:
            self.connection.close()
