"""The way through the house: a program and a database in, plans out; a plan in, results out; a line or two a stage."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from sparseeinsum.algebra.translate import Inputs, translate
from sparseeinsum.decompose.constants import constants_for
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.optimizers import optimise
from sparseeinsum.decompose.pricing import least_seconds
from sparseeinsum.engines.catalogue import Catalogue, check_relation, require
from sparseeinsum.engines.duckdb import DuckDB
from sparseeinsum.engines.execution import Execution, Progress, execute
from sparseeinsum.engines.generated import generated_source
from sparseeinsum.engines.tables import check_target
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.explain import Analysis
from sparseeinsum.kernels.user_functions import require_function
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import EinGraph, EinSum, Program
from sparseeinsum.language.scalar import FUNCTIONS, functions_of
from sparseeinsum.language.tensors import DEMOTED, Decomposition, StoredTensor, entries
from sparseeinsum.plan import Plan
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.sparse_sums import compensate
from sparseeinsum.semantics.exactness import evaluate_exactly
from sparseeinsum.statistics.blocks import measure_blocks
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.estimators import DEFAULT_ESTIMATOR, make_estimator
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
        nonfinite: What to do where values turn NaN or infinite: `error` or `allow`.
        estimator: How sizes of results are estimated: uniform, sketch or exact.
        top: How many plans.
    """

    optimizer: str = "dp"
    memory_limit: int | None = None
    pin: Mapping[str, frozenset[str]] = field(default_factory=dict)
    layout: str = "entries"
    outputs: tuple[str, ...] = ()
    nonfinite: str = "error"
    estimator: str = DEFAULT_ESTIMATOR
    top: int = 1


def make_plans(program: Program, engine: DuckDB, options: PlanOptions) -> list[Plan]:
    """Plan a program on the tensors of a database; best plan first."""
    clock = _Clock()
    with clock.stage("statistics"):
        stored = require(Catalogue(engine), program.inputs)
        stored |= _generated(program, stored)
        measured = _measure(stored, engine)
        known = {name: found.statistics for name, found in measured.items()}
        estimator = make_estimator(options.estimator, stored, known, engine)
    with clock.stage("optimizer"):
        values = {name: found.values for name, found in measured.items()}
        allows_nonfinite = _allows_nonfinite(options)
        bound = _bind(program, stored, options)
        _require_functions(bound)
        constants = constants_for(engine.dialect)
        binary = binarise(bound, known, values, allows_nonfinite)
        if not allows_nonfinite:
            binary = compensate(binary, known, values, partial(least_seconds, constants=constants))
        exact = evaluate_exactly(binary, values, allows_nonfinite)
        graph = exact.graph
        statistics = estimator(graph, known, exact.evaluations)
        model = CostModel(graph, statistics, exact.evaluations, constants)
        decompositions = {name: source.decomposition for name, source in stored.items()}
        layouts = _layouts(program, graph, options)
        limit = engine.memory_limit() if options.memory_limit is None else options.memory_limit
        parts = _parts(bound, binary)
        pins = _pins(bound, parts, options)
        found = optimise(options.optimizer, model, decompositions, layouts, limit, pins, options.top)
    threads = engine.threads()
    complete = frozenset(name for name in stored if _is_complete(stored[name], measured[name]))
    inputs = Inputs(stored, exact.values, complete)
    return [
        Plan(
            decomposed,
            translate(decomposed, inputs, exact.evaluations),
            stored,
            measured,
            statistics,
            exact.evaluations,
            {name: tuple(part.output.tensor for part in computed[:-1]) for name, computed in parts.items()},
            options.nonfinite,
            engine.sql,
            threads,
            clock.seconds,
            lambda plan: _analyze(plan, engine),
        )
        for decomposed in found
    ]


def _allows_nonfinite(options: PlanOptions) -> bool:
    if options.nonfinite not in ("error", "allow"):
        raise PlanError(f"nonfinite {options.nonfinite!r} is neither 'error' nor 'allow'")
    return options.nonfinite == "allow"


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


def measure_tensor(name: str, tilings: Sequence[tuple[int, ...]], engine: DuckDB) -> Statistics:
    """T and V of a stored tensor, as it is now, and its tuples in some decompositions."""
    stored = require(Catalogue(engine), [name])
    for tiles in tilings:
        if len(tiles) != len(stored[name].tensor.axes) or min(tiles, default=0) < DEMOTED:
            axes = ", ".join(axis.name for axis in stored[name].tensor.axes)
            raise PlanError(f"{tuple(tiles)} are no tiles of {name}; give each axis ({axes}) one, or 0 to demote it")
    statistics = _measure(stored, engine)[name].statistics
    return replace(statistics, measured=measure_blocks(stored[name], tilings, engine))


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


def _generated(program: Program, stored: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Tensors that follow from their indices, as rows that the database makes."""
    tensors = bind(program, {name: source.tensor for name, source in stored.items()}).tensors
    return {each.name: generated_source(tensors[each.name], each.kind) for each in program.generated}


def _bind(program: Program, stored: Mapping[str, StoredTensor], options: PlanOptions) -> EinGraph:
    graph = bind(program, {name: source.tensor for name, source in stored.items()})
    computed = [einsum.output.tensor for einsum in graph.einsums]
    for name in (*options.outputs, *options.pin):
        if name not in computed:
            raise PlanError(f"the program computes no {name}; it computes {', '.join(computed)}")
    outputs = tuple(name for name in computed if name in graph.outputs or name in options.outputs)
    return EinGraph(graph.tensors, graph.einsums, outputs)


def _require_functions(graph: EinGraph) -> None:
    """Compile the functions of users that a graph calls."""
    for name in frozenset().union(*(functions_of(einsum.join) for einsum in graph.einsums)):
        python = FUNCTIONS[name].python
        if python is not None:
            require_function(name, python)


def _parts(bound: EinGraph, binary: EinGraph) -> dict[str, tuple[EinSum, ...]]:
    """The EinSums that compute every EinSum as written, those of its parts first."""
    written = {einsum.output.tensor for einsum in bound.einsums}
    found: dict[str, tuple[EinSum, ...]] = {}
    parts: list[EinSum] = []
    for einsum in binary.einsums:
        parts.append(einsum)
        if einsum.output.tensor in written:
            found[einsum.output.tensor] = tuple(parts)
            parts = []
    return found


def _pins(bound: EinGraph, parts: Mapping[str, tuple[EinSum, ...]], options: PlanOptions) -> dict[str, frozenset[str]]:
    """Labels to promote by result; where an EinSum was taken apart, its parts promote those of them that they have."""
    pins: dict[str, frozenset[str]] = {}
    for einsum in bound.einsums:
        name = einsum.output.tensor
        if name in options.pin:
            unknown = options.pin[name] - frozenset(einsum.labels)
            pins |= {part.output.tensor: options.pin[name].intersection(part.labels) | unknown for part in parts[name]}
    return pins


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
    kept = [name for name, stored in plan.stored.items() if not stored.is_generated]
    for name, stored in require(Catalogue(engine), kept).items():
        if stored != plan.stored[name]:
            raise EngineError(f"tensor {name} was defined anew since the plan was made; plan again")
    found = zip(plan.stored.items(), fingerprints(list(plan.stored.values()), engine), strict=True)
    changed = {name: stored for (name, stored), now in found if now != plan.measured[name].fingerprint}
    if not changed:
        return
    now = {**plan.measured, **_measure(changed, engine)}
    lost = [
        name
        for name, stored in changed.items()
        if _is_complete(stored, plan.measured[name]) and not _is_complete(stored, now[name])
    ]
    values = {name: plan.measured[name].values.united(measurement.values) for name, measurement in now.items()}
    exact = evaluate_exactly(plan.decomposed.graph, values, plan.nonfinite == "allow")
    differs = any(
        exact.evaluations[name].decision != evaluation.decision for name, evaluation in plan.evaluations.items()
    )
    if lost or differs:
        raise EngineError(f"tensor {next(iter(lost or changed))} has changed since the plan was made; plan again")


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
