"""Decompose: which results of a plan go into temporary tables, and the memory that its statements take."""

from collections.abc import Set
from dataclasses import dataclass

from sparseeinsum.decompose.choice import is_single_array
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph, Step
from sparseeinsum.decompose.memory_footprint import Footprint
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.repartitions import Repartition

_MOST_NESTED = 64  # DuckDB nests 1,000 queries, of which a result may take several


@dataclass(frozen=True, slots=True)
class TableCost:
    """What a temporary table of a result takes.

    Attributes:
        table_seconds: Seconds to create and drop a table.
        seconds_per_byte: Seconds to write and read a byte of it.
    """

    table_seconds: float
    seconds_per_byte: float

    def seconds(self, step: Step, model: CostModel) -> float:
        """The expected seconds for the result of a step of a plan that `model` priced."""
        size_bytes = model.sizes.relation_bytes(step.einsum.output.tensor, step.result.tiles)
        return self.table_seconds + size_bytes * self.seconds_per_byte


def staged_results(
    plan: DecomposedGraph,
    model: CostModel,
    computes_whole: bool = True,
    shared: Set[str] = frozenset(),
    in_one_row: Set[str] = frozenset(),
) -> tuple[str, ...]:
    """Results that are kept in temporary tables while a plan runs, in topological order.

    These are:
    - results that are read more than once, or both read and delivered;
    - results that are computed in passes, and what passes read, lest each pass compute it again;
    - results that take much of the memory while they are computed;
    - results that are checked for NaN and infinity, and so must be computed completely, if the engine may skip what
      nothing reads, or if a statement cannot hold them;
    - results in long chains, because engines limit how deep queries are nested.

    Args:
        plan: The plan.
        model: The cost model that priced it.
        computes_whole: Whether the engine computes a result completely even if only a part of it is read.
        shared: Results that one SELECT computes once for all that read them, and that need no table for these.
        in_one_row: Single arrays that one SELECT computes for others in the same row, completely on every engine.
    """
    graph, readers_by_name = plan.graph, plan.graph.count_readers()
    computed = {step.einsum.output.tensor for step in plan.steps}
    staged: set[str] = set()
    for step in plan.steps:
        if step.computed_in:
            continue
        name = step.einsum.output.tensor
        readers = readers_by_name[name]
        is_read = readers > 0
        if (
            (readers if name not in shared else is_read) + (name in graph.outputs) > 1
            or step.passes is not None
            or (is_read and _takes_much_memory(plan, step, model))
            or (
                is_read
                and _detects_nonfinite(name, model)
                and not ((computes_whole or name in in_one_row) and _fits_in_statement(step, model))
            )
        ):
            staged.add(name)
        for index, operand in enumerate(step.einsum.operands):
            passes = plan.repartitions[operand.tensor, step.operand(index)].passes
            reads = step.cost.reads if passes is None else passes.count
            if reads > 1 and operand.tensor in computed:
                staged.add(operand.tensor)
    for name, layout in plan.layouts.items():
        passes = plan.repartitions[name, layout].passes
        if passes is not None and passes.count > 1:
            staged.add(name)
    staged |= _deeply_nested(plan, staged)
    return tuple(step.einsum.output.tensor for step in plan.steps if step.einsum.output.tensor in staged)


def _deeply_nested(plan: DecomposedGraph, staged: Set[str]) -> set[str]:
    """Results to stage besides `staged`, so that no result is computed through more than `_MOST_NESTED` others."""
    read = {operand.tensor for step in plan.steps for operand in step.einsum.operands}
    depth: dict[str, int] = {}
    nested = set()
    for step in plan.steps:
        name = step.einsum.output.tensor
        depth[name] = 1 + max((depth.get(operand.tensor, 0) for operand in step.einsum.operands), default=0)
        if depth[name] >= _MOST_NESTED and name in read and not step.computed_in:
            nested.add(name)
        if name in staged or name in nested:
            depth[name] = 0
    return nested - staged


def _detects_nonfinite(name: str, model: CostModel) -> bool:
    return model.evaluations[name].detects_nonfinite


def _fits_in_statement(step: Step, model: CostModel) -> bool:
    """Whether a statement may hold the whole result in memory."""
    name, tiles = step.einsum.output.tensor, step.result.tiles
    return model.sizes.relation_bytes(name, tiles) <= model.memory.largest_relation_bytes


def _footprint(step: Step, model: CostModel) -> Footprint:
    """The memory that a step takes in one pass."""
    if step.fused is None:
        return model.footprint(step.einsum, step.choice)
    return model.footprints.fused(step.fused.decomposed, step.fused.memory_bytes)


def _takes_much_memory(plan: DecomposedGraph, step: Step, model: CostModel) -> bool:
    if is_single_array(step.choice) and model.memory.spills_states:
        return model.storing.are_large_arrays(step.einsum, step.choice, step.cost)
    size_bytes: float = _vector_bytes(plan, step, model)
    if not model.memory.spills_states:
        size_bytes += _states_bytes(plan, step, model)
    return size_bytes * model.memory.margins.together > model.memory.limit_bytes


def _vector_bytes(plan: DecomposedGraph, step: Step, model: CostModel) -> int:
    """Bytes of the arrays in vectors at once while a statement computes an EinSum and repartitions its operands."""
    together = sum(repartition.vector_bytes for repartition in _repartitions_within(plan, step))
    return _footprint(step, model).vector_bytes(model.memory, step.passes) + together


def _returned_bytes(plan: DecomposedGraph, step: Step, model: CostModel) -> float:
    """Bytes of the arrays among them that functions return."""
    together = sum(repartition.returned_bytes for repartition in _repartitions_within(plan, step))
    return _footprint(step, model).returned_bytes(model.memory, step.passes) + together


def _states_bytes(plan: DecomposedGraph, step: Step, model: CostModel) -> float:
    """Bytes of the aggregation states of an EinSum, and of those that put arrays of its operands together."""
    together = sum(repartition.states_bytes for repartition in _repartitions_within(plan, step))
    return _footprint(step, model).states_bytes(model.memory, step.passes) + together


def _repartitions_within(plan: DecomposedGraph, step: Step) -> list[Repartition]:
    """The repartitions of operands that the statement of the EinSum itself does, not a table of their own."""
    repartitions = (
        plan.repartitions[operand.tensor, step.operand(index)] for index, operand in enumerate(step.einsum.operands)
    )
    return [repartition for repartition in repartitions if repartition.passes is None]


@dataclass(frozen=True, slots=True)
class StatementSizes:
    """The memory that a statement of a run takes.

    Attributes:
        states_bytes: Aggregation states, which the engine cannot spill.
        vector_bytes: Arrays in vectors, which it cannot spill either.
        returned_bytes: The arrays among them that functions return; the engine does not count them as buffers.
        all_bytes: States, vectors, and results and operands in tables and hash tables.
    """

    states_bytes: float
    vector_bytes: float
    returned_bytes: float
    all_bytes: float


def statement_sizes(plan: DecomposedGraph, computed: Set[str], model: CostModel) -> StatementSizes:
    """The memory that one statement of a run takes.

    Args:
        plan: The plan that runs.
        computed: Results that the statement computes; none if it only repartitions an operand or an output.
        model: The cost model, which estimates the sizes.
    """
    steps = [step for step in plan.steps if step.einsum.output.tensor in computed]
    delivered = [plan.repartitions[name, layout] for name, layout in plan.layouts.items() if name in computed]
    repartitions = (
        [repartition for repartition in delivered if repartition.passes is None]
        if steps
        else list(plan.repartitions.values())
    )
    states = sum(_states_bytes(plan, step, model) for step in steps)
    states += max((repartition.states_bytes for repartition in repartitions), default=0.0)
    vectors = max(
        *(_vector_bytes(plan, step, model) for step in steps),
        *(repartition.vector_bytes for repartition in repartitions),
        0,
    )
    returned = max(
        *(_returned_bytes(plan, step, model) for step in steps),
        *(repartition.returned_bytes for repartition in repartitions),
        0,
    )
    temporary_bytes = sum(_footprint(step, model).kept_bytes for step in steps)
    temporary_bytes += sum(repartition.work.bytes_moved for repartition in repartitions)
    return StatementSizes(states, vectors, returned, states + vectors + temporary_bytes)
