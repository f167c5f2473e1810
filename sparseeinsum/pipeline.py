"""The way through the house: a program and a database in, plans out; a plan in, results out; a line or two a stage."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from sparseeinsum.algebra.translate import Inputs, translate
from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.constants import constants_for
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.plan import DecomposedGraph
from sparseeinsum.decompose.pricing import least_seconds
from sparseeinsum.engines.catalogue import Catalogue, check_relation, require
from sparseeinsum.engines.duckdb import DuckDB
from sparseeinsum.engines.execution import Execution, Progress, execute, run_each
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
from sparseeinsum.rewrite.assumptions import broken_assumption, rewritten_results
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.rewrite.sparse_sums import compensate
from sparseeinsum.saved_plans.files import SavedPlan
from sparseeinsum.saved_plans.fitting import check_exact, decomposed_as, rebuilt
from sparseeinsum.semantics.exactness import ExactGraph, Values, evaluate_exactly
from sparseeinsum.statistics.blocks import measure_blocks, with_blocks
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.estimators import DEFAULT_ESTIMATOR, Estimator, make_estimator
from sparseeinsum.statistics.measure import Measurement, check_rows, fingerprints, measure


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a user asks of a plan.

    Attributes:
        optimizer: dp, cover, greedy, relational or dense.
        memory_limit: Bytes that a run may take; the database's own limit by default.
        pin: For some results, exactly the labels to promote in the EinSum that computes them, and their tiles.
        layout: `entries`: outputs come as one number a row, unless promoted by hand; `any`: as they are cheapest.
        outputs: Results to return besides those that nothing reads.
        nonfinite: What to do where values turn NaN or infinite: `error` or `allow`.
        tiles: Tiles of several indices that any label may have; besides them those that inputs are stored in.
        estimator: How sizes of results are estimated: uniform, sketch or exact.
        top: How many plans.
    """

    optimizer: str = "dp"
    memory_limit: int | None = None
    pin: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    layout: str = "entries"
    outputs: tuple[str, ...] = ()
    nonfinite: str = "error"
    tiles: tuple[int, ...] = ()
    estimator: str = DEFAULT_ESTIMATOR
    top: int = 1


def make_plans(program: Program, engine: DuckDB, options: PlanOptions) -> list[Plan]:
    """Plan a program on the tensors of a database; best plan first."""
    clock = _Clock()
    with clock.stage("statistics"):
        data = _read_data(program, engine, options)
    with clock.stage("optimizer"):
        bound = _bind(program, data.stored, options)
        binary = _rewritten(bound, data, engine, options)
        pins = _pins(bound, binary, options)
        exact = evaluate_exactly(merge_common_subexpressions(binary, pins), data.values, _allows_nonfinite(options))
        layouts = _layouts(program, exact.graph, options)
        alternatives = _alternatives(exact, data, engine, options, layouts, pins)
        found = alternatives.best(options.top)
    made = _Making(program, engine, options, data, bound, exact, alternatives, clock.seconds)
    return [made.plan(decomposed) for decomposed in found]


def load_plan(saved: SavedPlan, engine: DuckDB) -> Plan:
    """A saved plan for the data of a database: its choices, with sizes and costs as they are there.

    Raises:
        PlanError: The plan does not fit the data, or is not exact for them.
    """
    clock = _Clock()
    options = PlanOptions(saved.optimizer, saved.memory_limit, outputs=saved.outputs, nonfinite=saved.nonfinite)
    with clock.stage("statistics"):
        data = _read_data(saved.program, engine, options)
    with clock.stage("optimizer"):
        bound = _bind(saved.program, data.stored, options)
        binary = rebuilt(saved, bound)
        exact = evaluate_exactly(binary, data.values, _allows_nonfinite(options))
        check_exact(saved, bound, exact.graph, data.values)
        layouts = {name: saved.layout_of(exact.graph.tensors[name]) for name in exact.graph.outputs}
        alternatives = _alternatives(exact, data, engine, options, layouts, {})
        decomposed = decomposed_as(saved, alternatives)
    made = _Making(saved.program, engine, options, data, bound, exact, alternatives, clock.seconds)
    return made.plan(decomposed)


@dataclass(frozen=True, slots=True)
class _Data:
    """The tensors that a program reads, what scans of them found, and how sizes of results are estimated."""

    stored: Mapping[str, StoredTensor]
    measured: Mapping[str, Measurement]
    statistics: Mapping[str, Statistics]
    estimator: Estimator

    @property
    def values(self) -> dict[str, Values]:
        return {name: found.values for name, found in self.measured.items()}


def _read_data(program: Program, engine: DuckDB, options: PlanOptions) -> _Data:
    stored = require(Catalogue(engine), program.inputs)
    stored |= _generated(program, stored)
    measured = _measure(stored, engine)
    statistics = {
        name: with_blocks(measured[name].statistics, source, options.tiles, engine) for name, source in stored.items()
    }
    estimator = make_estimator(options.estimator, stored, statistics, engine)
    return _Data(stored, measured, statistics, estimator)


def _rewritten(bound: EinGraph, data: _Data, engine: DuckDB, options: PlanOptions) -> EinGraph:
    """The graph as EinSums of one or two operands each, sums over what is absent taken apart where that is cheaper."""
    known, values, allows_nonfinite = data.statistics, data.values, _allows_nonfinite(options)
    binary = binarise(bound, known, values, allows_nonfinite)
    if allows_nonfinite:
        return binary
    return compensate(binary, known, values, partial(least_seconds, constants=constants_for(engine.dialect)))


def _alternatives(
    exact: ExactGraph,
    data: _Data,
    engine: DuckDB,
    options: PlanOptions,
    layouts: Mapping[str, Decomposition],
    pins: Mapping[str, Mapping[str, int]],
) -> Alternatives:
    statistics = data.estimator(exact.graph, data.statistics, exact.evaluations)
    model = CostModel(exact.graph, statistics, exact.evaluations, constants_for(engine.dialect))
    decompositions = {name: source.decomposition for name, source in data.stored.items()}
    limit = engine.memory_limit() if options.memory_limit is None else options.memory_limit
    return Alternatives(options.optimizer, model, decompositions, layouts, limit, pins, options.tiles)


@dataclass(frozen=True, slots=True)
class _Making:
    """All that the plans for one program share."""

    program: Program
    engine: DuckDB
    options: PlanOptions
    data: _Data
    bound: EinGraph
    exact: ExactGraph
    alternatives: Alternatives
    planning_seconds: Mapping[str, float]

    def plan(self, decomposed: DecomposedGraph) -> Plan:
        """The plan of some choices."""
        stored, engine = self.data.stored, self.engine
        parts = _parts(self.bound, self.exact.graph)
        complete = frozenset(name for name in stored if _is_complete(stored[name], self.data.measured[name]))
        return Plan(
            self.program,
            decomposed,
            translate(decomposed, Inputs(stored, self.exact.values, complete), self.exact.evaluations),
            self.alternatives,
            stored,
            self.data.measured,
            self.alternatives.model.statistics,
            self.exact.evaluations,
            {name: tuple(part.output.tensor for part in computed[:-1]) for name, computed in parts.items()},
            rewritten_results(self.bound, self.exact.graph),
            self.options.nonfinite,
            self.options.memory_limit,
            engine.sql,
            engine.threads(),
            self.planning_seconds,
            lambda plan: _analyze(plan, engine),
        )


def _allows_nonfinite(options: PlanOptions) -> bool:
    if options.nonfinite not in ("error", "allow"):
        raise PlanError(f"nonfinite {options.nonfinite!r} is neither 'error' nor 'allow'")
    return options.nonfinite == "allow"


def _analyze(plan: Plan, engine: DuckDB) -> Analysis:
    """Run a plan, then every EinSum of it alone."""
    with _running(plan, engine):
        runs = execute(plan, engine, {}, lambda *_: None).runs
        return Analysis(tuple(run.seconds for run in runs), run_each(plan, engine))


def run_plan(plan: Plan, engine: DuckDB, into: Mapping[str, str], progress: Progress) -> Execution:
    """Run a plan in a transaction of its own, on the data as they are now."""
    with _running(plan, engine):
        _check_into(plan, engine, into)
        return execute(plan, engine, into, progress)


@contextmanager
def _running(plan: Plan, engine: DuckDB) -> Iterator[None]:
    """A transaction in which a plan is right for the data."""
    with _telling_what_is_gone(plan.stored, engine), engine.transaction():
        _check_unchanged(plan, engine)
        yield


def run_program(
    program: Program, engine: DuckDB, options: PlanOptions, into: Mapping[str, str], progress: Progress
) -> Execution:
    """Plan and run a program in one transaction, so that both see the same data."""
    with engine.transaction():
        (plan,) = make_plans(program, engine, options)
        _check_into(plan, engine, into)
        return execute(plan, engine, into, progress)


def measure_tensor(name: str, tilings: Sequence[tuple[int, ...]], engine: DuckDB) -> Statistics:
    """T and V of a stored tensor, as it is now, and its tuples in some decompositions."""
    stored = require(Catalogue(engine), [name])
    for tiles in tilings:
        if len(tiles) != len(stored[name].tensor.axes) or min(tiles, default=0) < DEMOTED:
            axes = ", ".join(axis.name for axis in stored[name].tensor.axes)
            raise PlanError(f"{tuple(tiles)} are no tiles of {name}; give each axis ({axes}) one, or 0 to demote it")
    statistics = _measure(stored, engine)[name].statistics
    measured = {**statistics.measured, **measure_blocks(stored[name], tilings, engine)}
    return replace(statistics, measured=measured)


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
    """The program over the tensors that there are, with the outputs asked for and its functions compiled."""
    graph = bind(program, {name: source.tensor for name, source in stored.items()})
    computed = [einsum.output.tensor for einsum in graph.einsums]
    for name in (*options.outputs, *options.pin):
        if name not in computed:
            raise PlanError(f"the program computes no {name}; it computes {', '.join(computed)}")
    outputs = tuple(name for name in computed if name in graph.outputs or name in options.outputs)
    _require_functions(graph)
    return EinGraph(graph.tensors, graph.einsums, outputs)


def _require_functions(graph: EinGraph) -> None:
    """Compile the functions of users that a graph calls."""
    for name in frozenset().union(*(functions_of(einsum.join) for einsum in graph.einsums)):
        python = FUNCTIONS[name].python
        if python is not None:
            require_function(name, python)


def _parts(bound: EinGraph, binary: EinGraph) -> dict[str, tuple[EinSum, ...]]:
    """The EinSums that compute every EinSum as written that is still there, those of its parts first."""
    written = {einsum.output.tensor for einsum in bound.einsums}
    found: dict[str, tuple[EinSum, ...]] = {}
    parts: list[EinSum] = []
    for einsum in binary.einsums:
        parts.append(einsum)
        if einsum.output.tensor in written:
            found[einsum.output.tensor] = tuple(parts)
            parts = []
    return found


def _pins(bound: EinGraph, binary: EinGraph, options: PlanOptions) -> dict[str, Mapping[str, int]]:
    """Labels to promote by result; where an EinSum was taken apart, its parts promote those of them that they have."""
    parts = _parts(bound, binary)
    pins: dict[str, Mapping[str, int]] = {}
    for einsum in bound.einsums:
        name = einsum.output.tensor
        if name in options.pin:
            for part in parts[name]:
                kept = {*part.labels, *(options.pin[name].keys() - frozenset(einsum.labels))}  # unknown ones, too
                pins[part.output.tensor] = {label: tile for label, tile in options.pin[name].items() if label in kept}
    return pins


def _layouts(program: Program, graph: EinGraph, options: PlanOptions) -> dict[str, Decomposition]:
    """How outputs are to be delivered: as promoted by hand on the left side, or as the options say."""
    if options.layout not in ("entries", "any"):
        raise PlanError(f"layout {options.layout!r} is neither 'entries' nor 'any'")
    by_hand = {name: dict(tiles) for name, tiles in program.layouts}
    layouts = {}
    for name in graph.outputs:
        axes = [axis.name for axis in graph.tensors[name].axes]
        if name in by_hand:
            layouts[name] = Decomposition(tuple(by_hand[name].get(axis, DEMOTED) for axis in axes))
        elif options.layout == "entries":
            layouts[name] = entries(len(axes))
    return layouts


def _is_complete(stored: StoredTensor, measured: Measurement) -> bool:
    """Whether every tuple that there can be is there."""
    return measured.tuples == stored.decomposition.most_tuples(stored.tensor.shape)


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
    graph, allows_nonfinite = plan.decomposed.graph, plan.nonfinite == "allow"
    exact = evaluate_exactly(graph, values, allows_nonfinite)
    differs = any(
        exact.evaluations[name].decision != evaluation.decision for name, evaluation in plan.evaluations.items()
    )
    if lost or differs:
        raise EngineError(f"tensor {next(iter(lost or changed))} has changed since the plan was made; plan again")
    before, after = ({name: found.values for name, found in each.items()} for each in (plan.measured, now))
    reason = broken_assumption(graph, plan.rewritten, before, after, allows_nonfinite)
    if reason is not None:
        raise EngineError(f"{reason}; plan again")


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
