"""Engines: tells whether tables are as they were in the last transaction of a connection that only read them."""

from collections.abc import Iterator
from contextlib import contextmanager

from sparseeinsum.engines.prepared import TransactionMark


class ReadingState:
    """The last reading transaction of a connection, and the open one.

    Attributes:
        token: In a reading transaction, an object that is the same in the next one if nobody can have changed
            permanent tables in between; else None.
    """

    def __init__(self) -> None:
        self.token: object = None
        self._last_token: object = None
        self._last_mark: TransactionMark | None = None

    @contextmanager
    def reading(self, mark: TransactionMark) -> Iterator[None]:
        """Within, a transaction is open that changes no permanent table; `mark` is that of the transaction."""
        is_unchanged = mark.follows(self._last_mark)
        self.token = self._last_token if is_unchanged else object()
        self._last_mark = None
        try:
            yield
        finally:
            self._last_token, self.token = self.token, None
        self._last_mark = mark
