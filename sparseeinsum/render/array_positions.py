"""Render: extents of arrays in SQL, and conversion between positions over several axes and indices of each."""

from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.language.tensors import count_keys, is_ragged
from sparseeinsum.render.calls import call, constant, function_named, in_parentheses, integer
from sparseeinsum.statistics.extents import Extent, as_sql, extent, product

KeyOf = Callable[[str], exp.Expr]  # returns the SQL of a key column, from the name of its axis


def extents_inside(schema: Schema, key_of: KeyOf) -> dict[int, Extent]:
    """The extents of the axes inside the array of one tuple, by axis position, in axis order."""
    return {position: _extent_of_axis(schema, position, key_of) for position in schema.decomposition.array_axes}


def _extent_of_axis(schema: Schema, position: int, key_of: KeyOf) -> Extent:
    tile, axis = schema.decomposition.tiles[position], schema.tensor.axes[position]
    return extent(tile, axis.bound, key_of(axis.name) if is_ragged(tile, axis.bound) else None)


def quotient(extent: Extent, part: int) -> Extent:
    """How many parts of `part` indices an extent has; the last one may be shorter."""
    if isinstance(extent, int):
        return count_keys(part, extent)
    if part == 1:
        return extent
    rounded = exp.Paren(this=exp.Add(this=extent.copy(), expression=integer(part - 1)))
    return exp.IntDiv(this=rounded, expression=integer(part))


def positions_at(position: exp.Expr, extents: Mapping[str, Extent]) -> dict[str, exp.Expr]:
    """The index along every axis, by name, from the position in C order over all axes."""
    if len(extents) == 1:
        return dict.fromkeys(extents, position)
    indices: dict[str, exp.Expr] = {}
    names = list(extents)
    for number, name in enumerate(names):
        stride = product(extents[later] for later in names[number + 1 :])
        index = position.copy()
        if stride != 1:
            index = exp.IntDiv(this=index, expression=in_parentheses(as_sql(stride)))
        indices[name] = (
            exp.Mod(this=index, expression=in_parentheses(as_sql(_not_zero(extents[name])))) if number else index
        )
    return indices


def position_of(indices: Iterable[tuple[exp.Expr, Extent]]) -> exp.Expr:
    """The position in C order, from the index along every axis and its extent; 0 without axes."""
    (position, _), *others = [*indices] or [(integer(0), 1)]
    if others:  # a user's key column may have a type that is too small for the product
        position = exp.cast(position, "bigint")
    for index, size in others:
        before = exp.Mul(this=in_parentheses(position), expression=in_parentheses(as_sql(size)))
        position = exp.Add(this=before, expression=index)
    return position


def fill_value(schema: Schema, key_of: KeyOf) -> exp.Expr:
    """The value of an absent tuple: the fill, or an array of it."""
    fill = constant(schema.tensor.fill, schema.tensor.dtype)
    if schema.is_scalar:
        return fill
    size = product(extents_inside(schema, key_of).values())
    return call(function_named("fill", schema.tensor.dtype), as_sql(size), fill)


def _not_zero(extent: Extent) -> Extent:
    return max(extent, 1) if isinstance(extent, int) else extent
