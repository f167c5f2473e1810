"""Render: entries of two operands that a kernel matches, instead of a join: row by row, or all in one call.

Where operands in memory are values, one call returns all matches as bytes, since many calls would take longer.
"""

import math
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.operators import FILLED_IN, Compress, Contract
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.render.array_positions import positions_at
from sparseeinsum.render.calls import call, constant, integer
from sparseeinsum.render.compressed_rows import (
    HANDLE_ALIASES,
    field_of_entry,
    keys_of_entries,
    only_value,
    rows_of_entries_select,
)
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.layouts import HANDLE_COLUMN, ROW_COLUMN
from sparseeinsum.render.sources import SelectSource
from sparseeinsum.statistics.columns import number_type

_ALIAS = "s"
NUMBER_COLUMN = "number"  # of a match: the position of its keys in C order
_MATCHES = "matches"


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """The pairs of numbers that two operands have at the same keys, or where one of them has an entry.

    Attributes:
        rows: What to select from.
        keys: The key of every label.
        numbers: The number of either operand.
    """

    rows: exp.Expr
    keys: dict[str, exp.Expr]
    numbers: tuple[exp.Expr, exp.Expr]

    @classmethod
    def of(cls, relation: Contract, first: SelectSource, second: SelectSource, dialect: Dialect) -> "MatchedRows":
        """The pairs of an EinSum, whose operands are compressed; their handles are read from the sources."""
        compressed, labels = relation.inputs[0], relation.einsum.operands[0].labels
        assert isinstance(compressed, Compress)
        fills = [
            _fill(source, is_filled_in)
            for source, is_filled_in in zip((first, second), FILLED_IN[relation.join], strict=True)
        ]
        shape = compressed.schema.tensor.shape
        row_counts, position_counts = (
            {labels[axis]: shape[axis] for axis in axes} for axes in (compressed.row_axes, compressed.position_axes)
        )
        if not dialect.keeps_residents:
            positions = integer(math.prod(position_counts.values()))
            matches = call("tensor_matched", only_value(first), only_value(second), positions, *fills)
            keys = positions_at(exp.column(NUMBER_COLUMN, table=_ALIAS), row_counts | position_counts)
            numbers = exp.column("u", table=_ALIAS), exp.column("v", table=_ALIAS)
            return cls(_unpacked_select(matches, relation.computed_in).subquery(_ALIAS), keys, numbers)
        left, right = (exp.column(HANDLE_COLUMN, table=alias) for alias in HANDLE_ALIASES[:2])
        pairs = call("tensor_matched_row", left, exp.column(ROW_COLUMN, table="r"), right, *fills)
        rows = rows_of_entries_select(relation, pairs, (first, second))
        keys = keys_of_entries(row_counts, position_counts, field_of_entry("position", _ALIAS), _ALIAS)
        return cls(rows.subquery(_ALIAS), keys, (field_of_entry("u", _ALIAS), field_of_entry("v", _ALIAS)))


def _unpacked_select(matches: exp.Expr, dtype: str) -> exp.Select:
    """The SELECT of the number of a match and the numbers of both operands, for all matches, which come as bytes."""
    bytes_of_all = exp.column(_MATCHES, table="m")
    number_bytes, item_bytes = ITEM_BYTES["int64"], ITEM_BYTES[dtype]
    count = exp.IntDiv(this=call("OCTET_LENGTH", bytes_of_all), expression=integer(number_bytes + 2 * item_bytes))
    columns, start = [], 0
    for name, of in ((NUMBER_COLUMN, "int64"), ("u", dtype), ("v", dtype)):
        before = exp.Mul(this=count.copy(), expression=integer(start))
        size = exp.Mul(this=count.copy(), expression=integer(ITEM_BYTES[of]))
        first = exp.Add(this=before, expression=integer(1)) if start else integer(1)
        array = call("tensor_of_bytes", call("SUBSTR", bytes_of_all.copy(), first, size), constant(0, of))
        columns.append(exp.alias_(call("unnest", array), name))
        start += ITEM_BYTES[of]
    only = exp.select(exp.alias_(matches, _MATCHES)).offset(0, copy=False)  # computed once
    return exp.select(*columns).from_(only.subquery("m"), copy=False)


def _fill(source: SelectSource, is_filled_in: bool) -> exp.Expr:
    """The number of an operand where it has no entry; NULL where there is no pair then."""
    tensor = source.schema.tensor
    return constant(tensor.fill, tensor.dtype) if is_filled_in else exp.cast(exp.null(), number_type(tensor.dtype))
