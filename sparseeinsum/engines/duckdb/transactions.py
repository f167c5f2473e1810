"""Engines: the transactions of a DuckDB connection."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace

import duckdb

from sparseeinsum.engines.duckdb.interrupts import interruptible
from sparseeinsum.engines.duckdb.reading_state import ReadingState
from sparseeinsum.engines.duckdb.recorded_changes import Rows
from sparseeinsum.engines.prepared import TransactionMark
from sparseeinsum.errors import EngineError
from sparseeinsum.kernels.duckdb.library import stop_kernels

CAPACITY = "memory_limit", "threads"  # the settings that planning reads
_MARK = (
    "SELECT txid_current(), count, current_setting('memory_limit'), current_setting('threads'), current_database(), "
    "current_schema(), current_setting('search_path') FROM duckdb_connection_count()"
)


class DuckDBTransactions:
    """Begins and ends the transactions of a connection, and recognises those in which nothing has changed.

    Args:
        connection: The connection.
        rows: Runs a query on it and returns its rows.
        execute: Runs a statement on it.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, rows: Rows, execute: Callable[[str], None]) -> None:
        self._connection = connection
        self._rows = rows
        self._execute = execute
        self._reading_state = ReadingState()
        self._database = ""  # the current one of the last transaction with a mark
        self._capacity: Sequence[str] | None = None  # that it had, unless it was changed since
        # The numbers of the transactions of this connection right before the open one, which looked for it.
        self._numbers_before: Sequence[int] = ()

    @property
    def state_token(self) -> object:
        """The token of the open reading transaction; None if there is none."""
        return self._reading_state.token

    @property
    def database(self) -> str | None:
        """The current database in a reading transaction; None if it is not known."""
        return None if self.state_token is None else self._database

    @property
    def capacity(self) -> Sequence[str] | None:
        """The settings CAPACITY in a reading transaction; None if they are not known."""
        return None if self.state_token is None else self._capacity

    def forget_capacity(self) -> None:
        """Note that the settings CAPACITY are about to change."""
        self._capacity = None

    def mark(self) -> TransactionMark:
        """The mark of the open transaction: DuckDB numbers transactions as they begin, whatever they do."""
        ((present, connections, limit, threads, *session),) = self._rows(_MARK)
        self._database, self._capacity = str(session[0]), (str(limit), str(threads))
        number, before = int(str(present)), self._numbers_before
        is_unbroken = [*before, number] == list(range(number - len(before), number + 1))
        return TransactionMark(number - len(before), number, connections == 1 and is_unbroken, tuple(session))

    def mark_after(self, mark: TransactionMark, queries: int) -> TransactionMark | None:
        """The mark after queries that were transactions of their own, as is the one that asks for its number here.

        Who changes tables, or settings that names depend on, begins a transaction, which takes a number. None if some
        did, or if a transaction is open, which then began earlier.
        """
        now, number = _microseconds(), mark.last + queries + 1
        present, began = self._number_and_start()
        is_unbroken = present == number and began >= now
        return replace(mark, first=number, last=number) if is_unbroken else None

    def _number_and_start(self) -> tuple[int, int]:
        """The number of the open transaction, or of one of its own, and when it began, in microseconds."""
        ((number, began),) = self._rows("SELECT txid_current(), epoch_us(now())")
        return int(str(number)), int(str(began))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the statements of the context in a transaction: all of them take effect, or none.

        Raises:
            EngineError: A transaction is open; as DuckDB has no savepoints, an error in the context would undo it.
        """
        if self._is_in_transaction():
            raise EngineError(
                "this connection has an open transaction, and DuckDB has none within another; commit or roll back first"
            )
        with self._new_transaction():
            yield

    @contextmanager
    def _new_transaction(self) -> Iterator[None]:
        """Run the statements of the context in a transaction, where none is open."""
        try:
            self._execute("BEGIN")
            with interruptible(self._stop):
                yield
            self._execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        """Undo the transaction, unless COMMIT has ended it, or a fatal error, after which the database is reopened."""
        for _ in range(2):  # an interrupt that comes late stops the first ROLLBACK
            try:
                self._connection.rollback()
            except duckdb.InterruptException:
                continue
            except duckdb.Error:
                pass
            return

    def _is_in_transaction(self) -> bool:
        """Return whether a transaction is open: it began before a statement did, and two statements have its number.

        To try BEGIN is no way to find out: its error would undo an open transaction.
        """
        now = _microseconds()
        number, began = self._number_and_start()
        self._numbers_before = (number,)
        if began >= now:
            return False
        next_number, _ = self._number_and_start()  # the clock may have been set back
        self._numbers_before = number, next_number
        return number == next_number

    @contextmanager
    def snapshot(self, is_reading: bool = False) -> Iterator[None]:
        """Open a transaction: all its statements see the data of the time when it began."""
        with self.transaction():
            if not is_reading:
                yield
                return
            with self._reading_state.reading(self.mark()):
                yield

    @contextmanager
    def own_snapshot(self) -> Iterator[None]:
        """Open a transaction without finding out whether one is open."""
        self._numbers_before = ()
        with self._new_transaction():
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run the statements of the context in a snapshot if no transaction is open."""
        if self.state_token is not None or self._is_in_transaction():
            with interruptible(self._stop):
                yield
            return
        with self._new_transaction(), self._reading_state.reading(self.mark()):
            yield

    def protected(self) -> AbstractContextManager[None]:
        """React to Ctrl-C at once in the context; a database without roles needs no other protection."""
        return interruptible(self._stop)

    def _stop(self, is_requested: bool) -> None:
        """Stop what this connection runs if `is_requested`, else let kernels run again.

        DuckDB itself checks for signals while this thread works, but not while it waits for another thread.
        """
        stop_kernels(is_requested)
        if is_requested:
            with suppress(duckdb.Error):  # the connection may be closed by now
                self._connection.interrupt()


def _microseconds() -> int:
    """The present time as DuckDB records that of transactions."""
    return time.time_ns() // 1000
