"""Render: numbers that are ordered by row in memory, and sums of products that are computed row by row."""

import math

from sqlglot import exp

from sparseeinsum.algebra.operators import Compress, Contract
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.array_positions import position_of, positions_at
from sparseeinsum.render.calls import call, converted, integer
from sparseeinsum.render.dialects import DUCKDB
from sparseeinsum.render.layouts import HANDLE_COLUMN, element_of
from sparseeinsum.render.sources import SelectSource, aliased, named
from sparseeinsum.render.values import with_finite_check
from sparseeinsum.statistics.columns import NUMBER_TYPES, array_type, number_type

_VECTOR_ELEMENTS = 1 << 16  # of the results in a vector of rows
_ROW_COLUMN = "row_number"


def compress_select(relation: Compress, source: SelectSource) -> exp.Select:
    """The SELECT that orders numbers by row in memory, and returns their handle."""
    axes, counts = relation.schema.tensor.axes, relation.schema.key_counts
    row, position = (
        position_of([(source.key(axes[axis].name, "t"), counts[axes[axis].name]) for axis in chosen])
        for chosen in (relation.row_axes, relation.position_axes)
    )
    value = source.value("t")
    if NUMBER_TYPES[relation.schema.tensor.dtype] != NUMBER_TYPES[relation.dtype]:
        value = converted(value, number_type(relation.dtype))
    handle = call("tensor_compressed", value, row, position, integer(_row_count(relation)))
    return exp.select(exp.alias_(handle, HANDLE_COLUMN)).from_(aliased(source.table, "t"))


def gather_select(relation: Contract, entries: SelectSource, array: SelectSource) -> exp.Select:
    """The SELECT of an EinSum whose operands are compressed and resident: a kernel computes every row that has entries.

    Args:
        relation: The EinSum.
        entries: Where the handle of the compressed operand is read.
        array: Where the handle of the resident operand is read.
    """
    output, compressed = relation.output, relation.inputs[relation.compressed or 0]
    assert isinstance(compressed, Compress)
    row, size = exp.column(_ROW_COLUMN, table="r"), array.schema.list_length
    numbers = call("tensor_row_numbers", integer(_row_count(compressed)), integer(_rows_together(size)))
    gathered = call(
        "tensor_gather_sum",
        exp.column(HANDLE_COLUMN, table="u"),
        row,
        exp.column(HANDLE_COLUMN, table="v"),
        integer(size),
        element_of(array.schema),
    )
    rows = (
        exp.select(row.copy(), exp.alias_(gathered, VALUE_COLUMN))
        .from_(exp.alias_(exp.Table(this=numbers), "r", table=True))
        .join(aliased(entries.table, "u"), join_type="CROSS")
        .join(aliased(array.table, "v"), join_type="CROSS")
    )
    keys = positions_at(exp.column(_ROW_COLUMN, table="s"), output.key_counts)
    value: exp.Expr = exp.column(VALUE_COLUMN, table="s")
    if NUMBER_TYPES[relation.computed_in] != NUMBER_TYPES[output.tensor.dtype]:
        value = converted(value, array_type(output.tensor.dtype))
    if relation.detects_nonfinite:
        value = with_finite_check(value, output.tensor)
    columns = [named(key.copy(), name) for name, key in keys.items()]
    is_present = exp.column(VALUE_COLUMN, table="s").is_(exp.null()).not_()
    return exp.select(*columns, exp.alias_(value, VALUE_COLUMN)).from_(rows.subquery("s")).where(is_present)


def _row_count(relation: Compress) -> int:
    axes, counts = relation.schema.tensor.axes, relation.schema.key_counts
    return math.prod(counts[axes[axis].name] for axis in relation.row_axes)


def _rows_together(size: int) -> int:
    """How many rows of the result, of `size` elements each, a vector has: few enough for the processor's cache."""
    return min(max(_VECTOR_ELEMENTS // max(size, 1), 1), DUCKDB.vector_rows)
