"""Kernels: reads and writes the cached files of compiled code; a damaged file counts as missing."""

import hashlib
from pathlib import Path

from sparseeinsum.kernels.whole_files import write_whole

_DIGEST_BYTES = hashlib.sha256().digest_size  # a checksum at the start of every file
_VERSIONS_KEPT = 4  # of files whose names differ only in the digest of their sources


def read_cached(path: Path) -> bytes | None:
    """Return what `write_cached` wrote to a path; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def write_cached(path: Path, code: bytes) -> None:
    """Write a file of compiled code with its checksum, atomically."""
    write_whole(path, hashlib.sha256(code).digest() + code)


def remove_older(path: Path) -> None:
    """Remove files whose names differ from that of `path` only in the digest at the end, except the newest four."""
    kind = path.name.rpartition("-")[0]
    versions = sorted(path.parent.glob(f"{kind}-*{path.suffix}"), key=lambda file: file.stat().st_mtime)
    for old in versions[:-_VERSIONS_KEPT]:
        old.unlink(missing_ok=True)
