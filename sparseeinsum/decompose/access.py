"""Decompose: operands that are kept in memory as one array and read by index, instead of joined: which, at what cost.

The other operand's keys say which row to read, so that there is no hash table to build and none to probe. What is
absent reads as the fill, as if every tuple were there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sparseeinsum.decompose.cost import Work
from sparseeinsum.language.dtypes import is_complex
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import DEMOTED, is_ragged
from sparseeinsum.statistics.columns import NUMBER_TYPES

# Parts of what a join takes (measured: bench/indexed.py). To add rows to groups: a join reads rows in order and meets
# groups anywhere; with an index it is the other way round where tuples come in the order of the groups, and neither is
# in order where they do not.
_GROUPS_IN_ORDER = 0.6
_GROUPS_ANYWHERE = 1.25
_KEPT_BYTES = 0.75  # of moving a byte in a repartition: arrays are written once, in large pieces


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
        is_plain = len(bounds) == len(operand.labels) and not any(
            is_ragged(tiles[each], bounds[each]) for each in bounds
        )
        is_kept = _is_kept_as_computed(tensor.dtype, computed_in, bool(tensor.fill))
        if has_rows and is_plain and is_kept and keys[index] <= keys[1 - index]:
            yield index


def _is_kept_as_computed(dtype: str, computed_in: str, has_other_fill: bool) -> bool:
    """Whether rows need no conversion, and the fill is one number of their element type."""
    is_alike = NUMBER_TYPES[dtype] == NUMBER_TYPES[computed_in] and is_complex(dtype) == is_complex(computed_in)
    return is_alike and not (is_complex(dtype) and has_other_fill)


def indexed(join: Work, is_grouped: bool, is_in_order: bool) -> Work:
    """What a join's work becomes if one operand is read by index: a row is found by its place, not in a hash table.

    Args:
        join: To join tuples and run the kernel.
        is_grouped: Whether pairs are aggregated.
        is_in_order: Whether the tuples that say what to read come in the order of the groups.
    """
    share = 1.0
    if is_grouped:
        share = _GROUPS_IN_ORDER if is_in_order else _GROUPS_ANYWHERE
    return replace(join, hashed_tuples=0.0, kernel_operations=join.kernel_operations * share)
