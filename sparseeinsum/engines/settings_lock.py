"""Engines: turns of runs that change settings of a whole database."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SettingsLock:
    """A lock that a thread may take again while it has it, and that any thread may give back.

    A stream of results may be closed by another thread than opened it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None
        self._depth = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for a turn, and give it back at the end."""
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
