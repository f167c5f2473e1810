"""The command line: prints tables and lines, drawn on a terminal and plain everywhere else.

Plain tables have no lines, colours or breaks, so that other programs can read them. Output is plain if it goes to no
terminal, or to one whose locale or encoding is ASCII.
"""

import os
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from sparseeinsum.plans.preview import Preview, rows_table, table_lines

_LOCALE_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")  # the first one that is set and not empty decides
_ASCII_LOCALES = ("C", "POSIX")


def print_table(table: Table) -> None:
    """Print a table: drawn on a terminal, otherwise as columns with spaces between them."""
    if _is_drawn():
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
    """Print lines and tables."""
    for part in parts:
        if isinstance(part, str):
            print(part)
        else:
            print_table(part)


def print_status(text: str) -> None:
    """Say what was done, on standard error, which leaves standard output to results."""
    print(text, file=sys.stderr)


def status_console() -> Console:
    """A console on standard error, for progress."""
    return Console(stderr=True)


def _is_drawn() -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or ""
    return sys.stdout.isatty() and encoding.lower().startswith("utf") and not _has_ascii_locale()


def _has_ascii_locale() -> bool:
    names = (os.environ.get(variable, "") for variable in _LOCALE_VARIABLES)
    return next((name for name in names if name), "") in _ASCII_LOCALES
