"""Engines: Ctrl-C while a database computes in this process, which looks at a word, and not at Python.

Python's own handler of a signal runs once a call of C returns. What the system calls at once can write a byte to a
socket, which a thread waits for that then tells the database and the kernels.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Stop = Callable[[bool], None]  # (whether work is to stop, or may go on)

_NONE = -1  # what Python calls no file
_WATCHES: dict[int, "_Watch"] = {}  # by process: threads do not live on in one that is forked


class _Watch:
    """A thread that hears of signals, and what to stop then."""

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)
        self._lock = threading.Lock()
        self._stop: Stop | None = None
        self._before = _NONE
        threading.Thread(target=self._listen, daemon=True, name="sparseeinsum-interrupts").start()

    @contextmanager
    def stopping(self, stop: Stop) -> Iterator[None]:
        """Within, SIGINT stops work, also what is stopped by it around this.

        What another thread than the main one ends goes on to hear of signals, which it hands on, until the next.
        """
        before = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        with self._lock:
            outer, self._stop = self._stop, stop
            if before != self._write.fileno():  # as it is within another
                self._before = before
        try:
            yield
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.set_wakeup_fd(before)
            with self._lock:
                self._stop = outer
                stop(False)

    def _listen(self) -> None:
        while signals := self._read.recv(64):
            with self._lock:
                if self._stop is not None and signal.SIGINT in signals:
                    self._stop(True)
                if self._before != _NONE:  # of an event loop, say
                    with suppress(OSError):
                        os.write(self._before, signals)


@contextmanager
def stopped_by_interrupts(stop: Stop) -> Iterator[None]:
    """Within, Ctrl-C stops work that this thread waits for, where it would raise KeyboardInterrupt."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not raises or threading.current_thread() is not threading.main_thread():
        yield
        return
    if os.getpid() not in _WATCHES:
        _WATCHES[os.getpid()] = _Watch()
    with _WATCHES[os.getpid()].stopping(stop):
        yield
