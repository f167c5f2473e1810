"""Engines: PostgreSQL, in a session of whichever kind."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pyarrow as pa
from sqlglot import exp

from sparseeinsum import assets
from sparseeinsum.decompose.clusters.distribution import Cluster
from sparseeinsum.engines.engine import Column, Relation, RelationAccess
from sparseeinsum.engines.postgresql import copy_format, rights
from sparseeinsum.engines.postgresql.installed_functions import InstalledFunctions
from sparseeinsum.engines.postgresql.read_consistency import ConflictError, ReadConsistency, hold
from sparseeinsum.engines.postgresql.search_path import SearchPath
from sparseeinsum.engines.postgresql.sessions import Isolation, Session
from sparseeinsum.engines.postgresql.settings import MEMORY, settings_within
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import CatalogueError, EngineError
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.dialects import POSTGRESQL, Dialect, write_sql
from sparseeinsum.render.statements import Statement
from sparseeinsum.render.table_distribution import INLINE_ARRAYS, TableDistribution
from sparseeinsum.statistics.columns import number_type, type_named

_UNDEFINED_COLUMN = "42703"  # SQLSTATEs
_NO_RIGHT = "42501"
_CONFLICTS = ("40001", "40P01")  # no serial order, deadlock
_FULL = ("53200", "53100")  # memory, disk
_LIMITS_OF_INT64 = (str(-(1 << 63)), str(1 << 63))  # the first beyond
_INFINITE_FLOAT32 = "3.4028235677973366e38"  # the least that is rounded to it
_MOST_KEY_COLUMNS = 32  # of an index
_WORTH_WORKERS_SECONDS = 0.1  # expected of a plan; files of tables that are not temporary are synchronised
# How closely ANALYZE looks: a target of so many, of 300 rows each. To tell how large values are takes few.
_TARGET = "default_statistics_target"
_STATISTICS_OF_KEYS = 30
_STATISTICS_OF_SIZES = 1


class PostgreSQL:
    """A connection to a PostgreSQL database that has the functions of this package."""

    title = "PostgreSQL"
    dialect: Dialect = POSTGRESQL
    _isolation = Isolation.REPEATABLE_READ  # of transactions of runs
    _sharing = "1"  # SQL for how many statements share the memory of a machine

    def __init__(self, session: Session, functions: InstalledFunctions) -> None:
        self._session = session
        self._functions = functions
        self._path: SearchPath | None = None  # the user's, while that of the session is ours
        self._holding = ReadConsistency.NOT  # while relations must stay as they are

    @property
    def connection(self) -> Any:  # noqa: ANN401  # each driver has a type of its own
        """The driver's connection."""
        return self._session.connection

    @property
    def dialect_name(self) -> str:
        """Name of the SQL dialect."""
        return self.dialect.name

    @property
    def constants_name(self) -> str:
        """Name of the constants of its costs: portable functions are far slower than those of the extension."""
        return self._functions.variant

    def rows(self, statement: exp.Expr | str) -> Sequence[tuple[object, ...]]:
        """All rows of a query."""
        return self._session.fetch(self._text(statement))

    def execute(self, statement: exp.Expr | str) -> None:
        """Run a statement whose rows do not matter."""
        self._write(statement)

    def _write(self, statement: exp.Expr | str) -> int:
        """Run a statement; returns the rows that it wrote."""
        return self._session.write(self._text(statement))

    def _text(self, statement: exp.Expr | str) -> str:
        return statement if isinstance(statement, str) else write_sql(statement, self.dialect)

    def create_temporary(self, table: exp.Table, query: exp.Select) -> int:
        """Create a table that a run drops again from a query; returns its rows.

        Its rows are written by this process alone, but may be computed by workers, which PostgreSQL has for no INSERT.
        """
        is_temporary = table.db == self.dialect.temporary_schema
        properties = [exp.TemporaryProperty() if is_temporary else exp.UnloggedProperty(), INLINE_ARRAYS.copy()]
        whole = exp.Properties(expressions=properties)
        tuples = self._write(exp.Create(this=table.copy(), kind="TABLE", properties=whole, expression=query))
        self._analyze_stage(table, query)
        return tuples

    def _analyze_stage(self, table: exp.Table, query: exp.Select) -> None:
        """Count rows and keys of a table that a run drops again, as far as plans of a few statements need."""
        sizes = [name for name in query.named_selects if name == VALUE_COLUMN]
        keys = [name for name in query.named_selects if name != VALUE_COLUMN]
        self._analyze(table, [], {_STATISTICS_OF_SIZES: sizes, _STATISTICS_OF_KEYS: keys})

    def _analyze_permanent(self, table: exp.Table, columns: Sequence[Column]) -> None:
        """Count rows and values of a table; of arrays it would count every element."""
        arrays = [each.name for each in columns if each.sql_type.endswith("[]")]
        others = [each.name for each in columns if each.name not in arrays]
        self._analyze(table, others, {_STATISTICS_OF_SIZES: arrays})

    def _analyze(self, table: exp.Table, columns: Sequence[str], targets: Mapping[int, Sequence[str]]) -> None:
        """Look at rows, for what the planner takes for 10 pages of anything before.

        Args:
            table: Whose rows.
            columns: To look at as closely as the server does by itself.
            targets: Others, by how closely.
        """
        self._analyze_columns(table, columns)
        closely = {target: others for target, others in targets.items() if others}
        if closely:
            ((before,),) = self.rows(f"SELECT current_setting('{_TARGET}')")
            for target, others in closely.items():
                self._set({_TARGET: str(target)})
                self._analyze_columns(table, others)
            self._set({_TARGET: str(before)})

    def _analyze_columns(self, table: exp.Table, columns: Sequence[str]) -> None:
        if columns:
            listed = ", ".join(exp.to_identifier(name, quoted=True).sql(self.dialect_name) for name in columns)
            self.execute(f"ANALYZE {table.sql(self.dialect_name)} ({listed})")

    def _columns_kept(self, columns: Sequence[Column], spread: TableDistribution | None) -> Sequence[Column]:
        """Columns of a table for rows of given columns."""
        return columns

    def _create_permanent(self, table: exp.Table, columns: Sequence[Column], spread: TableDistribution | None) -> None:
        """Create a table without rows, whose arrays are never compressed, and lie outside of rows that fill a page."""
        defined = [
            exp.ColumnDef(this=exp.to_identifier(each.name, quoted=True), kind=type_named(each.sql_type))
            for each in columns
        ]
        schema = exp.Schema(this=table.copy(), expressions=defined)
        whole = exp.Properties(expressions=[INLINE_ARRAYS.copy()])
        self.execute(exp.Create(this=schema, kind="TABLE", properties=whole))
        for each in columns:
            if each.sql_type.endswith("[]"):
                column = exp.to_identifier(each.name, quoted=True).sql(self.dialect_name)
                self.execute(f"ALTER TABLE {table.sql(self.dialect_name)} ALTER COLUMN {column} SET STORAGE EXTERNAL")

    def stage(self, statement: Statement) -> int:
        """Run a statement that keeps its rows in a temporary table; returns how many there are."""
        assert statement.stage is not None
        tuples = self.create_temporary(statement.stage, statement.query)
        tuples += sum(self._write(exp.insert(query, statement.stage.copy())) for query in statement.passes)
        if statement.passes:
            self._analyze_stage(statement.stage, statement.query)
        return tuples

    def replace_table(
        self, table: exp.Table, query: exp.Select, key: Sequence[str] = (), spread: TableDistribution | None = None
    ) -> int:
        """Create a permanent table from a query, which may read a table of that name that it replaces; its rows."""
        old, new = self._old_and_new(table)
        columns = self._columns_kept(self.columns(query), spread)
        self._create_permanent(new, columns, spread)
        tuples = self._write(exp.insert(query, new.copy()))
        if self._put_in_place(old, new, columns) and 0 < len(key) <= _MOST_KEY_COLUMNS:
            unique = exp.PrimaryKey(expressions=[exp.to_identifier(column) for column in key])
            added = exp.AddConstraint(expressions=[unique])
            self.execute(exp.Alter(this=old.copy(), kind="TABLE", actions=[added]))
        return tuples

    def insert(self, table: exp.Table, query: exp.Select) -> int:
        """Add the rows of a query to a permanent table; returns how many."""
        tuples = self._write(exp.insert(query, table.copy()))
        self._analyze_permanent(table, self.columns(query))
        return tuples

    def load_table(self, table: exp.Table, rows: pa.Table, spread: TableDistribution | None = None) -> None:
        """Create a permanent table from an Arrow table, in place of one of that name."""
        old, new = self._old_and_new(table)
        columns = [Column(each.name, copy_format.sql_type(each.type)) for each in rows.schema]
        self._create_permanent(new, columns, spread)
        self._session.load(rows, new.sql(self.dialect_name))
        self._put_in_place(old, new, columns)

    def _old_and_new(self, table: exp.Table) -> tuple[exp.Table, exp.Table]:
        """A table that may be there, by its whole name, and the one that is to take its place, as it is filled."""
        schema = exp.to_identifier(table.db or self.location()[1])
        old = exp.table_(table.this.copy(), db=schema, catalog=table.args.get("catalog"))
        return old, exp.table_(exp.to_identifier(temporary_name(table.name)), db=schema.copy())

    def _put_in_place(self, old: exp.Table, new: exp.Table, columns: Sequence[Column]) -> bool:
        """Give a table the place of another; where views read that, its rows. Returns whether it is a new table."""
        before = self.columns_of(old)
        dependents = [] if before is None else self._dependents(old)
        if dependents and before == columns:
            self.execute(exp.TruncateTable(expressions=[old.copy()]))
            self.execute(exp.insert(exp.select("*").from_(new.copy()), old.copy()))
            self.execute(exp.Drop(tables=[new.copy()], kind="TABLE"))
            self._analyze_permanent(old, columns)
            return False
        if dependents:
            raise CatalogueError(
                f"the table {old.sql(self.dialect_name)} cannot be replaced by one of other columns, because "
                f"{', '.join(dependents)} depend{'s' if len(dependents) == 1 else ''} on it; drop that first, or "
                "choose another table"
            )
        self._analyze_permanent(new, columns)
        if before is not None:  # to drop it if it exists would give a notice where it does not
            self.execute(exp.Drop(tables=[old.copy()], kind="TABLE"))
        renamed = exp.AlterRename(this=exp.table_(old.this.copy()))
        self.execute(exp.Alter(this=new.copy(), kind="TABLE", actions=[renamed]))
        return True

    def _dependents(self, table: exp.Table) -> list[str]:
        """What reads a table, as messages name it."""
        found = self._session.fetch(assets.read("sql/postgresql/dependents.sql"), table.sql(self.dialect_name))
        return [str(dependent) for (dependent,) in found]

    def cluster(self) -> Cluster | None:
        """None: there is one machine."""
        return None

    def spread_of(self, table: exp.Table) -> TableDistribution | None:
        """None: one machine has all tables."""
        return None

    def arrow(self, statement: exp.Expr | str) -> pa.Table:
        """The result of a query as an Arrow table."""
        return self._session.read(self._text(statement))

    def batches(self, statement: exp.Expr | str, rows: int) -> Iterator[pa.Table]:
        """The result of a query while it is computed, so many rows at once; one table at least, which may be empty."""
        return self._session.batches(self._text(statement), rows)

    def columns_of(self, table: exp.Table) -> list[Column] | None:
        """Columns of a table or view; None where there is none of that name in the schema for new tables."""
        whole, _ = self._old_and_new(table)
        ((found,),) = self._session.fetch("SELECT pg_catalog.to_regclass($1)", whole.sql(self.dialect_name))
        return None if found is None else self.columns(exp.select("*").from_(whole))

    def columns(self, query: exp.Expr | str) -> list[Column]:
        """Columns of a query; it is not run."""
        return self._session.columns(self._text(query))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A transaction in which all statements see the data as they were at one time, whoever writes meanwhile."""
        is_within = self._session.is_in_transaction()
        with self._transaction(self._isolation):
            before, self._holding = self._holding, self._how_to_hold(is_within)
            try:
                yield
            finally:
                self._holding = before

    def _how_to_hold(self, is_within: bool) -> ReadConsistency:
        """How relations stay as they are in the transaction that is open, which may have been before."""
        return ReadConsistency.BY_LOCKS if is_within and not self._has_snapshot() else ReadConsistency.BY_SNAPSHOT

    def _has_snapshot(self) -> bool:
        """Whether the transaction that is open sees the same data in all statements."""
        ((isolation,),) = self._session.fetch("SELECT pg_catalog.current_setting('transaction_isolation')")
        return not str(isolation).startswith("read")

    def transaction(self) -> AbstractContextManager[None]:
        """All of the statements within take effect, or none; in a transaction that is open, once that is committed."""
        return self._transaction()

    @contextmanager
    def _transaction(self, isolation: Isolation | None = None) -> Iterator[None]:
        is_within = self._session.is_in_transaction()
        with self._session.transaction(isolation), self._fixed_path(is_within):
            settings = settings_within(self._session, self._own_settings(is_within), self._sharing)
            self._set(settings.within)
            yield
            if is_within:  # one of its own takes the settings with it
                self._set(settings.before)

    @contextmanager
    def _fixed_path(self, is_within: bool) -> Iterator[None]:
        """Within, bare names stand for PostgreSQL's functions and ours, whatever others have put into other schemas."""
        if self._path is not None:
            yield
            return
        self._path = SearchPath.fixed(self._session, self._functions.schema)
        try:
            yield
            if is_within:  # a transaction of its own takes it with it, as does an error
                self._path.restore(self._session)
        finally:
            self._path = None

    def _users_path(self) -> SearchPath:
        return self._path or SearchPath.of(self._session)

    def protected(self) -> AbstractContextManager[None]:
        """Within, tables that were checked stay as they are, and names in SQL of ours mean what is meant."""
        return nullcontext() if self._path is not None else self.transaction()

    def _own_settings(self, is_within: bool) -> Mapping[str, str]:
        """Settings of this engine's own, for a transaction that may be within one that was open before."""
        return {}

    def _set(self, values: Mapping[str, str]) -> None:
        """Settings for the rest of a transaction."""
        calls = (f"set_config('{name}', '{value}', TRUE) AS \"{name}\"" for name, value in values.items())
        self.rows(f"SELECT {', '.join(calls)}")

    @contextmanager
    def another_connection(self) -> Iterator["PostgreSQL"]:
        """Another connection to the same database, which sees what is committed, whatever happens on this one."""
        with self._session.another_connection() as other:
            yield PostgreSQL(other, self._functions)

    @contextmanager
    def registered(self, rows: object, name: str) -> Iterator[exp.Table]:
        """An Arrow table, or batches, as a temporary table of that name."""
        assert isinstance(rows, pa.Table | pa.RecordBatchReader)
        columns = [
            exp.ColumnDef(this=exp.to_identifier(column.name), kind=type_named(copy_format.sql_type(column.type)))
            for column in rows.schema
        ]
        temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
        table = exp.table_(name, db=self.dialect.temporary_schema)
        schema = exp.Schema(this=table.copy(), expressions=columns)
        with self._session.transaction():
            self.execute(exp.Create(this=schema, kind="TABLE", properties=temporary))
            self._session.load(rows, table.sql(self.dialect_name))
            yield table
            self.execute(exp.Drop(tables=[table.copy()], kind="TABLE"))

    def has_relation(self, relation: object) -> bool:
        """No: relations of DuckDB's Python are of DuckDB."""
        return False

    def stage_namer(self, seconds: float) -> Callable[[str], exp.Table]:
        """Names tables that keep results while a plan of so many expected seconds runs.

        Workers can read no temporary tables. What takes long is kept in tables that any process could read, under names
        that hold this one's number; nobody sees them, because the transaction that creates them drops them.
        """
        shared = self._shared_stages() if seconds >= _WORTH_WORKERS_SECONDS and self.threads() > 1 else None
        return shared or (
            lambda name: exp.table_(
                exp.to_identifier(temporary_name(name)), db=exp.to_identifier(self.dialect.temporary_schema)
            )
        )

    def _shared_stages(self) -> Callable[[str], exp.Table] | None:
        """Names tables for results that any process could read; None where the user may create none."""
        schema = self._users_path().first
        if schema is None:
            return None
        query = "SELECT pg_catalog.has_schema_privilege($1, 'CREATE'), pg_catalog.pg_backend_pid()"
        ((may_create, process),) = self._session.fetch(query, schema)
        if not may_create:
            return None
        return lambda name: exp.table_(
            exp.to_identifier(temporary_name(f"{process}_{name}")), db=exp.to_identifier(schema)
        )

    def location(self) -> tuple[str, str]:
        """The database and the schema in which a bare name stands for a new table.

        Raises:
            EngineError: There is no such schema on the search_path.
        """
        schema = self._users_path().first
        if schema is None:
            raise EngineError("no schema on the search_path exists, so that there is nowhere to create tables; set one")
        ((database,),) = self.rows("SELECT pg_catalog.current_database()")
        return str(database), schema

    def catalogue_columns(self, schema: str, name: str) -> Mapping[str, str] | None:
        """Columns of a table of the catalogue, with their types; None where there is none.

        Raises:
            RightsError: It belongs to a role whose triggers and policies the caller should not run.
        """
        return rights.catalogue_columns(self._session, schema, name)

    def check_access(self, readings: Sequence[RelationAccess]) -> None:
        """Refuse relations that would run functions of others with the rights of the caller; hold the rest.

        Raises:
            RightsError: Naming the first such relation, and why.
            EngineError: The relations cannot be held as they are, or somebody has changed one.
        """
        with self.protected():
            kinds = rights.check_access(self._session, readings)
            hold(self._session, readings, kinds, self._holding)

    def role_owns(self, role: str | None, table: exp.Table) -> bool:
        """Whether a table belongs to the role that entered it in the catalogue, so that it may be dropped with that."""
        return rights.role_owns(self._session, role, table)

    def is_conflict(self, error: EngineError) -> bool:
        """Whether a transaction of ours failed only because of what others wrote at the same time."""
        is_one = isinstance(error, ConflictError) or _sqlstate(error) in _CONFLICTS
        return is_one and not self._session.is_in_transaction()

    def grant(self, role: str) -> None:
        """Let a role use the catalogue, which is there, and the functions.

        Raises:
            EngineError: There is no such role, or the user may not grant that.
        """
        rights.grant(self._session, role, self._functions.schema)

    def is_permission_error(self, error: EngineError) -> bool:
        """Whether a statement was refused because the caller has no right to it."""
        return _sqlstate(error) == _NO_RIGHT

    def relations_named(self, name: str) -> Sequence[Relation]:
        """What a bare name may mean, first what it does mean."""
        schemas = json.dumps(self._users_path().schemas)
        found = self._session.fetch(assets.read("sql/postgresql/relations.sql"), name, schemas)
        return [
            Relation(None, str(schema), str(spelled), None if comment is None else str(comment))
            for schema, spelled, comment in found
        ]

    def is_missing_column_error(self, error: EngineError) -> bool:
        """Whether a statement was refused because there is no column of some name."""
        return _sqlstate(error) == _UNDEFINED_COLUMN

    def is_out_of_memory_error(self, error: EngineError) -> bool:
        """Whether a statement failed because its memory, or the disk that it spills to, was not enough."""
        return _sqlstate(error) in _FULL

    def overflows_float32(self, value: exp.Expr) -> exp.Expr:
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
        ((size,),) = self.rows(f"SELECT pg_size_bytes(current_setting('{MEMORY}'))")
        return int(str(size))

    def memory_in_use(self) -> None:
        """None: a server has memory of its own."""

    def memory_limited_to(self, limit_bytes: float, threads: int) -> AbstractContextManager[Callable[[float], None]]:
        """A server is left as it is; it spills what takes more than work_mem."""
        return nullcontext(lambda _: None)

    @contextmanager
    def single_threaded(self) -> Iterator[None]:
        """Within, statements run in one process, and scans begin at the beginning, whoever else scans."""
        within = {"max_parallel_workers_per_gather": "0", "synchronize_seqscans": "off"}
        settings = ", ".join(f"pg_catalog.current_setting('{name}')" for name in within)
        ((*before,),) = self._session.fetch(f"SELECT {settings}")
        self._set(within)
        yield
        self._set(dict(zip(within, map(str, before), strict=True)))

    def threads(self) -> int:
        """Processes that a query may run in."""
        ((workers,),) = self.rows("SELECT current_setting('max_parallel_workers_per_gather')")
        return int(str(workers)) + 1

    def close(self) -> None:
        """Close the connection, if it was opened here."""
        self._session.close()


def _sqlstate(error: EngineError) -> str | None:
    """The code of the server's error."""
    return getattr(error.__cause__, "sqlstate", None)
