"""Statements that are cancelled while they run."""

import threading

import psycopg


class cancelled:  # noqa: N801
    """Cancels the statements of a connection until one is cancelled."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._cancel)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _cancel(self) -> None:
        while not self._is_over.wait(0.2):
            self._connection.cancel_safe()
