"""Loops: the statements of a loop, which are prepared when they run for the first time."""

from itertools import count

import pyarrow as pa

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.prepared import PreparedQuery, PreparedWrite
from sparseeinsum.engines.temporary_names import temporary_name

_NUMBERS = count(1)  # of the prepared statements of this process


class PreparedStatements:
    """The prepared statements of a connection that a loop runs, by their texts.

    A statement is prepared for the tables as they are, and is slow after tables were created or dropped, even if it
    reads others; so is one that is prepared in the transaction which does that.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writes: dict[str, PreparedWrite] = {}
        self._queries: dict[str, PreparedQuery] = {}
        self._are_outdated = False

    def begin(self) -> None:
        """Forget outdated statements; a new transaction has begun."""
        if self._are_outdated:
            self.drop()

    def outdate(self) -> None:
        """Let the next transaction prepare all statements again: this one creates or drops tables, or has failed."""
        self._are_outdated = True

    def write(self, statement: str) -> int:
        """Run an INSERT, UPDATE or DELETE; return how many rows it wrote."""
        if statement not in self._writes:
            self._writes[statement] = self._engine.prepared_write(_new_name(), statement)
        return self._writes[statement].run()

    def read(self, query: str) -> pa.Table:
        """Run a query; return its result."""
        if query not in self._queries:
            self._queries[query] = self._engine.prepared_query(_new_name(), query)
        return self._queries[query].arrow()

    def drop(self) -> None:
        """Remove all statements from the connection."""
        for write in self._writes.values():
            write.drop()
        for query in self._queries.values():
            query.drop()
        self._writes, self._queries, self._are_outdated = {}, {}, False


def _new_name() -> str:
    return temporary_name(f"step_{next(_NUMBERS)}")
