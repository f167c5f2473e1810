"""The command line: opens databases that exist."""

from pathlib import Path

import sparseeinsum as se


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
    return se.connect(target, read_only=read_only)
