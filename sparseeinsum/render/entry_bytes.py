"""Render: entries that a kernel returns row by row as bytes, put together without a tuple for each entry."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.render.calls import call, constant, integer
from sparseeinsum.render.layouts import ROW_COLUMN
from sparseeinsum.render.whole_products import of_all_rows

ENTRY_COLUMN = "entry"


@dataclass(frozen=True, slots=True)
class EntryBytes:
    """Entries that come as bytes, row by row.

    Attributes:
        rows: The SELECT of the number of each row, and of the bytes of its entries, for all rows.
        dtype: The dtype of their numbers.
        row_counts: The keys that number the rows, in C order, each with how many values it can have.
        position_counts: The keys that number the positions in a row.
    """

    rows: exp.Select
    dtype: str
    row_counts: Mapping[str, int]
    position_counts: Mapping[str, int]

    def compressed_select(self, name: str) -> exp.Select:
        """The SELECT of all entries in one value, ordered by row, in a column of this name."""
        entries = self.rows.selects[-1].unalias()
        whole = of_all_rows(entries)
        if whole is not None:
            return exp.select(exp.alias_(whole, name))
        of_row, row = (exp.column(column, table="e") for column in (ENTRY_COLUMN, ROW_COLUMN))
        rows, zero = integer(math.prod(self.row_counts.values())), constant(0, self.dtype)
        value = call("tensor_compressed_rows", of_row, row, rows, zero)
        return exp.select(exp.alias_(value, name)).from_(self.rows.copy().subquery("e"), copy=False)
