"""Decompose: sizes of operands under a choice, and from them the tuples of their join and its groups."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.decompose.choice import has_other_keys
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum, is_of_numbers
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.estimate import joined_distinct, joined_tuples


@dataclass(frozen=True, slots=True)
class TensorSizes:
    """Sizes of a tensor in a decomposition.

    Attributes:
        tuples: Expected tuples.
        tuple_bytes: Bytes of one tuple.
        elements: Elements of the largest array.
    """

    tuples: float
    tuple_bytes: int
    elements: int


@dataclass(frozen=True, slots=True)
class OperandSizes:
    """Sizes of an operand under a choice.

    Attributes:
        tuples: Tuples that are joined, absent ones included if the operand is made dense.
        present: Tuples without the added ones.
        distinct: V of every promoted label.
        tuple_bytes: Bytes of a tuple.
    """

    tuples: float
    present: float
    distinct: Mapping[str, float]
    tuple_bytes: int


def joined_pairs(operands: Sequence[OperandSizes], kind: JoinKind) -> float:
    """Expected tuples of the join of one or two operands."""
    if len(operands) == 1:
        return operands[0].tuples
    u, v = operands
    return joined_tuples(kind, u.tuples, v.tuples, u.distinct, v.distinct)


def skew_factor(decomposed: DecomposedEinSum, kind: JoinKind, skew: Mapping[str, float]) -> float:
    """How many times more pairs a join has than if entries were spread evenly over the indices of shared labels.

    A label counts only if both operands have other keys, too: otherwise, an operand has one tuple for every index.

    Args:
        decomposed: The EinSum under a choice.
        kind: The kind of its join.
        skew: The factor for each label if all labels are promoted.
    """
    if kind != JoinKind.INNER:
        return 1.0
    einsum = decomposed.einsum
    tiles = dict(zip(einsum.labels, decomposed.choice, strict=True))
    return math.prod(
        factor
        for label, factor in skew.items()
        if tiles[label] == 1 and all(has_other_keys(operand, label, tiles) for operand in einsum.operands)
    )


def share_keys(operands: Sequence[OperandSizes]) -> bool:
    """Whether two operands have a promoted label in common, by which their tuples are matched."""
    first, *others = operands
    return any(not first.distinct.keys().isdisjoint(other.distinct) for other in others)


def joined_groups(einsum: EinSum, operands: Sequence[OperandSizes], kind: JoinKind) -> float:
    """The product of V over the promoted labels of the result, after the join."""
    first, *others = [operand.distinct for operand in operands]
    distinct = joined_distinct(kind, first, others[0]) if others else first
    return math.prod([distinct[label] for label in einsum.output.labels if label in distinct])


def copied_bytes(decomposed: DecomposedEinSum, kind: JoinKind, operands: Sequence[OperandSizes]) -> int:
    """Bytes of the array that a join copies for every pair: of two arrays, it refers only to the larger one."""
    is_matching = kind == JoinKind.INNER and share_keys(operands)
    has_two_arrays = not any(map(is_of_numbers, decomposed.operands))
    return min([operand.tuple_bytes for operand in operands]) if is_matching and has_two_arrays else 0
