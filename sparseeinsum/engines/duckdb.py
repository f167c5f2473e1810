"""Engines: DuckDB, embedded in this process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa
from sqlglot import exp

from sparseeinsum import assets
from sparseeinsum.engines.engine import Column, Relation, RelationAccess
from sparseeinsum.engines.interrupts import interruptible
from sparseeinsum.engines.statement_text import check_text
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import EngineError
from sparseeinsum.kernels.duckdb.library import require_library, stop_kernels
from sparseeinsum.render.dialects import DUCKDB, Dialect, write_sql
from sparseeinsum.render.statements import Statement, create_table_as
from sparseeinsum.render.table_distribution import TableDistribution
from sparseeinsum.statistics.columns import number_type, stored_type, type_named

_PROBE = "SELECT tensor_norm([1::DOUBLE])"
_ROWS = temporary_name("rows")
_INTERRUPTED = "Query interrupted"

# Where memory is short, a larger piece is got only once what is free has gone back to the system; by default 512 MiB.
_FLUSHED_BYTES = 4_000_000
_FLUSHING = "allocator_bulk_deallocation_flush_threshold"


class DuckDB:
    """A connection to a DuckDB database that has the functions of this package."""

    title = "DuckDB"
    dialect: Dialect = DUCKDB

    def __init__(self, connection: duckdb.DuckDBPyConnection, is_owned: bool) -> None:
        self.connection = connection
        self._is_owned = is_owned

    @property
    def dialect_name(self) -> str:
        """Name of the SQL dialect."""
        return self.dialect.name

    @property
    def constants_name(self) -> str:
        """Name of the constants of its costs."""
        return self.dialect.name

    def rows(self, statement: exp.Expr | str) -> Sequence[tuple[object, ...]]:
        """All rows of a query."""
        with self._errors(statement) as text:
            return self.connection.execute(text).fetchall()

    def execute(self, statement: exp.Expr | str) -> None:
        """Run a statement whose rows do not matter."""
        with self._errors(statement) as text:
            self.connection.execute(text)

    def cluster(self) -> None:
        """None: there is one machine."""

    def spread_of(self, table: exp.Table) -> None:
        """None: one machine has all tables."""

    def arrow(self, statement: exp.Expr | str) -> pa.Table:
        """The result of a query as an Arrow table."""
        with self._errors(statement) as text:
            return self.connection.sql(text).to_arrow_table()

    def batches(self, statement: exp.Expr | str, rows: int) -> Iterator[pa.Table]:
        """The result of a query while it is computed, so many rows at once; one table at least, which may be empty."""
        with self._errors(statement) as text:
            reader = self.connection.sql(text).to_arrow_reader(rows)
        try:
            yield reader.schema.empty_table()
            while True:
                with self._errors(text):
                    batch = next(reader, None)
                if batch is None:
                    return
                yield pa.Table.from_batches([batch])
        finally:
            reader.close()  # or the connection would stay busy

    def create_temporary(self, table: exp.Table, query: exp.Select) -> int:
        """Create a temporary table from a query; returns its rows."""
        return self._count(create_table_as(table, query))

    def stage(self, statement: Statement) -> int:
        """Run a statement that keeps its rows in a temporary table; returns how many there are."""
        return sum(map(self._count, statement.texts))

    def replace_table(
        self, table: exp.Table, query: exp.Select, key: Sequence[str] = (), spread: TableDistribution | None = None
    ) -> int:
        """Create a permanent table from a query, which may read a table of that name that it replaces; its rows.

        The key is left out: no plan would use its index, which takes memory, and several times as long to build.
        """
        return self._count(exp.Create(this=table.copy(), kind="TABLE", expression=query, replace=True))

    def insert(self, table: exp.Table, query: exp.Select) -> int:
        """Add the rows of a query to a permanent table; returns how many."""
        return self._count(exp.insert(query, table.copy()))

    def load_table(self, table: exp.Table, rows: pa.Table, spread: TableDistribution | None = None) -> None:
        """Create a permanent table from an Arrow table, in place of one of that name."""
        with self._registered_view(rows, _ROWS):
            self.replace_table(table, exp.select("*").from_(_ROWS))

    def stage_namer(self, seconds: float) -> Callable[[str], exp.Table]:
        """Names temporary tables that keep results while a plan runs."""
        schema = self.dialect.temporary_schema
        return lambda name: exp.table_(exp.to_identifier(temporary_name(name)), db=exp.to_identifier(schema))

    def _count(self, statement: exp.Expr | str) -> int:
        """Run a statement; returns the rows that it wrote."""
        ((tuples,),) = self.rows(statement)
        return int(str(tuples))

    def columns(self, query: exp.Expr | str) -> list[Column]:
        """Columns of a query; it is not run."""
        with self._errors(query) as text:
            described = self.connection.sql(text)
            return [Column(name, str(kind)) for name, kind in zip(described.columns, described.types, strict=True)]

    def columns_of(self, table: exp.Table) -> list[Column] | None:
        """Columns of a table or view; None where there is none of that name."""
        with self._errors(f"-- look for {table}"):
            schema, catalog = table.db, table.catalog
            found = self.connection.execute(
                assets.read("sql/duckdb/has_relation.sql"),
                {"name": table.name, "schema": schema or None, "catalog": catalog or None},
            ).fetchall()
        return self.columns(exp.select("*").from_(table.copy())) if found else None

    @contextmanager
    def _errors(self, statement: exp.Expr | str) -> Iterator[str]:
        text = statement if isinstance(statement, str) else write_sql(statement, self.dialect)
        check_text(text)
        try:
            yield text
        except (duckdb.Error, OSError, pa.ArrowException) as error:  # a reader has errors of Arrow's own
            raise EngineError(str(error), text) from error
        except RuntimeError as error:  # so DuckDB tells that Ctrl-C was pressed meanwhile
            if str(error) != _INTERRUPTED:
                raise
            raise KeyboardInterrupt from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the statements within take effect, or none.

        Raises:
            EngineError: A transaction is open already; DuckDB has no savepoints, so an error would undo it.
        """
        if self._is_in_transaction():
            raise EngineError(
                "this connection has an open transaction, and DuckDB has none within another; commit or roll back first"
            )
        self.execute("BEGIN")
        try:
            with interruptible(self._stop):
                yield
        except BaseException:
            with suppress(duckdb.Error):  # a database that failed for good cannot roll back, and must be opened again
                self.connection.rollback()
            raise
        self.execute("COMMIT")

    def _is_in_transaction(self) -> bool:
        """Whether a transaction is open: then two statements run in the same one.

        To try another BEGIN would undo it, as every error does.
        """
        first, second = [self.rows("SELECT txid_current()") for _ in range(2)]
        return first == second

    @contextmanager
    def another_connection(self) -> Iterator["DuckDB"]:
        """Another connection to the same database, which sees what is committed, whatever happens on this one."""
        with self._errors("-- open another connection"):
            cursor = self.connection.cursor()
        try:
            yield DuckDB(cursor, is_owned=False)
        finally:
            cursor.close()

    @contextmanager
    def registered(self, rows: object, name: str) -> Iterator[exp.Table]:
        """An Arrow table, or a relation of this database, under a name to read from; batches in a temporary table."""
        if isinstance(rows, pa.RecordBatchReader):
            table = exp.table_(name, db=self.dialect.temporary_schema)
            with self._registered_view(rows, _ROWS):
                self.create_temporary(table, exp.select("*").from_(_ROWS))
            yield table
            self.execute(exp.Drop(tables=[table.copy()], kind="TABLE"))
            return
        with self._registered_view(rows, name):
            yield exp.table_(name)

    @contextmanager
    def _registered_view(self, rows: object, name: str) -> Iterator[None]:
        with self._errors(f"-- register {name}"):
            self.connection.register(name, rows)
        try:
            yield
        finally:
            with suppress(duckdb.Error):  # in a transaction that failed, whose end does it
                self.connection.unregister(name)

    def has_relation(self, relation: object) -> bool:
        """Whether a relation of DuckDB's Python is one of this database."""
        try:
            with self._registered_view(relation, _ROWS):
                return True
        except EngineError:
            return False

    def location(self) -> tuple[str, str]:
        """The database and the schema in which a bare name stands for a new table."""
        ((database, schema),) = self.rows("SELECT current_database(), current_schema()")
        return str(database), str(schema)

    def catalogue_columns(self, schema: str, name: str) -> Mapping[str, str] | None:
        """Columns of a table of the catalogue, with their types; None where there is none."""
        with self._errors("-- look for a table"):
            found = self.connection.execute(
                "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = current_database() "
                "AND schema_name = $1 AND table_name = $2",
                [schema, name],
            ).fetchall()  # all: the connection is busy until the last row is fetched
        return dict(found) or None

    def check_access(self, readings: Sequence[RelationAccess]) -> None:
        """Nothing: a database has no roles."""

    def role_owns(self, role: str | None, table: exp.Table) -> bool:
        """Yes: a database has no roles."""
        return True

    def grant(self, role: str) -> None:
        """Nothing.

        Raises:
            EngineError: Always: a database has no roles.
        """
        raise EngineError("DuckDB has no roles; who may write a database file may do all")

    def is_permission_error(self, error: EngineError) -> bool:
        """No: a database has no roles."""
        return False

    def is_conflict(self, error: EngineError) -> bool:
        """No: what conflicts here would again."""
        return False

    def snapshot(self) -> AbstractContextManager[None]:
        """A transaction: all of them see the data as they were when it began."""
        return self.transaction()

    def protected(self) -> AbstractContextManager[None]:
        """Within, Ctrl-C is noticed at once; a database has no roles that anything would be protected from."""
        return interruptible(self._stop)

    def _stop(self, is_wanted: bool) -> None:
        """Stop what this connection runs, or let kernels run again.

        DuckDB itself looks for signals where this thread works for it, but not where it waits for another one.
        """
        stop_kernels(is_wanted)
        if is_wanted:
            with suppress(duckdb.Error):  # it may be closed by now
                self.connection.interrupt()

    def relations_named(self, name: str) -> Sequence[Relation]:
        """What a bare name may mean, first what it does mean."""
        with self._errors(f"-- look for {name}"):
            found = self.connection.execute(assets.read("sql/duckdb/relations.sql"), {"name": name}).fetchall()
        return [Relation(*each) for each in found]

    def is_missing_column_error(self, error: EngineError) -> bool:
        """Whether a statement was refused because there is no column of some name."""
        return isinstance(error.__cause__, duckdb.BinderException)

    def is_out_of_memory_error(self, error: EngineError) -> bool:
        """Whether a statement failed because its memory, or the disk that it spills to, was not enough."""
        return isinstance(error.__cause__, duckdb.OutOfMemoryException)

    def overflows_float32(self, value: exp.Expr) -> exp.Expr:
        """Whether a number of type DOUBLE, which is no infinity, would become one as a float32."""
        return exp.TryCast(this=value, to=number_type("float32")).is_(exp.null())

    def is_changed_by_cast(self, value: exp.Expr, sql_type: str, dtype: str) -> exp.Expr:
        """Whether a number of a type would be another one as a dtype; one of them is of whole numbers or truth."""
        cast = exp.TryCast(this=value.copy(), to=type_named(stored_type(dtype, is_scalar=True)))
        back = exp.TryCast(this=cast, to=exp.DataType.build(sql_type, dialect=self.dialect_name))
        return exp.NullSafeNEQ(this=back, expression=value)

    def memory_limit(self) -> int:
        """Bytes that the database may use."""
        return parse_bytes(self._setting("memory_limit"))

    @contextmanager
    def memory_limited_to(self, limit_bytes: float, threads: int) -> Iterator[Callable[[float], None]]:
        """Within, the database may use so many bytes of this process's memory, and run statements with so many threads.

        The setting is changed, and changed back, from beside this connection: it may have failed.

        Yields:
            What sets another limit, on which DuckDB returns memory that is free to the system.
        """
        threads = max(threads, int(self._setting("external_threads")))  # which cannot be fewer
        limited = {"memory_limit": f"{int(limit_bytes)}B", "threads": str(threads), _FLUSHING: f"{_FLUSHED_BYTES}B"}
        with self._changed(limited) as other:

            def limit(size: float) -> None:
                other.execute(f"SET memory_limit = '{int(size)}B'")

            yield limit

    @contextmanager
    def single_threaded(self) -> Iterator[None]:
        """Within, the database runs statements in one thread.

        Raises:
            EngineError: The process has lent it more.
        """
        lent = int(self._setting("external_threads"))
        if lent > 1:
            raise EngineError(
                f"external_threads is {lent}, and no run in several threads is deterministic; set it to 1"
            )
        with self._changed({"threads": "1"}):
            yield

    @contextmanager
    def _changed(self, settings: Mapping[str, str]) -> Iterator["DuckDB"]:
        """Within, settings are others. What comes is a connection beside this one, which may have failed by the end."""
        before = {name: _in_full(self._setting(name)) for name in settings}
        with self.another_connection() as other, ExitStack() as restoring:
            for name, value in before.items():
                restoring.callback(other.execute, f"SET {name} = '{value}'")
            for name, value in settings.items():
                other.execute(f"SET {name} = '{value}'")
            yield other

    def memory_in_use(self) -> int:
        """Bytes of this process's memory that the database takes now."""
        ((used,),) = self.rows("SELECT SUM(memory_usage_bytes)::BIGINT FROM duckdb_memory()")
        return int(str(used))

    def threads(self) -> int:
        """Threads that the database runs statements with."""
        return int(self._setting("threads"))

    def _setting(self, name: str) -> str:
        ((value,),) = self.rows(f"SELECT current_setting('{name}')")
        return str(value)

    def close(self) -> None:
        """Close the connection, if it was opened here."""
        if self._is_owned:
            self.connection.close()


def open_duckdb(target: object, read_only: bool = False) -> DuckDB:
    """Open a file, which may be for reading alone, an in-memory database (None), or take a connection of the user's.

    Of what stands in for a connection, as the session of a Python model of dbt-duckdb does, another connection to the
    same database is taken: there may be a transaction open, and it sees what is committed.

    Raises:
        EngineError: It is none of these, the file cannot be opened, or the connection lacks the functions.
    """
    if isinstance(target, duckdb.DuckDBPyConnection):
        return _with_functions(DuckDB(target, is_owned=False))
    if callable(cursor := getattr(target, "cursor", None)) and isinstance(other := cursor(), duckdb.DuckDBPyConnection):
        return _with_functions(DuckDB(other, is_owned=True))
    if not (target is None or isinstance(target, str | Path)):
        raise EngineError(f"{type(target).__name__} is no database; give a path, a postgresql:// URL or a connection")
    require_library()  # before: a database knows the functions that there were when it was opened
    try:
        connection = duckdb.connect(":memory:" if target is None else str(target), read_only)
    except duckdb.Error as error:
        raise EngineError(f"cannot open {target}: {error}") from error
    return _with_functions(DuckDB(connection, is_owned=True))


def _with_functions(engine: DuckDB) -> DuckDB:
    """The same connection; its database is asked from beside it, where an error undoes no transaction of the user's."""
    with engine.another_connection() as other:
        try:
            other.execute(_PROBE)
        except EngineError as error:
            if not isinstance(error.__cause__, duckdb.CatalogException):
                raise
            raise EngineError(
                "this DuckDB connection lacks the functions of sparseeinsum, because its database was opened before "
                "`import sparseeinsum`, or before the kernels were compiled; close it and open it again"
            ) from error
    return engine


def _in_full(size: str) -> str:
    """A size that DuckDB shows as it shows this one, of which it may have cut off digits behind the point."""
    digits, _, unit = size.partition(" ")
    return f"{digits}5 {unit}" if "." in digits else size


_UNITS = {"": 1, "b": 1, "byte": 1, "bytes": 1}
_UNITS |= {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)}
_UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)}


def parse_bytes(text: str | float) -> int:
    """Bytes from a number or a text such as '4GB' or '512 MiB'.

    >>> parse_bytes("1.5 KiB")
    1536

    Raises:
        ValueError: It is neither.
    """
    if not isinstance(text, str):
        return int(text)
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ").strip()
    unit = text.strip()[len(digits) :].strip().lower()
    try:
        return int(float(digits) * _UNITS[unit])
    except (KeyError, ValueError):
        raise ValueError(f"{text!r} is no size; write it as in 4GB, 512MiB or a number of bytes") from None
