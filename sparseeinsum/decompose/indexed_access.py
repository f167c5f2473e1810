"""Decompose: operands that are kept in memory as one array and read by index instead of joined, and what that costs.

The keys of the other operand say which row to read, so that no hash table is built or probed. Absent tuples read as the
fill, as if the operand were dense.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sparseeinsum.decompose.cost import KEPT_BYTES, SCANNED_BYTES, STACKED_VALUE, Work
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum, is_of_numbers
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.tensors import is_ragged
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.columns import NUMBER_TYPES

# Costs per byte, relative to moving a byte in a repartition (measured: bench/indexed.py). If the joined tuples do not
# come in the order of the groups, then both the rows read and the groups that they are added to are at random places in
# memory. In a join only the groups are; with tuples in order, only the rows are.
_SCATTERED_BYTES = 0.07
# Of reading a byte that is not in caches of so many bytes (measured: 62 million entries and 2 GB, 4 million and 0.5 GB)
_CACHE_BYTES = 32e6
MISSED_BYTES = 0.1


@dataclass(frozen=True, slots=True)
class StoredOrder:
    """The order of the tuples of a stored tensor.

    Attributes:
        tiles: Tiles of its axes.
        ascending: Positions of the promoted axes by whose keys the tuples are sorted.
    """

    tiles: tuple[int, ...]
    ascending: frozenset[int]


@dataclass(frozen=True, slots=True)
class ResidentSizes:
    """Sizes of an operand that is kept in memory.

    Attributes:
        tuples: Tuples that are present.
        size_bytes: Bytes of all possible tuples, absent ones included.
        row_bytes: Bytes of one of them.
        loads_per_run: How often a run puts it there, on average; less than 1 if it stays from run to run.
        scanned_bytes: Bytes of its arrays that are read from a table.
        is_value: Whether it is a value, which is made row by row, not read by a handle.
    """

    tuples: float
    size_bytes: int
    row_bytes: int
    loads_per_run: float = 1.0
    scanned_bytes: float = 0.0
    is_value: bool = False

    def missed_bytes(self, reads: float) -> float:
        """Bytes that are not found in the processor's caches if so many tuples are read at random."""
        return reads * self.row_bytes * max(1 - _CACHE_BYTES / max(self.size_bytes, 1), 0.0)

    def loading(self) -> Work:
        """Work to put the tuples into one array."""
        if self.is_value:
            return Work(self.tuples * STACKED_VALUE, self.size_bytes, operators=1)
        bytes_moved = self.size_bytes * KEPT_BYTES + self.scanned_bytes * SCANNED_BYTES
        return Work(self.tuples, bytes_moved, operators=1)

    def keeping(self) -> Work:
        """Work to do so in a run, on average."""
        return self.loading().times(self.loads_per_run)


def indexable_operands(decomposed: DecomposedEinSum, graph: EinGraph, computed_in: str) -> Iterator[int]:
    """Numbers of the operands that can be read by index under a choice.

    Such an operand has arrays of one size, and promoted labels that the other operand promotes, too. Its elements need
    no conversion to `computed_in`, the dtype of the computation.
    """
    operands = decomposed.einsum.operands
    if len(operands) != 2:
        return
    keys = [decomposed.promoted.intersection(operand.labels) for operand in operands]
    for index, (operand, tiles) in enumerate(zip(operands, decomposed.operands, strict=True)):
        if not keys[index] or is_of_numbers(tiles) or not keys[index] <= keys[1 - index]:
            continue
        tensor = graph.tensors[operand.tensor]
        is_even = not any(map(is_ragged, tiles, tensor.shape))
        has_distinct_labels = len(set(operand.labels)) == len(operand.labels)
        if is_even and has_distinct_labels and needs_no_conversion(tensor.dtype, computed_in, bool(tensor.fill)):
            yield index


def needs_no_conversion(dtype: str, computed_in: str, has_other_fill: bool) -> bool:
    """Whether rows need no conversion to the computing dtype, and the fill is a single number of their element type.

    Args:
        dtype: The dtype of the tensor.
        computed_in: The dtype in which the kernel computes.
        has_other_fill: Whether the fill is another number than 0.
    """
    is_alike = NUMBER_TYPES[dtype] == NUMBER_TYPES[computed_in] and is_complex(dtype) == is_complex(computed_in)
    return is_alike and not (is_complex(dtype) and has_other_fill)


def indexed(join: Work, scattered_bytes: float, missed_bytes: float) -> Work:
    """The work of a join if one operand is read by index, so that nothing is looked up in a hash table.

    Args:
        join: The work to join tuples and run the kernel.
        scattered_bytes: Bytes of the rows that are added to groups out of order.
        missed_bytes: Bytes of rows that are read and not found in the processor's caches.
    """
    bytes_moved = scattered_bytes * _SCATTERED_BYTES + missed_bytes * MISSED_BYTES
    return replace(join, hashed_tuples=0.0, bytes_moved=join.bytes_moved + bytes_moved)
