"""Render: changes of the decomposition as SELECTs: axes out of arrays, keys into arrays, absent tuples made present."""

import math
from collections.abc import Mapping

from sqlglot import exp

from sparseeinsum.algebra.operators import Convert, Densify, Resident, Slice, Stack
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.repartitions import is_shared_array
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.render.array_positions import (
    KeyOf,
    extents_inside,
    fill_value,
    position_of,
    positions_at,
    quotient,
)
from sparseeinsum.render.calls import (
    call,
    constant,
    converted,
    function_named,
    in_parentheses,
    integer,
    integers,
    text,
)
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.sources import SelectSource, aliased, key_column, named, unused, with_join, with_value_column
from sparseeinsum.statistics.columns import number_type, stored_type, type_named
from sparseeinsum.statistics.extents import Extent, as_sql, product
from sparseeinsum.statistics.number_literals import number

HANDLE_COLUMN = "handle"
ROW_COLUMN = "row_number"
FIRST_ROW = "first_row"
_RESERVED = "reserved"
# DuckDB folds a constant list while it plans, at 65 ns an element; an aggregate makes one at 4 ns an element.
_MAX_CONSTANT_SIZE = 1024
NO_ROWS = exp.Count(this=exp.Star())  # 0 in a group without rows
# A list that depends on a column is computed for every row, and takes as much memory as the arrays.
_MAX_CONSTANT_POSITIONS = 1 << 14


def slice_select(relation: Slice, source: SelectSource) -> exp.Select:
    """The SELECT of a slice: axes out of the arrays, whole or in tiles, with one row for every part.

    Args:
        relation: The slice.
        source: Where its input is read.
    """
    before, after = source.schema, relation.schema
    cut = [before.tensor.axes[axis].name for axis in relation.axes]
    is_new = len(cut) == 1 and cut[0] not in before.keys
    position = cut[0] if is_new else unused("position", after)
    unnested = exp.select(
        *[key_column(source, key, "t") for key in before.keys],
        call("UNNEST", call("RANGE", _part_count(relation, source))).as_(position),
        call("UNNEST", _parts(relation, source)).as_(VALUE_COLUMN),
    ).from_(aliased(source.table, "t"), copy=False)
    part_indices = positions_at(
        exp.column(position, table="s"), _parts_of_axes(relation, lambda key: exp.column(key, table="s"))
    )
    keys = []
    for key in after.keys:
        index: exp.Expr = part_indices.get(key, exp.column(key, table="s"))
        keys.append(named(_within(relation, key, index) if key in part_indices else index, key))
    value = exp.column(VALUE_COLUMN, table="s")
    select = exp.select(*keys, value).from_(unnested.subquery("s", copy=False), copy=False)
    return select if relation.keeps_fill else select.where(_is_not_fill(value, after), copy=False)


def _keys_of(source: SelectSource, alias: str) -> KeyOf:
    return lambda axis: source.key(axis, alias)


def _parts_of_axes(relation: Slice, key_of: KeyOf) -> dict[str, Extent]:
    """For every axis that is cut, by name: into how many parts the array of one tuple is cut."""
    before, after = relation.input.schema, relation.schema
    extents = extents_inside(before, key_of)
    tiles = after.decomposition.tiles
    return {before.tensor.axes[axis].name: quotient(extents[axis], tiles[axis]) for axis in relation.axes}


def _part_count(relation: Slice, source: SelectSource) -> exp.Expr:
    """How many parts the array of a tuple has.

    If there are many, the count is computed from the length of the array: DuckDB would fold the positions of a
    constant.
    """
    count = product(_parts_of_axes(relation, _keys_of(source, "t")).values())
    if not isinstance(count, int) or count <= _MAX_CONSTANT_POSITIONS or source.schema.is_ragged:
        return as_sql(count)
    size = relation.schema.list_length
    length = call("LEN", source.value("t"))
    return length if size == 1 else exp.IntDiv(this=length, expression=integer(size))


def _parts(relation: Slice, source: SelectSource) -> exp.Expr:
    """The parts of the array of a tuple, as an array of arrays."""
    before, after = source.schema, relation.schema
    if after.is_scalar:
        return source.value("t")
    dtype, tiles = before.tensor.dtype, after.decomposition.tiles
    extents = extents_inside(before, _keys_of(source, "t"))
    if all(tiles[axis] == 1 for axis in relation.axes):
        inside = [before.decomposition.array_axes.index(axis) for axis in relation.axes]
        return call(function_named("split", dtype), source.value("t"), integers(inside), integers([*extents.values()]))
    part_extents = [tiles[axis] if axis in relation.axes else 0 for axis in extents]
    return call(
        function_named("split_tiles", dtype),
        source.value("t"),
        integers(part_extents),
        integers([*extents.values()]),
    )


def _within(relation: Slice, key: str, part_index: exp.Expr) -> exp.Expr:
    """The key of a part, from its index within the array that is cut."""
    before = relation.input.schema
    axis = _axis_position(before, key)
    tile = before.decomposition.tiles[axis]
    if tile == DEMOTED:
        return part_index
    first = exp.Mul(this=exp.column(key, table="s"), expression=integer(tile // relation.decomposition.tiles[axis]))
    return exp.Add(this=first, expression=part_index)


def _axis_position(schema: Schema, name: str) -> int:
    return [axis.name for axis in schema.tensor.axes].index(name)


def _is_not_fill(value: exp.Expr, schema: Schema) -> exp.Expr:
    fill, dtype = schema.tensor.fill, schema.tensor.dtype
    if schema.is_scalar:
        return exp.NEQ(this=value.copy(), expression=number(fill, dtype) if fill else integer(0))
    fill_argument = [constant(fill, dtype)] if fill or is_complex(dtype) else []
    entries = call(function_named("nnz", dtype), value.copy(), *fill_argument)
    return exp.GT(this=entries, expression=integer(0))


def stack_select(relation: Stack, source: SelectSource) -> exp.Select:
    """The SELECT of a stack: keys into the arrays, whole or in tiles, with one group for every tuple of the result.

    Args:
        relation: The stack.
        source: Where its input is read.
    """
    after = relation.schema
    stacked = _stacked(relation, source)
    if not after.keys:  # there is one tuple, also if the input has none
        stacked = exp.func("coalesce", stacked, fill_where(after, NO_ROWS), copy=False)
    grouped = {key: _group_key(relation, source, key) for key in after.keys}
    keys = [named(expression, key) for key, expression in grouped.items()]
    value = exp.alias_(stacked, VALUE_COLUMN, copy=False)
    select = exp.select(*keys, value).from_(aliased(source.table, "t"), copy=False)
    return select.group_by(*[expression.copy() for expression in grouped.values()], copy=False)


def is_stacked_in_one_process(relation: Stack, dialect: Dialect) -> bool:
    """Whether workers, which share no memory, had better not share the rows of one large array."""
    has_processes = dialect.has_workers and not dialect.distributes
    return has_processes and not relation.schema.keys and is_shared_array(relation.schema.tensor)


def fill_where(schema: Schema, nothing: exp.Expr) -> exp.Expr:
    """The fill of a relation without keys, where an expression is 0."""
    fill = fill_value(schema, exp.column)
    if not schema.is_scalar and schema.array_size > _MAX_CONSTANT_SIZE:
        size, *_ = fill.expressions
        size.replace(size_where(size.copy(), nothing))
    return fill


def size_where(size: exp.Expr, nothing: exp.Expr) -> exp.Expr:
    """The size of an array that is made where an expression is 0; no constant.

    PostgreSQL would compute an array of constant size while it plans, and write it out in digits for every worker.
    """
    return exp.Add(this=size, expression=nothing.copy())


def _group_key(relation: Stack, source: SelectSource, axis: str) -> exp.Expr:
    """The key of the array into which a tuple goes."""
    key, ratio = source.key(axis, "t"), _ratio(relation, axis)
    return key if ratio <= 1 else exp.IntDiv(this=key, expression=integer(ratio))


def _ratio(relation: Stack, name: str) -> int:
    """How many tiles of the input make one tile of the result; 0 if the result has the whole axis inside its arrays."""
    axis = _axis_position(relation.input.schema, name)
    before, after = (tiles[axis] for tiles in (relation.input.schema.decomposition.tiles, relation.decomposition.tiles))
    return after // before if before else 1


def _tile_index(relation: Stack, source: SelectSource, axis: int) -> exp.Expr:
    """Which of the tiles that make one tile of the result a tuple holds."""
    name = relation.schema.tensor.axes[axis].name
    key, ratio = source.key(name, "t"), _ratio(relation, name)
    return exp.Mod(this=key, expression=integer(ratio)) if ratio else key


def _stacked(relation: Stack, source: SelectSource) -> exp.Expr:
    before, after = source.schema, relation.schema
    dtype, tiles = before.tensor.dtype, before.decomposition.tiles
    fill = constant(before.tensor.fill, dtype)
    sizes = extents_inside(after, lambda axis: _group_key(relation, source, axis))
    if (after.is_ragged and not before.is_scalar) or any(tiles[axis] != 1 for axis in relation.axes):
        return _place_blocks(relation, source, sizes)
    position = position_of(
        [(in_parentheses(_tile_index(relation, source, axis)), sizes[axis]) for axis in relation.axes]
    )
    size = as_sql(product(sizes[axis] for axis in relation.axes))
    if before.is_scalar:
        return call("tensor_stack", source.value("t"), position, size, fill)
    return _stack_arrays(relation, source, position, size, fill)


def _place_blocks(relation: Stack, source: SelectSource, sizes: Mapping[int, Extent]) -> exp.Expr:
    """Stack arrays of several indices along an axis: each goes where it begins in the array of the result."""
    before = source.schema
    inside = extents_inside(before, _keys_of(source, "t"))
    starts: list[Extent] = []
    for axis in sizes:
        tile = before.decomposition.tiles[axis]
        tile_index = in_parentheses(_tile_index(relation, source, axis)) if axis in relation.axes else integer(0)
        is_index = tile == 1 or axis not in relation.axes
        starts.append(tile_index if is_index else exp.Mul(this=tile_index, expression=integer(tile)))
    extents = [inside.get(axis, 1) for axis in sizes]
    fill = constant(before.tensor.fill, before.tensor.dtype)
    place_blocks = function_named("place", before.tensor.dtype)
    return call(place_blocks, source.value("t"), integers(starts), integers(extents), integers([*sizes.values()]), fill)


def _stack_arrays(
    relation: Stack, source: SelectSource, position: exp.Expr, size: exp.Expr, fill: exp.Expr
) -> exp.Expr:
    """Stack arrays of one index along every new axis.

    If the new axes are not adjacent in the result, the arrays are stacked with these in front, and then transposed.
    """
    before, after = source.schema, relation.schema
    dtype, axes = before.tensor.dtype, after.decomposition.array_axes
    extents = dict(zip(axes, after.inside, strict=True))
    stack = function_named("stack", dtype)
    first = axes.index(relation.axes[0])
    if axes[first : first + len(relation.axes)] == relation.axes:
        inner = math.prod(extents[axis] for axis in axes[first + len(relation.axes) :])
        return call(stack, source.value("t"), position, size, integer(inner), fill)
    in_front = (*relation.axes, *before.decomposition.array_axes)
    stacked = call(stack, source.value("t"), position, size, integer(before.array_size), fill)
    letters = {axis: chr(ord("a") + number) for number, axis in enumerate(in_front)}
    spec = f"{''.join(letters[axis] for axis in in_front)}->{''.join(letters[axis] for axis in axes)}"
    return call(function_named("einsum", dtype), text(spec), stacked, integers([extents[axis] for axis in in_front]))


def densify_select(relation: Densify, source: SelectSource) -> exp.Select:
    """The SELECT of all tuples that the keys allow, with their stored values or with the fill."""
    schema = relation.schema
    if not schema.keys:
        only = exp.func("any_value", source.value("t"))  # there is one tuple, or none
        filled = exp.func("coalesce", only, fill_where(schema, NO_ROWS))
        return exp.select(exp.alias_(filled, VALUE_COLUMN)).from_(aliased(source.table, "t"))
    return _filled(source, *_all_keys(schema))


def densify_from_keys_select(source: SelectSource, all_keys: SelectSource) -> exp.Select:
    """The SELECT of `densify_select`, where `all_keys` is a table of all keys."""
    keys: dict[str, exp.Expr] = {key: all_keys.key(key, "g") for key in all_keys.schema.keys}
    return _filled(source, aliased(all_keys.table, "g"), keys)


def all_keys_select(schema: Schema) -> exp.Select:
    """The SELECT of all keys that tuples of a schema can have, without values."""
    rows, keys = _all_keys(schema)
    return exp.select(*[exp.alias_(expression, key) for key, expression in keys.items()]).from_(rows)


def _all_keys(schema: Schema) -> tuple[exp.Expr, dict[str, exp.Expr]]:
    """A table of one row for every combination of keys, and the SQL of each key from such a row, by axis name."""
    position = exp.column(unused("position", schema), table="g")
    counts = schema.key_counts
    numbers = exp.Table(this=call("RANGE", as_sql(product(counts.values()))))
    rows = exp.select(exp.column("range").as_(position.name)).from_(numbers)
    return rows.subquery("g"), positions_at(position, counts)


def _filled(source: SelectSource, rows: exp.Expr, keys: Mapping[str, exp.Expr]) -> exp.Select:
    """The tuples of `source` for all `keys` of `rows`, with the fill where there is none."""
    source = with_value_column(source)
    equal = [exp.EQ(this=source.key(key, "t"), expression=expression.copy()) for key, expression in keys.items()]
    fill = fill_value(source.schema, lambda axis: keys[axis])
    value = exp.alias_(exp.func("coalesce", source.value("t"), fill), VALUE_COLUMN)
    select = exp.select(*[named(expression.copy(), key) for key, expression in keys.items()], value)
    return with_join(
        select.from_(rows, copy=False), aliased(source.table, "t"), exp.and_(*equal, copy=False), side="LEFT"
    )


def resident_select(relation: Resident, source: SelectSource) -> exp.Select:
    """The SELECT that puts all arrays into one, in C order of their keys, and returns its handle in memory."""
    schema = relation.schema
    value, (position, rows), fill = source.value("t"), row_position(schema, _keys_of(source, "t")), element_of(schema)
    if not is_shared_array(schema.tensor):
        handle = call("tensor_resident", value, position, rows, fill)
        return exp.select(exp.alias_(handle, HANDLE_COLUMN)).from_(aliased(source.table, "t"), copy=False)
    reserved, memory = reserved_memory(schema)
    handle = call("tensor_resident", memory, value, position)
    query = exp.select(exp.alias_(handle, HANDLE_COLUMN)).from_(aliased(source.table, "t"), copy=False)
    return with_join(query, reserved, kind="CROSS")


def reserved_memory(schema: Schema, parts: int = 1) -> tuple[exp.Subquery, exp.Column]:
    """A table of one row with memory for all arrays of a schema, in C order of their keys, and the column that has it.

    DuckDB computes equal subqueries once; a UUID makes this one differ from all others.

    Args:
        schema: The schema.
        parts: In how many parts of equal length each array is written.
    """
    rows, size = integer(math.prod(schema.key_counts.values()) * parts), integer(schema.list_length // parts)
    memory = call("tensor_reserved", rows, size, element_of(schema), exp.cast(call("UUID"), "VARCHAR"))
    reserved = exp.select(exp.alias_(memory, HANDLE_COLUMN)).subquery(_RESERVED)
    return reserved, exp.column(HANDLE_COLUMN, table=_RESERVED)


def row_position(schema: Schema, key_of: KeyOf) -> tuple[exp.Expr, exp.Expr]:
    """Which row of a resident array the tuple with these keys is, and how many rows there are."""
    counts = schema.key_counts
    position = position_of([(in_parentheses(key_of(axis)), count) for axis, count in counts.items()])
    return position, integer(math.prod(counts.values()))


def resident_row(schema: Schema, handle: exp.Expr, key_of: KeyOf) -> exp.Expr:
    """The array of the tuple with these keys, read from the resident array of a handle."""
    position, _ = row_position(schema, key_of)
    return row_of_array(schema, handle, position)


def row_of_array(schema: Schema, handle: exp.Expr, number: exp.Expr) -> exp.Expr:
    """The array of the tuple whose keys have this position in C order, read from the resident array of a handle."""
    return call("tensor_row", handle, number, integer(schema.list_length), element_of(schema))


def kept_array_source(schema: Schema, handle: exp.Expr) -> SelectSource:
    """The source of the only array of a resident array of a handle, which is read where it is, and not copied.

    A cross product would copy an array that a subquery has. An expression of constants would be evaluated while the
    statement is planned, and become part of the plan, so that a table has the number of the row.
    """
    array = row_of_array(schema, handle, exp.column(ROW_COLUMN))
    return SelectSource(_one_row(), schema, {}, handle=handle, computed_value=array)


def resident_array_source(schema: Schema, resident: SelectSource) -> SelectSource:
    """The source of the only array of a resident array, which is read where it is, and not copied."""
    if resident.handle is not None:
        return kept_array_source(schema, resident.handle)
    array = row_of_array(schema, exp.column(HANDLE_COLUMN), integer(0))
    return SelectSource(resident.table, schema, {}, computed_value=array)


def resident_of(relation: Stack) -> Resident:
    """The resident array that has the elements of a stack without keys, which is not made before if it need not be."""
    return Resident(relation.input if relation.can_be_resident else relation)


def first_row() -> exp.Expr:
    """The table of one row, under the alias FIRST_ROW, of which the sources of several kept arrays read the number."""
    return aliased(_one_row(), FIRST_ROW)


def _one_row() -> exp.Table:
    return exp.Table(this=call("tensor_row_numbers", integer(1), integer(1)))


def element_of(schema: Schema) -> exp.Expr:
    """The fill as an element of an array.

    Complex arrays have an element for each real and imaginary part; their fill is 0 here.
    """
    dtype = schema.tensor.dtype
    return exp.cast(integer(0), number_type(dtype)) if is_complex(dtype) else constant(schema.tensor.fill, dtype)


def convert_select(relation: Convert, source: SelectSource) -> exp.Select:
    """The SELECT of values as users see them: booleans, where kernels compute with 0 and 1."""
    value = converted(
        source.value("t"), type_named(stored_type(relation.schema.tensor.dtype, relation.schema.is_scalar))
    )
    keys = [key_column(source, key, "t") for key in relation.schema.keys]
    return exp.select(*keys, exp.alias_(value, VALUE_COLUMN)).from_(aliased(source.table, "t"))
