"""Engines: a lock for runs that change settings of a whole database."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SettingsLock:
    """A reentrant lock that any thread may release.

    `threading.RLock` does not fit: a stream of results may be closed by another thread than the one that opened it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None
        self._depth = 0

    @contextmanager
    def acquired(self) -> Iterator[None]:
        """Wait for the lock, and release it at the end of the context."""
        thread = threading.get_ident()
        if self._holder != thread:
            self._lock.acquire()
            self._holder = thread
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._holder = None
                self._lock.release()
