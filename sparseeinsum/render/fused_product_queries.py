"""Render: products of three operands, each computed by one kernel."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sparseeinsum.algebra.operators import Compress, Contract
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.operators.expressions import Call
from sparseeinsum.operators.semirings import SEMIRINGS
from sparseeinsum.render.blocks import KernelSelect
from sparseeinsum.render.calls import call, integer, text
from sparseeinsum.render.compressed_rows import (
    HANDLE_ALIASES,
    entries_of_rows_select,
    gathered_rows_select,
    identity_of,
    put_values_in_place,
    result_value,
)
from sparseeinsum.render.compressing_queries import computed_number
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.layouts import HANDLE_COLUMN, ROW_COLUMN, element_of, row_position
from sparseeinsum.render.sources import SelectSource, aliased, named
from sparseeinsum.render.whole_products import DOT_ROW_FUNCTION, MASKED_ROW_FUNCTION, PRODUCT_SUM_FUNCTION


def fused_select(relation: Contract, sources: Sequence[SelectSource], dialect: Dialect) -> KernelSelect:
    """The SELECT of a product of three operands, which are read from `sources`."""
    match [isinstance(operand, Compress) for operand in relation.inputs]:
        case [True, True, True]:
            return _masked_select(relation, sources, dialect)
        case [True, False, False] if relation.output.is_scalar:
            return _sampled_rows_select(relation, sources, dialect)
        case [True, False, False]:
            return _rows_select(relation, sources, dialect)
        case _:
            return KernelSelect(_sampled_select(relation, sources, dialect))


def _handles() -> list[exp.Expr]:
    """The handles of the three operands."""
    return [exp.column(HANDLE_COLUMN, table=alias) for alias in HANDLE_ALIASES]


def _masked_select(relation: Contract, sources: Sequence[SelectSource], dialect: Dialect) -> KernelSelect:
    """The product of two factors at the entries of a mask, all of them compressed; the mask is the first operand."""
    join, aggregate = relation.einsum.join, relation.einsum.aggregate
    assert isinstance(join, Call)
    pair = aggregate, join.function
    semiring = next(semiring for semiring in SEMIRINGS if (semiring.aggregate, semiring.function) == pair)
    mask, left, right = _handles()
    row, start = exp.column(ROW_COLUMN, table="r"), identity_of(semiring, relation)
    entries = call(MASKED_ROW_FUNCTION, text(semiring.text), left, row, right, start, mask)
    return entries_of_rows_select(relation, entries, sources, relation.einsum.operands[1].labels, dialect)


def _rows_select(relation: Contract, sources: Sequence[SelectSource], dialect: Dialect) -> KernelSelect:
    """The sums over the entries of a row, each times rows of two resident arrays."""
    size, start = sources[1].schema.list_length, element_of(sources[1].schema)
    entries, first, second = _handles()
    row = exp.column(ROW_COLUMN, table="r")
    gathered = call(PRODUCT_SUM_FUNCTION, entries, row, first, second, integer(size), start)
    return gathered_rows_select(relation, gathered, sources, size, dialect)


def _sampled_rows_select(relation: Contract, sources: Sequence[SelectSource], dialect: Dialect) -> KernelSelect:
    """The inner products of rows of two resident arrays at the entries of a row, times their numbers."""
    entries, left, right = _handles()
    row, size = exp.column(ROW_COLUMN, table="r"), integer(sources[1].schema.list_length)
    products = call(DOT_ROW_FUNCTION, entries, row, left, right, size)
    return entries_of_rows_select(relation, products, sources, relation.einsum.operands[1].labels, dialect)


def _sampled_select(relation: Contract, sources: Sequence[SelectSource], dialect: Dialect) -> exp.Select:
    """The inner products of rows of two resident arrays at the keys of numbers, times the numbers."""
    (numbers, *arrays), einsum = sources, relation.einsum
    alias = HANDLE_ALIASES[0]
    columns = zip(einsum.operands[0].labels, numbers.schema.keys, strict=True)
    keys = {label: numbers.key(column, alias) for label, column in columns}
    number = computed_number(numbers.value(alias), numbers.schema.tensor.dtype, relation.computed_in)
    handles = zip(einsum.operands[1:], arrays, _handles()[1:], strict=True)
    arguments = [
        argument
        for operand, array, handle in handles
        for argument in (handle, _row_of(array.schema, operand.labels, keys))
    ]
    value = call("tensor_scaled_dot", number, *arguments, integer(arrays[0].schema.list_length))
    axes = zip(einsum.output.labels, relation.output.keys, strict=True)
    selected = [named(keys[label].copy(), axis) for label, axis in axes]
    select = exp.select(*selected, exp.alias_(result_value(relation, value), VALUE_COLUMN))
    select = select.from_(aliased(numbers.table, alias))
    if not dialect.keeps_residents:
        put_values_in_place(select, dict(zip(HANDLE_ALIASES[1:], arrays, strict=True)))
        return select
    for array, other in zip(arrays, HANDLE_ALIASES[1:], strict=True):
        select = select.join(aliased(array.table, other), join_type="CROSS")
    return select


def _row_of(schema: Schema, labels: Sequence[str], keys: Mapping[str, exp.Expr]) -> exp.Expr:
    """The row of a resident array with these labels at keys of the labels."""
    axes = {axis.name: label for axis, label in zip(schema.tensor.axes, labels, strict=True)}
    return row_position(schema, lambda axis: keys[axes[axis]].copy())[0]
