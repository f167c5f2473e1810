"""Pipeline: runs plans; what makes a plan exact is checked on the data of every run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import TypeVar

from sparseeinsum.decompose.memory_footprint import scanning_bytes, split_scan_bytes
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.memory_limit import OutOfMemoryError, deterministic_order, limited_memory
from sparseeinsum.engines.retries import retried_context, with_retries
from sparseeinsum.engines.sequential_shards import sequential_shards
from sparseeinsum.errors import EngineError, OutdatedPlanError, PlanError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.language.user_functions import user_function
from sparseeinsum.pipeline.replanning import planned_with_less
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.plans.analysis import Analysis
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.validity import broken_rewriting, evaluations_for, with_valid_grouping
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.results.execution import (
    Delivery,
    Execution,
    execute,
    prepare,
    run_each,
    with_dictionaries,
)
from sparseeinsum.results.output_targets import OutputTarget, Table
from sparseeinsum.statistics.measured_tensors import MeasuredTensor, stored_of, values_of
from sparseeinsum.storage.catalogue import check_relation
from sparseeinsum.storage.fixed_keys import check_fixed_keys
from sparseeinsum.storage.measuring import measure_all
from sparseeinsum.storage.ownership import check_target
from sparseeinsum.storage.program_inputs import NOTHING_SUPPLIED, stored_inputs
from sparseeinsum.storage.row_versions import row_versions

Value = TypeVar("Value")


def analyze_plan(plan: ProgramPlan, engine: Engine) -> Analysis:
    """Run a plan, then each of its EinSums alone; raises the errors of `run_plan`."""
    options = RunOptions()

    def analyze(plan: ProgramPlan) -> Analysis:
        with _running(plan, engine, options) as valid:
            execution = execute(valid, engine, {}, options.progress, options.replan)
            statements = tuple((run.statement, run.seconds) for run in execution.runs)
            return Analysis(statements, execution.replannings, run_each(valid, engine))

    return within_memory(plan, lambda plan: with_retries(engine, lambda: analyze(plan)), options)


def run_plan(plan: ProgramPlan, engine: Engine, into: Mapping[str, OutputTarget], options: RunOptions) -> Execution:
    """Run a plan in a transaction of its own, on the data as they are now.

    Args:
        plan: The plan.
        engine: The database.
        into: The table or file that takes an output, by the name of the output; other outputs are returned.
        options: How to run the plan.

    Raises:
        PlanError: A deterministic run was asked of a cluster.
        EngineError: The plan may not be exact for the data, a table is missing, or the database refused a statement.
    """

    def run(plan: ProgramPlan) -> Execution:
        with _running(plan, engine, options, is_reading=not into) as valid:
            check_into(valid, engine, into)
            return with_dictionaries(execute(valid, engine, into, options.progress, options.replan), engine)

    return within_memory(plan, lambda plan: with_retries(engine, lambda: run(plan)), options)


def within_memory(plan: ProgramPlan, run: Callable[[ProgramPlan], Value], options: RunOptions) -> Value:
    """Run a plan; if the database runs out of memory, run another plan for the program that takes less.

    Raises:
        OutOfMemoryError: There is no such plan, or the run must be deterministic.
    """
    while True:
        try:
            return run(plan)
        except OutOfMemoryError:
            less = None if options.deterministic else planned_with_less(plan)
            if less is None:
                raise
        plan = less  # outside of the handler: the error keeps references to what the run has returned


@contextmanager
def stream_plan(plan: ProgramPlan, engine: Engine, options: RunOptions) -> Iterator[Mapping[str, Delivery]]:
    """Run all statements of a plan except those that return outputs; the transaction is open within. See `run_plan`."""

    @contextmanager
    def run(plan: ProgramPlan) -> Iterator[Mapping[str, Delivery]]:
        with (
            _running(plan, engine, options, is_reading=False) as valid,  # the caller may write while it takes results
            prepare(valid, engine, options.progress, options.replan) as deliveries,
        ):
            yield deliveries

    with ExitStack() as stack:
        yield within_memory(plan, lambda plan: stack.enter_context(retried_context(engine, lambda: run(plan))), options)


@contextmanager
def _running(plan: ProgramPlan, engine: Engine, options: RunOptions, is_reading: bool = True) -> Iterator[ProgramPlan]:
    """A transaction, and the plan as it is valid for the data that the transaction sees.

    Args:
        plan: The plan.
        engine: The database.
        options: How to run the plan.
        is_reading: Whether no permanent table is changed.
    """
    if options.deterministic:
        plan = replace(plan, threads=1)
    with (
        naming_missing_tables(plan, engine),
        engine.snapshot(is_reading),
        sequential_shards(engine) if plan.fills_reference_tables else nullcontext(),
        deterministic_order(engine, options.deterministic),
    ):
        yield with_valid_grouping(plan, current_inputs(plan, engine))


def current_inputs(
    plan: ProgramPlan, engine: Engine, supplied: Mapping[str, StoredTensor] = NOTHING_SUPPLIED
) -> Mapping[str, MeasuredTensor]:
    """The inputs of a plan as they are now; only those whose rows have changed are scanned.

    Args:
        plan: The plan.
        engine: The database.
        supplied: Inputs that the caller supplies and checks, by name; they are returned as they were.

    Raises:
        PlanError: A function of the user was replaced.
        OutdatedPlanError: An input was replaced, or has changed so that the plan may no longer be exact.
    """
    check_functions(plan)
    for name, stored in stored_inputs(plan.program, engine, supplied=supplied).stored.items():
        if name not in supplied and stored != plan.inputs[name].stored:
            raise OutdatedPlanError(f"tensor {name} was defined anew since the plan was made; plan again")
    stored_tensors = {name: stored for name, stored in stored_of(plan.inputs).items() if name not in supplied}
    check_fixed_keys(stored_tensors.values(), engine)
    with limited_memory(engine, plan.options.memory_limit, _scanned_bytes(plan, engine)):
        current = row_versions(stored_tensors, engine)
    changed = {
        name: stored
        for name, stored in stored_tensors.items()
        if current[name].version != plan.inputs[name].measurement.version
    }
    _prove({name: plan.inputs[name] for name in stored_tensors if name not in changed}, engine)
    if not changed:
        return plan.inputs
    with limited_memory(engine, plan.options.memory_limit, sum(map(scanning_bytes, changed.values()))):
        inputs = {**plan.inputs, **measure_all(changed, engine)}
    check_exactness(plan, inputs, tuple(changed))
    return inputs


def prove_inputs(plan: ProgramPlan, engine: Engine) -> None:
    """Prove what planning left to a run: that no coordinate of an input is repeated.

    Raises:
        DataError: One is; the message names the first such row.
    """
    _prove(plan.inputs, engine)


def _prove(inputs: Mapping[str, MeasuredTensor], engine: Engine) -> None:
    unproven = {name: tensor.stored for name, tensor in inputs.items() if not tensor.measurement.is_proven}
    if unproven and not engine.scans.defers_proofs:
        with engine.reading():
            measure_all(unproven, engine)


def check_functions(plan: ProgramPlan) -> None:
    """Refuse a plan that calls a function which the user has replaced since.

    Raises:
        PlanError: Names the function.
    """
    for name, function in plan.functions.items():
        if user_function(name) is not function:
            raise PlanError(f"{name} was registered anew since the plan was made; plan again")


def check_exactness(plan: ProgramPlan, inputs: Mapping[str, MeasuredTensor], changed: tuple[str, ...]) -> None:
    """Refuse a plan that may not be exact for `inputs`, of which those named in `changed` have changed.

    Raises:
        OutdatedPlanError: Names a tensor.
        SemanticsError: No sparse evaluation is exact.
    """
    values = values_of(inputs)
    incomplete = [name for name in changed if plan.inputs[name].is_complete and not inputs[name].is_complete]
    evaluations = evaluations_for(plan, values)
    differs = any(evaluations[name].decision != planned.decision for name, planned in plan.evaluations.items())
    if incomplete or differs:
        name = next(iter(incomplete or changed))
        raise OutdatedPlanError(f"tensor {name} has changed since the plan was made; plan again")
    reason = broken_rewriting(plan, values, detects_same=True)
    if reason is not None:
        raise OutdatedPlanError(f"{reason}; plan again")


def _scanned_bytes(plan: ProgramPlan, engine: Engine) -> float:
    """The bytes of arrays in the vectors of scans of all inputs; 0 if there is no memory limit to keep to."""
    if plan.options.memory_limit is None:
        return 0
    memory = replace(plan.alternatives.model.memory, threads=engine.threads())
    return sum(split_scan_bytes(tensor.stored, memory) for tensor in plan.inputs.values())


@contextmanager
def naming_missing_tables(plan: ProgramPlan, engine: Engine) -> Iterator[None]:
    """Within, replace the error of a failed statement by one that names a missing or changed table, if there is one."""
    try:
        yield
    except EngineError as error:
        if error.statement is not None:
            engine.rows("SELECT 1")  # fails with a clear message if the connection is closed
            for tensor in plan.inputs.values():
                check_relation(engine, tensor.stored)
        raise


def check_into(plan: ProgramPlan, engine: Engine, into: Mapping[str, OutputTarget]) -> None:
    """Refuse tables and files that must not take results.

    Raises:
        PlanError: The plan has no such output, or two outputs have the same target.
        CatalogueError: A table must not be replaced.
    """
    results: dict[tuple[str, ...], str] = {}
    for name, target in into.items():
        if name not in plan.outputs:
            hint = did_you_mean(name, plan.outputs, otherwise="it returns")
            raise PlanError(f"the plan returns no {name} to put into {target}; {hint}")
        place = check_target(engine, name, target.name) if isinstance(target, Table) else ("", target.name)
        other = results.setdefault(place, name)
        if other != name:
            raise PlanError(f"{other} and {name} are both to go into {target}; give each one of its own")
