"""Decompose: operands that are kept in memory as one array and read by index, instead of joined: which, at what cost.

The other operand's keys say which row to read, so that there is no hash table to build and none to probe. What is
absent reads as the fill, as if every tuple were there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sparseeinsum.decompose.cost import Work
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import DEMOTED, is_ragged
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.columns import NUMBER_TYPES

# Parts of moving a byte in a repartition (measured: bench/indexed.py). Arrays are kept in large pieces, one after the
# other. Rows that are added to groups are at random places where the tuples that say so come in no order of the groups,
# and so are the groups; a join meets only the groups so, and with tuples in order only the rows are.
_KEPT_BYTES = 0.35
_SCATTERED_BYTES = 0.07


@dataclass(frozen=True, slots=True)
class StoredOrder:
    """How the tuples of a stored tensor lie.

    Attributes:
        tiles: Of its axes.
        ascending: Positions of promoted axes whose keys never descend from one tuple to the next.
    """

    tiles: tuple[int, ...]
    ascending: frozenset[int]


@dataclass(frozen=True, slots=True)
class ResidentSizes:
    """An operand that is to be kept in memory.

    Attributes:
        tuples: That are put into it.
        size_bytes: Of all tuples that there can be.
    """

    tuples: float
    size_bytes: int

    def keeping(self) -> Work:
        """To put the tuples into one array."""
        return Work(self.tuples, self.size_bytes * _KEPT_BYTES, operators=1)


def indexable_operands(einsum: EinSum, choice: tuple[int, ...], graph: EinGraph, computed_in: str) -> Iterator[int]:
    """Operands that can be read by index under a choice: arrays of one size, whose keys the other operand has, too."""
    if len(einsum.operands) != 2:
        return
    tiles = dict(zip(einsum.labels, choice, strict=True))
    keys = [{label for label in operand.labels if tiles[label] != DEMOTED} for operand in einsum.operands]
    for index, operand in enumerate(einsum.operands):
        tensor = graph.tensors[operand.tensor]
        has_rows = bool(keys[index]) and any(tiles[label] != 1 for label in operand.labels)
        bounds = {label: axis.bound for label, axis in zip(operand.labels, tensor.axes, strict=True)}
        is_even = not any(is_ragged(tiles[label], bound) for label, bound in bounds.items())
        is_plain = is_even and len(bounds) == len(operand.labels)
        is_kept = _is_kept_as_computed(tensor.dtype, computed_in, bool(tensor.fill))
        if has_rows and is_plain and is_kept and keys[index] <= keys[1 - index]:
            yield index


def _is_kept_as_computed(dtype: str, computed_in: str, has_other_fill: bool) -> bool:
    """Whether rows need no conversion, and the fill is one number of their element type."""
    is_alike = NUMBER_TYPES[dtype] == NUMBER_TYPES[computed_in] and is_complex(dtype) == is_complex(computed_in)
    return is_alike and not (is_complex(dtype) and has_other_fill)


def indexed(join: Work, scattered_bytes: float) -> Work:
    """What a join's work becomes if one operand is read by index: a row is found by its place, not in a hash table.

    Args:
        join: To join tuples and run the kernel.
        scattered_bytes: Of rows that are added to groups out of order.
    """
    return replace(join, hashed_tuples=0.0, bytes_moved=join.bytes_moved + scattered_bytes * _SCATTERED_BYTES)
