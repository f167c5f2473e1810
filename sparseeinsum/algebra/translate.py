"""Algebra: plans into operators; repartitions appear where a reader wants another decomposition than there is.

Source: SparseEinSum, section 6: first decompose to the keys of both sides, then stack to those of the reader; either
half is left out where one set of keys contains the other.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from sparseeinsum.algebra.operators import Computed, Contract, Densify, Relation, Schema, Slice, Stack, Stored
from sparseeinsum.decompose.plan import DecomposedGraph, Step
from sparseeinsum.language.tensors import Decomposition, StoredTensor


@dataclass(frozen=True, slots=True)
class Definition:
    """A named relation and what computes it."""

    name: str
    relation: Contract
    step: Step


def translate(plan: DecomposedGraph, stored: Mapping[str, StoredTensor], complete: Set[str]) -> tuple[Definition, ...]:
    """One definition for every EinSum of a plan, in topological order.

    Args:
        plan: Choices for all EinSums.
        stored: Where the inputs lie.
        complete: Inputs whose relations hold every tuple that there can be.
    """
    return tuple(_definitions(plan, stored, complete))


def _definitions(plan: DecomposedGraph, stored: Mapping[str, StoredTensor], complete: Set[str]) -> Iterator[Definition]:
    known = {name: _Operand(Stored(source), name in complete) for name, source in stored.items()}
    for step in plan.steps:
        name = step.einsum.output.tensor
        schema = Schema(plan.graph.tensors[name], step.result)
        inputs = [
            _prepare(known[operand.tensor], step.operand(index), step.absence.dense[index])
            for index, operand in enumerate(step.einsum.operands)
        ]
        contract = Contract(step.einsum, tuple(operand.relation for operand in inputs), step.absence.join, schema)
        yield Definition(name, contract, step)
        is_complete = all(operand.is_complete for operand in inputs) or (_is_aggregating(step) and not schema.keys)
        known[name] = _Operand(Computed(schema), is_complete)


@dataclass(frozen=True, slots=True)
class _Operand:
    """A relation, and whether it is known to hold every tuple that there can be."""

    relation: Relation
    is_complete: bool


def _prepare(operand: _Operand, wanted: Decomposition, needs_all: bool) -> _Operand:
    """An operand in the decomposition that its reader wants, every tuple present where that is asked for."""
    if needs_all and operand.is_complete:  # nothing is absent, if slicing drops nothing
        return _Operand(repartition(operand.relation, wanted, keeps_fill=True), True)
    relation = repartition(operand.relation, wanted)
    drops_fill = bool(_new_keys(operand.relation, wanted))
    is_one_stack = isinstance(relation, Stack) and not wanted.promoted  # which always has its one tuple
    is_complete = is_one_stack or (operand.is_complete and not drops_fill)
    return _Operand(Densify(relation), True) if needs_all and not is_complete else _Operand(relation, is_complete)


def _is_aggregating(step: Step) -> bool:
    """Whether a step aggregates tuples: it promotes a label that its result lacks."""
    return not step.promoted <= frozenset(step.einsum.output.labels)


def delivery(plan: DecomposedGraph, name: str) -> Relation:
    """An output in the layout that it is delivered in."""
    step = plan.step_of(name)
    assert step is not None
    computed = Computed(Schema(plan.graph.tensors[name], step.result))
    return repartition(computed, plan.layouts[name])


def repartition(relation: Relation, wanted: Decomposition, keeps_fill: bool = False) -> Relation:
    """The relation in another decomposition: sliced to the keys of both, then stacked to the keys wanted."""
    given = relation.schema.decomposition
    new_keys = _new_keys(relation, wanted)
    if new_keys:
        relation = Slice(relation, new_keys, keeps_fill)
    lost_keys = tuple(position for position in given.promoted if position not in wanted.promoted)
    if lost_keys:
        relation = Stack(relation, lost_keys)
    return relation


def _new_keys(relation: Relation, wanted: Decomposition) -> tuple[int, ...]:
    given = relation.schema.decomposition.promoted
    return tuple(position for position in wanted.promoted if position not in given)
