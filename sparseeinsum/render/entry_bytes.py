"""Render: entries that a kernel returns row by row as bytes, put together without a tuple for each entry."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.render.calls import call, constant, integer
from sparseeinsum.render.layouts import ROW_COLUMN
from sparseeinsum.render.whole_products import of_all_rows

ENTRY_COLUMN = "entry"
_ALL_ENTRIES, _ALIAS = "entries", "all_entries"  # a column of all entries in one value, and its relation


@dataclass(frozen=True, slots=True)
class EntryBytes:
    """Entries that come as bytes, row by row.

    Attributes:
        rows: The SELECT of the number of each row, and of the bytes of its entries, for all rows.
        dtype: The dtype of their numbers.
        row_counts: The keys that number the rows, in C order, each with how many values it can have.
        position_counts: The keys that number the positions in a row.
        numbers: What replaces the numbers of all entries, as `all_numbers` has it; None if they stay.
    """

    rows: exp.Select
    dtype: str
    row_counts: Mapping[str, int]
    position_counts: Mapping[str, int]
    numbers: exp.Expr | None = None

    @property
    def all_numbers(self) -> exp.Expr:
        """The array of the numbers of all entries, for `computed_select`."""
        if self.numbers is not None:
            return self.numbers.copy()
        return call("tensor_entries", exp.column(_ALL_ENTRIES, table=_ALIAS), constant(0, self.dtype))

    @property
    def keys(self) -> list[str]:
        """The keys in the order of the entries."""
        return [*self.row_counts, *self.position_counts]

    def compressed_select(self, name: str) -> exp.Select:
        """The SELECT of all entries in one value, ordered by row, in a column of this name."""
        if self.numbers is None:
            return self._whole_select(name)
        numbers = self.numbers.copy()
        return self.computed_select(call("tensor_with_numbers", exp.column(_ALL_ENTRIES, table=_ALIAS), numbers), name)

    def computed_select(self, value: exp.Expr, name: str) -> exp.Select:
        """The SELECT of a value that is computed from `all_numbers`, in a column of this name."""
        rows = self._whole_select(_ALL_ENTRIES).offset(0, copy=False).subquery(_ALIAS)
        return exp.select(exp.alias_(value, name)).from_(rows, copy=False)

    def _whole_select(self, name: str) -> exp.Select:
        """The SELECT of all entries in one value, as `compressed_select`, with the numbers that the rows have."""
        entries = self.rows.selects[-1].unalias()
        whole = of_all_rows(entries)
        if whole is not None:
            return exp.select(exp.alias_(whole, name))
        of_row, row = (exp.column(column, table="e") for column in (ENTRY_COLUMN, ROW_COLUMN))
        rows, zero = integer(math.prod(self.row_counts.values())), constant(0, self.dtype)
        value = call("tensor_compressed_rows", of_row, row, rows, zero)
        return exp.select(exp.alias_(value, name)).from_(self.rows.copy().subquery("e"), copy=False)
