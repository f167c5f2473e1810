"""Render: entries of two operands that a kernel matches row by row, instead of a join."""

from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.operators import FILLED_IN, Compress, Contract
from sparseeinsum.render.calls import call, constant
from sparseeinsum.render.compressed_rows import (
    HANDLE_ALIASES,
    field_of_entry,
    keys_of_entries,
    rows_of_entries_select,
)
from sparseeinsum.render.layouts import HANDLE_COLUMN, ROW_COLUMN
from sparseeinsum.render.sources import SelectSource
from sparseeinsum.statistics.columns import number_type

_ALIAS = "s"


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
    def of(cls, relation: Contract, first: SelectSource, second: SelectSource) -> "MatchedRows":
        """The pairs of an EinSum, whose operands are compressed; their handles are read from the sources."""
        compressed, labels = relation.inputs[0], relation.einsum.operands[0].labels
        assert isinstance(compressed, Compress)
        left, right = (exp.column(HANDLE_COLUMN, table=alias) for alias in HANDLE_ALIASES[:2])
        fills = [
            _fill(source, is_filled_in)
            for source, is_filled_in in zip((first, second), FILLED_IN[relation.join], strict=True)
        ]
        pairs = call("tensor_matched_row", left, exp.column(ROW_COLUMN, table="r"), right, *fills)
        rows = rows_of_entries_select(relation, pairs, (first, second))
        shape = compressed.schema.tensor.shape
        row_counts, position_counts = (
            {labels[axis]: shape[axis] for axis in axes} for axes in (compressed.row_axes, compressed.position_axes)
        )
        keys = keys_of_entries(row_counts, position_counts, field_of_entry("position", _ALIAS), _ALIAS)
        return cls(rows.subquery(_ALIAS), keys, (field_of_entry("u", _ALIAS), field_of_entry("v", _ALIAS)))


def _fill(source: SelectSource, is_filled_in: bool) -> exp.Expr:
    """The number of an operand where it has no entry; NULL where there is no pair then."""
    tensor = source.schema.tensor
    return constant(tensor.fill, tensor.dtype) if is_filled_in else exp.cast(exp.null(), number_type(tensor.dtype))
