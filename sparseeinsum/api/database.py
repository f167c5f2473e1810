"""API: a database, in which users load tensors, plan programs and run them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack, overload

import duckdb
import pyarrow as pa

from sparseeinsum.api.iterations import IterationResult
from sparseeinsum.api.opening import open_engine
from sparseeinsum.api.plans import DetachedPlan, Plan
from sparseeinsum.api.prepared_programs import PreparedProgram
from sparseeinsum.api.tensor_listing import TENSOR_COLUMNS, listed_tensors, tensor_rows
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.locking import lock_of, synchronized
from sparseeinsum.errors import SemanticsError
from sparseeinsum.extras import imported, late
from sparseeinsum.html_tables import html_table
from sparseeinsum.language.aggregate_registration import aggregate
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowering import lower_file, lower_text
from sparseeinsum.language.syntax import SourceText
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.loading.load import load, register_relation
from sparseeinsum.loading.sources.input_data import ColumnSelection
from sparseeinsum.loading.sources.readers import read
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.pipeline import planning, prepared_programs, run_programs, running
from sparseeinsum.pipeline.plan_cache import PlanCache
from sparseeinsum.pipeline.plan_options import PlanningOptions, plan_options
from sparseeinsum.pipeline.progress import shown_progress
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.plans.saved.plan_files import read_plan
from sparseeinsum.results.output_targets import Destination, targets_of
from sparseeinsum.results.results import Results, TensorResult
from sparseeinsum.results.streams import ResultStream
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

    from sparseeinsum.algebra.tensor_relations import TensorRelation
    from sparseeinsum.pipeline.checking import Finding

_RELATIONAL_QUERIES = "sparseeinsum.api.relational_queries"
_WEIGHTS = "sparseeinsum.models.named_weights"


@one_frame
def connect(
    target: "str | Path | duckdb.DuckDBPyConnection | psycopg.Connection[Any] | None" = None,
    read_only: bool = False,
) -> "Database":
    """Open a database.

    Args:
        target: The path of a DuckDB file, a DuckDB connection that was opened after `import sparseeinsum`, the address
            of a PostgreSQL database as in postgresql://user@host/database, or a psycopg connection. None opens a DuckDB
            database in memory.
        read_only: Whether to open a DuckDB file only for reading; several processes can do so at the same time.

    Raises:
        EngineError: The database cannot be opened, or lacks the functions of this package.
    """
    if isinstance(target, str | Path | None):
        return Database(open_engine(target, read_only))
    with lock_of(target):
        return Database(open_engine(target, read_only))


class Database:
    """A database of tensors. `connect` opens one.

    Threads can share a database: a call waits for the calls of other threads on the same connection. To work in
    parallel, open a connection per thread. While a stream is open, only the thread that opened it can use the
    connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._plans = PlanCache()

    def __repr__(self) -> str:
        return f"<{self._engine.title} database {self._engine.place}>"  # asks the database nothing: it may be busy

    def _repr_html_(self) -> str:
        tensors, note = listed_tensors(self._engine)
        return html_table(repr(self), TENSOR_COLUMNS, tensor_rows(tensors), note)

    @property
    def connection(self) -> Any:  # noqa: ANN401  # of the engine's driver, whose types are its own
        """The connection of the driver, for your own SQL: a DuckDBPyConnection or a psycopg.Connection."""
        return self._engine.connection

    @property
    def costs(self) -> str:
        """The name of the cost constants, which depends on the engine and on the kind of its functions."""
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
        """Load a tensor into a table of the same name; a tensor of that name that was loaded before is replaced.

        Args:
            name: The name of the tensor and its table.
            data: An array of numpy, torch or xarray, or nested sequences; a sparse array of scipy, torch or the package
                sparse; a pair of coordinates, of shape (rank, n), and values; or rows of index columns followed by the
                value: a result, a frame of pandas or polars, an Arrow table, reader or data set, a list or an iterator
                of these, a relation of DuckDB, the name of a table or view, or the path of a Parquet, CSV or JSON file.
                Readers, lazy frames, iterators, tables and files need not fit into memory. NULL is refused; NaN is a
                number.
            axes: The names of the axes. By default those of xarray's dimensions, of index columns or of the levels of
                a pandas index, otherwise dim_0, dim_1, ...
            shape: The bounds of the axes. By default those of the data; Arrow tables and Parquet files of results
                contain their bounds.
            fill: The value at every index that the data lack: any number of the dtype except NaN. By default the
                fill_value of an array of the package sparse, the fill of a result, or 0. It also replaces the 0 of
                entries that a sparse matrix of scipy or torch does not store.
            dtype: float64, float32, int64, bool, complex128 or complex64. By default that of the data: narrower
                integers become int64, and float16 becomes float32. Values are converted exactly or refused; only a
                conversion to a floating-point dtype may round.
            promoted: The axes that become key columns of the table; the other axes are inside arrays. A mapping gives
                the tile of every promoted axis, as in {"i": 64, "j": 64} for blocks. By default, sparse data are stored
                with all axes promoted and dense data with the first one. Large sparse matrices that take less space as
                arrays are stored like dense data.
            duplicates: `error` refuses a coordinate that occurs twice; `sum` adds its values, or computes `any` for
                bool.
            order: Key columns by which the rows of the table are sorted. Aggregates are faster if rows are sorted by
                groups. By default, sparse data are sorted by the axes.
            keys: The dictionaries of axes, as in {"src": "person", "dst": "person"}. The columns of these axes in a
                frame hold natural keys: texts, dates, timestamps, UUIDs or integers. New keys are added to the
                dictionary, and its size is the bound of the axis. By default, columns of texts, dates, timestamps and
                UUIDs have a dictionary with the name of the axis, and integers are indices. In other data, indices are
                positions in an existing dictionary.
            index: The index columns of rows, in axis order; by default all columns except that of the values.
            value: The value column of rows. By default the last column; if `index` is given, every row counts as 1.
            distribute: On a Citus cluster, the axis whose key column distributes the table, or `replicated` for a
                reference table, of which every machine has a copy. By default, small data are replicated, and other
                data are distributed by their first key column.

        Raises:
            DataError: The data are not a tensor; the message names the first such row, and the database is unchanged.
            ShapeError: Axes, shape and data do not fit together.
            CatalogueError: A table of that name was not loaded as a tensor, or another tensor has a name that differs
                only in case; or the table, view or file to read does not exist.
        """
        if duplicates not in ("error", "sum"):
            raise ValueError(f"duplicates {duplicates!r} is neither 'error' nor 'sum'")
        description = completed_from_metadata(
            TensorDescription(name, axes, shape, fill, dtype, keys or {}), data, index
        )
        source = read(description, data, ColumnSelection(index, value))
        return load(self._engine, description, source, promoted, duplicates == "sum", order, distribute)

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
        """Use a table, a view, or a Parquet, CSV or JSON file with one entry per row as a tensor, without a copy.

        A tensor of the same name is replaced; if it was loaded, its table is dropped.

        Args:
            name: The name of the tensor.
            relation: The name of a table or view, or the path of a file.
            index: The index columns, in axis order.
            value: The value column; without it, every row counts as 1. Complex values are arrays [real, imaginary],
                and need a dtype.
            shape: The bounds of the axes. By default one more than the greatest index of every column, or the bounds
                that a Parquet file of a result contains.
            axes: The names of the axes; by default those of the index columns.
            dtype: By default that of the column: int64 for integers, bool for BOOLEAN, and float64 for decimals with
                a fraction and without a value column. Values are read exactly or refused; only decimals and DOUBLE
                may be rounded to a floating-point dtype.
            fill: The value at every index without a row, as for `tensor`; rows can hold it as well. By default 0, or
                the fill that a Parquet file of a result contains.
            keys: The dictionaries of axes, as for frames in `tensor`. Keys are looked up whenever rows are read. Keys
                that were added to the relation later raise an error; call this method again to add them.

        Raises:
            CatalogueError: The relation or a column does not exist.
            DataError: The rows are not a tensor; the message names the first such row.
        """
        description = completed_from_metadata(
            TensorDescription(name, axes, shape, fill, dtype, keys or {}), relation, index
        )
        return register_relation(self._engine, description, str(relation), index, value)

    @synchronized
    def load_weights(
        self,
        source: "str | Path | Mapping[str, object]",
        prefix: str = "",
        names: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Load the weights of a model into tensors.

        The tensor of `encoder.layers.0.weight` is `encoder_layers_0_weight`: `_` replaces each character that a name
        cannot have, and begins a name that would begin with a digit. float16 and bfloat16 become float32, which
        holds all their values; other dtypes are converted as by `tensor`.

        Args:
            source: A file of safetensors, an .npz file, a file with a state dict of torch (.pt, .pth, .bin), or a dict
                of arrays or tensors by name, such as `model.state_dict()`.
            prefix: What the name of every tensor begins with.
            names: The weights to load, by their names in `source`, with the names of their tensors; by default all.

        Returns:
            The names of the tensors, by the names in `source`.

        Raises:
            OSError: The file cannot be read.
            DataError: It is no such file, weights are no numbers, or two names would become one; nothing is loaded
                unless the values of a later one are refused.
            PackageError: The package safetensors or torch is needed and not installed.
        """
        weights: dict[str, tuple[str, object]] = late(_WEIGHTS).named_weights(source, prefix, names)
        for tensor, data in weights.values():
            self.tensor(tensor, data)
        return {name: tensor for name, (tensor, _) in weights.items()}

    @synchronized
    def save_weights(self, path: str | Path, names: Mapping[str, str] | Iterable[str] | None = None) -> None:
        """Write tensors to a file as dense arrays of their dtypes: .safetensors, .npz, or .pt for torch.

        The file replaces an existing one when it is complete.

        Args:
            path: The file; its suffix gives the format.
            names: The tensors, by their names in the file, as `load_weights` returns them; or the names of tensors,
                which they have in the file, too. By default all tensors.

        Raises:
            CatalogueError: A tensor does not exist.
            OSError: The file cannot be written.
            DataError: The suffix is not known, or the format lacks a dtype.
            PackageError: The package safetensors or torch is needed and not installed.
        """
        stored = self.tensors()
        tensors: dict[str, str] = late(_WEIGHTS).tensors_to_save(names, list(stored))
        arrays = {}
        for name, tensor in tensors.items():
            labels = ", ".join(f"i{axis}" for axis in range(len(stored[tensor].tensor.axes)))
            copy = f"{tensor}_"
            copied = self.run(f"{copy}[{labels}] = {tensor}[{labels}]", layout="any", nonfinite="allow")
            arrays[name] = copied[copy].to_numpy()
        late("sparseeinsum.models.weight_files").write_weights(Path(path), arrays)

    @synchronized
    def tensors(self) -> dict[str, StoredTensor]:
        """The tensors of this database, by name."""
        with self._engine.protected():
            return dict(Catalogue(self._engine).all())

    @synchronized
    def dictionaries(self) -> dict[str, StoredDictionary]:
        """The dictionaries of natural keys in this database, by name, with their types and sizes."""
        with self._engine.protected():
            return Dictionaries(self._engine).all()

    @synchronized
    def dictionary(self, name: str) -> pa.Array:
        """All keys of a dictionary, in the order of their indices.

        Raises:
            CatalogueError: There is no such dictionary.
        """
        dictionaries = Dictionaries(self._engine)
        with self._engine.transaction():
            return dictionaries.keys(dictionaries.find(name).dictionary)

    @synchronized
    def drop_dictionary(self, name: str) -> None:
        """Drop a dictionary that no tensor uses.

        Raises:
            CatalogueError: There is no such dictionary, or a tensor uses it.
        """
        Dictionaries(self._engine).drop(name)

    @synchronized
    def grant(self, role: str) -> None:
        """Let a role of a PostgreSQL database see all tensors, add tensors and dictionaries, and change its own.

        Grant rights to the tables of tensors in SQL, as for other tables. A role can read a tensor of another role
        unless that would run code which the other role wrote.

        Args:
            role: The name of the role, or `public` for all.

        Raises:
            EngineError: The role does not exist, the user may not grant rights, or the database has no roles.
        """
        grant(self._engine, role)

    @synchronized
    def drop_tensor(self, name: str) -> StoredTensor:
        """Drop a tensor and the table that it was loaded into; your own tables, views and files stay.

        Returns:
            The dropped tensor.

        Raises:
            CatalogueError: There is no such tensor.
            EngineError: Its table cannot be dropped, for example because a view reads it; the database is unchanged.
        """
        return drop_tensor(self._engine, name)

    @synchronized
    def statistics(self, name: str, tilings: Iterable[Sequence[int]] = ()) -> Statistics:
        """Measure the statistics of a tensor: T, the number of entries, and V, the distinct indices of every axis.

        Args:
            name: The name of the tensor.
            tilings: Decompositions whose tuples are counted as well: for every axis a tile, or 0 for a demoted axis.

        Raises:
            CatalogueError: There is no such tensor, or its table does not exist.
            DataError: Its rows are not a tensor.
            PlanError: A tiling does not have one tile per axis.
        """
        return measure_tensor(name, [tuple(tiles) for tiles in tilings], self._engine)

    @synchronized
    def check(self, source: SourceText, folder: Path | None, parameters: Mapping[str, Number]) -> "list[Finding]":
        """All that is wrong with a program on the tensors of this database; nothing is planned or run.

        Args:
            source: The program text.
            folder: The folder of the files that the text includes; None forbids includes.
            parameters: Values that replace those that the text declares.

        Raises:
            SemanticsError: The text does not declare one of the parameters.
        """
        checking = late("sparseeinsum.pipeline.checking")
        findings: list[Finding] = checking.check_source(source, folder, parameters, self._engine)
        return findings

    @synchronized
    def shape_of(self, name: str) -> Sequence[int | None] | None:
        """The bounds of a tensor, or of a table that can be read as one; a bound that is not known yet is None.

        Returns None if the database has neither.
        """
        return shapes_in(self._engine)(name)

    @synchronized
    def program(self, text: str, /, folder: Path | None = None, **parameters: Number) -> Program:
        """Read program text as `se.program` does; the tensors of this database give the ranks of names without labels.

        Args:
            text: The program text.
            folder: The folder of the files that the text includes; None forbids includes.
            parameters: Values that replace those that the text declares.

        Raises:
            ParseError: The text is not a program; the error has the line, the column and a hint.
            SemanticsError: The text does not declare one of the parameters.
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
        """Register Python functions as an aggregate that programs can use, as `se.aggregate` does.

        Raises:
            SemanticsError: As for `se.aggregate`.
        """
        aggregate(name, fold, identity, combine, repeat)

    @synchronized
    def read_program(self, path: str | Path, /, **parameters: Number) -> Program:
        """Read a program from a file as `se.read_program` does, with the ranks of this database's tensors.

        Args:
            path: The path of the file.
            parameters: Values that replace those that the files declare.

        Raises:
            OSError: The file does not exist or cannot be read.
            ParseError: The text is not a program; the error has the file, the line, the column and a hint.
            SemanticsError: The files do not declare one of the parameters.
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
            program: A program from `se.program`, or program text.
            optimizer: `dp` for the dynamic programme; `cover`, `greedy`, `relational` or `dense` for a baseline.
            memory_limit: The bytes that a run may take in addition to those in use, as in `4GB`: aggregation states,
                returned results, and buffers of the database, which get at least 24 MB. Planning and runs lower the
                limit and the threads of the database. A run that needs more than expected is planned again for less.
                By default the limit of the database.
            pin: The labels to promote, by the result whose EinSum promotes exactly those; a mapping gives their
                tiles, as in {"Y": {"i": 64}}.
            layout: `entries` returns one value per row, unless labels are promoted in the program; `any` returns
                results in the cheapest layout.
            outputs: Results to return besides those that no other statement reads.
            nonfinite: `error` ends a run when finite values become NaN or infinite, and names the result. `allow`
                computes with them by IEEE 754; this is slower, because absent entries no longer cancel.
            tiles: Tile sizes that labels may have, besides those of stored tensors: integers greater than 1, or
                `auto` for sizes that fit into caches.
            estimator: How the sizes of results are estimated: `uniform` assumes that entries are spread evenly,
                `sketch` uses the number of entries at every index, and `exact` counts by a query, which can take as
                long as the relational plan.
            rewrite: Whether a cheaper equal formula or another contraction order may compute several statements
                together, if nothing else reads the intermediates. Results differ only by rounding.
            top: The number of plans to return as a list, best first; by default the best plan is returned.
            indexes: Whether an operand may stay in memory and be read by index while a statement runs. DuckDB before
                version 2 cannot do that: False makes SQL that runs there with the extension file.
            parameters: Values that replace those that program text declares, as in `param eta = 0.1`.
            workers: Labels are cut into this number of pieces of work, so that one worker per piece transfers little.
                Keys number the pieces or parts of them, and `plan.partitioned` describes the transfer. The cost
                is that of all workers together, including transfer and waiting.

        Raises:
            CatalogueError: A tensor does not exist.
            ShapeError: Labels and bounds do not fit.
            PlanError: No plan satisfies the options.
        """
        count = 1 if top is None else top
        plan_choices = plan_options(optimizer, count, indexes, workers, **options)
        made = planning.make_plans(self._read(program, parameters), self._engine, plan_choices)
        plans = [Plan(data, self._engine) for data in made]
        return plans[0] if top is None else plans

    @synchronized
    def load_plan(self, source: str | Path | DetachedPlan) -> Plan:
        """Read a saved plan for the tensors of this database, which whose shapes must be the same.

        The program and its decompositions are those of the saved plan; statistics are measured again.

        Args:
            source: A file that `Plan.save` wrote, text from `Plan.to_json`, or a plan that was pickled.

        Raises:
            PlanError: The plan does not exist, a tensor differs in shape, dtype or fill from that of the plan, or the
                plan is not exact for the values in this database.
            CatalogueError: A tensor does not exist.
        """
        text = source.text if isinstance(source, DetachedPlan) else source
        return Plan(planning.load_plan(read_plan(text), self._engine), self._engine)

    @synchronized
    def write_dbt(self, plan: Plan, project: str | Path, name: str, dialect: str | None = None) -> tuple[Path, ...]:
        """Write a plan into a dbt project: models, tests, and checks of what the plan assumes about its inputs.

        Models fail if the rows of an input have changed so that the plan may not be exact. For another engine, that is
        left to the tests, which `dbt build` runs before the models.

        Args:
            plan: A plan made on this database.
            project: The folder with dbt_project.yml.
            name: A name for the program; the names of its models begin with it.
            dialect: The dialect of the models, if the project is for another engine than this database; see
                `Plan.sql`. The plan must have no arrays, as those of `optimizer="relational"`.

        Returns:
            The paths of the files, which replace those of an earlier call.

        Raises:
            DbtError: There is no such project, or one of the user's files has the name of a model.
            PlanError: The other engine cannot compute the plan exactly.
        """
        writing = imported("sparseeinsum.dbt_project.project_files", "dbt", "writing models of dbt")
        written: tuple[Path, ...] = writing.write_models(plan.data, self._engine, Path(project), name, dialect)
        return written

    @synchronized
    def run(
        self,
        program: Program | Plan | DetachedPlan | str,
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
            program: A plan, also one that was pickled; a program; or program text.
            into: A table or a Parquet file for a result, by the name of the result; the result is not returned. The
                table or file is replaced completely or not at all. It can be one that the program reads, but not a
                table that a tensor was loaded into. A name that ends in .parquet is a file; `se.Table(name,
                mode="append")` adds rows to a table.
            optimizer: As for `plan`; memory_limit, pin, layout, outputs, nonfinite, tiles, estimator and rewrite as
                well. They are for programs; a plan has its own.
            progress: Whether to show progress; by default if standard error is a terminal, or in a notebook.
            replan: Whether to compare the sizes of intermediates with the estimates during the run, and to plan the
                rest again if that is likely to pay. Results do not change; `explain(analyze=True)` reports it.
            parameters: As for `plan`.
            deterministic: Whether to aggregate in a fixed order, in one thread and without planning again. Then runs
                on the same tables return equal bits; otherwise sums of floating-point numbers can differ in their
                last bits. A cluster does not support it.

        Returns:
            The results by name, except those that went into tables and files.

        Raises:
            EngineError: The database refused a statement, which the error contains; the database is unchanged.
            PlanError: The returned results would leave too little of the memory limit.
            DataError: Rows cannot be added to a table, because its columns differ or it has rows with their keys.
        """
        with targets_of(into or {}) as targets, shown_progress(progress, self._engine) as show:
            run_options = RunOptions(show, replan, deterministic)
            if isinstance(program, DetachedPlan):
                program = self.load_plan(program)
            if isinstance(program, Plan):
                _check_no_parameters(parameters)
                return Results(running.run_plan(program.data, self._engine, targets, run_options).results)
            planning_options = plan_options(optimizer, **options)
            run = run_programs.run_program(
                self._read(program, parameters), self._engine, planning_options, targets, run_options, self._plans
            )
            return Results(run.results)

    @synchronized
    def prepare(
        self,
        program: Program | str,
        inputs: Sequence[str],
        optimizer: str = "dp",
        *,
        parameters: Mapping[str, Number] | None = None,
        **options: Unpack[PlanningOptions],
    ) -> PreparedProgram:
        """Plan a program and prepare its statements, to run it often with new values of some inputs.

        As in `step = db.prepare("Y[i] = sum(A[i, j] * X[j])", inputs=["X"])`, then `step.run(X=array)["Y"]`. Nothing is
        planned or written again. Other inputs are read as they are at the time of each run.

        Args:
            program: A program from `se.program`, or program text.
            inputs: Names of inputs that runs are given values of. They are stored tensors, which give the shapes and
                layouts and stay as they are.
            optimizer: As for `plan`, like parameters and all further options.

        Raises:
            PlanError: The program reads no such input, it has natural keys, no plan satisfies the options, or the
                database is a cluster.
            CatalogueError: A tensor does not exist.
            ShapeError: Labels and bounds do not fit.
        """
        names = [inputs] if isinstance(inputs, str) else list(inputs)
        choices = replace(plan_options(optimizer, **options), searches_all=True)
        prepared = prepared_programs.PreparedProgram(self._read(program, parameters), self._engine, choices, names)
        return PreparedProgram(prepared, self._engine)

    @synchronized
    def iterate(
        self,
        program: Program | str,
        state: Mapping[str, str] | None = None,
        steps: int = 100,
        until: str | None = None,
        into: Mapping[str, str] | None = None,
        history: Sequence[str] = (),
        optimizer: str = "dp",
        *,
        resume: bool = False,
        commit_seconds: float = 1.0,
        progress: bool | None = None,
        parameters: Mapping[str, Number] | None = None,
        **options: Unpack[PlanningOptions],
    ) -> IterationResult:
        """Run a program in steps, each of which replaces tensors, its state, by results of the program.

        As in `db.iterate("next_R = 0.85 * P @ R + 0.15 / 1000", {"R": "next_R"}, steps=50)`. A step is planned once,
        and planned again where the plan would not be exact for the state. The state stays in the database. If a step
        fails, or on Ctrl-C, the tensors hold the state of the last whole step.

        Args:
            program: A program from `se.program`, or program text. It reads the number of the step, from 0, as `step`.
            state: The names of the tensors that a step replaces, each with the result that replaces it, of the same
                shape, dtype and fill. By default those that the program declares: `state W` is replaced by next_W.
            steps: The most steps, with those before if `resume`.
            until: Ends the loop after a step in which it holds. It reads results without axes, such as loss, their
                values in the step before, such as previous.loss, `step`, and `changed`, the number of values of the
                state that the step has changed: "changed == 0" ends at a fixpoint.
            into: The tensors that keep the state, by the names of the state, which then stays as it is.
            history: Results without axes, or `changed`, whose values in every step are returned. The table with the
                name of the first kept tensor and `_history` has them, too.
            optimizer: As for `plan`, like parameters and all further options.
            resume: Whether to go on where an earlier loop over the same state ended, by its table of steps.
            commit_seconds: After so many seconds, the tensors get the state again when a step ends, so that a crash
                loses no more; 0 for every step. They also get it when the loop ends, be it by an error.
            progress: Whether to show progress; by default if standard error is a terminal, or in a notebook.
            parameters: Values that replace those that program text declares, as in `param eta = 0.1`.

        Returns:
            The number of steps, the reason why they ended, and the history.

        Raises:
            StepError: A step failed, as where a value became NaN or infinite; `nonfinite="allow"` goes on.
            PlanError: There is no state or no next value of it, another loop replaces it, or there is nothing to
                resume.
            ShapeError: The next value of a state has another shape, dtype or fill.
            ParseError: The condition names something unknown.
            SemanticsError: The condition or the history names a result with axes.
        """
        read = self._read(program, parameters)
        request = late("sparseeinsum.api.loop_requests")
        result: IterationResult = request.iterate(
            self._engine,
            read,
            request.LoopRequest(state or {}, steps, until, into or {}, history, resume, commit_seconds, progress),
            plan_options(optimizer, **options),
        )
        return result

    @synchronized
    def stream(
        self,
        program: Program | Plan | DetachedPlan | str,
        optimizer: str = "dp",
        *,
        progress: bool | None = None,
        replan: bool = True,
        parameters: Mapping[str, Number] | None = None,
        deterministic: bool = False,
        **options: Unpack[PlanningOptions],
    ) -> ResultStream:
        """Run a program or a plan, and read results of any size in batches while they are computed.

        As in `with db.stream(program) as results: for batch in results["Y"]: ...`, where a batch is an Arrow
        RecordBatch with the columns of `TensorResult.arrow`. The transaction of the run ends with the stream.

        Args:
            program: As for `run`, like all other arguments.

        Raises:
            EngineError: The database refused a statement, which the error contains. Reading a batch can raise it too.
        """
        with ExitStack() as transaction, shown_progress(progress, self._engine) as show:
            run_options = RunOptions(show, replan, deterministic)
            if isinstance(program, DetachedPlan):
                program = self.load_plan(program)
            if isinstance(program, Plan):
                _check_no_parameters(parameters)
                streamed = running.stream_plan(program.data, self._engine, run_options)
            else:
                planning_options = plan_options(optimizer, **options)
                streamed = run_programs.stream_program(
                    self._read(program, parameters), self._engine, planning_options, run_options, self._plans
                )
            deliveries = transaction.enter_context(streamed)
            return ResultStream(self._engine, deliveries, transaction.pop_all())

    @synchronized
    def einsum(
        self,
        subscripts: str,
        *operands: object,
        join: str = "*",
        agg: str = "sum",
        fill: Number = 0,
        optimizer: str = "dp",
    ) -> TensorResult:
        """Evaluate an Einstein summation of stored tensors in numpy's notation, as in db.einsum("ij,jk->ik", "A", X).

        Args:
            subscripts: As for numpy.einsum; I and i are different labels.
            operands: The names of tensors, and arrays of any library that `sparseeinsum.einsum` takes, which are
                stored for the call.
            join: As for `sparseeinsum.einsum`, as are agg and fill.
            agg: The aggregate over the labels that the result lacks.
            fill: The value of absent entries of sparse arrays that have no fill of their own.
            optimizer: As for `plan`.

        Raises:
            ParseError: The subscripts or the join have a syntax error.
            ShapeError: The subscripts do not match the shapes of the operands.
            CatalogueError: There is no such tensor.
            DataError: An operand has a dtype that no tensor can represent exactly.
        """
        compute = late("sparseeinsum.api.stored_einsum").einsum_of_stored
        result: TensorResult = compute(self._engine, self._plans, subscripts, operands, join, agg, fill, optimizer)
        return result

    @synchronized
    def relation(self, name: str) -> "TensorRelation":
        """A tensor as a relation of keys and arrays, for expressions of the tensor relational algebra.

        The keys are the key columns of its table in axis order. `compute` evaluates expressions of such relations.

        Args:
            name: The name of the tensor.

        Raises:
            CatalogueError: There is no such tensor.
            DataError: Its rows are not a tensor.
        """
        relation: TensorRelation = late(_RELATIONAL_QUERIES).open_relation(name, self._engine)
        return relation

    @synchronized
    def compute(self, relation: "TensorRelation") -> TensorResult:
        """Compute a relation in the database.

        Returns:
            A tensor whose first axes k0, k1, ... are the keys, and whose other axes a0, a1, ... are those of the
            arrays; keys without a tuple hold the fill 0.

        Raises:
            AlgebraError: SQL cannot compute the relation, or a key occurs twice.
            EngineError: A tensor has changed since the relation was opened, or the database refused a statement.
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
        """Close the connection, if `connect` opened it."""
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
    """Refuse parameters for a program or a plan whose numbers are fixed.

    Raises:
        SemanticsError: Parameters are given.
    """
    if parameters:
        name = next(iter(parameters))
        raise SemanticsError(
            f"the parameter {name} is given to a program that was read before; give it where the text is, as in "
            f"se.program(text, {name}=...) or se.read_program(path, {name}=...)"
        )
