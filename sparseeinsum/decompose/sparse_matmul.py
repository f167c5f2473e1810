"""Decompose: products of a sparse operand and a dense array into one array, where no label is promoted.

The sparse operand is read as numbers, and ordered by row in memory, so that it never becomes a dense array.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sparseeinsum.decompose.call_threads import threads_of_call
from sparseeinsum.decompose.compressed_access import MOST_POSITIONS, RowOrder, count_indices, semiring_of
from sparseeinsum.decompose.cost import NO_WORK, CostConstants, Work, slowdown_beyond_cache
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum
from sparseeinsum.decompose.footprints import Footprints
from sparseeinsum.decompose.indexed_access import needs_no_conversion
from sparseeinsum.decompose.memory_footprint import RunMemory
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.operators.dtypes import ITEM_BYTES, is_complex
from sparseeinsum.semantics.exactness import Absence, Evaluation, JoinKind

_TUPLES_PER_ROW = 0.05  # that take as long as to begin a row
_OPERATIONS = 0.6  # relative to those that add to states in a hash table, as for groups that are computed at once


@dataclass(frozen=True, slots=True)
class SparseMatmul:
    """A product of a sparse operand and a dense array.

    Attributes:
        decomposed: The EinSum, with numbers in the place of arrays of the sparse operand.
        index: The number of the sparse operand.
        order: How it is ordered by row.
    """

    decomposed: DecomposedEinSum
    index: int
    order: RowOrder

    def permuted_elements(self, read: int, written: int) -> int:
        """How many elements are moved to permute axes, of `read` elements of the array and `written` ones."""
        einsum = self.decomposed.einsum
        is_permuted = (*self.order.positions, *self.inside) != einsum.operands[1 - self.index].labels
        return read * is_permuted + written * ((*self.order.rows, *self.inside) != einsum.output.labels)

    @property
    def inside(self) -> tuple[str, ...]:
        """The labels of the result that number the elements of a row, in the order of the result."""
        return tuple([label for label in self.decomposed.einsum.output.labels if label not in self.order.rows])


def sparse_matmuls(
    decomposed: DecomposedEinSum, graph: EinGraph, evaluation: Evaluation, candidates: Sequence[int]
) -> Iterator[SparseMatmul]:
    """The ways to compute an EinSum as the product of a sparse operand and a dense array; none if labels are promoted.

    What the sparse operand lacks must contribute nothing. Every label of the dense operand is one of the sparse one or
    of the result; in other semirings than sums of products, all are of the sparse one. `candidates` are the numbers of
    the operands that may be the sparse one.
    """
    einsum = decomposed.einsum
    if not candidates or decomposed.promoted or len(einsum.operands) != 2 or semiring_of(einsum) is None:
        return
    dtypes = [graph.tensors[operand.tensor].dtype for operand in einsum.operands]
    has_repeated_labels = any(len(set(operand.labels)) < len(operand.labels) for operand in einsum.operands)
    has_complex = any(is_complex(dtype) for dtype in (evaluation.computed_in, *dtypes))
    computes_truths = "bool" in (evaluation.computed_in, graph.tensors[decomposed.name].dtype)
    if has_repeated_labels or has_complex or evaluation.compensates or computes_truths:
        return
    for index in candidates:
        sparse, dense = einsum.operands[index], einsum.operands[1 - index]
        rows = tuple([label for label in einsum.output.labels if label in sparse.labels])
        positions = tuple([label for label in dense.labels if label in sparse.labels])
        inside = {label for label in einsum.output.labels if label not in sparse.labels}
        is_product = rows and positions and set(dense.labels) == {*positions, *inside}
        is_product = is_product and (einsum.is_multilinear or not inside)
        if (
            is_product
            and not evaluation.matters[index]
            and needs_no_conversion(dtypes[1 - index], evaluation.computed_in, has_other_fill=False)
            and max(count_indices(labels, einsum, graph) for labels in (rows, positions)) < MOST_POSITIONS
        ):
            yield SparseMatmul(_with_numbers(decomposed, index), index, RowOrder(rows, positions))


def _with_numbers(decomposed: DecomposedEinSum, index: int) -> DecomposedEinSum:
    """An EinSum that reads one of its operands as numbers."""
    operands = list(decomposed.operands)
    operands[index] = (1,) * len(operands[index])
    return replace(decomposed, operands=tuple(operands))


def sparse_matmul_cost(
    product: SparseMatmul,
    evaluation: Evaluation,
    footprints: Footprints,
    memory: RunMemory,
    has_processes: bool,
    operators: float,
    constants: CostConstants,
) -> VertexCost:
    """The cost of a product, which one call computes.

    Args:
        product: The product.
        evaluation: The exact evaluation of its EinSum.
        footprints: The sizes of what is kept in memory.
        memory: The memory limit of a run, with its threads.
        has_processes: Whether these are processes; constants are of one process, but of all threads.
        operators: The operators that an EinSum over single arrays takes as long as.
        constants: The cost constants.
    """
    einsum, index = product.decomposed.einsum, product.index
    dense = tuple([matters and other != index for other, matters in enumerate(evaluation.matters)])
    absence, orders = Absence(JoinKind.INNER, dense), {index: product.order}
    nothing = NO_WORK, NO_WORK, NO_WORK
    cost = VertexCost(1.0, 1.0, *nothing, 0.0, absence, None, orders=orders, is_sparse_matmul=True)
    (sizes,) = footprints.compressed(product.decomposed, cost)
    graph = footprints.graph
    read, written = (graph.tensors[name].size for name in (einsum.operands[1 - index].tensor, einsum.output.tensor))
    inside = count_indices(product.inside, einsum, graph)
    threads = threads_of_call(max(sizes.entries, sizes.rows) * inside, memory, has_processes)
    slowdown = (1 if has_processes else memory.threads) / threads  # of the call, beside what constants say
    moved: float = (written + product.permuted_elements(read, written)) * ITEM_BYTES[evaluation.computed_in]
    # Beyond the cache, it takes longer still if other threads wait for the call (measured: rows of 16 to 256 elements).
    moved *= slowdown_beyond_cache(moved, 1 + max(slowdown, 1))
    work = Work(
        1 + sizes.rows * _TUPLES_PER_ROW,
        moved,
        kernel_operations=2 * sizes.entries * inside * _OPERATIONS * slowdown,
        operators=operators,
    )
    join = work + sizes.ordering(0.0, 1.0)
    return replace(cost, join=join, seconds=join.seconds(constants))
