"""Render: SELECTs that collect the tuples of a result: in memory, where the client reads them, or in one value.

In memory, either each thread appends tuples to what it has collected, or all threads write the arrays of all keys in C
order in one place, which the client has as an array without another copy. Sums of rows of an array are computed there,
and so is what the functions in `PLACED` return.
"""

import math
from collections.abc import Mapping, Sequence

from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.render.array_positions import position_of, positions_at
from sparseeinsum.render.blocks import TUPLES_COLUMN, ValueOfTuples
from sparseeinsum.render.calls import call, converted
from sparseeinsum.render.gathered_sums import GatheredSums
from sparseeinsum.render.layouts import HANDLE_COLUMN, reserved_memory
from sparseeinsum.render.placed_arrays import PlacedArrays
from sparseeinsum.render.row_tiles import stacked_tiles
from sparseeinsum.render.sources import with_join
from sparseeinsum.statistics.columns import computed_type, type_named

NUMBER_COLUMN = "number"
_TUPLES = "tuples"
_MOST_NUMBERS = 1 << 63
_DTYPES = ("float64", "float32", "complex128", "complex64")  # of arrays that tensor_collected takes
_NUMBERS = ("float64", "float32", "int64")  # whose bytes are sent
# What may depend on all columns of a SELECT, so that these must stay.
_DEPENDENT = ("group", "distinct", "having", "qualify", "windows", "order", "limit", "offset")


def can_collect(schema: Schema) -> bool:
    """Whether there is a function that collects tuples of a schema: of arrays, and their keys must make one number."""
    is_of_arrays = schema.tensor.dtype in _DTYPES and not schema.is_scalar
    return is_of_arrays and math.prod(schema.key_counts.values()) < _MOST_NUMBERS


def collecting_select(query: exp.Select, schema: Schema) -> exp.Select:
    """The SELECT of the handle of all tuples of a query, each numbered by the position of its keys in C order.

    A tuple without a value is not collected, so that the query need not leave it out.

    Args:
        query: The query: keys, then a value.
        schema: That of its tuples.
    """
    numbered, number, value = _numbered(_with_nulls(query), schema)
    sums = GatheredSums.of(numbered.this, _TUPLES)
    if sums is None:
        collected = call("tensor_collected", number, value)
    else:
        numbered, collected = sums.rows.subquery(_TUPLES), call("tensor_collected", *sums.arguments, number)
    return exp.select(exp.alias_(call("tensor_keep", collected), HANDLE_COLUMN)).from_(numbered)


def can_place(schema: Schema) -> bool:
    """Whether `placing_select` takes tuples of a schema: of real numbers in arrays that are equally long."""
    return can_collect(schema) and not is_complex(schema.tensor.dtype) and not schema.is_ragged


def placing_select(query: exp.Select, schema: Schema) -> exp.Select:
    """The SELECT of the handle of the arrays of all keys in C order; those of keys without a tuple hold the fill.

    Args:
        query: The query: keys, then a value.
        schema: That of its tuples.
    """
    stacked = stacked_tiles(query)
    numbered, number, value = _numbered(_with_nulls(query), schema) if stacked is None else stacked.numbered
    reserved, memory = reserved_memory(schema, 1 if stacked is None else stacked.count)
    placed = PlacedArrays.of(numbered, number, value)
    if placed is not None:
        return placed.select(reserved, memory)
    sums = GatheredSums.of(numbered.this, _TUPLES) if stacked is None else None
    if sums is None:
        resident = call("tensor_resident", memory, value, number)
    else:
        numbered, resident = sums.rows.subquery(_TUPLES), call("tensor_resident", *sums.arguments, memory, number)
    handle = exp.alias_(call("tensor_keep", resident), HANDLE_COLUMN)
    return with_join(exp.select(handle).from_(numbered), reserved, kind="CROSS")


def _with_nulls(query: exp.Select) -> exp.Select:
    """A query that need not leave out tuples without a value."""
    where, value = query.args.get("where"), query.selects[-1].unalias()
    if where is None or where.this != value.is_(exp.null()).not_():
        return query
    query = query.copy()
    query.set("where", None)
    return query


def can_be_value(schema: Schema) -> bool:
    """Whether `value_of_tuples` takes tuples of a schema: arrays, or numbers whose keys make one number."""
    is_of_numbers = schema.tensor.dtype in _NUMBERS and not schema.is_ragged
    has_one = bool(schema.keys) or schema.list_length > 1
    return is_of_numbers and has_one and math.prod(schema.key_counts.values()) < _MOST_NUMBERS


def value_of_tuples(query: exp.Select, schema: Schema) -> ValueOfTuples:
    """The query of all tuples of a query, of a schema, in one value; no row if there is none, and they have no keys.

    The query has keys, then a value.
    """
    kind = type_named(computed_type(schema.tensor.dtype, schema.is_scalar))
    if not schema.keys:
        array = converted(exp.column(VALUE_COLUMN, table=_TUPLES), kind)
        select = exp.select(exp.alias_(array, TUPLES_COLUMN)).from_(query.subquery(_TUPLES))
        return ValueOfTuples(select, is_array=True)
    numbered, number, value = _numbered(query, schema)
    collected = call("tensor_collected", number, converted(value, kind))
    return ValueOfTuples(exp.select(exp.alias_(collected, TUPLES_COLUMN)).from_(numbered))


def _numbered(query: exp.Select, schema: Schema) -> tuple[exp.Subquery, exp.Expr, exp.Expr]:
    """A subquery of the tuples of a query, and the number of a tuple and its value as expressions of its columns."""
    *keys, value = query.selects
    counts = dict(zip([key.alias_or_name for key in keys], schema.key_counts.values(), strict=True))
    if any(query.args.get(part) for part in _DEPENDENT):
        number = position_of([(exp.column(key, table=_TUPLES, quoted=True), count) for key, count in counts.items()])
        return query.subquery(_TUPLES), number, exp.column(value.alias_or_name, table=_TUPLES, quoted=True)
    number = _number(dict(zip(counts, (key.unalias().copy() for key in keys), strict=True)), counts)
    columns = exp.alias_(number, NUMBER_COLUMN), exp.alias_(value.unalias().copy(), VALUE_COLUMN)
    numbered = query.select(*columns, append=False).subquery(_TUPLES)
    return numbered, exp.column(NUMBER_COLUMN, table=_TUPLES), exp.column(VALUE_COLUMN, table=_TUPLES)


def _number(keys: Mapping[str, exp.Expr], counts: Mapping[str, int]) -> exp.Expr:
    """The position of keys in C order; of keys that are computed from a position, that position."""
    positions: list[tuple[exp.Expr, int]] = []
    names = list(keys)
    while names:
        together = next(
            names[:size] for size in range(len(names), 0, -1) if _share_position(keys, counts, names[:size])
        )
        positions.append((_position(keys, together), math.prod(counts[name] for name in together)))
        names = names[len(together) :]
    return position_of(positions)


def _share_position(keys: Mapping[str, exp.Expr], counts: Mapping[str, int], names: Sequence[str]) -> bool:
    """Whether keys are computed from one position; a single key always is."""
    computed = positions_at(_position(keys, names), {name: counts[name] for name in names})
    return computed == {name: keys[name] for name in names}


def _position(keys: Mapping[str, exp.Expr], names: Sequence[str]) -> exp.Expr:
    """The position of which keys are computed, if they are computed from one."""
    first = keys[names[0]]
    return first.this if len(names) > 1 and isinstance(first, exp.IntDiv) else first
