"""Algebra: functional dependencies between keys in the measured tuples, by which no groups need to be formed.

If every row of a matrix has one entry, as in a diagonal matrix, the row determines the column; then a sum over the
columns has one term in every group.
"""

from collections.abc import Mapping, Sequence, Set

from sparseeinsum.algebra.operators import Materialized, Relation, Stored
from sparseeinsum.decompose.decomposed_graph import Step
from sparseeinsum.language.eingraph import Reference
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.semantics.exactness import JoinKind


def has_single_pairs(step: Step, operands: Sequence[Relation], identifying: Mapping[str, Set[int]]) -> bool:
    """Whether every tuple of an aggregated result has at most one pair of joined tuples.

    It is False for results that are arrays: a group holds their memory once, but without groups every row of a vector
    does.

    Args:
        step: The step of the plan that computes the result.
        operands: The relations that it reads.
        identifying: For stored tensors, the axes whose key no two tuples share.
    """
    einsum = step.einsum
    is_one_value_kept = (
        einsum.aggregated
        and einsum.base_aggregate in AGGREGATES
        and AGGREGATES[einsum.base_aggregate].keeps_single_value
    )
    if not is_one_value_kept or not step.result.is_scalar:
        return False
    if step.absence.join != JoinKind.INNER or step.indexed is not None:
        return False
    fixed_labels = step.promoted & frozenset(step.einsum.output.labels)
    determined = fixed_labels
    while determined:
        determined = _determined_labels(step, operands, identifying, fixed_labels) - fixed_labels
        fixed_labels |= determined
    return step.promoted <= fixed_labels


def _determined_labels(
    step: Step, operands: Sequence[Relation], identifying: Mapping[str, Set[int]], fixed_labels: Set[str]
) -> frozenset[str]:
    """The labels of operands of which known labels identify the tuple: one, or all but the last of an index map."""
    relations = (operand.input if isinstance(operand, Materialized) else operand for operand in operands)
    return frozenset(
        label
        for reference, relation in zip(step.einsum.operands, relations, strict=True)
        if isinstance(relation, Stored)
        for label in _keys(reference, relation)
        if any(reference.labels[axis] in fixed_labels for axis in identifying.get(reference.tensor, ()))
        or (relation.source.is_index_map and frozenset(reference.labels[:-1]) <= fixed_labels)
    )


def _keys(reference: Reference, relation: Stored) -> list[str]:
    return [reference.labels[position] for position in relation.schema.decomposition.promoted]
