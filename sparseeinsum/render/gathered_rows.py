"""Render: sums over the entries of a row for engines without arrays in memory that a statement can name.

The dense operand is one array, a scalar subquery, and every row of the sparse one has its entries in two arrays: those
of its table of lists, or those of a GROUP BY.
"""

from collections.abc import Container

from sqlglot import exp

from sparseeinsum.algebra.operators import Compress, Contract, Relation, Resident
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN
from sparseeinsum.render.array_positions import position_of
from sparseeinsum.render.calls import call, integer
from sparseeinsum.render.compressed_rows import only_value, result_value
from sparseeinsum.render.compressing_queries import computed_number
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.layouts import HANDLE_COLUMN, NO_ROWS, element_of, row_position, size_where
from sparseeinsum.render.sources import ListSource, SelectSource, aliased, in_one_process, named, unused
from sparseeinsum.statistics.columns import computed_type, stored_type


def array_select(relation: Resident, source: SelectSource) -> exp.Select:
    """The SELECT of all arrays in one, in C order of their keys; all elements are the fill if there are none."""
    schema = relation.schema
    position, rows = row_position(schema, lambda axis: source.key(axis, "t"))
    size = integer(schema.list_length)
    stacked = call("tensor_stack", source.value("t"), position, rows, size, element_of(schema))
    count = exp.Mul(this=rows.copy(), expression=size.copy())
    filled = call("tensor_fill", size_where(count, NO_ROWS), element_of(schema))
    value = exp.alias_(exp.func("coalesce", stacked, filled), HANDLE_COLUMN)
    return exp.select(value).from_(aliased(in_one_process(source).table, "t"), copy=False)


def reads_rows(relation: Contract, dialect: Dialect, kept: Container[Relation]) -> bool:
    """Whether an EinSum that adds up rows of an array reads the entries of every row in two arrays.

    Otherwise, it reads all entries as a value, or by a handle.

    Args:
        relation: The EinSum.
        dialect: The dialect of the engine.
        kept: The operands that are in memory already.
    """
    is_gathered = bool(relation.compressed) and relation.indexed is not None and not relation.is_fused
    return is_gathered and not dialect.keeps_residents and relation.inputs[relation.compressed[0]] not in kept


def listed_rows_select(relation: Compress, source: ListSource) -> exp.Select | None:
    """The SELECT of the entries of every row, straight from lists.

    Returns None where the tuples of the table are no rows, or their positions are not those of the product.
    """
    tiles, dtype = source.layout.tiles, relation.schema.tensor.dtype
    is_stored_so = (
        source.layout.compressed == relation.position_axes
        and all(tiles[axis] == 1 for axis in relation.row_axes)
        and tiles[relation.position_axes[0]] == DEMOTED
        and stored_type(dtype, is_scalar=True) == computed_type(relation.dtype, is_scalar=True)
    )
    if not is_stored_so or len(relation.position_axes) > 1:
        return None
    keys = [
        named(exp.column(source.keys[axis], table="t", quoted=True), source.keys[axis]) for axis in relation.row_axes
    ]
    (position,) = source.lists.values()
    positions = exp.alias_(exp.column(position, table="t", quoted=True), _positions_column(relation))
    value = exp.column(VALUE_COLUMN, table="t")
    has_entries = exp.GT(this=call("CARDINALITY", value.copy()), expression=integer(0))
    return exp.select(*keys, positions, value).from_(aliased(source.table, "t"), copy=False).where(has_entries)


def grouped_rows_select(relation: Compress, source: SelectSource) -> exp.Select:
    """The SELECT of the entries of every row, from a tuple for each entry."""
    axes, counts = relation.schema.tensor.axes, relation.schema.key_counts
    keys = {axes[axis].name: source.key(axes[axis].name, "t") for axis in relation.row_axes}
    position = position_of(
        [(source.key(axes[axis].name, "t"), counts[axes[axis].name]) for axis in relation.position_axes]
    )
    value = computed_number(source.value("t"), relation.schema.tensor.dtype, relation.dtype)
    columns = {_positions_column(relation): exp.cast(position, "int"), VALUE_COLUMN: value}
    # The states of many groups would not fit into a hash table.
    entries = exp.select(*[exp.alias_(column, name) for name, column in (keys | columns).items()])
    entries = entries.from_(aliased(source.table, "t"), copy=False).order_by(*[key.copy() for key in keys.values()])
    rows = [exp.column(name, table="s") for name in keys]
    lists = [exp.alias_(call("ARRAY_AGG", exp.column(name, table="s")), name) for name in columns]
    select = exp.select(*rows, *lists).from_(entries.subquery("s"), copy=False)
    return select.group_by(*[row.copy() for row in rows])


def gathered_select(relation: Contract, entries: SelectSource, array: SelectSource) -> exp.Select:
    """The SELECT of an EinSum of rows of entries and an array.

    Args:
        relation: The EinSum.
        entries: Where the rows are read, of `listed_rows_select` or `grouped_rows_select`.
        array: Where the array is read, of `array_select`.
    """
    compressed = relation.inputs[relation.compressed[0]]
    assert isinstance(compressed, Compress)
    rows = only_value(array)
    gathered = call(
        "tensor_gather_sum",
        exp.column(VALUE_COLUMN, table="u"),
        exp.column(_positions_column(compressed), table="u"),
        rows,
        integer(array.schema.list_length),
    )
    labels = relation.einsum.operands[relation.compressed[0]].labels
    names = {label: axis.name for label, axis in zip(labels, compressed.schema.tensor.axes, strict=True)}
    label_of = dict(zip([axis.name for axis in relation.output.tensor.axes], relation.labels, strict=True))
    keys = [named(exp.column(names[label_of[key]], table="u"), key) for key in relation.output.keys]
    value = exp.alias_(result_value(relation, gathered), VALUE_COLUMN)
    return exp.select(*keys, value).from_(aliased(entries.table, "u"), copy=False)


def _positions_column(relation: Compress) -> str:
    return unused("positions", relation.schema)
