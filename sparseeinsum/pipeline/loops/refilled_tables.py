"""Loops: tables whose rows are replaced in every step."""

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.pipeline.loops.prepared_statements import PreparedStatements
from sparseeinsum.render.dialects import Dialect


class RefilledTable:
    """A table whose rows are replaced again and again."""

    def __init__(
        self, engine: Engine, statements: PreparedStatements, table: exp.Table, most_removed: int | None
    ) -> None:
        """Take a table.

        Args:
            engine: The engine of the table.
            statements: The statements of the loop.
            table: The table.
            most_removed: The number of removed rows, which scans still read, after which the table is made anew; None
                if they take no space, or if other sessions would wait for the table.
        """
        self.table = table
        self._engine = engine
        self._statements = statements
        self._most_removed = most_removed
        self._removed = 0
        self._deletion = f"DELETE FROM {table.sql(engine.dialect_name)}"

    def empty(self, rows: int) -> None:
        """Remove all rows, which are about `rows` ones."""
        self._removed += rows
        if self._most_removed is not None and self._removed > self._most_removed:
            self._engine.empty_table(self.table)
            self._statements.outdate()
            self._removed = 0
        else:
            self._statements.write(self._deletion)


def insert_into(table: exp.Table, query: str, dialect: Dialect) -> str:
    """The statement that adds the rows of a query to a table."""
    return f"INSERT INTO {table.sql(dialect.name)} {query}"
