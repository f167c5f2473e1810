"""Algebra: keys that others follow from, as the measured tuples have them, so that no group needs to be formed.

Where every row of a matrix has one entry, as in a diagonal one, its row says its column; a sum over the columns of such
a matrix has one term in every group.
"""

from collections.abc import Mapping, Sequence, Set

from sparseeinsum.algebra.operators import Materialized, Relation, Stored
from sparseeinsum.decompose.plan import Step
from sparseeinsum.language.eingraph import Reference
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.semantics.exactness import JoinKind


def has_single_pairs(step: Step, operands: Sequence[Relation], identifying: Mapping[str, Set[int]]) -> bool:
    """Whether at most one pair of tuples is joined for every tuple of a result that aggregates them.

    Not for results that are arrays: in groups they take memory once, and row by row in every row of a vector.

    Args:
        step: What is computed.
        operands: As it reads them.
        identifying: For stored tensors, axes whose key no two of the tuples share.
    """
    einsum = step.einsum
    keeps_one = (
        einsum.aggregated and einsum.base_aggregate in AGGREGATES and AGGREGATES[einsum.base_aggregate].keeps_one
    )
    if not keeps_one or not step.result.is_scalar:
        return False
    if step.absence.join != JoinKind.INNER or step.indexed is not None:
        return False
    known = step.promoted & frozenset(step.einsum.output.labels)
    found = known
    while found:
        found = _following(step, operands, identifying, known) - known
        known |= found
    return step.promoted <= known


def _following(
    step: Step, operands: Sequence[Relation], identifying: Mapping[str, Set[int]], known: Set[str]
) -> frozenset[str]:
    """Labels of operands of which a known one identifies the tuple."""
    tuples = (each.input if isinstance(each, Materialized) else each for each in operands)
    return frozenset(
        label
        for reference, relation in zip(step.einsum.operands, tuples, strict=True)
        if isinstance(relation, Stored)
        for label in _keys(reference, relation)
        if any(reference.labels[axis] in known for axis in identifying.get(reference.tensor, ()))
    )


def _keys(reference: Reference, relation: Stored) -> list[str]:
    return [reference.labels[position] for position in relation.schema.decomposition.promoted]
