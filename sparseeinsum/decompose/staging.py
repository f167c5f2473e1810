"""Decompose: which results of a plan go into temporary tables, and what its statements take beside such tables."""

from collections.abc import Set
from dataclasses import dataclass

from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.moves import Move
from sparseeinsum.decompose.plan import DecomposedGraph, Step


def staged_results(plan: DecomposedGraph, model: CostModel, computes_whole: bool = True) -> tuple[str, ...]:
    """Results that are kept in temporary tables while a plan runs, in order.

    They are those that are read more than once, or read and delivered; those computed in passes, and what passes read,
    lest each compute it again; those that take much of the memory while they are computed; and those that must be
    computed whole, to be watched for NaN and infinity, where an engine computes of a statement what is read alone, or
    where that is more than a statement may hold.
    """
    graph = plan.graph
    computed = {step.einsum.output.tensor for step in plan.steps}
    staged: set[str] = set()
    for step in plan.steps:
        name = step.einsum.output.tensor
        readers = graph.count_readers(name)
        is_read = readers > 0
        if (
            readers + (name in graph.outputs) > 1
            or step.passes is not None
            or (is_read and _is_large(plan, step, model))
            or (is_read and _is_watched(name, model) and not (computes_whole and _is_held(step, model)))
        ):
            staged.add(name)
        for index, operand in enumerate(step.einsum.operands):
            moved = plan.moves[operand.tensor, step.operand(index)].passes
            reads = step.cost.reads if moved is None else moved.count
            if reads > 1 and operand.tensor in computed:
                staged.add(operand.tensor)
    for name, layout in plan.layouts.items():
        moved = plan.moves[name, layout].passes
        if moved is not None and moved.count > 1:
            staged.add(name)
    return tuple(step.einsum.output.tensor for step in plan.steps if step.einsum.output.tensor in staged)


def _is_watched(name: str, model: CostModel) -> bool:
    return model.evaluations[name].detects_nonfinite


def _is_held(step: Step, model: CostModel) -> bool:
    """Whether a statement may hold a result whole."""
    name, tiles = step.einsum.output.tensor, step.result.tiles
    return model.tuples(name, tiles) * model.tuple_bytes(name, tiles) <= model.memory.most_held_bytes


def _is_large(plan: DecomposedGraph, step: Step, model: CostModel) -> bool:
    taken: float = _vector_bytes(plan, step, model)
    if not model.memory.spills_states:
        taken += _states_bytes(plan, step, model)
    return taken * model.memory.margins.together > model.memory.limit_bytes


def _vector_bytes(plan: DecomposedGraph, step: Step, model: CostModel) -> int:
    """Bytes of the arrays in vectors at once while an EinSum is computed, and its operands with it."""
    together = sum(move.vector_bytes for move in _moves_within(plan, step))
    return model.footprint(step.einsum, step.choice).vector_bytes(model.memory, step.passes) + together


def _returned_bytes(plan: DecomposedGraph, step: Step, model: CostModel) -> float:
    """Bytes of the arrays in vectors that functions return while an EinSum is computed, and its operands with it."""
    together = sum(move.returned_bytes for move in _moves_within(plan, step))
    return model.footprint(step.einsum, step.choice).returned_bytes(model.memory, step.passes) + together


def _states_bytes(plan: DecomposedGraph, step: Step, model: CostModel) -> float:
    """Bytes of the aggregation states of an EinSum, and of its operands that are put together with it."""
    together = sum(move.states_bytes for move in _moves_within(plan, step))
    return model.footprint(step.einsum, step.choice).states_bytes(model.memory, step.passes) + together


def _moves_within(plan: DecomposedGraph, step: Step) -> list[Move]:
    """How those operands of an EinSum get into their decompositions that are computed with it."""
    moves = (plan.moves[operand.tensor, step.operand(index)] for index, operand in enumerate(step.einsum.operands))
    return [move for move in moves if move.passes is None]


@dataclass(frozen=True, slots=True)
class StatementSizes:
    """What a statement of a run takes.

    Attributes:
        states_bytes: Of aggregation states, which the engine cannot spill.
        vector_bytes: Of arrays in vectors, which it cannot spill either.
        returned_bytes: Of those, what functions return: the engine does not count them among its buffers.
        all_bytes: Of these, and of results and operands that are kept in tables and hash tables.
    """

    states_bytes: float
    vector_bytes: float
    returned_bytes: float
    all_bytes: float


def statement_sizes(plan: DecomposedGraph, computed: Set[str], model: CostModel) -> StatementSizes:
    """What one statement of a run takes.

    Args:
        plan: What runs.
        computed: Results that the statement computes; none where it puts an operand or an output together.
        model: Knows the sizes.
    """
    steps = [step for step in plan.steps if step.einsum.output.tensor in computed]
    delivered = [plan.moves[name, layout] for name, layout in plan.layouts.items() if name in computed]
    moves = [move for move in delivered if move.passes is None] if steps else list(plan.moves.values())
    states = sum(_states_bytes(plan, step, model) for step in steps)
    states += max((move.states_bytes for move in moves), default=0.0)
    vectors = max(*(_vector_bytes(plan, step, model) for step in steps), *(move.vector_bytes for move in moves), 0)
    returned = max(*(_returned_bytes(plan, step, model) for step in steps), *(move.returned_bytes for move in moves), 0)
    kept = sum(model.kept_bytes(step.einsum, step.choice) for step in steps)
    kept += sum(move.work.bytes_moved for move in moves)
    return StatementSizes(states, vectors, returned, states + vectors + kept)
