"""Algebra: plans into operators; repartitions appear where a reader wants another decomposition than there is.

Source: SparseEinSum, section 6: first decompose to the keys of both sides, then stack to those of the reader; either
half is left out where one set of keys contains the other.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from sparseeinsum.algebra.operators import (
    Compensation,
    Computed,
    Contract,
    Convert,
    Densify,
    Relation,
    Resident,
    Schema,
    Slice,
    Stack,
    Stored,
)
from sparseeinsum.decompose.plan import DecomposedGraph, Step
from sparseeinsum.language.tensors import Decomposition, StoredTensor
from sparseeinsum.semantics.exactness import Evaluation, Values


@dataclass(frozen=True, slots=True)
class Definition:
    """A named relation and what computes it."""

    name: str
    relation: Contract
    step: Step


@dataclass(frozen=True, slots=True)
class Inputs:
    """What operators need to know of the input tensors.

    Attributes:
        stored: Where they lie.
        values: What is known of their values.
        complete: Those whose relations hold every tuple that there can be.
    """

    stored: Mapping[str, StoredTensor]
    values: Mapping[str, Values]
    complete: Set[str]


def translate(plan: DecomposedGraph, inputs: Inputs, evaluations: Mapping[str, Evaluation]) -> tuple[Definition, ...]:
    """One definition for every EinSum of a plan, in topological order.

    Args:
        plan: Choices for all EinSums.
        inputs: The input tensors.
        evaluations: What is exact for every EinSum.
    """
    return tuple(_definitions(plan, inputs, evaluations))


def _definitions(plan: DecomposedGraph, inputs: Inputs, evaluations: Mapping[str, Evaluation]) -> Iterator[Definition]:
    known = {
        name: _Operand(Stored(source), name in inputs.complete, not inputs.values[name].has_fill)
        for name, source in inputs.stored.items()
    }
    for step in plan.steps:
        name = step.einsum.output.tensor
        schema = Schema(plan.graph.tensors[name], step.result)
        evaluation = evaluations[name]
        operands = [
            _resident(known[operand.tensor], step.operand(index))
            if index == step.indexed
            else _prepare(known[operand.tensor], step.operand(index), step.absence.dense[index])
            for index, operand in enumerate(step.einsum.operands)
        ]
        gone = step.promoted - frozenset(step.einsum.output.labels)
        pairs = step.most_pairs(plan.graph)
        is_complete = pairs > 0 and all(operand.is_complete for operand in operands)
        contract = Contract(
            step.einsum,
            tuple(operand.relation for operand in operands),
            step.absence.join,
            schema,
            evaluation.computed_in,
            None if is_complete or not gone else _compensation(evaluation, pairs, step.aggregated_indices(plan.graph)),
            evaluation.detects_nonfinite,
        )
        yield Definition(name, contract, step)
        is_whole = _is_aggregating(step) and not schema.keys  # one tuple, also of nothing
        is_full = not evaluation.values.has_fill
        known[name] = _Operand(Computed(schema), is_complete or is_whole or is_full, is_full)


def _compensation(evaluation: Evaluation, pairs: int, indices: int) -> Compensation | None:
    """What the pairs that a join leaves out contribute, where the aggregate does not ignore it."""
    if evaluation.ignores_constant or evaluation.constant is None:
        return None
    return Compensation(evaluation.constant, pairs, indices)


@dataclass(frozen=True, slots=True)
class _Operand:
    """A relation.

    Attributes:
        relation: What computes it.
        is_complete: Whether it is known to hold every tuple that there can be.
        is_full: Whether no index may be taken for absent, even where it holds the fill; then it is complete.
    """

    relation: Relation
    is_complete: bool
    is_full: bool


def _prepare(operand: _Operand, wanted: Decomposition, needs_all: bool) -> _Operand:
    """An operand in the decomposition that its reader wants, every tuple present where that is asked for."""
    has_indices = operand.relation.schema.tensor.size > 0  # without, all of no tuples are no group to stack
    has_all = operand.is_complete and has_indices
    if has_all and (needs_all or operand.is_full):  # nothing is absent, if slicing drops nothing
        return _Operand(repartition(operand.relation, wanted, keeps_fill=True), True, operand.is_full)
    relation = repartition(operand.relation, wanted)
    given = operand.relation.schema.decomposition
    drops_fill = given.common(wanted) != given
    is_one_stack = isinstance(relation, Stack) and not wanted.promoted  # which always has its one tuple
    is_complete = is_one_stack or (has_all and not drops_fill)
    if needs_all and not is_complete:
        return _Operand(Densify(relation), True, is_full=False)
    return _Operand(relation, is_complete, is_full=False)


def _resident(operand: _Operand, wanted: Decomposition) -> _Operand:
    """An operand that is kept in memory, where every tuple can be read, whether it is there or not."""
    relation = repartition(operand.relation, wanted)
    return _Operand(Resident(relation), relation.schema.tensor.size > 0, operand.is_full)


def _is_aggregating(step: Step) -> bool:
    """Whether a step aggregates tuples: it promotes a label that its result lacks."""
    return not step.promoted <= frozenset(step.einsum.output.labels)


def delivery(plan: DecomposedGraph, name: str) -> Relation:
    """An output in the layout that it is delivered in."""
    step = plan.step_of(name)
    assert step is not None
    computed = Computed(Schema(plan.graph.tensors[name], step.result))
    delivered = repartition(computed, plan.layouts[name])
    return Convert(delivered) if delivered.schema.tensor.dtype == "bool" else delivered


def repartition(relation: Relation, wanted: Decomposition, keeps_fill: bool = False) -> Relation:
    """The relation in another decomposition: sliced to what both consist of, then stacked to what is wanted."""
    given = relation.schema.decomposition
    between = given.common(wanted)
    if between != given:
        relation = Slice(relation, between, keeps_fill)
    if between != wanted:
        relation = Stack(relation, wanted)
    return relation
