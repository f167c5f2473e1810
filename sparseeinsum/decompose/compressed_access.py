"""Decompose: operands of numbers that are ordered by row in memory, so that every group is computed at once.

A sum of products of numbers and rows of a resident array needs no hash table then: for each group, a kernel adds up the
rows at the positions of its numbers. This is the product of a matrix in compressed sparse rows and a dense one.
"""

import math
from collections.abc import Set
from dataclasses import dataclass

from sparseeinsum.decompose.cost import Work
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum, is_of_numbers
from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.semantics.exactness import Evaluation

# With fewer rows, threads could not share the work, and a hash table of the groups is small.
_LEAST_ROWS = 256
# Bytes of an entry while it is moved: in the order in which entries come, then in the order of rows.
_ENTRY_BYTES = 28
_ROW_BYTES = 8
MOST_POSITIONS = (1 << 31) - 1  # and the most rows, LARGEST of kernels/compression.py
# Kernel operations relative to those that add to states: a group stays in the processor's cache until it is complete
# (measured: bench/indexed.py).
_CACHED_OPERATIONS = 0.6


@dataclass(frozen=True, slots=True)
class CompressedSizes:
    """Sizes of an operand that is ordered by row in memory.

    Attributes:
        rows: The number of groups that the keys of the result allow.
        entries: The number of tuples.
    """

    rows: int
    entries: float

    @property
    def size_bytes(self) -> float:
        """Bytes of the entries while they are ordered."""
        return self.rows * _ROW_BYTES + self.entries * _ENTRY_BYTES


def can_compress(decomposed: DecomposedEinSum, index: int, graph: EinGraph, evaluation: Evaluation) -> bool:
    """Whether the operand other than `index`, which is resident, can be ordered by row.

    It must be a tensor of numbers with all keys of the result. Every row of the resident array must have the axes of an
    array of the result, in their order.
    """
    einsum = decomposed.einsum
    if not (einsum.is_multilinear and einsum.aggregate == "sum" and decomposed.is_grouped) or evaluation.compensates:
        return False
    entries, array, output = einsum.operands[1 - index], einsum.operands[index], einsum.output
    tensors = [graph.tensors[operand.tensor] for operand in einsum.operands]
    if any(is_complex(dtype) for dtype in (evaluation.computed_in, *(tensor.dtype for tensor in tensors))):
        return False
    if not is_of_numbers(decomposed.operands[1 - index]) or len(set(entries.labels)) < len(entries.labels):
        return False
    rows = row_labels(decomposed.einsum, decomposed.promoted)
    has_rows = (
        rows and set(rows) <= set(entries.labels) and _LEAST_ROWS <= count_rows(decomposed, graph) <= MOST_POSITIONS
    )
    positions = (tensors[index].axes[axis].bound for axis in _key_axes(decomposed, index))
    return (
        bool(has_rows)
        and math.prod(positions) < MOST_POSITIONS
        and _inside(array, decomposed.operands[index]) == _inside(output, decomposed.result)
    )


def in_rows(join: Work, sizes: CompressedSizes) -> Work:
    """The work of a join with a resident array if the entries are ordered by row first, and groups computed at once."""
    return Work(
        sizes.rows + sizes.entries,
        kernel_operations=join.kernel_operations * _CACHED_OPERATIONS,
        operators=join.operators + 1,
    )


def row_labels(einsum: EinSum, promoted: Set[str]) -> tuple[str, ...]:
    """The promoted labels of the result, whose indices number the rows, in C order."""
    return tuple(label for label in einsum.output.labels if label in promoted)


def count_rows(decomposed: DecomposedEinSum, graph: EinGraph) -> int:
    """The number of groups that the keys of the result allow; all of its tiles have one index."""
    return math.prod(
        graph.bound_of(decomposed.einsum, label) for label in row_labels(decomposed.einsum, decomposed.promoted)
    )


def _key_axes(decomposed: DecomposedEinSum, index: int) -> list[int]:
    return [axis for axis, tile in enumerate(decomposed.operands[index]) if tile != DEMOTED]


def _inside(reference: Reference, tiles: tuple[int, ...]) -> list[str]:
    """The labels inside the arrays of a tensor."""
    return [label for label, tile in zip(reference.labels, tiles, strict=True) if tile != 1]
