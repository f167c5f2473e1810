"""Previews: what something is and its first rows in; text for a terminal out, or HTML for a notebook."""

import io
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.table import Table

from sparseeinsum.presentation.html_tables import cell_text, html_table

_LOCALE_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")  # the first one that is set and not empty decides
_ASCII_LOCALES = ("C", "POSIX")
_UNICODE = "utf"
_WIDTH = 10_000  # columns: no line is broken
_TERMINAL_WIDTH = 140
_GAP = (0, 2, 0, 0)  # spaces around a cell of a plain table: above, right of, below and left of it


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
        """For a prompt: plain text in lines; without drawn ones where the encoding of standard output lacks them."""
        table = table_lines(rows_table(self.columns, self.rows), is_drawn=_is_unicode(sys.stdout))
        lines = [self.title, *table, self.note]
        return "\n".join(line for line in lines if line)

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


def can_draw(stream: TextIO) -> bool:
    """Whether a stream goes to a terminal that shows lines of tables: one whose encoding and locale are not ASCII."""
    locale = next((name for name in map(os.environ.get, _LOCALE_VARIABLES) if name), "")
    return stream.isatty() and _is_unicode(stream) and locale not in _ASCII_LOCALES


def _is_unicode(stream: TextIO | None) -> bool:
    """Whether a stream takes all characters; a process without a window has no standard output."""
    encoding = getattr(stream, "encoding", None) or _UNICODE  # of streams in memory
    return encoding.lower().startswith(_UNICODE)


def parts_text(parts: Iterable[Table | str]) -> str:
    """Tables and lines as text for a wide terminal. Lines longer than that are broken between words."""
    console = Console(width=_TERMINAL_WIDTH, color_system=None, highlight=False, markup=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def table_lines(table: Table, is_drawn: bool) -> list[str]:
    """The lines of a table, none of which is broken.

    Args:
        table: The table.
        is_drawn: Whether lines are drawn between its cells; without them, two spaces separate its columns.
    """
    title = []
    if not is_drawn:
        title = [str(table.title)] if table.title else []
        table.title, table.box, table.pad_edge, table.padding, table.min_width = None, None, False, _GAP, None
    console = Console(file=io.StringIO(), width=_WIDTH, markup=False, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return [*title, *(line.rstrip() for line in captured.get().splitlines())]
