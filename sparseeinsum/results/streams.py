"""Results: results as a stream of batches, of which one is in memory at a time."""

import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import EngineError
from sparseeinsum.results.execution import Delivery
from sparseeinsum.results.results import entries_in_batches, unknown_result


class _EndedError(Exception):
    """Rolls the transaction of a stream back."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class _Batches:
    """The iterator of a reader; the stream stays open while the iterator is referenced."""

    name: str
    stream: "ResultStream"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        return self.stream._next_batch(self)


class ResultStream(Mapping[str, pa.RecordBatchReader]):
    """Results of a program, each to be read in batches: `stream["Y"]` is an Arrow RecordBatchReader.

    A reader has the columns of `TensorResult.arrow`. Read one result at a time, as often as you like; it is computed
    while you read it. The transaction of the run stays open until the stream is closed: by `with`, by `close`, or when
    neither the stream nor a reader is referenced any more. The transaction is rolled back. Until then, the connection
    takes no other statement while a reader is open, and DuckDB keeps to the memory limit of the run.
    """

    def __init__(self, engine: Engine, deliveries: Mapping[str, Delivery], transaction: ExitStack) -> None:
        self._engine = engine
        self._deliveries = deliveries
        self._transaction = transaction
        self._is_closed = False
        self._reader: weakref.ref[_Batches] | None = None  # of the result that is being read
        self._tables: Iterator[pa.Table] | None = None
        self._waiting: list[pa.RecordBatch] = []

    def __getitem__(self, name: str) -> pa.RecordBatchReader:
        """A reader of the entries of a result.

        Raises:
            CatalogueError: There is no such result.
            EngineError: The database refused the statement, another reader is open, or the stream is closed.
        """
        if name not in self._deliveries:
            raise unknown_result(name, self._deliveries)
        delivery = self._deliveries[name]
        if self._is_closed:
            raise EngineError(f"the stream that had {name} is closed; run it again")
        reader = None if self._reader is None else self._reader()
        if reader is not None and self._tables is not None:
            raise EngineError(f"{reader.name} is being read; read it to its end, or drop its reader, before {name}")
        self._stop_reading()
        delivery.begin()
        self._tables = entries_in_batches(self._engine, delivery.statement, delivery.schema, delivery.dictionaries)
        first = next(self._tables)
        self._waiting = first.to_batches()
        batches = _Batches(name, self)
        self._reader = weakref.ref(batches)
        return pa.RecordBatchReader.from_batches(first.schema, batches)

    def __iter__(self) -> Iterator[str]:
        return iter(self._deliveries)

    def __len__(self) -> int:
        return len(self._deliveries)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open"
        return f"<stream of {', '.join(self._deliveries)}, {state}>"

    def _next_batch(self, batches: _Batches) -> pa.RecordBatch:
        """The next batch of a reader; a reader whose stream was closed fails, so that nobody takes a part for all."""
        if self._is_closed or self._reader is None or self._reader() is not batches:
            raise EngineError(f"the stream was closed before the last entry of {batches.name} was read")
        while not self._waiting:
            if self._tables is None:
                raise StopIteration
            table = next(self._tables, None)
            if table is None:
                self._tables = None
                raise StopIteration
            self._waiting = table.to_batches()
        return self._waiting.pop(0)

    def _stop_reading(self) -> None:
        tables, self._tables, self._waiting, self._reader = self._tables, None, [], None
        close = getattr(tables, "close", None)
        if close is not None:
            close()

    def close(self) -> None:
        """End the transaction; readers that have not reached their end fail from now on."""
        self._close(_EndedError, _EndedError(), None)

    def _close(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._stop_reading()
        with suppress(_EndedError):
            self._transaction.__exit__(kind, error, trace)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._close(kind, error, trace)

    def __del__(self) -> None:
        with suppress(Exception):  # the connection may be closed
            self.close()
