"""A plan and the database that it was made for in, results out; what made the plan right is checked anew."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TypeVar

from sparseeinsum.decompose.memory import scanning_bytes, split_scan_bytes
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.memory import OutOfMemoryError, deterministic_order, limited_memory
from sparseeinsum.engines.retries import retried_context, with_retries
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.language.registered import registered
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.pipeline.replanning import planned_with_less
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.plans.explain import Analysis
from sparseeinsum.plans.plan import Plan
from sparseeinsum.plans.validity import broken_rewriting, evaluations_for
from sparseeinsum.results.execution import (
    Delivery,
    Execution,
    execute,
    prepare,
    run_each,
    with_dictionaries,
)
from sparseeinsum.results.targets import Table, Target
from sparseeinsum.statistics.fingerprints import fingerprints
from sparseeinsum.statistics.measure import Measurement, is_complete
from sparseeinsum.storage.catalogue import check_relation
from sparseeinsum.storage.inputs import stored_inputs
from sparseeinsum.storage.measuring import identifying_axes, measure_all
from sparseeinsum.storage.ownership import check_target

Value = TypeVar("Value")


def analyze_plan(plan: Plan, engine: Engine) -> Analysis:
    """Run a plan, then every EinSum of it alone; raises what `run_plan` does."""
    options = RunOptions()

    def analyze(plan: Plan) -> Analysis:
        with _running(plan, engine, options) as right:
            execution = execute(right, engine, {}, options.progress, options.replan)
            statements = tuple((run.statement, run.seconds) for run in execution.runs)
            return Analysis(statements, execution.replannings, run_each(right, engine))

    return within_memory(plan, lambda plan: with_retries(engine, lambda: analyze(plan)), options)


def run_plan(plan: Plan, engine: Engine, into: Mapping[str, Target], options: RunOptions) -> Execution:
    """Run a plan in a transaction of its own, on the data as they are now.

    Args:
        plan: What to run.
        engine: Where.
        into: For some outputs, the table or file that takes the result.
        options: How to run it.

    Raises:
        PlanError: A cluster is to fold groups in a fixed order.
        EngineError: The plan may be wrong for the data, a table is gone, or the database refused a statement.
    """

    def run(plan: Plan) -> Execution:
        with _running(plan, engine, options) as right:
            check_into(right, engine, into)
            return with_dictionaries(execute(right, engine, into, options.progress, options.replan), engine)

    return within_memory(plan, lambda plan: with_retries(engine, lambda: run(plan)), options)


def within_memory(plan: Plan, run: Callable[[Plan], Value], options: RunOptions) -> Value:
    """Run a plan; where the database runs out of memory, another one for the same program that plans with less.

    Raises:
        OutOfMemoryError: There is none, or the run is to be deterministic.
    """
    while True:
        try:
            return run(plan)
        except OutOfMemoryError:
            less = None if options.deterministic else planned_with_less(plan)
            if less is None:
                raise
        plan = less  # not within the error, which keeps what the run has returned so far


@contextmanager
def stream_plan(plan: Plan, engine: Engine, options: RunOptions) -> Iterator[Mapping[str, Delivery]]:
    """Run a plan but for the statements that return outputs, in a transaction that is open within; see `run_plan`."""

    @contextmanager
    def run(plan: Plan) -> Iterator[Mapping[str, Delivery]]:
        with (
            _running(plan, engine, options) as right,
            prepare(right, engine, options.progress, options.replan) as deliveries,
        ):
            yield deliveries

    with ExitStack() as stack:
        yield within_memory(plan, lambda plan: stack.enter_context(retried_context(engine, lambda: run(plan))), options)


@contextmanager
def _running(plan: Plan, engine: Engine, options: RunOptions) -> Iterator[Plan]:
    """A transaction in which a plan is right for the data."""
    if options.deterministic:
        plan = replace(plan, threads=1)
    with (
        _telling_what_is_gone(plan.stored, engine),
        engine.snapshot(),
        deterministic_order(engine, options.deterministic),
    ):
        now = _measured_now(plan, engine)
        identifying = {name: identifying_axes(stored, now[name]) for name, stored in plan.stored.items()}
        yield plan if plan.has_valid_group_elimination(identifying) else plan.without_group_elimination()


def _measured_now(plan: Plan, engine: Engine) -> Mapping[str, Measurement]:
    """What is known of the data; the plan is refused where it may be wrong: what made it exact must still hold."""
    for name, function in plan.functions.items():
        if registered(name) is not function:
            raise PlanError(f"{name} was registered anew since the plan was made; plan again")
    for name, stored in stored_inputs(plan.program, engine).items():
        if stored != plan.stored[name]:
            raise EngineError(f"tensor {name} was defined anew since the plan was made; plan again")
    with limited_memory(engine, plan.memory_limit, _scanned_bytes(plan, engine)):
        found = zip(plan.stored.items(), fingerprints(list(plan.stored.values()), engine), strict=True)
    changed = {name: stored for (name, stored), now in found if now != plan.measured[name].fingerprint}
    if not changed:
        return plan.measured
    with limited_memory(engine, plan.memory_limit, sum(map(scanning_bytes, changed.values()))):
        now = {**plan.measured, **measure_all(changed, engine)}
    lost = [
        name
        for name, stored in changed.items()
        if is_complete(stored, plan.measured[name]) and not is_complete(stored, now[name])
    ]
    values = {name: found.values for name, found in now.items()}
    found_now = evaluations_for(plan, values)
    differs = any(found_now[name].decision != evaluation.decision for name, evaluation in plan.evaluations.items())
    if lost or differs:
        raise EngineError(f"tensor {next(iter(lost or changed))} has changed since the plan was made; plan again")
    reason = broken_rewriting(plan, values)
    if reason is not None:
        raise EngineError(f"{reason}; plan again")
    return now


def _scanned_bytes(plan: Plan, engine: Engine) -> float:
    """Bytes of the arrays in vectors of scans of the inputs, where a limit is kept to."""
    if plan.memory_limit is None:
        return 0
    memory = replace(plan.alternatives.model.memory, threads=engine.threads())
    return sum(split_scan_bytes(stored, memory) for stored in plan.stored.values())


@contextmanager
def _telling_what_is_gone(stored: Mapping[str, StoredTensor], engine: Engine) -> Iterator[None]:
    """Put the failure of a statement down to a table that is gone or has changed, if there is one."""
    try:
        yield
    except EngineError as error:
        if error.statement is not None:
            engine.rows("SELECT 1")  # a connection that is closed says so here
            for source in stored.values():
                check_relation(engine, source)
        raise


def check_into(plan: Plan, engine: Engine, into: Mapping[str, Target]) -> None:
    """Refuse tables and files that results must not go into.

    Raises:
        PlanError: The plan has no such result, or two are to go into one table.
        CatalogueError: A table must not be replaced.
    """
    results: dict[tuple[str, ...], str] = {}
    for name, target in into.items():
        if name not in plan.outputs:
            raise PlanError(f"the plan returns no {name} to put into {target}; it returns {', '.join(plan.outputs)}")
        place = check_target(engine, name, target.name) if isinstance(target, Table) else ("", target.name)
        other = results.setdefault(place, name)
        if other != name:
            raise PlanError(f"{other} and {name} are both to go into {target}; give each one of its own")
