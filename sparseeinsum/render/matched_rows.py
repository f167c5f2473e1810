"""Render: entries of two operands that a kernel matches, instead of a join: row by row, or all in one call.

Where operands in memory are values, one call returns all matches as bytes, since many calls would take longer.
"""

import math
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.operators import FILLED_IN, Compress, Contract
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.render.array_positions import positions_at
from sparseeinsum.render.blocks import TUPLES_COLUMN, ValueOfTuples
from sparseeinsum.render.calls import call, constant, converted, integer
from sparseeinsum.render.compressed_rows import (
    HANDLE_ALIASES,
    field_of_entry,
    keys_of_entries,
    only_value,
    rows_of_entries_select,
)
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.entry_values import ENTRY, value_of_entries
from sparseeinsum.render.layouts import HANDLE_COLUMN, ROW_COLUMN
from sparseeinsum.render.sources import SelectSource
from sparseeinsum.render.values import OperandValue
from sparseeinsum.statistics.columns import computed_type, number_type, type_named

_ALIAS = "s"
NUMBER_COLUMN = "number"  # of a match: the position of its keys in C order
_COLUMNS = NUMBER_COLUMN, "u", "v"
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
        row_counts, position_counts = _key_counts(relation)
        if not dialect.keeps_residents:
            number, *elements = _parts(relation.computed_in)
            numbers = call("tensor_of_bytes", number, constant(0, "int64"))
            columns = [
                exp.alias_(call("unnest", array), name)
                for array, name in zip((numbers, *elements), _COLUMNS, strict=True)
            ]
            rows = exp.select(*columns).from_(_all_matches(relation, first, second), copy=False)
            keys = positions_at(exp.column(NUMBER_COLUMN, table=_ALIAS), row_counts | position_counts)
            return cls(rows.subquery(_ALIAS), keys, (_read("u"), _read("v")))
        left, right = (exp.column(HANDLE_COLUMN, table=alias) for alias in HANDLE_ALIASES[:2])
        fills = _fills(relation, first, second)
        pairs = call("tensor_matched_row", left, exp.column(ROW_COLUMN, table="r"), right, *fills)
        rows = rows_of_entries_select(relation, pairs, (first, second))
        keys = keys_of_entries(row_counts, position_counts, field_of_entry("position", _ALIAS), _ALIAS)
        return cls(rows.subquery(_ALIAS), keys, (field_of_entry("u", _ALIAS), field_of_entry("v", _ALIAS)))


def value_of_matches(relation: Contract, first: SelectSource, second: SelectSource, dialect: Dialect) -> ValueOfTuples:
    """All tuples of an EinSum over matches in one value: bytes of their numbers, then of their values.

    The EinSum aggregates nothing, so that the number of a match is that of its tuple: operands are ordered as it is.
    """
    row_counts, position_counts = _key_counts(relation)
    assert (*row_counts, *position_counts) == relation.einsum.output.labels
    number, *elements = _parts(relation.computed_in)
    arrays = [exp.alias_(array, name) for array, name in zip((number, *elements), _COLUMNS, strict=True)]
    rows = exp.select(*arrays).from_(_all_matches(relation, first, second), copy=False).offset(0, copy=False)
    terms = [OperandValue(_read(name), (ENTRY,), relation.computed_in) for name in ("u", "v")]
    dtype = relation.output.tensor.dtype
    value = converted(value_of_entries(relation, terms, dialect), type_named(computed_type(dtype, is_scalar=False)))
    whole = exp.DPipe(this=_read(NUMBER_COLUMN), expression=call("tensor_bytes", value))
    return ValueOfTuples(exp.select(exp.alias_(whole, TUPLES_COLUMN)).from_(rows.subquery(_ALIAS), copy=False))


def _key_counts(relation: Contract) -> tuple[dict[str, int], dict[str, int]]:
    """How many keys the labels have that number a row of the operands, and those that number a position in it."""
    compressed, labels = relation.inputs[0], relation.einsum.operands[0].labels
    assert isinstance(compressed, Compress)
    shape = compressed.schema.tensor.shape
    of_rows, of_positions = (
        {labels[axis]: shape[axis] for axis in axes} for axes in (compressed.row_axes, compressed.position_axes)
    )
    return of_rows, of_positions


def _all_matches(relation: Contract, first: SelectSource, second: SelectSource) -> exp.Subquery:
    """The relation m of one row: all matches as bytes, which are computed once."""
    positions = integer(math.prod(_key_counts(relation)[1].values()))
    fills = _fills(relation, first, second)
    matches = call("tensor_matched", only_value(first), only_value(second), positions, *fills)
    return exp.select(exp.alias_(matches, _MATCHES)).offset(0, copy=False).subquery("m")


def _parts(dtype: str) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    """The bytes of the numbers of all matches, and the arrays of the numbers of either operand."""
    bytes_of_all = exp.column(_MATCHES, table="m")
    number_bytes, item_bytes = ITEM_BYTES["int64"], ITEM_BYTES[dtype]
    count = exp.IntDiv(this=call("OCTET_LENGTH", bytes_of_all), expression=integer(number_bytes + 2 * item_bytes))

    def part(start: int, size: int) -> exp.Expr:
        before = exp.Mul(this=count.copy(), expression=integer(start))
        first = exp.Add(this=before, expression=integer(1)) if start else integer(1)
        return call("SUBSTR", bytes_of_all.copy(), first, exp.Mul(this=count.copy(), expression=integer(size)))

    arrays = (part(start, item_bytes) for start in (number_bytes, number_bytes + item_bytes))
    left, right = (call("tensor_of_bytes", array, constant(0, dtype)) for array in arrays)
    return part(0, number_bytes), left, right


def _read(name: str) -> exp.Column:
    return exp.column(name, table=_ALIAS)


def _fills(relation: Contract, first: SelectSource, second: SelectSource) -> list[exp.Expr]:
    """The numbers of the operands where they have no entry; NULL where there is no pair then."""
    sources = zip((first, second), FILLED_IN[relation.join], strict=True)
    return [_fill(source, is_filled_in) for source, is_filled_in in sources]


def _fill(source: SelectSource, is_filled_in: bool) -> exp.Expr:
    tensor = source.schema.tensor
    return constant(tensor.fill, tensor.dtype) if is_filled_in else exp.cast(exp.null(), number_type(tensor.dtype))
