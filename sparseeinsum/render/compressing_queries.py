"""Render: SELECTs that order the numbers of a relation by row in memory."""

import functools
import math

from sqlglot import exp

from sparseeinsum.algebra.operators import Compress
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN
from sparseeinsum.render.array_positions import position_of
from sparseeinsum.render.calls import call, converted, integer
from sparseeinsum.render.layouts import HANDLE_COLUMN
from sparseeinsum.render.sources import ListSource, SelectSource, aliased
from sparseeinsum.statistics.columns import NUMBER_TYPES, array_type, computed_type, number_type, stored_type


def compress_lists_select(relation: Compress, source: ListSource) -> exp.Select | None:
    """The SELECT that orders the numbers in lists by row in memory, and returns their handle.

    Returns None where a row, or a position in a row, is made of the positions in several lists, or of one that must be
    multiplied: then numbers are read one by one.
    """
    numbers = [_number_in_lists(relation, source, axes) for axes in (relation.row_axes, relation.position_axes)]
    if None in numbers:
        return None
    (row, rows), (position, positions) = [number for number in numbers if number is not None]
    value: exp.Expr = exp.column(VALUE_COLUMN, table="t")
    if stored_type(relation.schema.tensor.dtype, is_scalar=False) != computed_type(relation.dtype, is_scalar=False):
        value = converted(value, array_type(relation.dtype))
    handle = call("tensor_compressed", value, row, rows, position, positions, integer(row_count(relation)))
    return exp.select(exp.alias_(handle, HANDLE_COLUMN)).from_(aliased(source.table, "t"))


def _number_in_lists(relation: Compress, source: ListSource, axes: tuple[int, ...]) -> tuple[exp.Expr, exp.Expr] | None:
    """The number of a row, or of a position, in C order over axes: a part from keys, and a list of what to add to it.

    None if several lists, or multiples of one, would have to be added up.
    """
    shape, tiles = relation.schema.tensor.shape, source.layout.tiles
    keys: list[exp.Expr] = []
    lists: list[exp.Expr] = []
    for place, axis in enumerate(axes):
        stride = math.prod(shape[later] for later in axes[place + 1 :])
        if tiles[axis] != DEMOTED:
            factor = integer(tiles[axis] * stride)
            key = exp.cast(exp.column(source.keys[axis], table="t", quoted=True), "bigint")
            keys.append(exp.Mul(this=key, expression=factor))
        if axis in source.lists:
            lists += [exp.column(source.lists[axis], table="t", quoted=True)] * (1 if stride == 1 else 2)
    if len(lists) > 1:
        return None
    number = functools.reduce(lambda left, right: exp.Add(this=left, expression=right), keys, integer(0))
    return number, lists[0] if lists else exp.cast(exp.array(), exp.DataType.build("INT[]", dialect="duckdb"))


def compress_select(relation: Compress, source: SelectSource) -> exp.Select:
    """The SELECT that orders numbers by row in memory, and returns their handle."""
    axes, counts = relation.schema.tensor.axes, relation.schema.key_counts
    row, position = (
        position_of([(source.key(axes[axis].name, "t"), counts[axes[axis].name]) for axis in chosen])
        for chosen in (relation.row_axes, relation.position_axes)
    )
    value = computed_number(source.value("t"), relation.schema.tensor.dtype, relation.dtype)
    handle = call("tensor_compressed", value, row, position, integer(row_count(relation)))
    return exp.select(exp.alias_(handle, HANDLE_COLUMN)).from_(aliased(source.table, "t"), copy=False)


def computed_number(value: exp.Expr, dtype: str, computed_in: str) -> exp.Expr:
    """A number of an operand in the type of the kernel.

    Args:
        value: The number.
        dtype: Its dtype.
        computed_in: The dtype in which the kernel computes.
    """
    return value if NUMBER_TYPES[dtype] == NUMBER_TYPES[computed_in] else converted(value, number_type(computed_in))


def row_count(relation: Compress) -> int:
    """How many rows there are."""
    axes, counts = relation.schema.tensor.axes, relation.schema.key_counts
    return math.prod(counts[axes[axis].name] for axis in relation.row_axes)
