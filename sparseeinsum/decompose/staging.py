"""Decompose: which results of a plan go into temporary tables, and what its statements take beside such tables."""

from collections.abc import Iterable, Set
from dataclasses import dataclass

from sparseeinsum.decompose.memory import TOGETHER_LIMIT
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.moves import Move
from sparseeinsum.decompose.plan import DecomposedGraph, Step


def staged_results(plan: DecomposedGraph, model: CostModel, computes_whole: bool = True) -> tuple[str, ...]:
    """Results that are kept in temporary tables while a plan runs, in order.

    They are those that are read more than once, or read and delivered; those computed in passes, and what passes read,
    lest each compute it again; those that take much of the memory while they are computed; and those that must be
    computed whole, to be watched for NaN and infinity, where an engine computes of a statement what is read alone.
    """
    graph = plan.graph
    computed = {step.einsum.output.tensor for step in plan.steps}
    staged: set[str] = set()
    for step in plan.steps:
        name = step.einsum.output.tensor
        readers = graph.readers_of(name)
        is_read = readers > 0
        if (
            readers + (name in graph.outputs) > 1
            or step.passes is not None
            or (is_read and _is_large(plan, step, model))
            or (is_read and model.evaluations[name].detects_nonfinite and not computes_whole)
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


def _is_large(plan: DecomposedGraph, step: Step, model: CostModel) -> bool:
    taken: float = _vector_bytes(plan, step, model)
    if not model.memory.spills_states:
        taken += _states_bytes(plan, step, model)
    return taken * TOGETHER_LIMIT > model.memory.limit_bytes


def _vector_bytes(plan: DecomposedGraph, step: Step, model: CostModel) -> int:
    """Bytes of the arrays in vectors at once while an EinSum is computed, and its operands with it."""
    together = sum(move.vector_bytes for move in _moves_within(plan, step))
    return model.footprint(step.einsum, step.choice).vector_bytes(model.memory, step.passes) + together


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
    """What the statements of a run take.

    Attributes:
        states_bytes: Of aggregation states in one statement, which the engine cannot spill.
        vector_bytes: Of arrays in vectors, which the engine counts among its buffers and cannot spill either.
        all_bytes: Of these, and of all results and operands that are kept in tables and hash tables.
    """

    states_bytes: float
    vector_bytes: float
    all_bytes: float


def largest_statement(plan: DecomposedGraph, statements: Iterable[Set[str]], model: CostModel) -> StatementSizes:
    """The most of everything that a statement of a run takes.

    Args:
        plan: What runs.
        statements: For each the results that it computes.
        model: Knows the sizes.
    """
    states = {step.einsum.output.tensor: _states_bytes(plan, step, model) for step in plan.steps}
    moves = plan.moves.values()
    most_states = max(
        *(sum(states[name] for name in names) for names in statements), *(move.states_bytes for move in moves), 0.0
    )
    most_vectors = max(
        *(_vector_bytes(plan, step, model) for step in plan.steps), *(move.vector_bytes for move in moves), 0
    )
    kept = sum(model.kept_bytes(step.einsum, step.choice) for step in plan.steps) + sum(
        move.work.bytes_moved for move in moves
    )
    return StatementSizes(most_states, most_vectors, most_states + most_vectors + kept)
