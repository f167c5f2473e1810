"""API: a database, in which users load tensors, plan programs and run them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, overload

from sparseeinsum.api.iterations import IterationResult
from sparseeinsum.api.plans import DetachedPlan, Plan
from sparseeinsum.api.prepared_programs import PreparedProgram
from sparseeinsum.api.program_requests import RunRequest, load_plan, read_request, run_request, stream_request
from sparseeinsum.api.tensor_database import TensorDatabase
from sparseeinsum.decompose.eindecomp.objectives import SECONDS
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.locking import synchronized
from sparseeinsum.environment.extras import imported, late
from sparseeinsum.language.aggregate_registration import aggregate
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowering import lower_file, lower_text
from sparseeinsum.language.syntax import SourceText
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.pipeline import planning
from sparseeinsum.pipeline.plan_cache import PlanCache
from sparseeinsum.pipeline.plan_options import PlanArguments, PlanningOptions, plan_options
from sparseeinsum.pipeline.prepared_plans import PreparedPlan
from sparseeinsum.pipeline.progress import shown_progress
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.results.output_targets import Destination, targets_of
from sparseeinsum.results.results import Results, TensorResult
from sparseeinsum.results.streams import ResultStream
from sparseeinsum.storage.program_inputs import shapes_in

if TYPE_CHECKING:
    from sparseeinsum.pipeline.checking import Finding


class Database(TensorDatabase):
    """A database of tensors. `connect` opens one.

    Threads can share a database: a call waits for the calls of other threads on the same connection. To work in
    parallel, open a connection per thread. While a stream is open, only the thread that opened it can use the
    connection.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._plans = PlanCache()

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
        tensors: dict[str, str] = late("sparseeinsum.models.named_weights").tensors_to_save(names, list(stored))
        arrays = {}
        for name, tensor in tensors.items():
            labels = ", ".join(f"i{axis}" for axis in range(len(stored[tensor].tensor.axes)))
            copy = f"{tensor}_"
            copied = self.run(f"{copy}[{labels}] = {tensor}[{labels}]", layout="any", nonfinite="allow")
            arrays[name] = copied[copy].to_numpy()
        late("sparseeinsum.models.weight_files").write_weights(Path(path), arrays)

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
    def program(self, text: str, /, folder: Path | None = None, **parameters: Number) -> Program:
        """Read program text as `se.program` does; the tensors of this database give the ranks of names without labels.

        Args:
            text: The statements.
            folder: The folder whose files the text may include; None forbids includes.
            parameters: Values for the parameters that the text declares, as in `param eta = 0.1`.
        """
        return lower_text(text, parameters, folder, shapes_in(self._engine))

    aggregate = staticmethod(aggregate)

    @synchronized
    def read_program(self, path: str | Path, /, **parameters: Number) -> Program:
        """Read a program from a file as `se.read_program` does, with the ranks of this database's tensors.

        Args:
            path: The file of program text; it may include files beside it.
            parameters: Values for the parameters that the text declares, as in `param eta = 0.1`.
        """
        return lower_file(Path(path), parameters, shapes_in(self._engine))

    @overload
    def plan(
        self, program: Program | str, optimizer: str = "dp", *, top: None = None, **options: Unpack[PlanArguments]
    ) -> Plan: ...

    @overload
    def plan(
        self, program: Program | str, optimizer: str = "dp", *, top: int, **options: Unpack[PlanArguments]
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
        objective: str = SECONDS,
        **options: Unpack[PlanningOptions],
    ) -> Plan | list[Plan]:
        """Choose a decomposition for every EinSum of a program; if nothing has changed, return the same plan again.

        Args:
            program: A program from `se.program`, or program text.
            optimizer: `dp` for the dynamic programme; `cover`, `greedy`, `relational` or `dense` for a baseline.
            top: The number of plans to return as a list, best first; by default the best plan is returned.
            indexes: Whether an operand may stay in memory and be read by index while a statement runs. DuckDB before
                version 2 cannot do that: False makes SQL that runs there with the extension file.
            parameters: Values that replace those that program text declares, as in `param eta = 0.1`.
            workers: The number of workers among which labels are cut, so that they send each other little.
                `plan.partitioned` says what they send. The cost is that of all workers, with transfer and waiting.
            objective: What plans for several workers, or on a Citus cluster, minimise: `seconds`, or the `floats` that
                workers or machines send each other.
            options: See `PlanningOptions`.

        Raises:
            CatalogueError: A tensor does not exist.
            ShapeError: Labels and bounds do not fit.
            PlanError: No plan satisfies the options.
        """
        plan_choices = plan_options(optimizer, 1 if top is None else top, indexes, workers, objective, **options)
        read, engine = read_request(program, parameters, self._engine), self._engine
        if top is None:
            return Plan(self._plans.plan_for_present_data(read, engine, plan_choices), engine)
        return [Plan(data, engine) for data in planning.make_plans(read, engine, plan_choices)]

    @synchronized
    def load_plan(self, source: str | Path | DetachedPlan) -> Plan:
        """Read a saved plan for the tensors of this database, whose shapes must be those of the plan.

        The program and its decompositions are those of the saved plan; statistics are measured again.

        Args:
            source: A file that `Plan.save` wrote, text from `Plan.to_json`, or a plan that was pickled.

        Raises:
            PlanError: The plan does not exist, a tensor differs in shape, dtype or fill from that of the plan, or the
                plan is not exact for the values in this database.
            CatalogueError: A tensor does not exist.
        """
        return load_plan(source, self._engine)

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
            into: A table, or a Parquet file (a name that ends in .parquet), for a result, by its name. It is replaced
                completely or not at all; `se.Table(name, mode="append")` adds rows. The result is not returned. The
                program may read the table, unless a tensor was loaded into it.
            optimizer: As for `plan`, like all further options. They are for programs; a plan has its own.
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
        request = RunRequest(program, parameters, optimizer, options)
        with targets_of(into or {}) as targets, shown_progress(progress, self._engine) as show:
            run_options = RunOptions(show, replan, deterministic)
            return run_request(request, targets, run_options, self._engine, self._plans)

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
            PlanError: The program reads no such input, it has natural keys, or the database is a cluster; and as for
                `plan`, like all other errors.
        """
        names = [inputs] if isinstance(inputs, str) else list(inputs)
        choices = replace(plan_options(optimizer, **options), searches_all=True, changing=frozenset(names))
        read = read_request(program, parameters, self._engine)
        return PreparedProgram(PreparedPlan(read, self._engine, choices, names), self._engine)

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
        deterministic: bool = False,
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
                loses no more; 0 for every step. Where writing takes more than a tenth of the time, it comes later.
                They also get it when the loop ends, be it by an error.
            deterministic: As for `run`, for all steps, on one engine.
            progress: As for `run`.

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
        read = read_request(program, parameters, self._engine)
        request = late("sparseeinsum.api.loop_requests")
        result: IterationResult = request.iterate(
            self._engine,
            read,
            request.LoopRequest(
                state or {}, steps, until, into or {}, history, resume, commit_seconds, deterministic, progress
            ),
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
        request = RunRequest(program, parameters, optimizer, options)
        with shown_progress(progress, self._engine) as show:
            return stream_request(request, RunOptions(show, replan, deterministic), self._engine, self._plans)

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
