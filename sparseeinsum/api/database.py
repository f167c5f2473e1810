"""The public face of a database: load tensors, plan programs, run them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack, overload

import duckdb
import pyarrow as pa

from sparseeinsum.api.plans import Plan
from sparseeinsum.engines.duckdb_opening import open_duckdb
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.locking import lock_of, synchronized
from sparseeinsum.engines.postgresql.names import is_postgresql
from sparseeinsum.errors import EngineError, SemanticsError
from sparseeinsum.extras import imported, late
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowering import lower_file, lower_text
from sparseeinsum.language.syntax import Source
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.language.users_aggregates import aggregate
from sparseeinsum.loading.load import load, register_relation
from sparseeinsum.loading.sources.input_data import ColumnSelection
from sparseeinsum.loading.sources.readers import read
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.pipeline import planning, run_programs, running
from sparseeinsum.pipeline.plan_options import PlanningOptions, plan_options
from sparseeinsum.pipeline.progress import shown_progress
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.plans.saved.plan_files import read_plan
from sparseeinsum.results.results import Results, TensorResult
from sparseeinsum.results.streams import ResultStream
from sparseeinsum.results.targets import Destination, targets_of
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.storage.access_rights import grant
from sparseeinsum.storage.catalogue import Catalogue, StoredDictionary
from sparseeinsum.storage.dictionaries import Dictionaries
from sparseeinsum.storage.measuring import measure_tensor
from sparseeinsum.storage.ownership import drop_tensor
from sparseeinsum.storage.program_inputs import shapes_in
from sparseeinsum.storage.tensor_description import TensorDescription
from sparseeinsum.storage.tensor_metadata import completed_from_metadata
from sparseeinsum.tracebacks import one_frame

if TYPE_CHECKING:
    import psycopg

    from sparseeinsum.algebra.building import TensorRelation
    from sparseeinsum.pipeline.checking import Finding

_RELATIONAL_QUERIES = "sparseeinsum.api.relational_queries"


@one_frame
def connect(
    target: "str | Path | duckdb.DuckDBPyConnection | psycopg.Connection[Any] | None" = None,
    read_only: bool = False,
) -> "Database":
    """Open a database.

    Args:
        target: A DuckDB file, a DuckDB connection opened after `import sparseeinsum`, or None for a database in memory;
            or PostgreSQL, as in postgresql://user@host/database or by a psycopg connection.
        read_only: Whether a DuckDB file is opened for reading alone, as several processes may at once.

    Raises:
        EngineError: It cannot be opened, or lacks the functions of this package.
    """
    if read_only and (is_postgresql(target) or not isinstance(target, str | Path)):
        raise EngineError(
            "read_only is for DuckDB files; a connection of yours is as you opened it, and on PostgreSQL roles have "
            "rights to write, or none"
        )
    if isinstance(target, str | Path | None):
        return Database(_opened(target, read_only))
    with lock_of(target):
        return Database(_opened(target, read_only))


def _opened(
    target: "str | Path | duckdb.DuckDBPyConnection | psycopg.Connection[Any] | None", read_only: bool
) -> Engine:
    if is_postgresql(target):
        engine: Engine = late("sparseeinsum.engines.postgresql.opening").open_postgresql(target)
        return engine
    if isinstance(target, str) and "://" in target:
        raise EngineError(f"{target.split('://')[0]} is not supported; this version runs on DuckDB and PostgreSQL")
    return open_duckdb(target, read_only)


class Database:
    """Tensors in a database, and what is computed from them. Made by `connect`.

    Threads may share one: a call waits for those of others on the same connection. Work at the same time takes a
    connection each. A stream belongs to the thread that opened it; others use another connection while it is open.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __repr__(self) -> str:
        return f"<{self._engine.title} database>"  # asks the database nothing: it may be busy

    @property
    def connection(self) -> Any:  # noqa: ANN401  # of the engine's driver, whose types are its own
        """The connection of the engine's driver, for SQL of your own: a DuckDBPyConnection."""
        return self._engine.connection

    @property
    def costs(self) -> str:
        """Name of the constants that plans are priced with: of the engine, and the kind of functions that it has."""
        return self._engine.constants_name

    @synchronized
    def tensor(
        self,
        name: str,
        data: object,
        axes: Sequence[str] | None = None,
        shape: Sequence[int | None] | None = None,
        fill: Number | None = None,
        dtype: str | None = None,
        promoted: Sequence[str] | Mapping[str, int] | None = None,
        duplicates: str = "error",
        order: Sequence[str] = (),
        keys: Mapping[str, str] | None = None,
        index: Sequence[str] | None = None,
        value: str | None = None,
        distribute: str | None = None,
    ) -> StoredTensor:
        """Load a tensor into a table of its own name, in place of one loaded before.

        Args:
            name: Of the tensor and its table.
            data: An array of numpy, torch or xarray, or nested sequences; a sparse one of scipy, torch or the package
                sparse; (coordinates of shape (rank, n), values); or rows of index columns, then the value: a frame of
                pandas or polars, an Arrow table, reader or data set, a relation of DuckDB, the name of a table or view,
                or the path of a Parquet, CSV or JSON file. Readers, lazy frames and what the database reads itself
                need not fit into memory.
            axes: Names of the axes; by default those of xarray's dimensions, of index columns and of levels of a pandas
                index, else dim_0, dim_1, ...
            shape: Bounds of the axes; those of the data by default, or of the result that they come from, where Arrow
                tables and Parquet files tell.
            fill: Value of every index that the data lack: any number of the dtype, inf as well, but not NaN; by default
                the fill_value of an array of the package sparse, or the fill of the result that they come from, else 0.
                It is that of what a sparse matrix of scipy or torch does not store, too, in place of 0; entries that
                its tocoo() lists keep their values.
            dtype: float64, float32, int64, bool, complex128 or complex64. By default that of the data, or the one that
                holds them all: narrower whole numbers become int64, float16 float32. Values are converted exactly or
                refused, but for rounding to a floating-point dtype of fewer digits.
            promoted: Axes that become key columns of the table; the others lie inside arrays. A mapping gives each a
                tile, the indices that one key stands for, as in {"i": 64, "j": 64} for blocks. By default sparse data
                are stored with all axes promoted, dense data with the first. Large sparse matrices that take less as
                arrays, as those of scipy in PostgreSQL do if more than a fifth is set, are stored as dense data are.
            duplicates: `error` refuses a coordinate that is given twice, `sum` adds its values (of bool: whether any is
                true).
            order: Key columns by which to order the rows of the table. Sums over groups are faster where rows come in
                the order of the groups. By default sparse data are stored in the order of the axes.
            keys: Dictionaries of axes, as in {"src": "person", "dst": "person"}, whose columns in a frame hold natural
                keys: texts, dates, timestamps, UUIDs or whole numbers. A dictionary gets the keys that it lacks; its
                size is the bound of the axis. By default columns of texts, dates, timestamps and UUIDs have a
                dictionary of the name of their axis, and whole numbers are indices. In other data indices are
                positions in the dictionary, which must be there.
            index: ColumnSelection of indices of rows, in axis order; by default all but that of the values.
            value: Column of values of rows; by default the last one, or, where `index` is given, none: every row counts
                as 1.
            distribute: On a Citus cluster, the axis whose key column is the distribution column of the table, or
                `replicated` for a reference table, which every machine has whole. By default small data are replicated,
                and others distributed by their first key column.

        Raises:
            DataError: The data are no tensor; the first such row is named, and the database is as it was.
            ShapeError: Axes, shape and data do not fit together.
            CatalogueError: A table of that name is there that was not loaded as a tensor, or a tensor whose name
                differs only in case; or there is no such table, view or file to read.
        """
        if duplicates not in ("error", "sum"):
            raise ValueError(f"duplicates {duplicates!r} is neither 'error' nor 'sum'")
        description = completed_from_metadata(
            TensorDescription(name, axes, shape, fill, dtype, keys or {}), data, index
        )
        given = read(description, data, ColumnSelection(index, value))
        return load(self._engine, description, given, promoted, duplicates == "sum", order, distribute)

    @synchronized
    def tensor_from_table(
        self,
        name: str,
        relation: str | Path,
        index: Sequence[str],
        value: str | None = None,
        shape: Sequence[int | None] | None = None,
        axes: Sequence[str] | None = None,
        dtype: str | None = None,
        fill: Number | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> StoredTensor:
        """Make a tensor of a table, view, or Parquet, CSV or JSON file, one entry a row; nothing is copied.

        A tensor of the same name gives way; if it was loaded, so does its table.

        Args:
            name: Of the tensor.
            relation: Name of a table or view, or path of a file.
            index: ColumnSelection of indices, in axis order.
            value: Column of values; without it every row counts as 1. Complex values are arrays of two, [real,
                imaginary], and need a dtype.
            shape: Bounds; by default one more than the greatest index of every column, or in a Parquet file of a
                result those of that.
            axes: Names of the axes; those of the index columns by default.
            dtype: By default that of the column: int64 for whole numbers, bool for BOOLEAN, float64 for decimals with
                digits behind the point and without a column. Values are read exactly or refused, but for rounding of
                decimals and of DOUBLE to a floating-point dtype.
            fill: Value of every index that no row has, as for `tensor`; rows may hold it, too. By default 0, or in a
                Parquet file of a result that of this.
            keys: Dictionaries of axes, as for frames in `tensor`. Keys are looked up whenever the rows are read; if the
                relation has got new ones since, that is an error, and to call this again adds them.

        Raises:
            CatalogueError: The relation or a column is not there.
            DataError: The rows are no tensor; the first such row is named.
        """
        description = completed_from_metadata(
            TensorDescription(name, axes, shape, fill, dtype, keys or {}), relation, index
        )
        return register_relation(self._engine, description, str(relation), index, value)

    @synchronized
    def tensors(self) -> dict[str, StoredTensor]:
        """The tensors that this database knows, by name."""
        with self._engine.protected():
            return Catalogue(self._engine).all()

    @synchronized
    def dictionaries(self) -> dict[str, StoredDictionary]:
        """The dictionaries of natural keys that this database has, by name, with their types and sizes."""
        with self._engine.protected():
            return Dictionaries(self._engine).all()

    @synchronized
    def dictionary(self, name: str) -> pa.Array:
        """All keys of a dictionary, in the order of their indices.

        Raises:
            CatalogueError: There is none of that name.
        """
        dictionaries = Dictionaries(self._engine)
        with self._engine.transaction():
            return dictionaries.keys(dictionaries.find(name).dictionary)

    @synchronized
    def drop_dictionary(self, name: str) -> None:
        """Drop a dictionary that no tensor uses.

        Raises:
            CatalogueError: There is none of that name, or a tensor uses it.
        """
        Dictionaries(self._engine).drop(name)

    @synchronized
    def grant(self, role: str) -> None:
        """Let a role of a PostgreSQL database use its tensors: see all, add tensors and dictionaries, change its own.

        Rights to the tables that hold them are granted in SQL, as to other tables. A tensor of another role is read
        where that runs nothing which that role wrote.

        Args:
            role: Its name, or `public` for all.

        Raises:
            EngineError: There is no such role, the user may not grant that, or the database has no roles.
        """
        grant(self._engine, role)

    @synchronized
    def drop_tensor(self, name: str) -> StoredTensor:
        """Forget a tensor, with the table that it was loaded into; tables, views and files of yours stay.

        Returns:
            What it was.

        Raises:
            CatalogueError: There is no such tensor.
            EngineError: Its table cannot go, as where a view of yours reads it; the database is as it was.
        """
        return drop_tensor(self._engine, name)

    @synchronized
    def statistics(self, name: str, tilings: Iterable[Sequence[int]] = ()) -> Statistics:
        """T and V of a tensor, measured now.

        Args:
            name: Of the tensor.
            tilings: Decompositions whose tuples to count, too: for every axis a tile, or 0 where it has no key.

        Raises:
            CatalogueError: There is no such tensor, or its table is gone.
            DataError: Its rows are no tensor.
            PlanError: Tiles are not one for every axis.
        """
        return measure_tensor(name, [tuple(tiles) for tiles in tilings], self._engine)

    @synchronized
    def check(self, source: Source, folder: Path | None, parameters: Mapping[str, Number]) -> "list[Finding]":
        """All that is wrong with a program on the tensors of this database; nothing is planned or run.

        Args:
            source: The text.
            folder: Where the files are that it includes; None where it must not.
            parameters: Numbers in place of those that the text declares.

        Raises:
            SemanticsError: A parameter is given that the text does not declare.
        """
        checking = late("sparseeinsum.pipeline.checking")
        findings: list[Finding] = checking.check_source(source, folder, parameters, self._engine)
        return findings

    @synchronized
    def shape_of(self, name: str) -> Sequence[int | None] | None:
        """The bounds of the axes of a tensor, or of a table that is read as one, where those are not known yet None.

        None where this database has neither of that name.
        """
        return shapes_in(self._engine)(name)

    @synchronized
    def program(self, text: str, /, folder: Path | None = None, **parameters: Number) -> Program:
        """Read program text as `se.program` does, where this database says which names without labels are vectors.

        Args:
            text: Program text.
            folder: Where the files are that it includes; None where it must not.
            parameters: Numbers in place of those that the text declares.

        Raises:
            ParseError: With line, column and a hint.
            SemanticsError: A parameter is given that the text does not declare.
        """
        return lower_text(text, parameters, folder, shapes_in(self._engine))

    def aggregate(
        self,
        name: str,
        fold: Callable[..., Any],
        identity: float | Sequence[float],
        combine: Callable[..., Any],
        repeat: Callable[..., Any] | None = None,
    ) -> None:
        """Make functions of yours an aggregate of programs, as `se.aggregate` does for all databases.

        Raises:
            SemanticsError: As `se.aggregate`.
        """
        aggregate(name, fold, identity, combine, repeat)

    @synchronized
    def read_program(self, path: str | Path, /, **parameters: Number) -> Program:
        """Read a program from a file as `se.read_program` does, with this database's vectors, as in `program`.

        Args:
            path: The file.
            parameters: Numbers in place of those that the files declare.

        Raises:
            OSError: There is no such file, or it cannot be read.
            ParseError: With file, line, column and a hint.
            SemanticsError: A parameter is given that the text does not declare.
        """
        return lower_file(Path(path), parameters, shapes_in(self._engine))

    @overload
    def plan(
        self,
        program: Program | str,
        optimizer: str = "dp",
        *,
        top: None = None,
        indexes: bool = True,
        parameters: Mapping[str, Number] | None = None,
        workers: int | None = None,
        **options: Unpack[PlanningOptions],
    ) -> Plan: ...

    @overload
    def plan(
        self,
        program: Program | str,
        optimizer: str = "dp",
        *,
        top: int,
        indexes: bool = True,
        parameters: Mapping[str, Number] | None = None,
        workers: int | None = None,
        **options: Unpack[PlanningOptions],
    ) -> list[Plan]: ...

    @synchronized
    def plan(
        self,
        program: Program | str,
        optimizer: str = "dp",
        *,
        top: int | None = None,
        indexes: bool = True,
        parameters: Mapping[str, Number] | None = None,
        workers: int | None = None,
        **options: Unpack[PlanningOptions],
    ) -> Plan | list[Plan]:
        """Choose a decomposition for every EinSum of a program.

        Args:
            program: From `se.program`, or its text.
            optimizer: `dp`, the dynamic programme; `cover`, `greedy`, `relational` and `dense`, the baselines.
            memory_limit: Bytes that a run may take beyond what is there before, as in `4GB`: aggregation states,
                results that are returned, and the database's buffers, which get 24 MB at least. The database's limit
                and threads are lowered during planning and runs, and a run that takes more than expected is planned
                anew for less. The database's own limit by default.
            pin: For some results, exactly the labels to promote in the EinSum that computes them; a mapping gives each
                a tile, of how many indices a tuple holds, as in {"Y": {"i": 64}}.
            layout: `entries`: results have a number a row, unless promoted by hand; `any`: as they are cheapest.
            outputs: Results to return besides those that nothing reads.
            nonfinite: `error` ends a run where values turn NaN or infinite out of finite ones, and names the result;
                `allow` computes with them as IEEE 754 says, which is dearer: nothing absent cancels them.
            tiles: Tiles of several indices that labels may have besides those that tensors are stored in: whole
                numbers, or `auto` for some that fit into caches.
            estimator: How sizes of results are estimated: `uniform`, entries spread evenly; `sketch`, by the counts of
                entries at every index; `exact`, counted by a query before planning, which may take as long as the
                relational plan.
            rewrite: Whether what several statements compute, of results that nothing else reads, may be computed by
                an equal formula, or in another order, where that is expected to be cheaper. Results are the same but
                for rounding.
            top: Return a list of so many plans, best first, instead of the best.
            indexes: Whether operands may be kept in memory while a statement runs, and read by index. DuckDB before
                version 2 cannot: False makes SQL that runs there, too, with the extension file.
            parameters: For program text, numbers in place of those that it declares, as in `param eta = 0.1`.
            workers: A power of two: labels are cut into as many pieces of work, so that workers that have one each
                would send each other little. Keys stand for the pieces, or for parts of them; `plan.partitioned`
                tells what would be moved. The cost is that of all workers together, with what is moved
                and what they wait for the busiest.

        Raises:
            CatalogueError: A tensor is not there.
            ShapeError: Labels and bounds do not fit.
            PlanError: No plan keeps to what is asked.
        """
        count = 1 if top is None else top
        asked = plan_options(optimizer, count, indexes, workers, **options)
        made = planning.make_plans(self._read(program, parameters), self._engine, asked)
        plans = [Plan(data, self._engine) for data in made]
        return plans[0] if top is None else plans

    @synchronized
    def load_plan(self, source: str | Path) -> Plan:
        """Take a plan that was saved, maybe for other data of the same shapes, for the tensors of this database.

        The program and its decompositions are those of the plan; sizes and costs are measured and expected anew.

        Args:
            source: A file that `Plan.save` wrote, or the text that `Plan.to_json` gave.

        Raises:
            PlanError: There is no such plan, a tensor has another shape, dtype or fill than the plan was made for, or
                the plan is not exact for the values that are here.
            CatalogueError: A tensor is not there.
        """
        return Plan(planning.load_plan(read_plan(source), self._engine), self._engine)

    @synchronized
    def write_dbt(self, plan: Plan, project: str | Path, name: str) -> tuple[Path, ...]:
        """Write a plan into a dbt project: models, their tests, and what the plan assumes of its inputs.

        Models fail where rows are such that the plan may not be exact for them.

        Args:
            plan: Made on this database.
            project: The folder with dbt_project.yml.
            name: Of the program, with which those of its models begin.

        Returns:
            The files, which replace those of an earlier call.

        Raises:
            DbtError: There is no such project, or a file of the user's stands in the way.
        """
        writing = imported("sparseeinsum.dbt_project.writing", "dbt", "writing models of dbt")
        written: tuple[Path, ...] = writing.write_models(plan.data, self._engine, Path(project), name)
        return written

    @synchronized
    def run(
        self,
        program: Program | Plan | str,
        into: Mapping[str, Destination] | None = None,
        optimizer: str = "dp",
        *,
        progress: bool | None = None,
        replan: bool = True,
        parameters: Mapping[str, Number] | None = None,
        deterministic: bool = False,
        **options: Unpack[PlanningOptions],
    ) -> Results:
        """Run a program or a plan, in one transaction.

        Args:
            program: A plan, a program, or program text.
            into: For some results, a permanent table or a Parquet file that takes them instead; replaced whole or not
                at all. It may be one that the program reads, but no table that a tensor was loaded into. Names that
                end in .parquet are of files; `se.Table(name, mode="append")` adds to a table.
            optimizer: As for `plan`, for programs; so are memory_limit, pin, layout, outputs, nonfinite, tiles,
                estimator and rewrite.
            progress: Whether to show progress; by default where standard error is a terminal.
            replan: Whether to look at the sizes of results on the way, and plan the rest anew where they are not as
                expected and that is expected to pay; results are the same, `explain(analyze=True)` tells of it.
            parameters: As for `plan`.
            deterministic: Whether to fold groups in a fixed order, in one thread and with no planning anew: runs of
                the same program or plan on the same tables give equal bits, where sums of floating-point numbers
                else differ in their last ones. A cluster cannot.

        Returns:
            Results by name, but those that went into tables and files.

        Raises:
            EngineError: The database refused a statement, which the error has; the database is as it was.
            PlanError: Results that are returned would leave too little of the memory limit.
            DataError: Rows cannot be added to a table: its columns are others, or it has such rows.
        """
        with targets_of(into or {}) as targets, shown_progress(progress) as show:
            asked = RunOptions(show, replan, deterministic)
            if isinstance(program, Plan):
                _check_no_parameters(parameters)
                return Results(running.run_plan(program.data, self._engine, targets, asked).results)
            wanted = plan_options(optimizer, **options)
            run = run_programs.run_program(self._read(program, parameters), self._engine, wanted, targets, asked)
            return Results(run.results)

    @synchronized
    def stream(
        self,
        program: Program | Plan | str,
        optimizer: str = "dp",
        *,
        progress: bool | None = None,
        replan: bool = True,
        parameters: Mapping[str, Number] | None = None,
        deterministic: bool = False,
        **options: Unpack[PlanningOptions],
    ) -> ResultStream:
        """Run a program or a plan, and read its results in batches while they are computed, however large they are.

        As in `with db.stream(program) as results: for batch in results["Y"]: ...`, where a batch is an Arrow
        RecordBatch with the columns of `TensorResult.arrow`. The transaction of the run ends with the stream.

        Args:
            program: As for `run`; so is all else.

        Raises:
            EngineError: The database refused a statement, which the error has. Reading raises it, too.
        """
        with ExitStack() as transaction, shown_progress(progress) as show:
            asked = RunOptions(show, replan, deterministic)
            if isinstance(program, Plan):
                _check_no_parameters(parameters)
                streamed = running.stream_plan(program.data, self._engine, asked)
            else:
                wanted = plan_options(optimizer, **options)
                streamed = run_programs.stream_program(self._read(program, parameters), self._engine, wanted, asked)
            deliveries = transaction.enter_context(streamed)
            return ResultStream(self._engine, deliveries, transaction.pop_all())

    @synchronized
    def relation(self, name: str) -> "TensorRelation":
        """A tensor as a relation of keys and arrays, for expressions of the tensor relational algebra.

        Key columns of its table are keys, in axis order; arrays are its arrays. `compute` computes what becomes of it.

        Args:
            name: Of the tensor.

        Raises:
            CatalogueError: There is no such tensor.
            DataError: Its rows are no tensor.
        """
        relation: TensorRelation = late(_RELATIONAL_QUERIES).open_relation(name, self._engine)
        return relation

    @synchronized
    def compute(self, relation: "TensorRelation") -> TensorResult:
        """Compute a relation in the database.

        Returns:
            A tensor whose first axes, k0, k1, ..., are the keys, and whose others, a0, a1, ..., are those of arrays;
            keys that have no tuple hold its fill, 0.

        Raises:
            AlgebraError: It has what SQL does not compute, or makes a key twice.
            EngineError: A tensor has changed since the relation was written, or the database refused a statement.
        """
        result: TensorResult = late(_RELATIONAL_QUERIES).compute_relation(relation, self._engine)
        return result

    @synchronized
    def relation_sql(self, relation: "TensorRelation") -> str:
        """The SELECT that computes a relation."""
        text: str = late(_RELATIONAL_QUERIES).relation_sql(relation, self._engine)
        return text

    @synchronized
    def close(self) -> None:
        """Close the database, if it was opened here."""
        self._engine.close()

    def _read(self, program: Program | str, parameters: Mapping[str, Number] | None) -> Program:
        if isinstance(program, str):
            return lower_text(program, parameters or {}, shapes=shapes_in(self._engine))
        _check_no_parameters(parameters)
        if not isinstance(program, Program):
            raise TypeError(f"{program!r} is no program; se.program makes one, as in se.program({{'Y': ...}})")
        return program

    def __enter__(self) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Database is a connection, which no other process can have; call se.connect in each process")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_no_parameters(parameters: Mapping[str, Number] | None) -> None:
    """Refuse parameters for what has its numbers.

    Raises:
        SemanticsError: There are some.
    """
    if parameters:
        name = next(iter(parameters))
        raise SemanticsError(
            f"the parameter {name} is given to a program that was read before; give it where the text is, as in "
            f"se.program(text, {name}=...) or se.read_program(path, {name}=...)"
        )
