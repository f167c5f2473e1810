"""Decompose: two operands of numbers with the same labels, ordered by row in memory and matched row by row.

This takes the place of a hash join: of an intersection, as for products, or of an outer join, as for sums. A row of one
operand is put into a table that stays in the processor's cache, where the entries of the same row of the other one are
looked up.
"""

from collections.abc import Iterable
from dataclasses import replace

from sparseeinsum.decompose.compressed_access import (
    MOST_POSITIONS,
    CompressedSizes,
    RowOrder,
    count_indices,
    has_enough_rows,
)
from sparseeinsum.decompose.cost import Work
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum, is_of_numbers
from sparseeinsum.decompose.indexed_access import needs_no_conversion
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.semantics.exactness import Evaluation

# Tuples that take as long as to order an entry, and for each operand a row, and then to look the entry up, and to start
# the row (the sums are fitted by hand to 300 to 2 million entries in 300 to a million rows).
_ORDERED_ENTRY, _MATCHED_ENTRY = 2.2, 1.0
_ORDERED_ROW, _MATCHED_ROW = 2.25, 1.0

# Where operands in memory are values: how many tuples can be hashed while an entry, or a row, is ordered and matched. A
# first run orders, and takes about as long as a join; later ones only match, in a quarter of the time (PostgreSQL 15).
_ENTRY_OF_VALUE, _ROW_OF_VALUE = 0.5, 0.2


def matched_order(decomposed: DecomposedEinSum, graph: EinGraph, evaluation: Evaluation) -> RowOrder | None:
    """How both operands are ordered if they are matched by row; None where that cannot be.

    There are as few rows as threads can share, so that most have entries: those of the first labels of the result.
    """
    einsum, computed_in = decomposed.einsum, evaluation.computed_in
    if len(einsum.operands) != 2 or einsum.along is not None or not is_of_numbers(decomposed.choice):
        return None
    first, second = (operand.labels for operand in einsum.operands)
    is_same = sorted(first) == sorted(second) and len(set(first)) == len(first)
    dtypes = [graph.tensors[operand.tensor].dtype for operand in einsum.operands]
    is_plain = all(needs_no_conversion(dtype, computed_in, has_other_fill=False) for dtype in dtypes)
    if not is_same or not is_plain or is_complex(computed_in) or not set(einsum.output.labels) <= set(first):
        return None
    labels = (*einsum.output.labels, *[label for label in first if label not in einsum.output.labels])
    for count in range(1, len(labels) + 1):
        order = RowOrder(labels[:count], labels[count:])
        if has_enough_rows(order, einsum, graph) and count_indices(order.positions, einsum, graph) < MOST_POSITIONS:
            return order
    return None


def in_matched_rows(join: Work, sizes: Iterable[CompressedSizes]) -> Work:
    """The work of a join if both operands are ordered by row, and then matched instead of hashed."""
    matched = replace(join, hashed_tuples=0.0, operators=join.operators + 1)
    for size in sizes:
        matched += size.ordering(_ORDERED_ROW, _ORDERED_ENTRY)
        matched += Work(size.rows * _MATCHED_ROW + size.entries * _MATCHED_ENTRY)
    return matched


def in_matched_values(join: Work, sizes: Iterable[CompressedSizes]) -> Work:
    """The same where operands in memory are values, and all rows are matched in one call."""
    hashed = sum([size.entries * _ENTRY_OF_VALUE + size.rows * _ROW_OF_VALUE for size in sizes])
    return replace(join, hashed_tuples=hashed, operators=join.operators + 1)
