"""Pipeline: plans and runs a program in one transaction, so that both see the same data."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.memory_limit import OutOfMemoryError, deterministic_order
from sparseeinsum.engines.retries import in_snapshot, retried_context
from sparseeinsum.language.eingraph import Program
from sparseeinsum.pipeline.plan_cache import PlanCache
from sparseeinsum.pipeline.replanning import planned_with_less
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.pipeline.running import check_into, run_plan, stream_plan
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.results.execution import Delivery, Execution, execute, prepare, with_dictionaries
from sparseeinsum.results.output_targets import OutputTarget


def run_program(
    program: Program,
    engine: Engine,
    options: PlanOptions,
    into: Mapping[str, OutputTarget],
    run_options: RunOptions,
    plans: PlanCache,
) -> Execution:
    """Plan and run a program; `into` names the table or file that takes an output, and `plans` has earlier plans.

    Raises:
        PlanError: No plan satisfies the options.
        EngineError: The database refused a statement.
    """
    planned: list[ProgramPlan] = []

    def run() -> Execution | None:
        with deterministic_order(engine, run_options.deterministic):
            planned[:] = [plans.plan(program, engine, options)]
            if planned[0].fills_reference_tables:  # not after planning, which has worked on several shards
                return None
            check_into(planned[0], engine, into)
            execution = execute(planned[0], engine, into, run_options.progress, run_options.replan)
            return with_dictionaries(execution, engine)

    try:
        execution = in_snapshot(engine, run, is_reading=not into)
    except OutOfMemoryError:
        less = _planned_with_less(planned, run_options)
        if less is None:
            raise
        planned[:] = [less]
        execution = None
    return run_plan(planned[0], engine, into, run_options) if execution is None else execution


@contextmanager
def stream_program(
    program: Program, engine: Engine, options: PlanOptions, run_options: RunOptions, plans: PlanCache
) -> Iterator[Mapping[str, Delivery]]:
    """Plan a program and run all statements except those that return outputs; the transaction is open within."""
    planned: list[ProgramPlan] = []

    @contextmanager
    def run() -> Iterator[Mapping[str, Delivery] | None]:
        with engine.snapshot(), deterministic_order(engine, run_options.deterministic):
            planned[:] = [plans.plan(program, engine, options)]
            if planned[0].fills_reference_tables:
                yield None
                return
            with prepare(planned[0], engine, run_options.progress, run_options.replan) as deliveries:
                yield deliveries

    with ExitStack() as stack:
        try:
            deliveries = stack.enter_context(retried_context(engine, run))
        except OutOfMemoryError:
            less = _planned_with_less(planned, run_options)
            if less is None:
                raise
            planned[:] = [less]
            deliveries = None
        if deliveries is None:
            stack.close()
            deliveries = stack.enter_context(stream_plan(planned[0], engine, run_options))
        yield deliveries


def _planned_with_less(plans: Sequence[ProgramPlan], run_options: RunOptions) -> ProgramPlan | None:
    """A plan that takes less memory than the one that ran out of it; None if there is none."""
    return None if run_options.deterministic or not plans else planned_with_less(plans[0])
