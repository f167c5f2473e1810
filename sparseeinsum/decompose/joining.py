"""Decompose: sizes of operands under a choice, and from them the tuples of their join and its groups."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.decompose.choice import has_other_keys
from sparseeinsum.decompose.cost import NO_WORK, Work
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum, is_of_numbers
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.semantics.exactness import Absence, JoinKind
from sparseeinsum.statistics.estimate import joined_distinct, joined_tuples

# Half of a table of this size is found in the processor's caches. Of the rest, a lookup takes as long as to move so
# many bytes in a repartition, and copying a byte of its array a share of moving one. (Measured: products of 4 million
# entries and 1,000 to 600,000 arrays of 16 and 100 numbers took 65 to 680 ns an entry in hash joins.)
_CACHED_BYTES = 20e6
_LOOKUP_BYTES = 320
_LOOKED_UP_SHARE = 0.6
# Of an array that many pairs share, a product finds so many bytes in the cache of its core. To read a byte of the
# rest from memory takes a share of the time to move one. (Measured: rows times 700 x 700 and 1,000 x 1,000 numbers.)
_CORE_CACHE_BYTES = 2e6
_REREAD_SHARE = 0.07
_CACHED_SHARE = 0.02  # of a byte within that cache (measured: rows times 64 x 64 to 400 x 400 numbers)

# Operands for which a join fills in values where tuples are missing; the engine copies these operands for every row.
_FILLED_IN = {JoinKind.INNER: (), JoinKind.LEFT: (1,), JoinKind.RIGHT: (0,), JoinKind.FULL: (0, 1)}


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


def looked_up_bytes(table: OperandSizes) -> float:
    """Bytes that take as long to move as an array takes to be copied out of a hash table, beyond a hashed tuple.

    Args:
        table: The sizes of the operand in the table, which is looked up at random places.
    """
    size_bytes = table.tuples * table.tuple_bytes
    missed = size_bytes / (size_bytes + _CACHED_BYTES)
    return missed * (_LOOKUP_BYTES + table.tuple_bytes * _LOOKED_UP_SHARE)


def reread_bytes(operands: Sequence[OperandSizes]) -> float:
    """Bytes that take as long to move as the arrays of a pair take to be read, within a core's cache and beyond it."""
    sizes = [operand.tuple_bytes for operand in operands]
    beyond = sum([max(size_bytes - _CORE_CACHE_BYTES, 0.0) for size_bytes in sizes])
    return sum(sizes) * _CACHED_SHARE + beyond * _REREAD_SHARE


def copied_bytes(decomposed: DecomposedEinSum, kind: JoinKind, operands: Sequence[OperandSizes]) -> int:
    """Bytes of the array that a join copies for every pair: of two arrays, it refers only to the larger one."""
    is_matching = kind == JoinKind.INNER and share_keys(operands)
    has_two_arrays = not any(map(is_of_numbers, decomposed.operands))
    return min([operand.tuple_bytes for operand in operands]) if is_matching and has_two_arrays else 0


def filling_in(operands: Sequence[OperandSizes], absence: Absence, index: int | None, joined: float) -> Work:
    """The work to add absent tuples to operands, but for operand `index`, and to fill in what a join finds no match of.

    Args:
        operands: The sizes of the operands.
        absence: How absent tuples are treated.
        index: The number of the operand that is read by index, as if it had all tuples; None if there is none.
        joined: The tuples of the join.
    """
    if absence.join == JoinKind.INNER and not any(absence.dense):
        return NO_WORK
    added = [
        0.0 if position == index else operand.tuples - operand.present for position, operand in enumerate(operands)
    ]
    bytes_moved = sum([tuples * operand.tuple_bytes for tuples, operand in zip(added, operands, strict=True)])
    bytes_moved += joined * sum([operands[filled].tuple_bytes for filled in _FILLED_IN[absence.join]])
    operators = sum([tuples > 0 for tuples in added])
    return Work(sum(added), bytes_moved, operators=operators) if operators or bytes_moved else NO_WORK
