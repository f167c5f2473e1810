"""The way through the house: a program and a database in, plans or results out; a line or two a stage."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from sparseeinsum.algebra.placement import place_definitions
from sparseeinsum.algebra.translate import InputTensors, MaterializationPolicy, translate
from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.constants import constants_for
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.plan import DecomposedGraph
from sparseeinsum.decompose.pricing import least_seconds
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.locking import lock_of
from sparseeinsum.engines.memory import OutOfMemoryError, deterministic_order, limited_memory
from sparseeinsum.engines.retries import in_snapshot, retried_context
from sparseeinsum.errors import PlanError
from sparseeinsum.extras import late
from sparseeinsum.kernels.user_functions import require_aggregate, require_function
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import EinGraph, Program
from sparseeinsum.language.registered import registered_in
from sparseeinsum.language.tensors import DEMOTED, Decomposition, StoredTensor, fully_promoted
from sparseeinsum.operators.users_aggregates import UsersAggregate
from sparseeinsum.pipeline.plan_options import PlanOptions
from sparseeinsum.pipeline.program_data import ProgramData, read_data
from sparseeinsum.pipeline.replanning import planned_with_less
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.pipeline.running import analyze_plan, check_into, run_plan, stream_plan
from sparseeinsum.plans.explain import Analysis
from sparseeinsum.plans.partitioned import PartitionedProgram
from sparseeinsum.plans.plan import Plan
from sparseeinsum.plans.saved.files import SavedPlan
from sparseeinsum.plans.saved.fitting import check_exact, decomposed_as, rebuilt
from sparseeinsum.results.execution import Delivery, Execution, execute, prepare, with_dictionaries
from sparseeinsum.results.targets import Target
from sparseeinsum.rewrite.aggregation_pull_up import pull_up_sums
from sparseeinsum.rewrite.algebraic import rewrite_algebraically
from sparseeinsum.rewrite.annotated_graphs import GraphAnnotator
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.rewrite.compensation import compensate
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.einsum_parts import parts_of
from sparseeinsum.rewrite.first_match import rewrite_first_matches
from sparseeinsum.rewrite.masked_aggregation import mask_sums
from sparseeinsum.rewrite.reassociation import reassociate_products
from sparseeinsum.rewrite.rewrite_summary import RewriteSummary
from sparseeinsum.semantics.exactness import ExactGraph, evaluate_exactly
from sparseeinsum.statistics.measure import is_complete
from sparseeinsum.storage.measuring import identifying_axes
from sparseeinsum.storage.placement import machines_of

_PLANNING = "sparseeinsum.decompose.eindecomp.planning"

# Of the memory, for an operand that is kept there: every thread that puts tuples into it may have one of its own.
_RESIDENT_SHARE = 0.25


def make_plans(program: Program, engine: Engine, options: PlanOptions) -> list[Plan]:
    """Plan a program on the tensors of a database; best plan first."""
    with engine.protected():
        return _plans(program, engine, options)


def _plans(program: Program, engine: Engine, options: PlanOptions) -> list[Plan]:
    clock = _Clock()
    with clock.stage("statistics"):
        data = read_data(program, engine, options)
    with clock.stage("optimizer"), limited_memory(engine, options.memory_limit, options.estimating_bytes):
        bound = _bind(program, data.stored, options, engine)
        binary, derivations, unsearched = _rewritten(bound, data, engine, options)
        pins = _pins(bound, binary, options)
        merged = merge_common_subexpressions(binary, pins)
        exact = evaluate_exactly(merged, data.values, _allows_nonfinite(options))
        layouts = _layouts(program, exact.graph, options)
        alternatives = _alternatives(exact, data, engine, options, layouts, pins)
        divided = None if options.workers is None else late(_PLANNING).plan_for_workers(alternatives, options.workers)
        found = (alternatives if divided is None else divided.alternatives).preferred(options.top)
    rewriting = RewriteSummary.compare(bound, exact.graph, derivations, unsearched)
    made = _Making(program, engine, options, data, rewriting, exact, alternatives, clock.seconds)
    if divided is None:
        return [made.plan(decomposed) for decomposed in found]
    partitioned = PartitionedProgram(divided.task, divided.partitioning)
    made = replace(made, alternatives=divided.alternatives)
    return [replace(made.plan(decomposed), partitioned=partitioned) for decomposed in found]


def load_plan(saved: SavedPlan, engine: Engine) -> Plan:
    """A saved plan for the data of a database: its choices, with sizes and costs as they are there.

    Raises:
        PlanError: The plan does not fit the data, or is not exact for them.
    """
    with engine.protected():
        return _loaded(saved, engine)


def _loaded(saved: SavedPlan, engine: Engine) -> Plan:
    clock = _Clock()
    options = PlanOptions(
        saved.optimizer,
        saved.memory_limit,
        outputs=saved.outputs,
        nonfinite=saved.nonfinite,
        tiles=saved.allowed_tiles,
        estimator=saved.estimator,
    )
    with clock.stage("statistics"):
        data = read_data(saved.program, engine, options)
    with clock.stage("optimizer"), limited_memory(engine, options.memory_limit, options.estimating_bytes):
        bound = _bind(saved.program, data.stored, options, engine)
        binary = rebuilt(saved, bound)
        exact = evaluate_exactly(binary, data.values, _allows_nonfinite(options))
        check_exact(saved, bound, exact.graph, data.values)
        layouts = {name: saved.layout_of(exact.graph.tensors[name]) for name in exact.graph.outputs}
        alternatives = _alternatives(exact, data, engine, options, layouts, {})
        decomposed = decomposed_as(saved, alternatives)
    rewriting = RewriteSummary.compare(bound, exact.graph, {})
    made = _Making(saved.program, engine, options, data, rewriting, exact, alternatives, clock.seconds)
    return made.plan(decomposed)


def _rewritten(
    bound: EinGraph, data: ProgramData, engine: Engine, options: PlanOptions
) -> tuple[EinGraph, Mapping[str, Derivation], tuple[str, ...]]:
    """The graph as EinSums of one or two operands each, in a cheap order.

    Formulas are replaced by equal ones, and products that several EinSums compute put together before; sums over what
    is absent are taken apart after. Also, of results that another formula computes, that formula; and results for which
    none could be looked for.
    """
    known = GraphAnnotator.for_inputs(bound.tensors, data.statistics, data.values, _allows_nonfinite(options))
    binary = binarise(bound, known)
    if known.allows_nonfinite:
        return binary.graph, {}, ()
    price = partial(least_seconds, constants=constants_for(engine.constants_name))
    derivations: Mapping[str, Derivation] = {}
    unsearched: tuple[str, ...] = ()
    if options.rewrite:
        pinned = options.pin.keys()
        improved = rewrite_algebraically(bound, binary, price, options.pin)
        binary = reassociate_products(improved.graph, improved.binary, price, pinned)
        binary = pull_up_sums(binary, price, pinned)
        binary = mask_sums(binary, price, pinned)
        derivations, unsearched = improved.derivations, improved.unsearched
    return rewrite_first_matches(compensate(binary, price), data.successors, price).graph, derivations, unsearched


def _alternatives(
    exact: ExactGraph,
    data: ProgramData,
    engine: Engine,
    options: PlanOptions,
    layouts: Mapping[str, Decomposition],
    pins: Mapping[str, Mapping[str, int]],
) -> Alternatives:
    statistics = data.estimator(exact.graph, data.statistics, exact.evaluations)
    may_index = options.indexes and engine.dialect.keeps_residents
    memory = data.memory
    model = CostModel(
        exact.graph,
        statistics,
        exact.evaluations,
        constants_for(engine.constants_name),
        memory=memory,
        resident_bytes=memory.limit_bytes * _RESIDENT_SHARE / memory.threads if may_index else 0,
        orders=data.orders,
    )
    decompositions = {name: source.decomposition for name, source in data.stored.items()}
    machines = machines_of(data.stored, engine)
    return Alternatives(options.optimizer, model, decompositions, layouts, pins, options.tiles, machines=machines)


@dataclass(frozen=True, slots=True)
class _Making:
    """All that the plans for one program share."""

    program: Program
    engine: Engine
    options: PlanOptions
    data: ProgramData
    rewriting: RewriteSummary
    exact: ExactGraph
    alternatives: Alternatives
    planning_seconds: Mapping[str, float]

    def plan(self, decomposed: DecomposedGraph) -> Plan:
        """The plan of some choices."""
        stored, engine = self.data.stored, self.engine
        complete = frozenset(name for name in stored if is_complete(stored[name], self.data.measured[name]))
        identifying = {name: identifying_axes(stored[name], self.data.measured[name]) for name in stored}
        inputs = InputTensors(stored, self.exact.values, complete, identifying)
        kept = MaterializationPolicy.within(self.data.memory, engine.dialect.has_workers)
        definitions = translate(decomposed, inputs, self.exact.evaluations, kept)
        transferred_bytes = 0.0
        if decomposed.cluster_plan is not None:
            placed = place_definitions(definitions, decomposed.cluster_plan, self.alternatives.model)
            definitions, transferred_bytes = placed.definitions, placed.total_bytes
        return Plan(
            self.program,
            decomposed,
            definitions,
            self.alternatives,
            stored,
            registered_in(self.exact.graph),
            self.data.measured,
            self.data.estimator,
            self.rewriting,
            self.options.nonfinite,
            self.options.memory_limit,
            engine.dialect,
            self.data.memory.threads,
            self.planning_seconds,
            engine.stage_namer(decomposed.seconds),
            lambda plan: _analyzed(plan, engine),
            transferred_bytes=transferred_bytes,
        )


def _analyzed(plan: Plan, engine: Engine) -> Analysis:
    """A plan, run when its explanation asks for it."""
    with lock_of(engine.connection):
        return analyze_plan(plan, engine)


def _allows_nonfinite(options: PlanOptions) -> bool:
    if options.nonfinite not in ("error", "allow"):
        raise PlanError(f"nonfinite {options.nonfinite!r} is neither 'error' nor 'allow'")
    return options.nonfinite == "allow"


def run_program(
    program: Program,
    engine: Engine,
    options: PlanOptions,
    into: Mapping[str, Target],
    run_options: RunOptions,
) -> Execution:
    """Plan and run a program in one transaction, so that both see the same data."""
    plans: list[Plan] = []

    def run() -> Execution:
        with deterministic_order(engine, run_options.deterministic):
            plans[:] = make_plans(program, engine, options)
            check_into(plans[0], engine, into)
            execution = execute(plans[0], engine, into, run_options.progress, run_options.replan)
            return with_dictionaries(execution, engine)

    try:
        return in_snapshot(engine, run)
    except OutOfMemoryError:
        less = _planned_with_less(plans, run_options)
        if less is None:
            raise
    return run_plan(less, engine, into, run_options)


def _planned_with_less(plans: Sequence[Plan], run_options: RunOptions) -> Plan | None:
    """Another plan than the one that was made, where a database ran out of memory; None where there is none."""
    return None if run_options.deterministic or not plans else planned_with_less(plans[0])


@contextmanager
def stream_program(
    program: Program, engine: Engine, options: PlanOptions, run_options: RunOptions
) -> Iterator[Mapping[str, Delivery]]:
    """Plan and run a program, but for the statements that return outputs, in a transaction that is open within."""
    plans: list[Plan] = []

    @contextmanager
    def run() -> Iterator[Mapping[str, Delivery]]:
        with engine.snapshot(), deterministic_order(engine, run_options.deterministic):
            plans[:] = make_plans(program, engine, options)
            with prepare(plans[0], engine, run_options.progress, run_options.replan) as deliveries:
                yield deliveries

    with ExitStack() as stack:
        try:
            deliveries = stack.enter_context(retried_context(engine, run))
        except OutOfMemoryError:
            less = _planned_with_less(plans, run_options)
            if less is None:
                raise
            deliveries = stack.enter_context(stream_plan(less, engine, run_options))
        yield deliveries


def _bind(program: Program, stored: Mapping[str, StoredTensor], options: PlanOptions, engine: Engine) -> EinGraph:
    """The program over the tensors that there are, with the outputs asked for and its functions compiled."""
    graph = bind(program, {name: source.tensor for name, source in stored.items()})
    computed = [einsum.output.tensor for einsum in graph.einsums]
    for name in (*options.outputs, *options.pin):
        if name not in computed:
            raise PlanError(f"the program computes no {name}; it computes {', '.join(computed)}")
    outputs = tuple(name for name in computed if name in graph.outputs or name in options.outputs)
    _require_functions(graph, engine)
    known = {name: source.tensor for name, source in stored.items()}
    return EinGraph({**known, **graph.tensors}, graph.einsums, outputs)


def _require_functions(graph: EinGraph, engine: Engine) -> None:
    """Compile the functions and aggregates of users that a graph calls."""
    for name, record in registered_in(graph).items():
        if not engine.dialect.calls_python:
            raise PlanError(f"{name} is a Python function, and {engine.title} has none of those yet; run it on DuckDB")
        if isinstance(record, UsersAggregate):
            require_aggregate(record)
        elif record.python is not None:
            require_function(name, record.python)


def _pins(bound: EinGraph, binary: EinGraph, options: PlanOptions) -> dict[str, Mapping[str, int]]:
    """Labels to promote by result; where an EinSum was taken apart, its parts promote those of them that they have."""
    parts = parts_of({einsum.output.tensor for einsum in bound.einsums}, binary)
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
            layouts[name] = fully_promoted(len(axes))
    return layouts


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start
