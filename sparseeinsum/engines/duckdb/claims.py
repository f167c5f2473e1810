"""Engines: what only one connection of this process may do at a time."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock

_CLAIMS: set[Hashable] = set()
_GUARD = Lock()


@contextmanager
def claimed_in_process(claim: Hashable) -> Iterator[bool]:
    """Claim something in the context; yields False if somebody else in this process has claimed it."""
    with _GUARD:
        is_free = claim not in _CLAIMS
        _CLAIMS.add(claim)
    try:
        yield is_free
    finally:
        if is_free:
            with _GUARD:
                _CLAIMS.discard(claim)
