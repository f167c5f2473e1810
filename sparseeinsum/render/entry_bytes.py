"""Render: SELECTs of entries that come as bytes, row by row: all bytes in one row, and no tuple for each entry."""

import math
from collections.abc import Mapping

from sqlglot import exp

from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.array_positions import positions_at
from sparseeinsum.render.calls import any_row, call, integer
from sparseeinsum.render.compressed_rows import POSITION_BYTES, POSITION_COLUMN
from sparseeinsum.render.layouts import ROW_COLUMN

START_COLUMN, COUNT_COLUMN = "start", "count"
_CLAUSES = {"expressions", "from_", "with_"}  # of a SELECT that does nothing but name columns


def entry_bytes_select(query: exp.Select, counts: Mapping[str, int]) -> exp.Select | None:
    """The SELECT of one row with all entries of a query; None if its entries do not come as bytes.

    Its columns are arrays: for every row of the result that has entries, the number of its first position in C order of
    the keys, and how many entries it has; for all entries, their positions in their rows, and their values. There is no
    row if there are no entries.

    Args:
        query: The query: keys, then a value.
        counts: The number of possible values of each key, by name.
    """
    unpacked = _unpacked(query)
    *keys, value = (column.unalias() for column in query.selects)
    if unpacked is None or value != exp.column(VALUE_COLUMN, table="s"):
        return None
    positions_of_row = _positions_of_row(dict(zip(counts, keys, strict=True)), counts)
    if positions_of_row is None:
        return None
    row, *arrays = (column.unalias() for column in unpacked.selects)
    (positions, position_zero), (values, value_zero) = (array.expressions[0].expressions for array in arrays)
    start = exp.Mul(this=exp.cast(row, "bigint"), expression=integer(positions_of_row))
    count = exp.IntDiv(this=call("OCTET_LENGTH", positions), expression=integer(POSITION_BYTES))
    columns = {
        START_COLUMN: call("array_agg", start),
        COUNT_COLUMN: call("array_agg", exp.cast(count, "bigint")),
        POSITION_COLUMN: call("tensor_of_bytes", _joined(positions), position_zero),
        VALUE_COLUMN: call("tensor_of_bytes", _joined(values), value_zero),
    }
    selected = unpacked.select(*(exp.alias_(column.copy(), name) for name, column in columns.items()), append=False)
    has_entries = exp.GT(this=call("OCTET_LENGTH", positions.copy()), expression=integer(0))
    selected = selected.where(has_entries, copy=False).having(any_row(), copy=False)
    if query.args.get("with_") is not None:
        selected.set("with_", query.args["with_"].copy())
    return selected


def _unpacked(query: exp.Select) -> exp.Select | None:
    """A copy of the SELECT of the entries of rows, one by one, that a query only names; None if it does more."""
    source = query.args["from_"].this if query.args.get("from_") is not None else None
    is_plain = all(name in _CLAUSES for name, clause in query.args.items() if clause)
    if not is_plain or not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Select):
        return None
    columns = source.this.selects
    if [column.alias_or_name for column in columns] != [ROW_COLUMN, POSITION_COLUMN, VALUE_COLUMN]:
        return None
    return source.this.copy() if all(_is_unpacking(column.unalias()) for column in columns[1:]) else None


def _is_unpacking(column: exp.Expr) -> bool:
    """Whether a column has the elements of an array that comes as bytes."""
    for name in ("unnest", "tensor_of_bytes"):
        if not isinstance(column, exp.Anonymous) or column.this != name:
            return False
        column = column.expressions[0]
    return True


def _positions_of_row(keys: Mapping[str, exp.Expr], counts: Mapping[str, int]) -> int | None:
    """How many positions a row has, if keys are those of the row, then those of a position in it; None for others."""
    row, position = exp.column(ROW_COLUMN, table="s"), exp.column(POSITION_COLUMN, table="s")
    names = list(counts)
    for split in range(1, len(names)):
        of_row, in_row = ({name: counts[name] for name in part} for part in (names[:split], names[split:]))
        if keys == positions_at(row, of_row) | positions_at(position, in_row):
            return math.prod(in_row.values())
    return None


def _joined(part: exp.Expr) -> exp.Expr:
    """The bytes of a part of all rows."""
    return call("string_agg", part.copy(), exp.cast(exp.Literal.string(""), "bytea", dialect="postgres"))
