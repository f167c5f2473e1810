"""Algebra: plans into operators; repartitions appear where a reader wants another decomposition than there is.

Source: SparseEinSum, section 6: first decompose to the keys of both sides, then stack to those of the reader; either
half is left out where one set of keys contains the other.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from sparseeinsum.algebra.completeness import completed_results, is_aggregating
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
    known: dict[str, Relation] = {name: Stored(source) for name, source in stored.items()}
    completed = completed_results(plan, complete)
    for step in plan.steps:
        name = step.einsum.output.tensor
        schema = Schema(plan.graph.tensors[name], step.result)
        is_filled = name in completed and is_aggregating(step)
        inputs = []
        for index, operand in enumerate(step.einsum.operands):
            needs_all = step.absence.dense[index] or (name in completed and not is_filled)
            is_complete = operand.tensor in complete or operand.tensor in completed
            inputs.append(_prepare(known[operand.tensor], step.operand(index), needs_all, is_complete))
        yield Definition(name, Contract(step.einsum, tuple(inputs), step.absence.join, schema, is_filled), step)
        known[name] = Computed(schema)


def _prepare(relation: Relation, wanted: Decomposition, needs_all: bool, is_complete: bool) -> Relation:
    """An operand in the decomposition that its reader wants, every tuple present where that is asked for."""
    if not needs_all:
        return repartition(relation, wanted)
    if is_complete:  # nothing is absent, if slicing drops nothing
        return repartition(relation, wanted, keeps_fill=True)
    repartitioned = repartition(relation, wanted)
    is_one_stack = isinstance(repartitioned, Stack) and not wanted.promoted  # which always has its one tuple
    return repartitioned if is_one_stack else Densify(repartitioned)


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
