"""Kernels: files that are written whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes, permissions: int = 0o644) -> None:
    """Write a file, or leave the old one, which processes that run may have in memory.

    Raises:
        OSError: The folder cannot be written, or the disk is full; nothing is left of the new file.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    written = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        written.chmod(permissions)
        written.replace(path)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
