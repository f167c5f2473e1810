"""Render: changes of decomposition as SELECTs: axes out of arrays, keys into arrays, absent tuples made present."""

import math
from collections.abc import Mapping

from sqlglot import exp

from sparseeinsum.algebra.operators import Convert, Densify, Resident, Schema, Slice, Stack
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN
from sparseeinsum.operators.dtypes import is_complex
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
from sparseeinsum.render.extents import (
    KeyOf,
    extents_inside,
    fill_value,
    position_of,
    positions_at,
    quotient,
)
from sparseeinsum.render.sources import Source, aliased, key_column, named, unused
from sparseeinsum.statistics.columns import number_type, stored_type, type_named
from sparseeinsum.statistics.extents import Extent, as_sql, product
from sparseeinsum.statistics.numbers import number

HANDLE_COLUMN = "handle"
# DuckDB makes a list that is constant while it plans, element by element: 65 ns each; one of an aggregate takes 4 ns.
_MOST_FOLDED = 1024
# One that depends on a column is made anew in every row, and takes as much memory as the arrays.
_MOST_POSITIONS_FOLDED = 1 << 14


def slice_select(relation: Slice, source: Source) -> exp.Select:
    """Axes out of the arrays, whole or in tiles: one row for every part."""
    before, after = source.schema, relation.schema
    cut = [before.tensor.axes[axis].name for axis in relation.axes]
    is_new = len(cut) == 1 and cut[0] not in before.keys
    position = cut[0] if is_new else unused("position", after)
    unnested = exp.select(
        *[key_column(source, key, "t") for key in before.keys],
        call("UNNEST", call("RANGE", _part_count(relation, source))).as_(position),
        call("UNNEST", _parts(relation, source)).as_(VALUE_COLUMN),
    ).from_(aliased(source.table, "t"))
    places = positions_at(
        exp.column(position, table="s"), _parts_of_axes(relation, lambda key: exp.column(key, table="s"))
    )
    keys = []
    for key in after.keys:
        found: exp.Expr = places.get(key, exp.column(key, table="s"))
        keys.append(named(_within(relation, key, found) if key in places else found, key))
    value = exp.column(VALUE_COLUMN, table="s")
    select = exp.select(*keys, value).from_(unnested.subquery("s"))
    return select if relation.keeps_fill else select.where(_is_not_fill(value, after))


def _keys_of(source: Source, alias: str) -> KeyOf:
    return lambda axis: source.key(axis, alias)


def _parts_of_axes(relation: Slice, key_of: KeyOf) -> dict[str, Extent]:
    """Into how many parts the array of one tuple is cut along every axis that is cut, by name."""
    before, after = relation.input.schema, relation.schema
    extents = extents_inside(before, key_of)
    tiles = after.decomposition.tiles
    return {before.tensor.axes[axis].name: quotient(extents[axis], tiles[axis]) for axis in relation.axes}


def _part_count(relation: Slice, source: Source) -> exp.Expr:
    """How many parts the array of a tuple has; many are counted in the array, so that nobody folds their positions."""
    count = product(_parts_of_axes(relation, _keys_of(source, "t")).values())
    if not isinstance(count, int) or count <= _MOST_POSITIONS_FOLDED or source.schema.is_ragged:
        return as_sql(count)
    size = relation.schema.list_length
    length = call("LEN", source.value("t"))
    return length if size == 1 else exp.IntDiv(this=length, expression=integer(size))


def _parts(relation: Slice, source: Source) -> exp.Expr:
    """The parts of an array, as an array."""
    before, after = source.schema, relation.schema
    if after.is_scalar:
        return source.value("t")
    dtype, tiles = before.tensor.dtype, after.decomposition.tiles
    extents = extents_inside(before, _keys_of(source, "t"))
    if all(tiles[axis] == 1 for axis in relation.axes):
        inside = [before.decomposition.array_axes.index(axis) for axis in relation.axes]
        return call(function_named("split", dtype), source.value("t"), integers(inside), integers([*extents.values()]))
    parts = [tiles[axis] if axis in relation.axes else 0 for axis in extents]
    return call(function_named("split_tiles", dtype), source.value("t"), integers(parts), integers([*extents.values()]))


def _within(relation: Slice, key: str, place: exp.Expr) -> exp.Expr:
    """The key of a part from its place in the array that is cut."""
    before = relation.input.schema
    axis = [each.name for each in before.tensor.axes].index(key)
    tile = before.decomposition.tiles[axis]
    if tile == DEMOTED:
        return place
    first = exp.Mul(this=exp.column(key, table="s"), expression=integer(tile // relation.decomposition.tiles[axis]))
    return exp.Add(this=first, expression=place)


def _is_not_fill(value: exp.Expr, schema: Schema) -> exp.Expr:
    fill, dtype = schema.tensor.fill, schema.tensor.dtype
    if schema.is_scalar:
        return exp.NEQ(this=value.copy(), expression=number(fill, dtype) if fill else integer(0))
    others = [constant(fill, dtype)] if fill or is_complex(dtype) else []
    entries = call(function_named("nnz", dtype), value.copy(), *others)
    return exp.GT(this=entries, expression=integer(0))


def stack_select(relation: Stack, source: Source) -> exp.Select:
    """Keys into the arrays, whole or in tiles: one group for every tuple left."""
    after = relation.schema
    stacked = _stacked(relation, source)
    if not after.keys:  # one tuple, also of nothing
        stacked = exp.func("coalesce", stacked, _value_of_none(after))
    grouped = {key: _group_key(relation, source, key) for key in after.keys}
    keys = [named(expression, key) for key, expression in grouped.items()]
    select = exp.select(*keys, exp.alias_(stacked, VALUE_COLUMN)).from_(aliased(source.table, "t"))
    return select.group_by(*[expression.copy() for expression in grouped.values()])


def _value_of_none(schema: Schema) -> exp.Expr:
    """What a relation without keys holds if its group has no rows; the length of a long array counts them, too.

    PostgreSQL would compute an array of constants while it plans, and write it out in digits for every worker.
    """
    fill = fill_value(schema, exp.column)
    if not schema.is_scalar and schema.array_size > _MOST_FOLDED:
        size, *_ = fill.expressions
        size.replace(exp.Add(this=size.copy(), expression=exp.Count(this=exp.Star())))
    return fill


def _group_key(relation: Stack, source: Source, axis: str) -> exp.Expr:
    """The key of the array that a tuple goes into."""
    key, ratio = source.key(axis, "t"), _ratio(relation, axis)
    return key if ratio <= 1 else exp.IntDiv(this=key, expression=integer(ratio))


def _ratio(relation: Stack, name: str) -> int:
    """How many tiles of before make one of afterwards; 0 where all do."""
    axis = [each.name for each in relation.input.schema.tensor.axes].index(name)
    before, after = (tiles[axis] for tiles in (relation.input.schema.decomposition.tiles, relation.decomposition.tiles))
    return after // before if before else 1


def _place(relation: Stack, source: Source, axis: int) -> exp.Expr:
    """Which of the tiles that make one of afterwards a tuple holds."""
    name = relation.schema.tensor.axes[axis].name
    key, ratio = source.key(name, "t"), _ratio(relation, name)
    return exp.Mod(this=key, expression=integer(ratio)) if ratio else key


def _stacked(relation: Stack, source: Source) -> exp.Expr:
    before, after = source.schema, relation.schema
    dtype, tiles = before.tensor.dtype, before.decomposition.tiles
    fill = constant(before.tensor.fill, dtype)
    sizes = extents_inside(after, lambda axis: _group_key(relation, source, axis))
    if (after.is_ragged and not before.is_scalar) or any(tiles[axis] != 1 for axis in relation.axes):
        return _placed(relation, source, sizes)
    position = position_of([(in_parentheses(_place(relation, source, axis)), sizes[axis]) for axis in relation.axes])
    size = as_sql(product(sizes[axis] for axis in relation.axes))
    if before.is_scalar:
        return call("tensor_stack", source.value("t"), position, size, fill)
    return _stack_arrays(relation, source, position, size, fill)


def _placed(relation: Stack, source: Source, sizes: Mapping[int, Extent]) -> exp.Expr:
    """Arrays of several indices an axis, each put where it begins in the array of afterwards."""
    before = source.schema
    inside = extents_inside(before, _keys_of(source, "t"))
    starts: list[Extent] = []
    for axis in sizes:
        tile = before.decomposition.tiles[axis]
        place = in_parentheses(_place(relation, source, axis)) if axis in relation.axes else integer(0)
        is_plain = tile == 1 or axis not in relation.axes
        starts.append(place if is_plain else exp.Mul(this=place, expression=integer(tile)))
    extents = [inside.get(axis, 1) for axis in sizes]
    fill = constant(before.tensor.fill, before.tensor.dtype)
    place_blocks = function_named("place", before.tensor.dtype)
    return call(place_blocks, source.value("t"), integers(starts), integers(extents), integers([*sizes.values()]), fill)


def _stack_arrays(relation: Stack, source: Source, position: exp.Expr, size: exp.Expr, fill: exp.Expr) -> exp.Expr:
    """Stack arrays; where the new axes do not lie side by side, stack them in front and move them afterwards."""
    before, after = source.schema, relation.schema
    dtype, wanted = before.tensor.dtype, after.decomposition.array_axes
    extents = dict(zip(wanted, after.inside, strict=True))
    stack = function_named("stack", dtype)
    first = wanted.index(relation.axes[0])
    if wanted[first : first + len(relation.axes)] == relation.axes:
        inner = math.prod(extents[axis] for axis in wanted[first + len(relation.axes) :])
        return call(stack, source.value("t"), position, size, integer(inner), fill)
    in_front = (*relation.axes, *before.decomposition.array_axes)
    stacked = call(stack, source.value("t"), position, size, integer(before.array_size), fill)
    letters = {axis: chr(ord("a") + place) for place, axis in enumerate(in_front)}
    spec = f"{''.join(letters[axis] for axis in in_front)}->{''.join(letters[axis] for axis in wanted)}"
    return call(function_named("einsum", dtype), text(spec), stacked, integers([extents[axis] for axis in in_front]))


def densify_select(relation: Densify, source: Source) -> exp.Select:
    """Every tuple that there can be, with what is stored or with the fill."""
    schema = relation.schema
    if not schema.keys:
        only = exp.func("any_value", source.value("t"))  # of one tuple, or of none
        whole = exp.func("coalesce", only, _value_of_none(schema))
        return exp.select(exp.alias_(whole, VALUE_COLUMN)).from_(aliased(source.table, "t"))
    everything, keys = _all_keys(schema)
    return _filled(source, everything, keys)


def filled_select(source: Source, indices: Source) -> exp.Select:
    """The same where all keys are in a table."""
    keys: dict[str, exp.Expr] = {key: indices.key(key, "g") for key in indices.schema.keys}
    return _filled(source, aliased(indices.table, "g"), keys)


def indices_of_keys(schema: Schema) -> exp.Select:
    """All keys that tuples can have."""
    everything, keys = _all_keys(schema)
    return exp.select(*[exp.alias_(expression, key) for key, expression in keys.items()]).from_(everything)


def _all_keys(schema: Schema) -> tuple[exp.Expr, dict[str, exp.Expr]]:
    """A row for each of them, and every key by its axis's name as follows from the row."""
    position = exp.column(unused("position", schema), table="g")
    counts = schema.key_counts
    rows = exp.Table(this=call("RANGE", as_sql(product(counts.values()))))
    everything = exp.select(exp.column("range").as_(position.name)).from_(rows)
    return everything.subquery("g"), positions_at(position, counts)


def _filled(source: Source, everything: exp.Expr, keys: Mapping[str, exp.Expr]) -> exp.Select:
    equal = [exp.EQ(this=source.key(key, "t"), expression=expression.copy()) for key, expression in keys.items()]
    fill = fill_value(source.schema, lambda axis: keys[axis])
    value = exp.alias_(exp.func("coalesce", source.value("t"), fill), VALUE_COLUMN)
    return (
        exp.select(*[named(expression.copy(), key) for key, expression in keys.items()], value)
        .from_(everything)
        .join(aliased(source.table, "t"), on=exp.and_(*equal), join_type="LEFT")
    )


def resident_select(relation: Resident, source: Source) -> exp.Select:
    """All arrays in one, by their keys in C order, and the handle under which it is in memory."""
    schema = relation.schema
    handle = call("tensor_resident", source.value("t"), *_place_of_row(schema, _keys_of(source, "t")), _element(schema))
    return exp.select(exp.alias_(handle, HANDLE_COLUMN)).from_(aliased(source.table, "t"))


def _place_of_row(schema: Schema, key_of: KeyOf) -> tuple[exp.Expr, exp.Expr]:
    """Which row of a resident array a tuple is, and how many rows there are."""
    counts = schema.key_counts
    position = position_of([(in_parentheses(key_of(axis)), count) for axis, count in counts.items()])
    return position, integer(math.prod(counts.values()))


def row_of(schema: Schema, handle: exp.Expr, key_of: KeyOf) -> exp.Expr:
    """The array of the tuple with these keys in a resident array."""
    position, _ = _place_of_row(schema, key_of)
    size = schema.list_length
    return call("tensor_row", handle, position, integer(size), _element(schema))


def _element(schema: Schema) -> exp.Expr:
    """The fill as an element of an array; of complex arrays, whose fill is 0 here, a part of it."""
    dtype = schema.tensor.dtype
    return exp.cast(integer(0), number_type(dtype)) if is_complex(dtype) else constant(schema.tensor.fill, dtype)


def convert_select(relation: Convert, source: Source) -> exp.Select:
    """Values as users see them: truth, where kernels compute with 0 and 1."""
    value = converted(
        source.value("t"), type_named(stored_type(relation.schema.tensor.dtype, relation.schema.is_scalar))
    )
    keys = [key_column(source, key, "t") for key in relation.schema.keys]
    return exp.select(*keys, exp.alias_(value, VALUE_COLUMN)).from_(aliased(source.table, "t"))
