"""Decompose: operands as a choice has them, what a join of them leaves, and how many groups that makes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.estimate import joined_distinct, joined_tuples


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand under a choice: its tuples as joined and as stored, V of its keys, bytes of a tuple."""

    tuples: float
    present: float
    distinct: Mapping[str, float]
    tuple_bytes: int


def pairs_of(operands: Sequence[Operand], kind: JoinKind) -> float:
    """Expected tuples of a join of one or two operands."""
    if len(operands) == 1:
        return operands[0].tuples
    u, v = operands
    return joined_tuples(kind, u.tuples, v.tuples, u.distinct, v.distinct)


def share_keys(operands: Sequence[Operand]) -> bool:
    """Whether tuples of two operands are matched by keys."""
    first, *others = operands
    return any(not first.distinct.keys().isdisjoint(other.distinct) for other in others)


def groups_of(einsum: EinSum, operands: Sequence[Operand], kind: JoinKind) -> float:
    """Product of V over the promoted labels of the result, as the join leaves them."""
    first, *others = (operand.distinct for operand in operands)
    distinct = joined_distinct(kind, first, others[0]) if others else first
    return math.prod(distinct[label] for label in einsum.output.labels if label in distinct)
