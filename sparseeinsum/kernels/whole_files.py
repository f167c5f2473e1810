"""Kernels: files that are written whole or not at all."""

import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes, permissions: int = 0o644) -> None:
    """Write a file, or leave the old one, which processes that run may have in memory."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).chmod(permissions)
    Path(file.name).replace(path)
