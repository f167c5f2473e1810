"""Pipeline: plans a program on the tensors of a database, one or two lines per room of the package.

This is the module to read first.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sparseeinsum.algebra.placement import place_definitions
from sparseeinsum.algebra.shared_orders import with_shared_orders
from sparseeinsum.algebra.translate import InputTensors, MaterializationPolicy, translate
from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.cost import CostConstants
from sparseeinsum.decompose.cost_bounds import seconds_predictor
from sparseeinsum.decompose.cost_constants import constants_for
from sparseeinsum.decompose.decomposed_einsum import is_of_numbers
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph
from sparseeinsum.decompose.eindecomp.objectives import FLOATS
from sparseeinsum.decompose.memory_footprint import RunMemory
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.resident_limits import resident_limit
from sparseeinsum.decompose.staying_operands import NOTHING_STAYS
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.memory_limit import limited_memory
from sparseeinsum.engines.registered_functions import compile_functions
from sparseeinsum.environment.extras import late
from sparseeinsum.environment.logs import timed
from sparseeinsum.errors import PlanError
from sparseeinsum.kernels.duckdb.library import gpu_in_use
from sparseeinsum.language.eingraph import EinGraph, Program
from sparseeinsum.language.tensors import DEMOTED, Decomposition, StoredTensor, fully_promoted
from sparseeinsum.language.user_functions import user_functions_in
from sparseeinsum.pipeline.garbage_collection import without_garbage_collection
from sparseeinsum.pipeline.operand_memory import most_kept_bytes, most_resident_bytes, staying_operands
from sparseeinsum.pipeline.program_data import NOTHING_ASSUMED, ProgramData, read_data
from sparseeinsum.pipeline.search_cache import SEARCHES, search_key
from sparseeinsum.pipeline.stage_clock import StageClock
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.partitioned_program import PartitionedProgram
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.saved.plan_files import SavedPlan
from sparseeinsum.plans.saved.rebuilding import check_exact, decomposed_as, rebuilt
from sparseeinsum.plans.units import write_seconds
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.rewrite.annotated_graphs import GraphAnnotator
from sparseeinsum.rewrite.einsum_parts import parts_of
from sparseeinsum.rewrite.equal_formulas import EqualFormulas
from sparseeinsum.rewrite.predicted_costs import LEAST_SECONDS
from sparseeinsum.rewrite.rewrite_summary import RewriteSummary
from sparseeinsum.rewrite.stages import Rewriting, RewritingOptions, RewrittenGraph, rewrite_graph
from sparseeinsum.semantics.exactness import ExactGraph, ValueFacts, decide_evaluations
from sparseeinsum.storage.program_inputs import NOTHING_SUPPLIED
from sparseeinsum.storage.tensor_placement import machines_of

if TYPE_CHECKING:
    from sparseeinsum.decompose.eindecomp.workers_plan import WorkersPlan

_LOGGER = logging.getLogger(__name__)
_WORKERS_PLAN = "sparseeinsum.decompose.eindecomp.workers_plan"
_REWRITINGS = "sparseeinsum.decompose.eindecomp.rewritings"


def make_plans(
    program: Program,
    engine: Engine,
    options: PlanOptions,
    supplied: Mapping[str, StoredTensor] = NOTHING_SUPPLIED,
    assumed: Mapping[str, ValueFacts] = NOTHING_ASSUMED,
    equal: EqualFormulas | None = None,
    memory: RunMemory | None = None,
) -> list[ProgramPlan]:
    """Plans of a program on the tensors of a database, the best one first.

    Other arguments are as for `read_data`.

    Args:
        equal: The equal formulas that earlier plans of the program have found; they grow.

    Raises:
        CatalogueError: A tensor does not exist.
        ShapeError: Labels and bounds do not fit.
        PlanError: No plan satisfies the options.
    """
    with engine.reading(), without_garbage_collection():
        plans = _plans(program, engine, options, supplied, assumed, equal or EqualFormulas(), memory)
    _log_plan(plans[0])
    return plans


def _log_plan(plan: ProgramPlan) -> None:
    _LOGGER.info(
        "planned %s: EinSums: %d, expected to take %s; planning took %s",
        ", ".join(plan.outputs),
        len(plan.decomposed.steps),
        write_seconds(plan.decomposed.seconds),
        write_seconds(sum(plan.planning_seconds.values())),
    )


def _plans(
    program: Program,
    engine: Engine,
    options: PlanOptions,
    supplied: Mapping[str, StoredTensor],
    assumed: Mapping[str, ValueFacts],
    equal: EqualFormulas,
    memory: RunMemory | None,
) -> list[ProgramPlan]:
    if options.objective == FLOATS and options.workers is None and not engine.dialect.distributes:
        raise PlanError(
            "objective 'floats' is of plans for several workers, or on a cluster; say how many workers: workers=4"
        )
    clock = StageClock()
    with timed(_LOGGER, "measure"):
        data = read_data(program, engine, options, supplied, assumed, clock, memory)
    with clock.stage("optimizer"):
        key = search_key(program, data, engine, cost_constants(engine), options)
        kept = SEARCHES.find(key, data, engine, clock.seconds)
    if kept:
        _LOGGER.debug("search: as for equal data before")
        return kept
    plans = _searched_plans(program, engine, options, data, equal, clock)
    SEARCHES.keep(key, plans)
    return plans


def _searched_plans(
    program: Program, engine: Engine, options: PlanOptions, data: ProgramData, equal: EqualFormulas, clock: StageClock
) -> list[ProgramPlan]:
    with clock.stage("optimizer"), limited_memory(engine, options.memory_limit, options.estimating_bytes):
        bound = _bound(data, options, engine)
        rewritings = _rewritings(engine, options)
        searches = [
            _search(program, bound, data, engine, options, rewritten)
            for rewritten in _rewritten_graphs(program, bound, data, options, rewritings, equal)
        ]
        with timed(_LOGGER, "search"):
            search, workers_plan = _for_workers(searches, options)
            chosen = search.alternatives.preferred(options.top)
    summary = RewriteSummary.compare(
        bound, search.exact.graph, search.rewritten.derivations, search.rewritten.unsearched
    )
    parts = _PlanParts(program, engine, options, data, summary, search.exact, search.alternatives, clock.seconds)
    partitioned = None if workers_plan is None else PartitionedProgram(workers_plan.task, workers_plan.partitioning)
    return [replace(parts.plan(decomposed), partitioned=partitioned) for decomposed in chosen]


def _rewritings(engine: Engine, options: PlanOptions) -> list[Rewriting]:
    """The ways to rewrite a graph among which a plan is chosen."""
    constants = cost_constants(engine)
    if options.workers is not None:
        rewritings: list[Rewriting] = late(_REWRITINGS).rewritings_for(options.workers, constants, options.rewrite)
        return rewritings
    least = 0.0 if options.searches_all else LEAST_SECONDS
    return [Rewriting(options.rewrite, seconds_predictor(constants, least))]


@dataclass(frozen=True, slots=True)
class _Search:
    """A rewritten graph, and all that the search may choose from."""

    rewritten: RewrittenGraph
    exact: ExactGraph
    alternatives: Alternatives


def _search(
    program: Program,
    bound: EinGraph,
    data: ProgramData,
    engine: Engine,
    options: PlanOptions,
    rewritten: RewrittenGraph,
) -> _Search:
    """What the search may choose from if the graph is rewritten in this way."""
    pins = _pins(bound, rewritten.graph, options)
    exact = rewritten.merged(_with_recomputed(program, pins)).annotated.exact
    layouts = _layouts(program, exact.graph, options)
    return _Search(rewritten, exact, _alternatives(exact, data, engine, options, layouts, pins))


def _for_workers(searches: Sequence[_Search], options: PlanOptions) -> tuple[_Search, "WorkersPlan | None"]:
    """The search whose best plan for several workers costs least; the only one for one worker."""
    if options.workers is None:
        (search,) = searches
        return search, None
    distinct = {search.exact.graph.einsums: search for search in searches}.values()
    plan_for_workers = late(_WORKERS_PLAN).plan_for_workers
    plans = [plan_for_workers(search.alternatives, options.workers, options.objective) for search in distinct]
    cheapest, search = min(zip(plans, distinct, strict=True), key=lambda pair: pair[0].cost)
    return replace(search, alternatives=cheapest.alternatives), cheapest


def load_plan(saved: SavedPlan, engine: Engine) -> ProgramPlan:
    """A saved plan for the data of a database: its choices, with sizes and costs on these data.

    Raises:
        PlanError: The plan does not fit the data, or is not exact for them.
    """
    with engine.reading():
        return _loaded(saved, engine)


def _loaded(saved: SavedPlan, engine: Engine) -> ProgramPlan:
    clock, options = StageClock(), saved.options
    data = read_data(saved.program, engine, options, NOTHING_SUPPLIED, NOTHING_ASSUMED, clock)
    with clock.stage("optimizer"), limited_memory(engine, options.memory_limit, options.estimating_bytes):
        bound = _bound(data, options, engine)
        binary = rebuilt(saved, bound)
        exact = decide_evaluations(binary, data.values, options.allows_nonfinite)
        check_exact(saved, bound, exact.graph, data.values)
        layouts = {name: saved.layout_of(exact.graph.tensors[name]) for name in exact.graph.outputs}
        alternatives = _alternatives(exact, data, engine, options, layouts, {})
        decomposed = decomposed_as(saved, alternatives)
    rewriting = RewriteSummary.compare(bound, exact.graph, {})
    parts = _PlanParts(saved.program, engine, options, data, rewriting, exact, alternatives, clock.seconds)
    return parts.plan(decomposed)


def _with_recomputed(program: Program, pins: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
    """The pins, and empty ones for results that are computed again, which rewriting then leaves as they are."""
    return {**{name: {} for name in program.recomputed}, **pins}


def _rewritten_graphs(
    program: Program,
    bound: EinGraph,
    data: ProgramData,
    options: PlanOptions,
    rewritings: Iterable[Rewriting],
    equal: EqualFormulas,
) -> Iterator[RewrittenGraph]:
    """The graph rewritten in each way: EinSums of one or two operands, in a cheap order."""
    annotator = GraphAnnotator.for_inputs(bound.tensors, data.statistics, data.values, options.allows_nonfinite)
    allowed = RewritingOptions(
        _with_recomputed(program, options.pin), data.successors, frozenset(data.index_maps), equal
    )
    for rewriting in rewritings:
        with timed(_LOGGER, "rewrite"):
            rewritten = rewrite_graph(bound, annotator, rewriting, allowed)
        yield rewritten


def cost_constants(engine: Engine) -> CostConstants:
    """The cost constants of an engine, with matrix products at the speed of the GPU if there is one."""
    constants = constants_for(engine.constants_name)
    gpu = gpu_in_use() if engine.dialect.calls_python else None
    if gpu is None:
        return constants
    seconds = min(gpu.seconds_per_operation, constants.matrix_seconds_per_operation)
    return replace(constants, matrix_seconds_per_operation=seconds)


def _alternatives(
    exact: ExactGraph,
    data: ProgramData,
    engine: Engine,
    options: PlanOptions,
    layouts: Mapping[str, Decomposition],
    pins: Mapping[str, Mapping[str, int]],
) -> Alternatives:
    """Everything that the search may choose from, with the cost model of this engine and these data."""
    statistics = data.estimator(exact.graph, data.statistics, exact.evaluations)
    memory = data.memory
    limit_bytes = resident_limit(exact.graph, statistics, memory.limit_bytes)
    resident_bytes = most_resident_bytes(limit_bytes, memory.threads, engine, options)
    kept_bytes = most_kept_bytes(limit_bytes, engine) if resident_bytes else 0.0
    model = CostModel(
        exact.graph,
        statistics,
        exact.evaluations,
        cost_constants(engine),
        memory=memory,
        resident_bytes=resident_bytes,
        kept_bytes=kept_bytes,
        has_handles=engine.dialect.keeps_residents,
        chains_arrays=engine.dialect.chains_arrays and options.workers is None,
        collects_rows=engine.dialect.keeps_residents and options.workers is None,
        multiplies_sparse=options.workers is None,
        orders=data.orders,
        index_maps={} if engine.dialect.distributes else data.index_maps,
        in_lists=frozenset(name for name, source in data.stored.items() if source.lists is not None),
        of_numbers=frozenset(name for name, tensor in data.inputs.items() if is_of_numbers(tensor.decomposition.tiles)),
        staying=NOTHING_STAYS if engine.kept_memory is None else staying_operands(data, options, kept_bytes),
    )
    decompositions = {name: tensor.decomposition for name, tensor in data.inputs.items()}
    machines = machines_of(data.stored, engine, options.objective == FLOATS)
    return Alternatives(
        options.optimizer,
        model,
        decompositions,
        layouts,
        pins,
        options.tiles,
        machines=machines,
        searches_all=options.searches_all,
    )


@dataclass(frozen=True, slots=True)
class _PlanParts:
    """What all plans of one program share."""

    program: Program
    engine: Engine
    options: PlanOptions
    data: ProgramData
    rewriting: RewriteSummary
    exact: ExactGraph
    alternatives: Alternatives
    planning_seconds: Mapping[str, float]

    def plan(self, decomposed: DecomposedGraph) -> ProgramPlan:
        """The plan with the choices of `decomposed`."""
        engine, data = self.engine, self.data
        policy = MaterializationPolicy.for_model(self.alternatives.model, engine.dialect.has_workers)
        inputs = InputTensors.of_measured(data.inputs)
        definitions = with_shared_orders(translate(decomposed, inputs, self.exact.evaluations, policy))
        transferred_bytes = 0.0
        if decomposed.cluster_plan is not None:
            placed = place_definitions(definitions, decomposed.cluster_plan, self.alternatives.model)
            definitions, transferred_bytes = placed.definitions, placed.total_bytes
        return ProgramPlan(
            self.program,
            self.options,
            data.inputs,
            user_functions_in(self.exact.graph),
            data.estimator,
            self.rewriting,
            self.alternatives,
            decomposed,
            definitions,
            engine.dialect,
            data.memory.threads,
            engine.stage_namer(decomposed.seconds),
            self.planning_seconds,
            self.planning_seconds["optimizer"],
            transferred_bytes=transferred_bytes,
        )


def _bound(data: ProgramData, options: PlanOptions, engine: Engine) -> EinGraph:
    """The bound program with the outputs of `options`; the functions that it calls are compiled."""
    tensors = {name: source.tensor for name, source in data.stored.items()}
    graph = data.bound
    computed = [einsum.output.tensor for einsum in graph.einsums]
    for name in (*options.outputs, *options.pin):
        if name not in computed:
            hint = did_you_mean(name, computed, otherwise="it computes")
            raise PlanError(f"the program computes no {name}; {hint}")
    outputs = tuple(name for name in computed if name in graph.outputs or name in options.outputs)
    compile_functions(user_functions_in(graph), engine)
    return EinGraph({**tensors, **graph.tensors}, graph.einsums, outputs)


def _pins(bound: EinGraph, binary: EinGraph, options: PlanOptions) -> dict[str, Mapping[str, int]]:
    """The labels to promote, by result; the parts of an EinSum that was split promote the labels that they have."""
    parts = parts_of({einsum.output.tensor for einsum in bound.einsums}, binary)
    pins: dict[str, Mapping[str, int]] = {}
    for einsum in bound.einsums:
        name = einsum.output.tensor
        if name in options.pin:
            unknown = options.pin[name].keys() - frozenset(einsum.labels)  # the search refuses them by name
            for part in parts[name]:
                pinned = {*part.labels, *unknown}
                pins[part.output.tensor] = {label: tile for label, tile in options.pin[name].items() if label in pinned}
    return pins


def _layouts(program: Program, graph: EinGraph, options: PlanOptions) -> dict[str, Decomposition]:
    """The layout of every output that has one: from capital letters on the left-hand side, or from `options`."""
    written = {name: dict(tiles) for name, tiles in program.layouts}
    layouts = {}
    for name in graph.outputs:
        axes = [axis.name for axis in graph.tensors[name].axes]
        if name in written:
            layouts[name] = Decomposition(tuple(written[name].get(axis, DEMOTED) for axis in axes))
        elif options.layout == "entries":
            layouts[name] = fully_promoted(len(axes))
    return layouts
