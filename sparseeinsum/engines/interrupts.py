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
_MARK = b"\0"  # no signal has this number
_LONGEST_WAIT = 1.0  # seconds, for a thread that may be gone
_WATCHES: dict[int, "_Watch"] = {}  # by process: threads do not live on in one that is forked


class _Watch:
    """A thread that hears of signals, and what to stop then."""

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)
        self._lock = threading.Lock()
        self._stop: Stop | None = None
        self._before = _NONE
        self._has_heard_all = threading.Event()
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
        except KeyboardInterrupt:  # the thread may hear of that signal later, and stop what begins after this
            self._wait_until_all_is_heard()
            raise
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.set_wakeup_fd(before)
            with self._lock:
                self._stop = outer
                stop(False)

    def _wait_until_all_is_heard(self) -> None:
        self._has_heard_all.clear()
        with suppress(OSError):
            self._write.send(_MARK)
            self._has_heard_all.wait(_LONGEST_WAIT)

    def _listen(self) -> None:
        while heard := self._read.recv(64):
            signals = heard.replace(_MARK, b"")
            with self._lock:
                if self._stop is not None and signal.SIGINT in signals:
                    self._stop(True)
                if self._before != _NONE and signals:  # of an event loop, say
                    with suppress(OSError):
                        os.write(self._before, signals)
            if _MARK in heard:
                self._has_heard_all.set()


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """Within, Ctrl-C stops work that this thread waits for, where it would raise KeyboardInterrupt."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not raises or threading.current_thread() is not threading.main_thread():
        yield
        return
    if os.getpid() not in _WATCHES:
        _WATCHES[os.getpid()] = _Watch()
    with _WATCHES[os.getpid()].stopping(stop):
        yield
