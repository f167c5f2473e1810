"""Engines: rows that the client supplies to PostgreSQL, and queries of prepared programs."""

import pyarrow as pa
from sqlglot import exp

from sparseeinsum.engines.postgresql import copy_format
from sparseeinsum.engines.postgresql.sessions import DatabaseSession
from sparseeinsum.engines.prepared import TransactionMark
from sparseeinsum.render.dialects import POSTGRESQL
from sparseeinsum.statistics.columns import type_named

# The function assigns a number after the snapshot was taken: numbers that others got in between lie between the two.
_MARK = """
SELECT
    own::TEXT,
    own = pg_catalog.pg_snapshot_xmax(present) AND NOT EXISTS (SELECT pg_catalog.pg_snapshot_xip(present)),
    current_user::TEXT
FROM pg_catalog.pg_current_snapshot() AS present, pg_catalog.pg_current_xact_id() AS own
"""


# Numbers are for all databases of a server, and given to transactions when they first write.
_STATE = """
SELECT pg_catalog.pg_snapshot_xmax(present)::TEXT, current_user::TEXT
FROM pg_catalog.pg_current_snapshot() AS present
WHERE pg_catalog.pg_snapshot_xmin(present) = pg_catalog.pg_snapshot_xmax(present)
  AND pg_catalog.pg_current_xact_id_if_assigned() IS NULL
"""


class PostgreSQLSuppliedTable:
    """A temporary table, which the client fills anew."""

    def __init__(self, session: DatabaseSession, table: exp.Table, rows: pa.Table) -> None:
        self._session = session
        self.table = table
        self._name = table.sql(POSTGRESQL.name)
        session.write(temporary_table(table, rows.schema).sql(POSTGRESQL.name))
        session.load(rows, self._name)
        session.write(f"ANALYZE {self._name}")

    def supply(self, rows: pa.Table) -> None:
        """Replace all rows by these, which have the same columns; undone with the transaction."""
        self._session.write(f"TRUNCATE {self._name}")
        self._session.load(rows, self._name)

    def drop(self) -> None:
        """Remove the table from the session."""
        self._session.write(f"DROP TABLE IF EXISTS {self._name}")


class PostgreSQLQuery:
    """A query that is planned whenever it runs."""

    def __init__(self, session: DatabaseSession, query: str) -> None:
        self._session = session
        self._query = query

    def arrow(self) -> pa.Table:
        """Run the query and return its result as an Arrow table."""
        return self._session.read(self._query)

    def drop(self) -> None:
        """Do nothing: the server does not know the query."""


class PostgreSQLWrite:
    """An INSERT, UPDATE or DELETE that is planned whenever it runs."""

    def __init__(self, session: DatabaseSession, statement: str) -> None:
        self._session = session
        self._statement = statement

    def run(self) -> int:
        """Run the statement; return how many rows it wrote."""
        return self._session.write(self._statement)

    def drop(self) -> None:
        """Do nothing: the server does not know the statement."""


def temporary_table(table: exp.Table, columns: pa.Schema) -> exp.Create:
    """The statement that creates a temporary table for Arrow data."""
    definitions = [
        exp.ColumnDef(this=exp.to_identifier(field.name), kind=type_named(copy_format.sql_type(field.type)))
        for field in columns
    ]
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(this=exp.Schema(this=table.copy(), expressions=definitions), kind="TABLE", properties=temporary)


def state_token(session: DatabaseSession) -> object:
    """The number of the next transaction that writes, and the role; None if an open transaction has written."""
    rows = session.fetch(_STATE)
    return tuple(rows[0]) if rows else None


def transaction_mark(session: DatabaseSession) -> TransactionMark:
    """The mark of the open transaction, by the numbers of transactions that write, in any database of the server."""
    ((own, is_alone, role),) = session.fetch(_MARK)
    return TransactionMark(int(str(own)), int(str(own)), bool(is_alone), (role,))
