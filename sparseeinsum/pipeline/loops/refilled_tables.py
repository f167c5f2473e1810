"""Loops: tables whose rows are replaced in every step."""

from itertools import count

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.prepared import PreparedWrite
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.render.dialects import Dialect

_NUMBERS = count(1)  # of the prepared statements of this process

# A table with more removed rows than this is made anew: a scan still reads them, and to create one takes a millisecond.
_MOST_REMOVED = 50_000


class RefilledTable:
    """A table whose rows are replaced again and again."""

    def __init__(self, engine: Engine, table: exp.Table, may_be_replaced: bool) -> None:
        """Take a table.

        Args:
            engine: The engine of the table.
            table: The table.
            may_be_replaced: Whether no other session reads the table, or may see it without rows for a moment.
        """
        self.table = table
        self._engine = engine
        self._may_be_replaced = may_be_replaced
        self._removed = 0
        self._delete: PreparedWrite | None = None

    def empty(self, rows: int) -> None:
        """Remove all rows, which are about `rows` ones."""
        self._removed += rows
        if self._may_be_replaced and self._removed > _MOST_REMOVED:
            self._engine.empty_table(self.table)
            self._removed = 0
        else:
            if self._delete is None:
                statement = f"DELETE FROM {self.table.sql(self._engine.dialect_name)}"
                self._delete = self._engine.prepared_write(prepared_name(), statement)
            self._delete.run()

    def forget(self) -> None:
        """Remove what is prepared for the table from the connection; the table stays."""
        if self._delete is not None:
            self._delete.drop()
            self._delete = None


def insert_into(table: exp.Table, query: str, dialect: Dialect) -> str:
    """The statement that adds the rows of a query to a table."""
    return f"INSERT INTO {table.sql(dialect.name)} {query}"


def prepared_name() -> str:
    """A new name for a prepared statement."""
    return temporary_name(f"step_{next(_NUMBERS)}")
