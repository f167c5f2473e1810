"""Previews: what something is and its first rows in; text for a terminal out, or HTML for a notebook."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from sparseeinsum.html_tables import cell_text, html_table

_WIDTH = 10_000  # columns: no line is broken


@dataclass(frozen=True, slots=True)
class Preview:
    """What something is, and a table.

    Attributes:
        title: What it is, in a line.
        columns: Headings of the table.
        rows: Of the table, a value for every column.
        note: What is to be said below it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""

    def text(self) -> str:
        """For a terminal: plain text in lines."""
        console = Console(file=io.StringIO(), width=_WIDTH, markup=False, highlight=False, color_system=None)
        with console.capture() as captured:
            console.print(rows_table(self.columns, self.rows))
        lines = [self.title, *captured.get().splitlines(), self.note]
        return "\n".join(line.rstrip() for line in lines if line)

    def html(self) -> str:
        """For a notebook: the title, a table and the note as HTML."""
        return html_table(self.title, self.columns, self.rows, self.note)


def rows_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """Rows under the names of their columns."""
    table = Table()
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*map(cell_text, row))
    return table
