"""Kernels: the folder of compiled code: files that are there whole, or count as not there."""

import hashlib
from pathlib import Path

from sparseeinsum.kernels.whole_files import write_whole

_DIGEST_BYTES = hashlib.sha256().digest_size  # at the start of each file
_KEPT = 4  # of the files that differ in nothing but the digest of what they are made of


def read_cached(path: Path) -> bytes | None:
    """What `keep` wrote; None where it is not there or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def keep(path: Path, code: bytes) -> None:
    """Write a file whole or not at all."""
    write_whole(path, hashlib.sha256(code).digest() + code)


def forget_older(path: Path) -> None:
    """Remove files whose names differ from this one's in nothing but the digest at the end, but for the newest."""
    kind = path.name.rpartition("-")[0]
    others = sorted(path.parent.glob(f"{kind}-*{path.suffix}"), key=lambda file: file.stat().st_mtime)
    for old in others[:-_KEPT]:
        old.unlink(missing_ok=True)
