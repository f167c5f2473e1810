"""The way through the house: a program and a database in, plans or results out; a line or two a stage."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from sparseeinsum.algebra.placement import place
from sparseeinsum.algebra.translate import Inputs, translate
from sparseeinsum.decompose.access import StoredOrder
from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.constants import constants_for
from sparseeinsum.decompose.eindecomp.planning import plan_for_workers
from sparseeinsum.decompose.memory import Memory, scan_needed_bytes, scanning_bytes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.plan import DecomposedGraph
from sparseeinsum.decompose.pricing import least_seconds
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.memory import bounded
from sparseeinsum.errors import PlanError
from sparseeinsum.kernels.user_functions import require_function
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import EinGraph, Program
from sparseeinsum.language.scalar import FUNCTIONS, functions_of
from sparseeinsum.language.tensors import DEMOTED, Decomposition, StoredTensor, entries
from sparseeinsum.partitioned import PartitionedProgram
from sparseeinsum.plan import Plan
from sparseeinsum.plan_options import PlanOptions
from sparseeinsum.replanning import replan
from sparseeinsum.results.execution import Delivery, Execution, Progress, execute, prepare, with_dictionaries
from sparseeinsum.results.targets import Target
from sparseeinsum.rewrite.algebraic import improve
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.first_indices import find_first_indices, successors_needed
from sparseeinsum.rewrite.known import Known
from sparseeinsum.rewrite.late_sums import sum_late
from sparseeinsum.rewrite.masked_sums import sum_where_read
from sparseeinsum.rewrite.parts import parts_of
from sparseeinsum.rewrite.products import put_together
from sparseeinsum.rewrite.rewriting import Rewriting
from sparseeinsum.rewrite.sparse_sums import compensate
from sparseeinsum.running import analyze_plan, check_into
from sparseeinsum.saved_plans.files import SavedPlan
from sparseeinsum.saved_plans.fitting import check_exact, decomposed_as, rebuilt
from sparseeinsum.semantics.exactness import ExactGraph, Values, evaluate_exactly
from sparseeinsum.statistics.blocks import measure_blocks, with_blocks
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.estimators import Estimator, make_estimator
from sparseeinsum.statistics.measure import Measurement, is_complete
from sparseeinsum.statistics.order import ascending_axes
from sparseeinsum.storage.catalogue import Catalogue, require
from sparseeinsum.storage.generated import generated_source, successor_source
from sparseeinsum.storage.inputs import stored_inputs
from sparseeinsum.storage.measuring import identifying_axes, measure_all
from sparseeinsum.storage.placing import machines_of

# Of the memory, for an operand that is kept there: every thread that puts tuples into it may have one of its own.
_RESIDENT_SHARE = 0.25


def make_plans(program: Program, engine: Engine, options: PlanOptions) -> list[Plan]:
    """Plan a program on the tensors of a database; best plan first."""
    clock = _Clock()
    with clock.stage("statistics"):
        data = _read_data(program, engine, options)
    with clock.stage("optimizer"), bounded(engine, options.most_bytes, options.estimating_bytes):
        bound = _bind(program, data.stored, options, engine)
        binary, derivations = _rewritten(bound, data, engine, options)
        pins = _pins(bound, binary, options)
        merged = merge_common_subexpressions(binary, pins)
        exact = evaluate_exactly(merged, data.values, _allows_nonfinite(options))
        layouts = _layouts(program, exact.graph, options)
        alternatives = _alternatives(exact, data, engine, options, layouts, pins)
        divided = None if options.workers is None else plan_for_workers(alternatives, options.workers)
        found = (alternatives if divided is None else divided.alternatives).chosen(options.top)
    rewriting = Rewriting.between(bound, exact.graph, derivations)
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
        data = _read_data(saved.program, engine, options)
    with clock.stage("optimizer"), bounded(engine, options.most_bytes, options.estimating_bytes):
        bound = _bind(saved.program, data.stored, options, engine)
        binary = rebuilt(saved, bound)
        exact = evaluate_exactly(binary, data.values, _allows_nonfinite(options))
        check_exact(saved, bound, exact.graph, data.values)
        layouts = {name: saved.layout_of(exact.graph.tensors[name]) for name in exact.graph.outputs}
        alternatives = _alternatives(exact, data, engine, options, layouts, {})
        decomposed = decomposed_as(saved, alternatives)
    rewriting = Rewriting.between(bound, exact.graph, {})
    made = _Making(saved.program, engine, options, data, rewriting, exact, alternatives, clock.seconds)
    return made.plan(decomposed)


@dataclass(frozen=True, slots=True)
class _Data:
    """What is known of a program's data.

    Attributes:
        stored: The tensors that it reads.
        measured: What scans found.
        statistics: T and V.
        orders: How tuples lie.
        estimator: How sizes of results are estimated.
        memory: That there is.
        successors: Names of generated tensors that tell which index follows which, by the vector of those indices.
    """

    stored: Mapping[str, StoredTensor]
    measured: Mapping[str, Measurement]
    statistics: Mapping[str, Statistics]
    orders: Mapping[str, StoredOrder]
    estimator: Estimator
    memory: Memory
    successors: Mapping[str, str]

    @property
    def values(self) -> dict[str, Values]:
        return {name: found.values for name, found in self.measured.items()}


def _read_data(program: Program, engine: Engine, options: PlanOptions) -> _Data:
    stored = stored_inputs(program, engine)
    generated = _Generated.of(program, stored)
    stored |= generated.stored
    memory = _memory(engine, options)
    _check_scans(stored, memory)
    with bounded(engine, options.most_bytes, sum(map(scanning_bytes, stored.values()))):
        measured = measure_all(stored, engine)
        statistics = {
            name: with_blocks(measured[name].statistics, source, options.tiles, engine)
            for name, source in stored.items()
        }
        estimator = make_estimator(options.estimator, stored, statistics, engine)
    orders = _orders(stored, engine)
    return _Data(stored, measured, statistics, orders, estimator, memory, generated.successors)


def _memory(engine: Engine, options: PlanOptions) -> Memory:
    is_of_process = options.memory_limit is not None and engine.memory_in_use() is not None
    limit = engine.memory_limit() if options.memory_limit is None else options.memory_limit
    sql = engine.sql
    return Memory(limit, engine.threads(), sql.vector_rows, sql.rows_per_thread, is_of_process, sql.spills_states)


def _check_scans(stored: Mapping[str, StoredTensor], memory: Memory) -> None:
    """Refuse to read tensors whose arrays the memory is too small for, in whatever plan."""
    for name, source in stored.items():
        needed = scan_needed_bytes(source, memory)
        if needed > memory.limit_bytes:
            raise PlanError(
                f"to read {name} as it is stored needs a memory_limit of at least {memory.given_for(needed):,} bytes, "
                f"more than the {memory.given_bytes:,} given; raise memory_limit or promote more labels of {name}, "
                "or tile them"
            )


def _orders(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, StoredOrder]:
    """How the tuples of tensors of several keys lie, in tables that hold them in an order of their own."""
    ordered = {name: each for name, each in stored.items() if each.is_owned and not each.holds_keys}
    several = {name: each for name, each in ordered.items() if len(each.keys) > 1}
    axes = ascending_axes(several, engine) if engine.sql.keeps_residents else {}
    return {name: StoredOrder(stored[name].decomposition.tiles, ascending) for name, ascending in axes.items()}


def _rewritten(
    bound: EinGraph, data: _Data, engine: Engine, options: PlanOptions
) -> tuple[EinGraph, Mapping[str, Derivation]]:
    """The graph as EinSums of one or two operands each, in a cheap order.

    Formulas are replaced by equal ones, and products that several EinSums compute put together before; sums over what
    is absent are taken apart after. Also, of results that another formula computes, that formula.
    """
    known = Known.of_inputs(bound.tensors, data.statistics, data.values, _allows_nonfinite(options))
    binary = binarise(bound, known)
    if known.allows_nonfinite:
        return binary.graph, {}
    price = partial(least_seconds, constants=constants_for(engine.costs))
    derivations: Mapping[str, Derivation] = {}
    if options.rewrites:
        pinned = options.pin.keys()
        improved = improve(bound, binary, price, options.pin)
        binary = put_together(improved.graph, improved.apart, price, pinned)
        binary = sum_late(binary, price, pinned)
        binary = sum_where_read(binary, price, pinned)
        derivations = improved.derivations
    return find_first_indices(compensate(binary, price), data.successors, price).graph, derivations


def _alternatives(
    exact: ExactGraph,
    data: _Data,
    engine: Engine,
    options: PlanOptions,
    layouts: Mapping[str, Decomposition],
    pins: Mapping[str, Mapping[str, int]],
) -> Alternatives:
    statistics = data.estimator(exact.graph, data.statistics, exact.evaluations)
    may_index = options.indexes and engine.sql.keeps_residents
    memory = data.memory
    model = CostModel(
        exact.graph,
        statistics,
        exact.evaluations,
        constants_for(engine.costs),
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
    data: _Data
    rewriting: Rewriting
    exact: ExactGraph
    alternatives: Alternatives
    planning_seconds: Mapping[str, float]

    def plan(self, decomposed: DecomposedGraph) -> Plan:
        """The plan of some choices."""
        stored, engine = self.data.stored, self.engine
        complete = frozenset(name for name in stored if is_complete(stored[name], self.data.measured[name]))
        identifying = {name: identifying_axes(stored[name], self.data.measured[name]) for name in stored}
        inputs = Inputs(stored, self.exact.values, complete, identifying)
        definitions = translate(decomposed, inputs, self.exact.evaluations, keeps_shared=engine.sql.has_workers)
        transferred_bytes = 0.0
        if decomposed.spreading is not None:
            placed = place(definitions, decomposed.spreading, self.alternatives.model)
            definitions, transferred_bytes = placed.definitions, placed.total_bytes
        return Plan(
            self.program,
            decomposed,
            definitions,
            self.alternatives,
            stored,
            self.data.measured,
            self.data.estimator,
            self.rewriting,
            self.options.nonfinite,
            self.options.memory_limit,
            engine.sql,
            self.data.memory.threads,
            self.planning_seconds,
            engine.stage_namer(decomposed.seconds),
            lambda plan: analyze_plan(plan, engine),
            transferred_bytes=transferred_bytes,
        )


def _allows_nonfinite(options: PlanOptions) -> bool:
    if options.nonfinite not in ("error", "allow"):
        raise PlanError(f"nonfinite {options.nonfinite!r} is neither 'error' nor 'allow'")
    return options.nonfinite == "allow"


def run_program(
    program: Program,
    engine: Engine,
    options: PlanOptions,
    into: Mapping[str, Target],
    progress: Progress,
    replans: bool = True,
) -> Execution:
    """Plan and run a program in one transaction, so that both see the same data; `replans` as for `run_plan`."""
    with engine.transaction():
        (plan,) = make_plans(program, engine, options)
        check_into(plan, engine, into)
        return with_dictionaries(execute(plan, engine, into, progress, replan if replans else None), engine)


@contextmanager
def stream_program(
    program: Program, engine: Engine, options: PlanOptions, progress: Progress, replans: bool = True
) -> Iterator[Mapping[str, Delivery]]:
    """Plan and run a program, but for the statements that return outputs, in a transaction that is open within."""
    with engine.transaction():
        (plan,) = make_plans(program, engine, options)
        with prepare(plan, engine, progress, replan if replans else None) as deliveries:
            yield deliveries


def measure_tensor(name: str, tilings: Sequence[tuple[int, ...]], engine: Engine) -> Statistics:
    """T and V of a stored tensor, as it is now, and its tuples in some decompositions."""
    stored = require(Catalogue(engine), [name])
    for tiles in tilings:
        if len(tiles) != len(stored[name].tensor.axes) or min(tiles, default=0) < DEMOTED:
            axes = ", ".join(axis.name for axis in stored[name].tensor.axes)
            raise PlanError(f"{tuple(tiles)} are no tiles of {name}; give each axis ({axes}) one, or 0 to demote it")
    statistics = measure_all(stored, engine)[name].statistics
    measured = {**statistics.measured, **measure_blocks(stored[name], tilings, engine)}
    return replace(statistics, measured=measured)


@dataclass(frozen=True, slots=True)
class _Generated:
    """Tensors that follow from their indices, as rows that the database makes; and those that rewriting may read.

    Attributes:
        stored: All of them by name.
        successors: Names of those that tell which index follows which, by the vector of those indices.
    """

    stored: dict[str, StoredTensor]
    successors: dict[str, str]

    @classmethod
    def of(cls, program: Program, inputs: Mapping[str, StoredTensor]) -> "_Generated":
        """Those of a program."""
        graph = bind(program, {name: source.tensor for name, source in inputs.items()})
        stored = {each.name: generated_source(graph.tensors[each.name], each.kind) for each in program.generated}
        labels = {each.name: each.label for each in program.generated if each.kind == "index"}
        successors = successors_needed(graph, labels)
        stored |= {each.name: successor_source(each) for each in successors.values()}
        return cls(stored, {vector: each.name for vector, each in successors.items()})


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
    """Compile the functions of users that a graph calls."""
    for name in frozenset().union(*(functions_of(einsum.join) for einsum in graph.einsums)):
        python = FUNCTIONS[name].python
        if python is not None:
            if not engine.sql.calls_python:
                raise PlanError(
                    f"{name} is a Python function, and {engine.title} has none of those yet; run it on DuckDB"
                )
            require_function(name, python)


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
            layouts[name] = entries(len(axes))
    return layouts


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start
