"""Engines: PostgreSQL, through psycopg."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa
from sqlglot import exp

from sparseeinsum import assets
from sparseeinsum.engines import copy_format
from sparseeinsum.engines.engine import Column, Relation
from sparseeinsum.errors import EngineError
from sparseeinsum.render.dialects import POSTGRESQL, Dialect, write_sql
from sparseeinsum.render.statements import Statement
from sparseeinsum.statistics.columns import number_type, type_named

if TYPE_CHECKING:
    import psycopg

_PROBE = "tensor_einsum"
_EXTENSION = "sparseeinsum"
_LEAST_VERSION = 150_000
_LIMITS_OF_INT64 = (str(-(1 << 63)), str(1 << 63))  # the first beyond
_INFINITE_FLOAT32 = "3.4028235677973366e38"  # the least that is rounded to it
_LARGEST_ROW = 8160  # bytes, in a page of 8 KiB
_INLINE_ARRAYS = exp.Property(this=exp.var("toast_tuple_target"), value=exp.Literal.number(_LARGEST_ROW))
_MOST_KEY_COLUMNS = 32  # of an index
_WORTH_WORKERS_SECONDS = 0.1  # expected of a plan; files of tables that are not temporary are synchronised
_WORK_SHARE = 16  # of the memory, every sort and hash table of a statement may take
# Workers are worth their start at smaller tables than by default: functions of arrays take longer than the planner
# expects.
_LEAST_SHARED_SCAN_BYTES = 512 << 10

# PostgreSQL's names of types, in the spelling of `statistics.columns`; others are shown as they are.
_TYPES = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "numeric": "NUMERIC",
}


class PostgreSQL:
    """A connection to a PostgreSQL database that has the functions of this package."""

    title = "PostgreSQL"
    sql: Dialect = POSTGRESQL

    def __init__(self, connection: "psycopg.Connection[Any]", driver: ModuleType, is_owned: bool) -> None:
        self.connection = connection
        self._driver = driver
        self._is_owned = is_owned

    @property
    def dialect(self) -> str:
        """Name of the SQL dialect."""
        return self.sql.name

    def rows(self, statement: exp.Expr | str) -> Sequence[tuple[object, ...]]:
        """All rows of a query."""
        with self._statement(statement) as text:
            return self.connection.execute(text, prepare=False).fetchall()

    def execute(self, statement: exp.Expr | str) -> None:
        """Run a statement whose rows do not matter."""
        with self._statement(statement) as text:
            self.connection.execute(text, prepare=False)

    def create_temporary(self, table: exp.Table, query: exp.Select) -> int:
        """Create a table that a run drops again from a query; returns its rows.

        Its rows are written by this process alone, but may be computed by workers, which PostgreSQL has for no INSERT.
        """
        is_temporary = table.db == self.sql.temporary_schema
        properties = [exp.TemporaryProperty() if is_temporary else exp.UnloggedProperty(), _INLINE_ARRAYS.copy()]
        whole = exp.Properties(expressions=properties)
        tuples = self._count(exp.Create(this=table.copy(), kind="TABLE", properties=whole, expression=query))
        self._analyze(table)
        return tuples

    def _analyze(self, table: exp.Table) -> None:
        """Count a table's rows: before that, the planner takes any for a small one."""
        self.execute(f"ANALYZE {table.sql(self.dialect)}")

    def _create_permanent(self, table: exp.Table, columns: Sequence[Column]) -> None:
        """Create a table without rows, whose arrays are never compressed, and lie outside of rows that fill a page."""
        defined = [
            exp.ColumnDef(this=exp.to_identifier(each.name, quoted=True), kind=type_named(each.sql_type))
            for each in columns
        ]
        schema = exp.Schema(this=table.copy(), expressions=defined)
        whole = exp.Properties(expressions=[_INLINE_ARRAYS.copy()])
        self.execute(exp.Create(this=schema, kind="TABLE", properties=whole))
        for each in columns:
            if each.sql_type.endswith("[]"):
                column = exp.to_identifier(each.name, quoted=True).sql(self.dialect)
                self.execute(f"ALTER TABLE {table.sql(self.dialect)} ALTER COLUMN {column} SET STORAGE EXTERNAL")

    def _count(self, statement: exp.Expr) -> int:
        """Run a statement; returns the rows that it wrote."""
        with self._statement(statement) as text:
            return self.connection.execute(text, prepare=False).rowcount

    def stage(self, statement: Statement) -> int:
        """Run a statement that keeps its rows in a temporary table; returns how many there are."""
        assert statement.stage is not None
        tuples = self.create_temporary(statement.stage, statement.query)
        tuples += sum(self._count(exp.insert(query, statement.stage.copy())) for query in statement.passes)
        if statement.passes:
            self._analyze(statement.stage)
        return tuples

    def replace_table(self, table: exp.Table, query: exp.Select, key: Sequence[str] = ()) -> int:
        """Create a permanent table from a query, which may read a table of that name that it replaces; its rows."""
        old, new = self._old_and_new(table)
        self._create_permanent(new, self.columns(query))
        tuples = self._count(exp.insert(query, new.copy()))
        self._put_in_place(old, new)
        if 0 < len(key) <= _MOST_KEY_COLUMNS:
            columns = [exp.to_identifier(column) for column in key]
            added = exp.Alter(
                this=old.copy(),
                kind="TABLE",
                actions=[exp.AddConstraint(expressions=[exp.PrimaryKey(expressions=columns)])],
            )
            self.execute(added)
        return tuples

    def load_table(self, table: exp.Table, rows: pa.Table) -> None:
        """Create a permanent table from an Arrow table, in place of one of that name."""
        old, new = self._old_and_new(table)
        self._create_permanent(new, [Column(each.name, copy_format.sql_type(each.type)) for each in rows.schema])
        self._copy(rows, new)
        self._put_in_place(old, new)

    def _old_and_new(self, table: exp.Table) -> tuple[exp.Table, exp.Table]:
        """A table that may be there, by its whole name, and the one that is to take its place, as it is filled."""
        schema = exp.to_identifier(table.db or self.location()[1])
        old = exp.table_(table.this.copy(), db=schema, catalog=table.args.get("catalog"))
        return old, exp.table_(exp.to_identifier(f"sparseeinsum_new_{table.name}"), db=schema.copy())

    def _put_in_place(self, old: exp.Table, new: exp.Table) -> None:
        self._analyze(new)
        self.execute(exp.Drop(tables=[old.copy()], kind="TABLE", exists=True))
        renamed = exp.AlterRename(this=exp.table_(old.this.copy()))
        self.execute(exp.Alter(this=new.copy(), kind="TABLE", actions=[renamed]))

    def arrow(self, statement: exp.Expr | str) -> pa.Table:
        """The result of a query as an Arrow table."""
        columns = self.columns(statement)
        with self._statement(statement) as text, self.connection.cursor() as cursor:
            data = bytearray()
            with cursor.copy(f"COPY ({text}) TO STDOUT (FORMAT BINARY)") as copy:
                for piece in copy:
                    data += piece
        return copy_format.decode(data, [each.name for each in columns], [each.sql_type for each in columns])

    def columns(self, query: exp.Expr | str) -> list[Column]:
        """Columns of a query; it is not run."""
        with self._statement(query) as text, self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({text}) AS described LIMIT 0", prepare=False)
            assert cursor.description is not None
            return [Column(column.name, _type_named(column.type_display)) for column in cursor.description]

    @contextmanager
    def _statement(self, statement: exp.Expr | str) -> Iterator[str]:
        """A statement as text; what it does takes effect at once where nobody began a transaction."""
        text = statement if isinstance(statement, str) else write_sql(statement, self.sql)
        try:
            with self._own_transaction():
                yield text
        except self._driver.Error as error:
            raise EngineError(str(error), text) from error

    def _own_transaction(self) -> AbstractContextManager[object]:
        is_idle = self.connection.info.transaction_status == self._driver.pq.TransactionStatus.IDLE
        return self.connection.transaction() if is_idle and not self.connection.autocommit else nullcontext()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the statements within take effect, or none; in a transaction that is open, once that is committed."""
        try:
            with self.connection.transaction(), self._settings():
                yield
        except self._driver.Error as error:
            raise EngineError(str(error)) from error

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Settings for the statements of a transaction, which those after it in one of the user's do not have."""
        work = max(self.memory_limit() // _WORK_SHARE, self._bytes("work_mem"))
        scan = min(self._bytes("min_parallel_table_scan_size"), _LEAST_SHARED_SCAN_BYTES)
        values = {
            "work_mem": f"{work // 1024}kB",
            "min_parallel_table_scan_size": f"{scan // 1024}kB",
            "jit": "off",  # to compile queries takes longer than most of them
        }
        before = {name: str(self.rows(f"SELECT current_setting('{name}')")[0][0]) for name in values}
        self._set(values)
        yield
        self._set(before)

    def _set(self, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            self.execute(f"SET LOCAL {name} = '{value}'")

    @contextmanager
    def beside(self) -> Iterator["PostgreSQL"]:
        """Another connection to the same database, which sees what is committed, whatever happens on this one."""
        info = self.connection.info
        try:
            other = self._driver.connect(info.dsn, password=info.password or None, autocommit=True)
        except self._driver.Error as error:
            raise EngineError(f"cannot connect again: {error}") from error
        with other:
            yield PostgreSQL(other, self._driver, is_owned=False)

    @contextmanager
    def registered(self, table: pa.Table, name: str) -> Iterator[None]:
        """An Arrow table as a temporary table of that name."""
        columns = [
            exp.ColumnDef(this=exp.to_identifier(column.name), kind=type_named(copy_format.sql_type(column.type)))
            for column in table.schema
        ]
        temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
        schema = exp.Schema(this=exp.table_(name), expressions=columns)
        with self.transaction():
            self.execute(exp.Create(this=schema, kind="TABLE", properties=temporary))
            self._copy(table, exp.table_(name))
            yield
            self.execute(exp.Drop(tables=[exp.table_(name)], kind="TABLE"))

    def _copy(self, rows: pa.Table, table: exp.Table) -> None:
        """Append an Arrow table to a table that has its columns."""
        command = f"COPY {table.sql(self.dialect)} FROM STDIN (FORMAT BINARY)"
        with self._statement(command), self.connection.cursor() as cursor, cursor.copy(command) as copy:
            for piece in copy_format.encode(rows):
                copy.write(piece)

    def stage_namer(self, seconds: float) -> Callable[[str], exp.Table]:
        """Names tables that keep results while a plan of so many expected seconds runs.

        Workers can read no temporary tables. What takes long is kept in tables that any process could read, under names
        that hold this one's number; nobody sees them, because the transaction that creates them drops them.
        """
        query = "SELECT current_schema(), has_schema_privilege(current_schema(), 'CREATE'), pg_backend_pid()"
        if seconds >= _WORTH_WORKERS_SECONDS and self.threads() > 1:
            ((schema, may_create, process),) = self.rows(query)
            if may_create:
                return lambda name: exp.table_(
                    exp.to_identifier(f"sparseeinsum_{process}_{name}"), db=exp.to_identifier(str(schema))
                )
        return lambda name: exp.table_(
            exp.to_identifier(f"sparseeinsum_{name}"), db=exp.to_identifier(self.sql.temporary_schema)
        )

    def location(self) -> tuple[str, str]:
        """The database and the schema in which a bare name stands for a new table.

        Raises:
            EngineError: There is no such schema on the search_path.
        """
        ((database, schema),) = self.rows("SELECT current_database(), current_schema()")
        if schema is None:
            raise EngineError("no schema on the search_path exists, so that there is nowhere to create tables; set one")
        return str(database), str(schema)

    def has_table(self, schema: str, name: str) -> bool:
        """Whether the database has a permanent table."""
        with self._statement("-- look for a table"):
            query = "SELECT COUNT(*) FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = %s"
            found = self.connection.execute(query, (schema, name)).fetchone()
        return found is not None and found[0] > 0

    def relations_named(self, name: str) -> Sequence[Relation]:
        """What a bare name may mean, first what it does mean."""
        with self._statement(f"-- look for {name}"):
            query = assets.read("sql/postgresql/relations.sql")
            found = self.connection.execute(query, {"name": name}).fetchall()
        return [Relation(None, schema, spelled) for schema, spelled in found]

    def lacks_column(self, error: EngineError) -> bool:
        """Whether a statement was refused because there is no column of some name."""
        return isinstance(error.__cause__, self._driver.errors.UndefinedColumn)

    def lacks_memory(self, error: EngineError) -> bool:
        """Whether a statement failed because its memory, or the disk that it spills to, was not enough."""
        return isinstance(error.__cause__, (self._driver.errors.OutOfMemory, self._driver.errors.DiskFull))

    def is_beyond_float32(self, value: exp.Expr) -> exp.Expr:
        """Whether a number of type DOUBLE, which is no infinity, would become one as a float32."""
        special = [exp.Literal.string(name) for name in ("inf", "-inf", "nan")]
        is_large = exp.GTE(this=exp.Abs(this=value.copy()), expression=exp.Literal.number(_INFINITE_FLOAT32))
        return exp.and_(is_large, exp.Not(this=exp.In(this=value, expressions=special)))

    def is_changed_by_cast(self, value: exp.Expr, sql_type: str, dtype: str) -> exp.Expr:
        """Whether a number of a type would be another one as a dtype; one of them is of whole numbers or truth.

        Whole numbers beyond 64 bits count as changed by a cast to a floating-point dtype, even where they are not.
        """
        if dtype == "bool":
            return exp.Not(this=exp.In(this=value, expressions=[exp.Literal.number(0), exp.Literal.number(1)]))
        least, beyond = (exp.Literal.number(limit) for limit in _LIMITS_OF_INT64)
        is_beyond = exp.or_(exp.LT(this=value.copy(), expression=least), exp.GTE(this=value.copy(), expression=beyond))
        if dtype == "int64":
            return exp.or_(is_beyond, exp.NEQ(this=value, expression=exp.Floor(this=value.copy())))
        cast: exp.Expr = exp.cast(exp.cast(value.copy(), number_type(dtype)), "double")
        is_rounded_beyond = exp.GTE(this=cast.copy(), expression=exp.cast(beyond.copy(), "double"))
        is_other = exp.NEQ(this=exp.cast(cast, "bigint"), expression=value.copy())
        return exp.case().when(is_beyond, exp.true()).when(is_rounded_beyond, exp.true()).else_(is_other)

    def memory_limit(self) -> int:
        """Bytes that the server is told that it may count on."""
        return self._bytes("effective_cache_size")

    def _bytes(self, setting: str) -> int:
        ((size,),) = self.rows(f"SELECT pg_size_bytes(current_setting('{setting}'))")
        return int(str(size))

    def memory_in_use(self) -> None:
        """None: a server has memory of its own."""

    def memory_limited_to(self, limit_bytes: float) -> AbstractContextManager[None]:
        """A server is left as it is; it spills what takes more than work_mem."""
        return nullcontext()

    def threads(self) -> int:
        """Processes that a query may run in."""
        ((workers,),) = self.rows("SELECT current_setting('max_parallel_workers_per_gather')")
        return int(str(workers)) + 1

    def close(self) -> None:
        """Close the connection, if it was opened here."""
        if self._is_owned:
            self.connection.close()


def is_postgresql(target: object) -> TypeGuard["str | psycopg.Connection[Any]"]:
    """Whether a database that a user names, or a connection that they have, is of PostgreSQL."""
    if isinstance(target, str):
        return target.startswith(("postgresql://", "postgres://"))
    driver = sys.modules.get("psycopg")
    return driver is not None and isinstance(target, driver.Connection)


def open_postgresql(target: "str | psycopg.Connection[Any]") -> PostgreSQL:
    """Connect to a server, or take a connection that the user has.

    Raises:
        EngineError: The server cannot be reached, is too old, or the database lacks the extension.
    """
    try:
        import psycopg  # noqa: PLC0415  # an optional dependency
    except ImportError:
        raise EngineError("psycopg is needed for PostgreSQL; pip install 'sparseeinsum[postgres]'") from None
    if isinstance(target, psycopg.Connection):
        engine = PostgreSQL(target, psycopg, is_owned=False)
    else:
        try:
            engine = PostgreSQL(psycopg.connect(target, autocommit=True), psycopg, is_owned=True)
        except psycopg.Error as error:
            raise EngineError(f"cannot connect: {error}") from error
    try:
        _check(engine)
    except EngineError:
        engine.close()
        raise
    return engine


def _check(engine: PostgreSQL) -> None:
    version = engine.connection.info.server_version
    if version < _LEAST_VERSION:
        raise EngineError(
            f"this server is PostgreSQL {version // 10_000}; version {_LEAST_VERSION // 10_000} or later is needed"
        )
    found = engine.rows(f"SELECT 1 FROM pg_proc WHERE proname = '{_PROBE}' AND pg_function_is_visible(oid) LIMIT 1")
    if found:
        return
    is_installed = engine.rows(f"SELECT 1 FROM pg_available_extensions WHERE name = '{_EXTENSION}'")
    if is_installed:
        way = f"run CREATE EXTENSION {_EXTENSION} in it, or put the schema that has it on the search_path"
    else:
        way = f"run `sparseeinsum install postgres` on the server, and CREATE EXTENSION {_EXTENSION} in the database"
    raise EngineError(f"the database {engine.connection.info.dbname} lacks the functions of this package; {way}")


_DECIMAL = re.compile(r"numeric\((\d+), ?(-?\d+)\)\Z")


def _type_named(shown: str) -> str:
    """A type in the spelling of `statistics.columns`."""
    decimal = _DECIMAL.match(shown)
    if decimal is not None:
        return f"DECIMAL({decimal[1]},{decimal[2]})"
    element = shown.removesuffix("[]")
    return _TYPES.get(element, element.upper()) + shown[len(element) :]
