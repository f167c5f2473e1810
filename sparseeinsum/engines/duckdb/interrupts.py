"""Engines: Ctrl-C while a database computes in this process.

Python runs its signal handlers only after the current C call returns, and the database does not ask Python meanwhile.
But the C part of a handler can write a byte to a socket at once (`signal.set_wakeup_fd`): a thread waits for such
bytes, and then tells the database and the kernels to stop.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

StopCallback = Callable[[bool], None]  # called with True to stop work, and with False to let work go on

_NO_FILE = -1
_MARKER = b"\0"  # no signal has this number
_LONGEST_WAIT = 1.0  # seconds to wait for the thread, which may have ended
_LISTENERS: dict[int, "_SignalListener"] = {}  # by process id: a forked process does not inherit threads


class _SignalListener:
    """A thread that receives signals, and stops work on SIGINT."""

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)
        self._lock = threading.Lock()
        self._stop: StopCallback | None = None
        self._previous_file = _NO_FILE
        self._has_received_all = threading.Event()
        threading.Thread(target=self._listen, daemon=True, name="sparseeinsum-interrupts").start()

    @contextmanager
    def stopping(self, stop: StopCallback) -> Iterator[None]:
        """Call `stop` on SIGINT in the context; contexts may be nested.

        Only the main thread can restore the previous wakeup file. If another thread ends the context, the listener goes
        on to receive signals and forwards them, until the next context.
        """
        previous_file = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        with self._lock:
            outer, self._stop = self._stop, stop
            if previous_file != self._write.fileno():  # equal in a nested context
                self._previous_file = previous_file
        try:
            yield
        except KeyboardInterrupt:  # the thread may receive the signal later, and stop what begins after this context
            self._wait_for_listener()
            raise
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.set_wakeup_fd(previous_file)
            with self._lock:
                self._stop = outer
                stop(False)

    def _wait_for_listener(self) -> None:
        self._has_received_all.clear()
        with suppress(OSError):
            self._write.send(_MARKER)
            self._has_received_all.wait(_LONGEST_WAIT)

    def _listen(self) -> None:
        """Wait for signals; stop work on SIGINT, and forward all signals to the previous wakeup file."""
        while received := self._read.recv(64):
            signals = received.replace(_MARKER, b"")
            with self._lock:
                if self._stop is not None and signal.SIGINT in signals:
                    self._stop(True)
                if self._previous_file != _NO_FILE and signals:  # an event loop's, for instance
                    with suppress(OSError):
                        os.write(self._previous_file, signals)
            if _MARKER in received:
                self._has_received_all.set()


@contextmanager
def interruptible(stop: StopCallback) -> Iterator[None]:
    """Call `stop` on Ctrl-C in the context, if this is the main thread and Ctrl-C raises KeyboardInterrupt."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not raises or threading.current_thread() is not threading.main_thread():
        yield
        return
    if os.getpid() not in _LISTENERS:
        _LISTENERS[os.getpid()] = _SignalListener()
    with _LISTENERS[os.getpid()].stopping(stop):
        yield
