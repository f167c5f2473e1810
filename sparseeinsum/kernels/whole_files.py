"""Kernels: writes files so that other processes see the old or the new content, never a part."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes, permissions: int = 0o644) -> None:
    """Write a file through a temporary one, so that other processes see the old or the new content, never a part.

    Raises:
        OSError: The folder cannot be written, or the disk is full; the old file stays, and no part of the new one.
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
