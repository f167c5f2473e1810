"""The command line: opens databases that exist, and creates those that do not."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sparseeinsum as se

_OTHER_CONFIGURATION = "different configuration"  # of DuckDB's message


def open_database(target: str, read_only: bool = False) -> se.Database:
    """Open a database that exists: the URL of a server, or a file, so that a mistyped name does not create one.

    Args:
        target: The URL or the file.
        read_only: Whether nothing will be written. A file then needs no right to write, and others may read it too.
    """
    if "://" in target:
        return se.connect(target)
    if not Path(target).is_file():
        raise se.EngineError(f"there is no database file {target}")
    try:
        return se.connect(target, read_only=read_only)
    except se.EngineError as error:
        if not read_only or _OTHER_CONFIGURATION not in str(error):
            raise
        return se.connect(target)  # this process writes to the file already, as in a session of dbt


@contextmanager
def open_or_create(target: str) -> Iterator[se.Database]:
    """Open a database, or create its file, which is removed again after an error."""
    is_new = "://" not in target and not Path(target).exists()
    try:
        with se.connect(target) as database:
            yield database
    except BaseException:
        if is_new:
            Path(target).unlink(missing_ok=True)
        raise
