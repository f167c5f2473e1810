"""The command line: prints tables and lines, drawn on a terminal and plain everywhere else.

Plain tables have no lines, colours or breaks, so that other programs can read them.
"""

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from sparseeinsum.plans.preview import Preview, can_draw, rows_table, table_lines


def print_table(table: Table) -> None:
    """Print a table: drawn on a terminal, otherwise as columns with spaces between them."""
    if can_draw(sys.stdout):
        Console(markup=False, highlight=False).print(table)  # markup would hide notation such as T[i, k]
        return
    for line in table_lines(table, is_drawn=False):
        print(line)


def print_preview(preview: Preview) -> None:
    """Print what something is, its table, and the note on it."""
    print(preview.title)
    print_table(rows_table(preview.columns, preview.rows))
    if preview.note:
        print(preview.note)


def print_parts(parts: Iterable[Table | str]) -> None:
    """Print the parts of an explanation in order: lines as they are, tables as by `print_table`."""
    for part in parts:
        if isinstance(part, str):
            print(part)
        else:
            print_table(part)


def print_status(text: str) -> None:
    """Say what was done, on standard error, which leaves standard output to results."""
    print(text, file=sys.stderr)


def status_console() -> Console:
    """A console on standard error, for progress; it is a terminal only if it can draw."""
    return Console(stderr=True, force_terminal=None if can_draw(sys.stderr) else False)
