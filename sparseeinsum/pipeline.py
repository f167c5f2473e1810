"""The way through the house: a program and a database in, plans out; a plan in, results out; a line or two a stage."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from sparseeinsum.algebra.translate import translate
from sparseeinsum.decompose.constants import constants_for
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.optimizers import optimise
from sparseeinsum.engines.catalogue import Catalogue, check_relation, require
from sparseeinsum.engines.duckdb import DuckDB
from sparseeinsum.engines.execution import Execution, Progress, execute
from sparseeinsum.engines.tables import check_target
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.explain import Analysis
from sparseeinsum.language.eingraph import EinGraph, Program, bind
from sparseeinsum.language.tensors import DEMOTED, Decomposition, StoredTensor, entries
from sparseeinsum.plan import Plan
from sparseeinsum.semantics import evaluate_exactly
from sparseeinsum.statistics.estimate import estimate
from sparseeinsum.statistics.measure import Measurement, check_rows, fingerprints, measure


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a user asks of a plan.

    Attributes:
        optimizer: dp, greedy, relational or dense.
        memory_limit: Bytes that a run may take; the database's own limit by default.
        pin: For some results, exactly the labels to promote in the EinSum that computes them.
        layout: `entries`: outputs come as one number a row, unless promoted by hand; `any`: as they are cheapest.
        outputs: Results to return besides those that nothing reads.
        top: How many plans.
    """

    optimizer: str = "dp"
    memory_limit: int | None = None
    pin: Mapping[str, frozenset[str]] = field(default_factory=dict)
    layout: str = "entries"
    outputs: tuple[str, ...] = ()
    top: int = 1


def make_plans(program: Program, engine: DuckDB, options: PlanOptions) -> list[Plan]:
    """Plan a program on the tensors of a database; best plan first."""
    clock = _Clock()
    with clock.stage("statistics"):
        stored = require(Catalogue(engine), program.inputs)
        measured = _measure(stored, engine)
    with clock.stage("optimizer"):
        graph = _bind(program, stored, options)
        evaluations = evaluate_exactly(graph, {name: found.is_finite for name, found in measured.items()})
        statistics = estimate(graph, {name: found.statistics for name, found in measured.items()}, evaluations)
        model = CostModel(graph, statistics, evaluations, constants_for(engine.dialect))
        decompositions = {name: source.decomposition for name, source in stored.items()}
        layouts = _layouts(program, graph, options)
        limit = engine.memory_limit() if options.memory_limit is None else options.memory_limit
        found = optimise(options.optimizer, model, decompositions, layouts, limit, options.pin, options.top)
    threads = engine.threads()
    complete = frozenset(name for name in stored if _is_complete(stored[name], measured[name]))
    return [
        Plan(
            graph,
            translate(graph, stored, complete),
            stored,
            measured,
            statistics,
            evaluations,
            engine.sql,
            threads,
            clock.seconds,
            lambda plan: _analyze(plan, engine),
        )
        for graph in found
    ]


def _analyze(plan: Plan, engine: DuckDB) -> Analysis:
    """Run a plan, and count what it computes."""
    execution = run_plan(plan, engine, {}, lambda *_: None, count=True)
    return Analysis(tuple(run.seconds for run in execution.runs), execution.tuples)


def run_plan(plan: Plan, engine: DuckDB, into: Mapping[str, str], progress: Progress, count: bool = False) -> Execution:
    """Run a plan in a transaction of its own, on the data as they are now."""
    with _telling_what_is_gone(plan.stored, engine), engine.transaction():
        _check_into(plan, engine, into)
        _check_unchanged(plan, engine)
        return execute(plan, engine, into, progress, count)


def run_program(
    program: Program, engine: DuckDB, options: PlanOptions, into: Mapping[str, str], progress: Progress
) -> Execution:
    """Plan and run a program in one transaction, so that both see the same data."""
    with engine.transaction():
        (plan,) = make_plans(program, engine, options)
        _check_into(plan, engine, into)
        return execute(plan, engine, into, progress, count=False)


def measure_tensor(name: str, engine: DuckDB) -> Measurement:
    """T, V and soundness of a stored tensor, as it is now."""
    return _measure(require(Catalogue(engine), [name]), engine)[name]


def _measure(stored: Mapping[str, StoredTensor], engine: DuckDB) -> dict[str, Measurement]:
    found = {}
    for name, source in stored.items():
        check_relation(engine, source)
        try:
            found[name] = measure(source, engine)
        except EngineError:
            # The error has undone the transaction that this may run in, so that rows are looked at from beside it.
            with suppress(EngineError), engine.beside() as other:
                check_rows(source, other)
            raise
    return found


def _bind(program: Program, stored: Mapping[str, StoredTensor], options: PlanOptions) -> EinGraph:
    graph = bind(program, {name: source.tensor for name, source in stored.items()})
    computed = [einsum.output.tensor for einsum in graph.einsums]
    for name in (*options.outputs, *options.pin):
        if name not in computed:
            raise PlanError(f"the program computes no {name}; it computes {', '.join(computed)}")
    outputs = tuple(name for name in computed if name in graph.outputs or name in options.outputs)
    return EinGraph(graph.tensors, graph.einsums, outputs)


def _layouts(program: Program, graph: EinGraph, options: PlanOptions) -> dict[str, Decomposition]:
    """How outputs are to be delivered: as promoted by hand on the left side, or as the options say."""
    if options.layout not in ("entries", "any"):
        raise PlanError(f"layout {options.layout!r} is neither 'entries' nor 'any'")
    by_hand = dict(program.layouts)
    layouts = {}
    for name in graph.outputs:
        axes = [axis.name for axis in graph.tensors[name].axes]
        if name in by_hand:
            layouts[name] = Decomposition(tuple(1 if axis in by_hand[name] else DEMOTED for axis in axes))
        elif options.layout == "entries":
            layouts[name] = entries(len(axes))
    return layouts


def _is_complete(stored: StoredTensor, measured: Measurement) -> bool:
    """Whether every tuple that there can be is there."""
    possible = 1
    for position in stored.decomposition.promoted:
        possible *= stored.tensor.shape[position]
    return measured.tuples == possible


def _check_unchanged(plan: Plan, engine: DuckDB) -> None:
    """Refuse to run on data for which the plan may be wrong: what made it exact must still hold."""
    for name, stored in require(Catalogue(engine), plan.stored).items():
        if stored != plan.stored[name]:
            raise EngineError(f"tensor {name} was defined anew since the plan was made; plan again")
    found = zip(plan.stored.items(), fingerprints(list(plan.stored.values()), engine), strict=True)
    changed = {name: stored for (name, stored), now in found if now != plan.measured[name].fingerprint}
    for name, now in _measure(changed, engine).items():
        stored, before = plan.stored[name], plan.measured[name]
        lost_tuples = _is_complete(stored, before) and not _is_complete(stored, now)
        if lost_tuples or (before.is_finite and not now.is_finite):
            raise EngineError(f"tensor {name} has changed since the plan was made; plan again")


@contextmanager
def _telling_what_is_gone(stored: Mapping[str, StoredTensor], engine: DuckDB) -> Iterator[None]:
    """Put the failure of a statement down to a table that is gone or has changed, if there is one."""
    try:
        yield
    except EngineError as error:
        if error.statement is not None:
            engine.rows("SELECT 1")  # a connection that is closed says so here
            for source in stored.values():
                check_relation(engine, source)
        raise


def _check_into(plan: Plan, engine: DuckDB, into: Mapping[str, str]) -> None:
    results: dict[tuple[str, ...], str] = {}
    for name, table in into.items():
        if name not in plan.outputs:
            raise PlanError(f"the plan returns no {name} to put into a table; it returns {', '.join(plan.outputs)}")
        other = results.setdefault(check_target(engine, name, table), name)
        if other != name:
            raise PlanError(f"{other} and {name} are both to go into the table {table}; give each a table of its own")


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start
