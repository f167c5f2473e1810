"""Render: changes of decomposition as SELECTs: axes out of arrays, keys into arrays, absent tuples made present."""

import math
from collections.abc import Sequence

from sqlglot import exp

from sparseeinsum.algebra.operators import Convert, Densify, Schema, Slice, Stack
from sparseeinsum.language.dtypes import is_complex
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.calls import (
    call,
    constant,
    converted,
    fill_value,
    function_named,
    in_parentheses,
    integer,
    integers,
    text,
)
from sparseeinsum.render.sources import Source, aliased, key_column, named, unused
from sparseeinsum.statistics.columns import stored_type, type_named
from sparseeinsum.statistics.numbers import number


def slice_select(relation: Slice, source: Source) -> exp.Select:
    """Axes out of the arrays: one row for every position of theirs."""
    before, after = source.schema, relation.schema
    extents = [before.tensor.axes[axis].bound for axis in relation.axes]
    position = after.tensor.axes[relation.axes[0]].name if len(relation.axes) == 1 else unused("position", after)
    parts = source.value("t")
    if not after.is_scalar:
        inside = [before.decomposition.demoted.index(axis) for axis in relation.axes]
        split = function_named("split", before.tensor.dtype)
        parts = call(split, parts, integers(inside), integers(before.inside))
    unnested = exp.select(
        *[key_column(source, key, "t") for key in before.keys],
        call("UNNEST", call("RANGE", integer(math.prod(extents)))).as_(position),
        call("UNNEST", parts).as_(VALUE_COLUMN),
    ).from_(aliased(source.table, "t"))
    names = [after.tensor.axes[axis].name for axis in relation.axes]
    positions = _keys_at(exp.column(position, table="s"), names, extents)
    value = exp.column(VALUE_COLUMN, table="s")
    keys = [named(positions.get(key, exp.column(key, table="s")), key) for key in after.keys]
    select = exp.select(*keys, value).from_(unnested.subquery("s"))
    return select if relation.keeps_fill else select.where(_is_not_fill(value, after))


def _keys_at(position: exp.Expr, names: Sequence[str], extents: Sequence[int]) -> dict[str, exp.Expr]:
    """The index of every axis, by name, from the position in C order over all of them."""
    if len(names) == 1:
        return {names[0]: position}
    keys: dict[str, exp.Expr] = {}
    for place, (name, extent) in enumerate(zip(names, extents, strict=True)):
        stride = math.prod(extents[place + 1 :])
        key = exp.IntDiv(this=position.copy(), expression=integer(stride)) if stride > 1 else position.copy()
        keys[name] = exp.Mod(this=key, expression=integer(max(extent, 1))) if place > 0 else key
    return keys


def _is_not_fill(value: exp.Expr, schema: Schema) -> exp.Expr:
    fill, dtype = schema.tensor.fill, schema.tensor.dtype
    if schema.is_scalar:
        return exp.NEQ(this=value.copy(), expression=number(fill, dtype) if fill else integer(0))
    others = [constant(fill, dtype)] if fill or is_complex(dtype) else []
    entries = call(function_named("nnz", dtype), value.copy(), *others)
    return exp.GT(this=entries, expression=integer(0))


def stack_select(relation: Stack, source: Source) -> exp.Select:
    """Keys into the arrays: one group for every tuple left."""
    before, after = source.schema, relation.schema
    names = [before.tensor.axes[axis].name for axis in relation.axes]
    extents = [before.tensor.axes[axis].bound for axis in relation.axes]
    position: exp.Expr = source.key(names[0], "t")
    if len(names) > 1:  # a user's key columns may be of a type too small for the product
        position = exp.cast(position, "bigint")
    for name, extent in zip(names[1:], extents[1:], strict=True):
        product = exp.Mul(this=in_parentheses(position), expression=integer(extent))
        position = exp.Add(this=product, expression=source.key(name, "t"))
    size, fill = integer(math.prod(extents)), constant(before.tensor.fill, before.tensor.dtype)
    if before.is_scalar:
        stacked: exp.Expr = call("tensor_stack", source.value("t"), position, size, fill)
    else:
        stacked = _stack_arrays(relation, source, position, size, fill)
    if not after.keys:  # one tuple, also of nothing
        stacked = exp.func("coalesce", stacked, fill_value(after))
    keys = [key_column(source, key, "t") for key in after.keys]
    select = exp.select(*keys, exp.alias_(stacked, VALUE_COLUMN)).from_(aliased(source.table, "t"))
    return select.group_by(*[source.key(key, "t") for key in after.keys])


def _stack_arrays(relation: Stack, source: Source, position: exp.Expr, size: exp.Expr, fill: exp.Expr) -> exp.Expr:
    """Stack arrays; where the new axes do not lie side by side, stack them in front and move them afterwards."""
    before, after = source.schema, relation.schema
    bounds = [axis.bound for axis in before.tensor.axes]
    dtype, wanted = before.tensor.dtype, after.decomposition.demoted
    stack = function_named("stack", dtype)
    first = wanted.index(relation.axes[0])
    if wanted[first : first + len(relation.axes)] == relation.axes:
        inner = math.prod(bounds[axis] for axis in wanted[first + len(relation.axes) :])
        return call(stack, source.value("t"), position, size, integer(inner), fill)
    in_front = (*relation.axes, *before.decomposition.demoted)
    stacked = call(stack, source.value("t"), position, size, integer(before.array_size), fill)
    letters = {axis: chr(ord("a") + place) for place, axis in enumerate(in_front)}
    spec = f"{''.join(letters[axis] for axis in in_front)}->{''.join(letters[axis] for axis in wanted)}"
    return call(function_named("einsum", dtype), text(spec), stacked, integers([bounds[axis] for axis in in_front]))


def densify_select(relation: Densify, source: Source) -> exp.Select:
    """Every tuple that there can be, with what is stored or with the fill."""
    schema = relation.schema
    fill = fill_value(schema)
    if not schema.keys:
        only = exp.func("any_value", source.value("t"))  # of one tuple, or of none
        return exp.select(exp.alias_(exp.func("coalesce", only, fill), VALUE_COLUMN)).from_(aliased(source.table, "t"))
    position = exp.column(unused("position", schema), table="g")
    bounds = [schema.tensor.axes[axis].bound for axis in schema.decomposition.promoted]
    keys = _keys_at(position, schema.keys, bounds)
    everything = exp.select(exp.alias_(call("UNNEST", call("RANGE", integer(math.prod(bounds)))), position.name))
    equal = [exp.EQ(this=source.key(key, "t"), expression=expression) for key, expression in keys.items()]
    value = exp.alias_(exp.func("coalesce", source.value("t"), fill), VALUE_COLUMN)
    return (
        exp.select(*[exp.alias_(expression.copy(), key) for key, expression in keys.items()], value)
        .from_(everything.subquery("g"))
        .join(aliased(source.table, "t"), on=exp.and_(*equal), join_type="LEFT")
    )


def convert_select(relation: Convert, source: Source) -> exp.Select:
    """Values as users see them: truth, where kernels compute with 0 and 1."""
    value = converted(
        source.value("t"), type_named(stored_type(relation.schema.tensor.dtype, relation.schema.is_scalar))
    )
    keys = [key_column(source, key, "t") for key in relation.schema.keys]
    return exp.select(*keys, exp.alias_(value, VALUE_COLUMN)).from_(aliased(source.table, "t"))
