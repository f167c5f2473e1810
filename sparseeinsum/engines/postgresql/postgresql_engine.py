"""Engines: PostgreSQL, through a session of a client or inside the server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.absent_features import OneMachine, ServerMemory
from sparseeinsum.engines.engine import Column, DatabaseRelation
from sparseeinsum.engines.kept_memory import KeptMemory
from sparseeinsum.engines.postgresql import casts, copy_format
from sparseeinsum.engines.postgresql.column_definitions import column_definitions
from sparseeinsum.engines.postgresql.installed_functions import InstalledFunctions, Variant
from sparseeinsum.engines.postgresql.kept_arrays import SessionArrays
from sparseeinsum.engines.postgresql.postgresql_prepared import (
    PostgreSQLSmallQuery,
    PostgreSQLSuppliedTable,
    PostgreSQLWrite,
    mark_after,
    own_tables,
    prepared_query,
    state_token,
    temporary_table,
    transaction_mark,
)
from sparseeinsum.engines.postgresql.read_consistency import ConflictError
from sparseeinsum.engines.postgresql.recorded_changes import change_tokens, start_recording
from sparseeinsum.engines.postgresql.server_roles import ServerRoles
from sparseeinsum.engines.postgresql.sessions import DatabaseSession, Isolation, sqlstate
from sparseeinsum.engines.postgresql.stage_names import shared_stages, temporary_stages
from sparseeinsum.engines.postgresql.table_replacement import create_empty, old_and_new, replace
from sparseeinsum.engines.postgresql.table_statistics import analyze_permanent, analyze_stage
from sparseeinsum.engines.postgresql.transaction_settings import MEMORY, settings_in_effect
from sparseeinsum.engines.postgresql.transactions import PostgreSQLTransactions
from sparseeinsum.engines.postgresql.tuple_values import is_one_value, is_too_large, table_of_value
from sparseeinsum.engines.prepared import PlannedQuery, PreparedQuery, SuppliedTable, TransactionMark
from sparseeinsum.errors import EngineError
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.render.dialects import PORTABLE, POSTGRESQL, Dialect, write_sql
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.render.table_distribution import INLINE_ARRAYS, TableDistribution
from sparseeinsum.statistics.scan_cache import ScanCache, TableState

_CONFLICTS = ("40001", "40P01")  # SQLSTATEs: serialization failure, deadlock
_OUT_OF_MEMORY_OR_DISK = ("53200", "53100")
_MOST_KEY_COLUMNS = 32  # of an index
# The predicted seconds of a plan that is worth workers: their stages are files that the server flushes to the disk.
_WORTH_WORKERS_SECONDS = 0.1
_LEAST_ELEMENTS = 1 << 16  # of arrays of a result, from which on they are sent as bytes


class PostgreSQLEngine(OneMachine, ServerMemory, ServerRoles):
    """A connection to a PostgreSQL database that has the functions of this package."""

    title = "PostgreSQL"
    dialect: Dialect = POSTGRESQL
    _transactions_type = PostgreSQLTransactions

    def __init__(self, session: DatabaseSession, functions: InstalledFunctions, keeps_arrays: bool = False) -> None:
        """Use a session whose database has the functions; `keeps_arrays` lets its process keep arrays between runs."""
        self._session = session
        self._functions = functions
        if functions.variant == Variant.PORTABLE:
            self.dialect = PORTABLE
        self._transactions = self._transactions_type(session, functions.schema)
        self.scans = ScanCache()
        self.kept_memory: KeptMemory | None = None
        if keeps_arrays and functions.variant == Variant.EXTENSION:
            arrays = SessionArrays(session, functions.schema)
            self.kept_memory = KeptMemory(lambda: arrays, outlives_connection=False, keeps_together=False)

    @property
    def place(self) -> str:
        """Where the database is: its name and its server."""
        return self._session.place

    @property
    def connection(self) -> Any:  # noqa: ANN401  # each driver has a type of its own
        """The open connection of psycopg; inside the server, the module plpy."""
        return self._session.connection

    @property
    def dialect_name(self) -> str:
        """The name of the SQL dialect."""
        return self.dialect.name

    @property
    def constants_name(self) -> str:
        """The name of the cost model's constants: portable functions are far slower than those of the extension."""
        return self._functions.variant

    def rows(self, statement: exp.Expr | str) -> Sequence[tuple[object, ...]]:
        """Run a query and return all its rows."""
        return self._session.fetch(self._text(statement))

    def execute(self, statement: exp.Expr | str) -> None:
        """Run a statement and ignore its rows."""
        self._write(statement)

    def _write(self, statement: exp.Expr | str) -> int:
        """Run a statement; return how many rows it wrote."""
        return self._session.write(self._text(statement))

    def _text(self, statement: exp.Expr | str) -> str:
        return statement if isinstance(statement, str) else write_sql(statement, self.dialect)

    def create_temporary(self, table: exp.Table, query: exp.Select) -> int:
        """Create a table for the duration of a run from a query; return the number of its rows.

        CREATE TABLE AS lets parallel workers compute the rows, which PostgreSQL does for no INSERT.
        """
        is_temporary = table.db == self.dialect.temporary_schema
        kind = exp.TemporaryProperty() if is_temporary else exp.UnloggedProperty()
        properties = exp.Properties(expressions=[kind, INLINE_ARRAYS.copy()])
        tuples = self._write(exp.Create(this=table.copy(), kind="TABLE", properties=properties, expression=query))
        self._analyze_stage(table, query)
        return tuples

    def _analyze_stage(self, table: exp.Table, query: exp.Select) -> None:
        analyze_stage(self, self._transactions.set_local, table, query)

    def _analyze_permanent(self, table: exp.Table, columns: Sequence[Column]) -> None:
        analyze_permanent(self, self._transactions.set_local, table, columns)

    def _stored_columns(self, columns: Sequence[Column], distribution: TableDistribution | None) -> Sequence[Column]:
        """Return the columns of a table for the rows of a query that has `columns`."""
        return columns

    def _create_permanent(
        self, table: exp.Table, columns: Sequence[Column], distribution: TableDistribution | None
    ) -> None:
        """Create a table without rows, on machines as `distribution` says."""
        create_empty(self, table, columns)

    def stage(self, statement: SqlStatement) -> int:
        """Run a statement that stores its rows in a stage; return their number."""
        assert statement.stage is not None
        tuples = self.create_temporary(statement.stage, statement.query)
        tuples += sum(self._write(exp.insert(query, statement.stage.copy())) for query in statement.passes)
        if statement.passes:
            self._analyze_stage(statement.stage, statement.query)
        return tuples

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

        Columns in `key`, if they identify a row and an index can have as many, become the primary key.
        """
        old, new = old_and_new(self, table)
        columns = self._stored_columns(self.columns(query), distribution)
        self._create_permanent(new, columns, distribution)
        tuples = sum(self._write(exp.insert(rows, new.copy())) for rows in (query, *passes))
        if self._replace(old, new, columns) and 0 < len(key) <= _MOST_KEY_COLUMNS:
            unique = exp.PrimaryKey(expressions=[exp.to_identifier(column) for column in key])
            added = exp.AddConstraint(expressions=[unique])
            self.execute(exp.Alter(this=old.copy(), kind="TABLE", actions=[added]))
        if records_changes:
            self._start_recording(old)
        return tuples

    def _start_recording(self, table: exp.Table) -> TableState | None:
        return None if self.dialect.distributes else start_recording(self._session, table)

    def _replace(self, old: exp.Table, new: exp.Table, columns: Sequence[Column]) -> bool:
        return replace(self, self._session, old, new, columns, partial(self._analyze_permanent, columns=columns))

    def change_tokens(self, tables: Sequence[exp.Table]) -> list[object]:
        """Return a value for every table that differs after every change of it; None if changes are not recorded."""
        return [None] * len(tables) if self.dialect.distributes else change_tokens(self._session, tables)

    def state_token(self) -> object:
        """Return the number of the next transaction that writes, if no other one is open; see `Engine.state_token`."""
        return state_token(self._session)

    def own_tables(self) -> frozenset[tuple[str, str]]:
        """Return the schemas and names of the tables of this database alone."""
        return own_tables(self._session)

    def supplied_table(self, name: str, rows: pa.Table) -> PostgreSQLSuppliedTable:
        """Make a temporary table whose rows the client supplies; those of `rows` at first."""
        return PostgreSQLSuppliedTable(self._session, exp.table_(name, db=self.dialect.temporary_schema), rows)

    def prepared_query(
        self, name: str, query: exp.Select | str, supplied: Sequence[SuppliedTable] = (), is_small: bool = False
    ) -> PreparedQuery:
        """Prepare a query that is small; COPY, which returns the results of others, takes no prepared statement."""
        tables = [table for table in supplied if isinstance(table, PostgreSQLSuppliedTable)]
        return prepared_query(self._session, query, tables, is_small)

    def prepared_tuples(
        self,
        name: str,
        statement: SqlStatement,
        schema: Schema,
        count: float,
        supplied: Sequence[SuppliedTable],
        is_small: bool,
    ) -> PreparedQuery:
        """Prepare the query of a statement if it is small; the tuples of others are returned as `tuples` does it."""
        query = self.prepared_query(name, statement.query, supplied, is_small)
        if isinstance(query, PostgreSQLSmallQuery):
            return query
        return PlannedQuery(
            partial(self.tuples, statement, schema, count), query.reads_filled_tables, query.takes_one_number
        )

    def prepared_write(self, name: str, statement: str) -> PostgreSQLWrite:
        """Return the statement as it is, which the server plans for the present sizes of tables."""
        return PostgreSQLWrite(self._session, statement)

    def optimize(self, enabled: bool) -> bool:
        """Return True, and change nothing: the server optimises all statements."""
        return True

    def empty_table(self, table: exp.Table) -> None:
        """Remove all rows of a table, and the space that they and earlier rows take."""
        self.execute(f"TRUNCATE {table.sql(self.dialect_name)}")

    free_rows = empty_table  # at once for a table that the transaction created

    @contextmanager
    def claimed(self, purpose: str) -> Iterator[bool]:
        """Claim a purpose in the context by an advisory lock, which ends with the session at the latest."""
        key = "pg_catalog.hashtextextended($1, 0)"
        ((is_free,),) = self._session.fetch(f"SELECT pg_catalog.pg_try_advisory_lock({key})", purpose)
        try:
            yield bool(is_free)
        finally:
            if is_free:
                self._session.fetch(f"SELECT pg_catalog.pg_advisory_unlock({key})", purpose)

    def transaction_mark(self, is_reading: bool = False) -> TransactionMark:
        """Return the mark of the open transaction, which counts from now on as one that writes unless it reads."""
        return transaction_mark(self._session, is_reading)

    def unguarded(self) -> AbstractContextManager[None]:
        """Run queries in a transaction, as they need settings; each of them sees what is committed by then."""
        return self._transactions.transaction(Isolation.READ_COMMITTED)

    def mark_after(self, mark: TransactionMark, queries: int) -> TransactionMark | None:
        """Return the mark of a context `unguarded`; None if anybody may have written since that of `mark`."""
        return mark_after(self._session, mark)

    def insert(self, table: exp.Table, query: exp.Select) -> int:
        """Add the rows of a query to a permanent table; return their number."""
        tuples = self._write(exp.insert(query, table.copy()))
        self._analyze_permanent(table, self.columns(query))
        return tuples

    def load_table(
        self, table: exp.Table, rows: pa.Table, distribution: TableDistribution | None = None
    ) -> TableState | None:
        """Create a permanent table from an Arrow table, or replace the table of that name."""
        old, new = old_and_new(self, table)
        columns = [Column(field.name, copy_format.sql_type(field.type)) for field in rows.schema]
        self._create_permanent(new, columns, distribution)
        self._session.load(rows, new.sql(self.dialect_name))
        self._replace(old, new, columns)
        return self._start_recording(old)

    def arrow(self, statement: exp.Expr | str) -> pa.Table:
        """Run a query and return its result as an Arrow table."""
        return self._session.read(self._text(statement))

    def tuples(self, statement: SqlStatement, schema: Schema, count: float) -> pa.Table:
        """Run the query of a statement, and return its tuples as an Arrow table."""
        has_bytes = self._functions.variant == Variant.EXTENSION and not self.dialect.distributes
        if has_bytes and is_one_value(schema, count):
            query = statement.value_text(schema)
            try:
                with self._session.transaction():  # a savepoint
                    item_bytes = ITEM_BYTES[schema.tensor.dtype] if query.is_array else 1
                    value = self._session.read_bytes(query.text, item_bytes)
                return table_of_value(value, schema, query.row_keys)
            except EngineError as error:
                if not is_too_large(error):
                    raise
        is_large = not schema.is_scalar and count * schema.list_length >= _LEAST_ELEMENTS
        return self._session.read(statement.text, arrays_as_bytes=has_bytes and is_large)

    def batches(self, statement: exp.Expr | str, rows: int) -> Iterator[pa.Table]:
        """Yield the result of a query in tables of `rows` rows while it is computed: at least one, perhaps empty."""
        return self._session.batches(self._text(statement), rows)

    def columns_of(self, table: exp.Table) -> list[Column] | None:
        """Return the columns of a table or view, by default in the schema for new tables; None if it does not exist."""
        qualified, _ = old_and_new(self, table)
        ((oid,),) = self._session.fetch("SELECT pg_catalog.to_regclass($1)", qualified.sql(self.dialect_name))
        return None if oid is None else self.columns(exp.select("*").from_(qualified))

    def columns(self, query: exp.Expr | str) -> list[Column]:
        """Return the columns of a query without running it."""
        return self._session.columns(self._text(query))

    def column_definitions(self, query: exp.Expr | str) -> str:
        """Return the columns of a query as functions that return records need them: `i bigint, val real`."""
        return column_definitions(self._session, self.columns(query), self.dialect_name)

    def snapshot(self, is_reading: bool = False) -> AbstractContextManager[None]:
        """Run statements in a transaction in which all see the same data; PostgreSQL tells what it has written."""
        return self._transactions.snapshot()

    def own_snapshot(self) -> AbstractContextManager[None]:
        """Open a snapshot; the driver knows whether a transaction is open."""
        return self.snapshot()

    def transaction(self) -> AbstractContextManager[None]:
        """Run the statements of the context in a transaction, or in a savepoint of one that is open."""
        return self._transactions.transaction()

    def settings(self) -> Mapping[str, str]:
        """Return the settings that this package's SQL needs, with their values in the open transaction."""
        return settings_in_effect(self._session)

    def reading(self) -> AbstractContextManager[None]:
        """Run statements that change no permanent table."""
        return self.protected()

    def protected(self) -> AbstractContextManager[None]:
        """Keep relations that were checked unchanged, and fix what names in this package's SQL refer to."""
        return self._transactions.protected()

    @contextmanager
    def another_connection(self) -> Iterator["PostgreSQLEngine"]:
        """Open another connection to the same database, which sees committed data even if this connection failed."""
        with self._session.another_connection() as session:
            yield PostgreSQLEngine(session, self._functions)

    @contextmanager
    def registered(self, rows: object, name: str) -> Iterator[exp.Table]:
        """Copy an Arrow table, or batches, into a temporary table named `name`, which is dropped at the end."""
        assert isinstance(rows, pa.Table | pa.RecordBatchReader)
        table = exp.table_(name, db=self.dialect.temporary_schema)
        with self._session.transaction():
            self.execute(temporary_table(table, rows.schema))
            self._session.load(rows, table.sql(self.dialect_name))
            yield table
            self.execute(exp.Drop(tables=[table.copy()], kind="TABLE"))

    def has_relation(self, relation: object) -> bool:
        """Return False: relations of DuckDB's Python API belong to DuckDB."""
        return False

    def stage_namer(self, seconds: float) -> Callable[[str], exp.Table]:
        """Return a function that names the stages of a plan; `seconds` is the plan's predicted time.

        Parallel workers cannot read temporary tables, so that a plan that takes long has unlogged tables instead.
        """
        needs_workers = seconds >= _WORTH_WORKERS_SECONDS and self.threads() > 1
        shared = shared_stages(self._session, self._transactions.user_path.first) if needs_workers else None
        return shared or temporary_stages(self.dialect.temporary_schema)

    def location(self) -> tuple[str, str]:
        """Return the database and the schema in which a table is created if its name has no schema.

        Raises:
            EngineError: No schema of the search_path exists.
        """
        schema = self._transactions.user_path.first
        if schema is None:
            raise EngineError("no schema on the search_path exists, so that there is nowhere to create tables; set one")
        ((database,),) = self.rows("SELECT pg_catalog.current_database()")
        return str(database), schema

    def is_conflict(self, error: EngineError) -> bool:
        """Return whether an own transaction failed only because of concurrent writes."""
        is_conflict = isinstance(error, ConflictError) or sqlstate(error) in _CONFLICTS
        return is_conflict and not self._session.is_in_transaction()

    def relations_named(self, name: str) -> Sequence[DatabaseRelation]:
        """Return the relations that a name without a schema may refer to; the first is the one that it refers to."""
        return self._transactions.user_path.relations_named(self._session, name)

    def is_out_of_memory_error(self, error: EngineError) -> bool:
        """Return whether a statement failed because memory, or disk space to spill to, ran out."""
        return sqlstate(error) in _OUT_OF_MEMORY_OR_DISK

    def overflows_float32(self, value: exp.Expr) -> exp.Expr:
        """Return a condition: a finite number of type DOUBLE becomes infinite as a float32."""
        return casts.overflows_float32(value)

    def is_changed_by_cast(self, value: exp.Expr, sql_type: str, dtype: str) -> exp.Expr:
        """Return a condition: `value` of type `sql_type` differs after a cast to `dtype`."""
        return casts.is_changed_by_cast(value, dtype)

    def memory_limit(self) -> int:
        """Return how many bytes of memory the server is configured to expect (effective_cache_size)."""
        ((size,),) = self.rows(f"SELECT pg_size_bytes(current_setting('{MEMORY}'))")
        return int(str(size))

    def single_threaded(self) -> AbstractContextManager[None]:
        """Run the statements of the context in one process, with scans that begin at the beginning of the table."""
        return self._transactions.single_threaded()

    def threads(self) -> int:
        """Return how many processes a query may run in."""
        ((workers,),) = self.rows("SELECT current_setting('max_parallel_workers_per_gather')")
        return int(str(workers)) + 1

    def close(self) -> None:
        """Close the connection if it was opened here."""
        if self.kept_memory is not None:
            self.kept_memory.release_all()
        self._session.close()
