"""Pipeline: keeps Python from collecting garbage while it plans."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class _Collection:
    """Whether Python collects garbage: one switch for all threads of a process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pauses = 0
        self._was_enabled = False

    def pause(self) -> None:
        """Stop it until every pause has ended."""
        with self._lock:
            if self._pauses == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._pauses += 1

    def resume(self) -> None:
        """End a pause; the last one restores what was before the first."""
        with self._lock:
            self._pauses -= 1
            if self._pauses == 0 and self._was_enabled:
                gc.enable()


_COLLECTION = _Collection()


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Let no object be looked at for cyclic garbage in the context, also where contexts of several threads overlap.

    Planning makes many objects, most of which are needed until it ends, and hardly any cycles.
    """
    _COLLECTION.pause()
    try:
        yield
    finally:
        _COLLECTION.resume()
