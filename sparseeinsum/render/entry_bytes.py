"""Render: entries that a kernel returns row by row as bytes, put together without a tuple for each entry."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.array_positions import positions_at
from sparseeinsum.render.calls import call, integer
from sparseeinsum.render.compressed_rows import POSITION_COLUMN, numbers_of_rows
from sparseeinsum.render.layouts import ROW_COLUMN
from sparseeinsum.render.sources import plain_subquery
from sparseeinsum.render.whole_products import of_all_rows


@dataclass(frozen=True, slots=True)
class EntryBytes:
    """Entries that come as bytes, row by row, and that a query only names.

    Attributes:
        entries: The bytes of the entries of a row.
        rows: Where these and the number of the row are read.
        zero: A number of the type of the entries.
        row_counts: The keys that number the rows, in C order, each with how many values it can have.
        position_counts: The keys that number the positions in a row.
    """

    entries: exp.Expr
    rows: exp.Expr
    zero: exp.Expr
    row_counts: Mapping[str, int]
    position_counts: Mapping[str, int]

    @classmethod
    def of(cls, query: exp.Select, counts: Mapping[str, int]) -> "EntryBytes | None":
        """The entries of a query: keys, then a value; None if they do not come as bytes.

        Args:
            query: The query.
            counts: The number of possible values of each key, by name, in the order of the query.
        """
        source = plain_subquery(query)
        if source is None:
            return None
        *keys, value = (column.unalias() for column in query.selects)
        split = _split(dict(zip(counts, keys, strict=True)), counts)
        columns = source.this.selects
        if [column.alias_or_name for column in columns] != [ROW_COLUMN, POSITION_COLUMN, VALUE_COLUMN]:
            return None
        unpacked = [column.unalias() for column in columns[1:]]
        if split is None or value != exp.column(VALUE_COLUMN, table="s") or not all(map(_is_unpacking, unpacked)):
            return None
        part, zero = unpacked[1].expressions[0].expressions
        names = list(counts)
        of_rows, of_positions = ({name: counts[name] for name in part} for part in (names[:split], names[split:]))
        return cls(part.expressions[0], source.this.args["from_"].this, zero, of_rows, of_positions)

    def compressed_select(self, name: str) -> exp.Select:
        """The SELECT of all entries in one value, ordered by row, in a column of this name."""
        row, rows = exp.column(ROW_COLUMN, table="e"), integer(math.prod(self.row_counts.values()))
        whole = self._whole_product()
        if whole is not None:
            return exp.select(exp.alias_(whole, name))
        value = call("tensor_compressed_rows", self.entries.copy(), row, rows, self.zero.copy())
        return exp.select(exp.alias_(value, name)).from_(self.rows.copy(), copy=False)

    def _whole_product(self) -> exp.Expr | None:
        """The call that returns the entries of all rows of a product; None if they come from other calls."""
        rows = self.rows.this
        if not isinstance(rows, exp.Select) or not rows.args.get("from_"):
            return None
        all_rows = numbers_of_rows(math.prod(self.row_counts.values()))
        products = [column.unalias() for column in rows.selects if column.alias_or_name == self.entries.name]
        if rows.args["from_"].this != all_rows or len(products) != 1 or rows.args.get("where"):
            return None
        return of_all_rows(products[0])


def _is_unpacking(column: exp.Expr) -> bool:
    """Whether a column has the elements of an array that comes as bytes."""
    for name in ("unnest", "tensor_of_bytes"):
        if not isinstance(column, exp.Anonymous) or column.this != name:
            return False
        column = column.expressions[0]
    return isinstance(column, exp.Anonymous) and column.this == "SUBSTR"


def _split(keys: Mapping[str, exp.Expr], counts: Mapping[str, int]) -> int | None:
    """How many keys number a row, if the others number a position in it; None if the keys are others."""
    row, position = exp.column(ROW_COLUMN, table="s"), exp.column(POSITION_COLUMN, table="s")
    names = list(counts)
    for split in range(1, len(names)):
        of_row, in_row = ({name: counts[name] for name in part} for part in (names[:split], names[split:]))
        if keys == positions_at(row, of_row) | positions_at(position, in_row):
            return split
    return None
