"""Decompose: operands of numbers that are ordered by row in memory, so that every group is computed at once.

A sum of products of numbers and rows of a resident array needs no hash table then: for each group, a kernel adds up the
rows at the positions of its numbers. This is the product of a matrix in compressed sparse rows and a dense one. If both
operands are ordered by row, a kernel computes a row of the product of two sparse matrices at a time.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from sparseeinsum.decompose.cost import NO_WORK, Work, slowdown_beyond_cache
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum, is_of_numbers
from sparseeinsum.decompose.indexed_access import MISSED_BYTES
from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.semirings import SEMIRINGS, Semiring
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.estimate import Statistics

# With fewer rows, threads could not share the work, and a hash table of the groups is small.
_LEAST_ROWS = 256
# Bytes of an entry while it is moved: in the order in which entries come, then in the order of rows.
ENTRY_BYTES = 28
# Tuples that take as long as to read an entry out of a list, with its keys.
_TUPLES_PER_EXPANDED_ENTRY = 0.5
_ROW_BYTES = 8
MOST_POSITIONS = (1 << 31) - 1  # and the most rows, LARGEST of kernels/compression.py
# Kernel operations relative to those that add to states: a group stays in the processor's cache until it is complete
# (measured: bench/indexed.py).
_CACHED_OPERATIONS = 0.6
# Operands with a larger share of entries are faster as dense arrays, if they are computed as such.
_LARGEST_SHARE = 1 / 16


@dataclass(frozen=True, slots=True)
class RowPrices:
    """Tuples that take as long to multiply rows.

    Attributes:
        row: As to begin and to end a row.
        product: As a product of two numbers.
    """

    row: float
    product: float

    def work(self, rows: float, products: float) -> Work:
        """The work of rows with so many products."""
        return Work(rows * self.row + products * self.product, operators=2)


@dataclass(frozen=True, slots=True)
class OrderingPrices:
    """Tuples that take as long to order an operand by row (measured: bench/list_layouts.py).

    Attributes:
        entry: As an entry with a tuple of its own.
        listed_entry: As an entry of a list.
        per_list: As to read a list, so that lists of a few entries may take longer than these alone.
    """

    entry: float
    listed_entry: float
    per_list: float


@dataclass(frozen=True, slots=True)
class ProductPrices:
    """Tuples that take as long as the parts of a product of sparse matrices, row by row.

    Attributes:
        by_matrix: To multiply by a matrix.
        by_vector: To multiply by a vector.
        masked: To multiply by a matrix where a third one, the mask, has entries.
        ordered_row: To order a row of an operand.
        ordered_entry: To order an entry of an operand, times its `OrderingPrices`.
        result: An entry of the product.
        mask_entry: An entry of the mask.
        gathered_row: A row of a product with a resident array.
        ordering: What ordering takes, in the time of an entry with a tuple of its own.
        before_array: What ordering takes of an operand that is multiplied by an array.
    """

    by_matrix: RowPrices
    by_vector: RowPrices
    masked: RowPrices
    ordered_row: float
    ordered_entry: float
    result: float
    mask_entry: float
    gathered_row: float
    ordering: OrderingPrices
    before_array: OrderingPrices

    def orderings(self, sizes: "Iterable[CompressedSizes]") -> Work:
        """The work to order operands."""
        return sum([size.ordering(self.ordered_row, self.ordered_entry) for size in sizes], NO_WORK)


IN_MEMORY = OrderingPrices(1.0, 0.55, 3.0)
IN_ARRAYS = OrderingPrices(0.5, 0.0, 1.0)  # by ARRAY_AGG on PostgreSQL, whose lists are in such arrays as they are
AS_COMPUTED = OrderingPrices(0.05, 0.0, 0.0)  # of values that a function of PostgreSQL returns ordered

# Of handles on DuckDB (measured by bench/list_prices.py: bench/measured/2026-11-26-peers-3.txt), and of values on
# PostgreSQL, whose tuples take 70 times as long (bench/measured/2026-11-27-lists-7.txt).
OF_HANDLES = ProductPrices(
    by_matrix=RowPrices(18.0, 0.5),
    by_vector=RowPrices(3.3, 1.2),
    masked=RowPrices(14.0, 0.5),
    ordered_row=0.2,
    ordered_entry=2.5,
    result=1.1,
    mask_entry=2.4,
    gathered_row=1.0,
    ordering=IN_MEMORY,
    before_array=IN_MEMORY,
)
OF_VALUES = ProductPrices(
    by_matrix=RowPrices(0.5, 0.015),
    by_vector=RowPrices(0.5, 0.015),
    masked=RowPrices(0.5, 0.02),
    ordered_row=0.01,
    ordered_entry=0.55,
    result=0.5,
    mask_entry=0.05,
    gathered_row=0.1,
    ordering=OrderingPrices(1.0, 0.05, 2.4),
    before_array=OrderingPrices(0.45, 0.2, 0.3),
)


def is_sparse(entries: float, elements: int) -> bool:
    """Whether a computed operand has so few entries that it is no dense array."""
    return entries <= elements * _LARGEST_SHARE


def sparse_products(graph: EinGraph, statistics: Mapping[str, Statistics]) -> Iterator[str]:
    """Names of products of two sparse matrices, which functions compute row by row, in the order of the rows."""
    for einsum in graph.einsums:
        name, labels = einsum.output.tensor, set(einsum.output.labels)
        is_product = len(einsum.operands) == 2 and len(labels) > 1 and not labels.issuperset(einsum.labels)
        if is_product and is_sparse(statistics[name].entries, graph.tensors[name].size):
            yield name


@dataclass(frozen=True, slots=True)
class RowOrder:
    """How an operand is ordered in memory.

    Attributes:
        rows: Labels whose indices number the rows, in C order.
        positions: Labels whose indices number the positions in a row, in C order.
    """

    rows: tuple[str, ...]
    positions: tuple[str, ...]

    @classmethod
    def of(cls, einsum: EinSum, promoted: Set[str], compressed: tuple[int, ...], index: int) -> "RowOrder":
        """The order of operand `index` of an EinSum if the operands `compressed` are ordered by row.

        Rows of the first of these are those of the result, and its positions are rows of the other operand.
        """
        first = einsum.operands[compressed[0]].labels
        rows = tuple([label for label in einsum.output.labels if label in promoted and label in first])
        other = einsum.operands[1 - compressed[0]].labels
        shared = tuple([label for label in other if label in promoted and label in first])
        if index == compressed[0]:
            return cls(rows, shared)
        return cls(shared, tuple([label for label in einsum.output.labels if label in promoted and label not in rows]))


@dataclass(frozen=True, slots=True)
class CompressedSizes:
    """Sizes of an operand that is ordered by row in memory.

    Attributes:
        rows: The number of rows that the keys allow.
        entries: The number of tuples.
        is_in_lists: Whether they are stored in lists, which are read as they are.
        loads_per_run: How often a run puts it in that order, on average; less than 1 if it stays from run to run.
        prices: What ordering takes.
    """

    rows: int
    entries: float
    is_in_lists: bool = False
    loads_per_run: float = 1.0
    prices: OrderingPrices = IN_MEMORY

    @property
    def ordered_tuples(self) -> float:
        """Tuples that take as long to order; there is about one list for each row that has entries."""
        if not self.is_in_lists:
            return self.entries * self.prices.entry
        return self.entries * self.prices.listed_entry + min(self.rows, self.entries) * self.prices.per_list

    def ordering(self, tuples_per_row: float, tuples_per_entry: float) -> Work:
        """The work to order the entries by row.

        Args:
            tuples_per_row: The tuples of a join that take as long as a row.
            tuples_per_entry: Those that take as long as an entry.
        """
        once = Work(self.rows * tuples_per_row + self.ordered_tuples * tuples_per_entry, operators=1)
        return once.times(self.loads_per_run)

    @property
    def size_bytes(self) -> float:
        """Bytes of the entries while they are ordered, and of where rows begin."""
        return self.rows * _ROW_BYTES + self.entries_bytes

    @property
    def entries_bytes(self) -> float:
        """Those of the entries alone."""
        return self.entries * ENTRY_BYTES


def order_of_other(
    decomposed: DecomposedEinSum, index: int, graph: EinGraph, evaluation: Evaluation, has_semirings: bool
) -> RowOrder | None:
    """How the operand other than `index`, which is resident, can be ordered by row; None if it cannot.

    It must be a tensor of numbers with all keys of the result. Every row of the resident array must have the axes of an
    array of the result, in their order. Without `has_semirings`, the EinSum must be a sum of products.
    """
    einsum = decomposed.einsum
    is_sum = einsum.is_multilinear and einsum.aggregate == "sum"
    is_product = is_sum or (has_semirings and semiring_of(einsum) is not None)
    if not (is_product and _is_computable(decomposed, graph, evaluation)):
        return None
    entries, array, output = einsum.operands[1 - index], einsum.operands[index], einsum.output
    if not is_of_numbers(decomposed.operands[1 - index]) or len(set(entries.labels)) < len(entries.labels):
        return None
    order = RowOrder.of(einsum, decomposed.promoted, (1 - index,), 1 - index)
    can_be_ordered = (
        has_enough_rows(order, decomposed.einsum, graph)
        and set(output.labels) & decomposed.promoted <= set(order.rows)
        and count_indices(order.positions, einsum, graph) < MOST_POSITIONS
        and _inside(array, decomposed.operands[index]) == _inside(output, decomposed.result)
    )
    return order if can_be_ordered else None


def row_products(
    decomposed: DecomposedEinSum, graph: EinGraph, evaluation: Evaluation
) -> Iterator[Mapping[int, RowOrder]]:
    """How two operands of numbers can be ordered to be multiplied row by row: that with the rows of the result first.

    Their join must be inner.
    """
    einsum = decomposed.einsum
    if len(einsum.operands) != 2 or semiring_of(einsum) is None or not is_of_numbers(decomposed.choice):
        return
    has_repeated_labels = any(len(set(operand.labels)) < len(operand.labels) for operand in einsum.operands)
    if has_repeated_labels or not _is_computable(decomposed, graph, evaluation):
        return
    for compressed in ((0, 1), (1, 0)):
        first, second = (RowOrder.of(einsum, decomposed.promoted, compressed, index) for index in compressed)
        has_positions = second.rows and all(
            count_indices(labels, einsum, graph) < MOST_POSITIONS for labels in (second.rows, second.positions)
        )
        if has_positions and has_enough_rows(first, decomposed.einsum, graph):
            yield dict(zip(compressed, (first, second), strict=True))


def semiring_of(einsum: EinSum) -> Semiring | None:
    """The semiring in which an EinSum of two operands is a sum of products; None where there is none."""
    return next((semiring for semiring in SEMIRINGS if semiring.computes(einsum.aggregate, einsum.join)), None)


def in_rows(join: Work, sizes: CompressedSizes, prices: ProductPrices, missed_bytes: float = 0.0) -> Work:
    """The work of a join with a resident array if the entries are ordered by row first, and groups computed at once.

    Args:
        join: The work of the join.
        sizes: The sizes of the entries.
        prices: What this takes.
        missed_bytes: Bytes of rows of the resident array that are read and not found in the processor's caches.
    """
    products = Work(
        sizes.rows * prices.gathered_row,
        bytes_moved=missed_bytes * MISSED_BYTES,
        # Those of the expression of another semiring are compiled into the kernel.
        kernel_operations=(join.kernel_operations + join.expression_operations) * _CACHED_OPERATIONS,
        operators=join.operators,
    )
    return products + sizes.ordering(0.0, 1.0)


def writing_rows(size_bytes: float, has_handles: bool) -> Work:
    """The work to write so many bytes of rows of a product with an array; values leave the cache together."""
    return Work(bytes_moved=size_bytes if has_handles else size_bytes * slowdown_beyond_cache(size_bytes))


def expanding(entries: float) -> Work:
    """The work to read entries out of lists, one row an entry."""
    return Work(entries * _TUPLES_PER_EXPANDED_ENTRY)


def in_row_products(
    joined: float, tuples: float, sizes: Sequence[CompressedSizes], is_by_vector: bool, prices: ProductPrices
) -> Work:
    """The work to order two operands by row, and to multiply them row by row.

    Args:
        joined: The pairs of their numbers that are multiplied.
        tuples: The tuples of the result.
        sizes: The sizes of the operands, first of the one whose rows are those of the result.
        is_by_vector: Whether rows of the other one have one position.
        prices: What this takes.
    """
    multiplied = (prices.by_vector if is_by_vector else prices.by_matrix).work(sizes[0].rows, joined)
    results = Work(0.0 if is_by_vector else tuples * prices.result)
    return prices.orderings(sizes) + multiplied + results


def in_masked_product(
    pairs: float, rows: int, entries: float, sizes: Iterable[CompressedSizes], prices: ProductPrices
) -> Work:
    """The work to order operands by row, and to multiply two of them row by row where a third one has entries.

    Args:
        pairs: The pairs of numbers of the two operands.
        rows: The rows of the third one.
        entries: Its entries.
        sizes: The sizes of the operands that are ordered.
        prices: What this takes.
    """
    return prices.orderings(sizes) + prices.masked.work(rows, pairs) + Work(entries * prices.mask_entry)


def count_indices(labels: tuple[str, ...], einsum: EinSum, graph: EinGraph) -> int:
    """The product of the bounds of labels."""
    return math.prod(graph.bound_of(einsum, label) for label in labels)


def _is_computable(decomposed: DecomposedEinSum, graph: EinGraph, evaluation: Evaluation) -> bool:
    """Whether kernels compute groups of an EinSum as a whole: of real numbers, without terms that are left out."""
    dtypes = [graph.tensors[operand.tensor].dtype for operand in decomposed.einsum.operands]
    has_complex = any(is_complex(dtype) for dtype in (evaluation.computed_in, *dtypes))
    return decomposed.is_grouped and not evaluation.compensates and not has_complex


def has_enough_rows(order: RowOrder, einsum: EinSum, graph: EinGraph) -> bool:
    """Whether the operand whose rows are those of the result has enough of them, and not too many."""
    return bool(order.rows) and _LEAST_ROWS <= count_indices(order.rows, einsum, graph) <= MOST_POSITIONS


def _inside(reference: Reference, tiles: tuple[int, ...]) -> list[str]:
    """The labels inside the arrays of a tensor."""
    return [label for label, tile in zip(reference.labels, tiles, strict=True) if tile != 1]
