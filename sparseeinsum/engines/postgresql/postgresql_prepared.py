"""Engines: rows that the client supplies to PostgreSQL, and queries of prepared programs."""

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp, parse_one

from sparseeinsum.engines.postgresql import copy_format
from sparseeinsum.engines.postgresql.sessions import DatabaseSession
from sparseeinsum.engines.prepared import TransactionMark
from sparseeinsum.render.dialects import POSTGRESQL, write_sql
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

# Policies may depend on settings, and children may be tables of other servers.
_OWN_TABLES = """
SELECT s.nspname, c.relname
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS s ON s.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND NOT (c.relrowsecurity OR c.relhasrules OR c.relhassubclass)
  AND s.nspname NOT IN ('pg_catalog', 'information_schema')
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attgenerated <> '')
"""


class PostgreSQLSuppliedTable:
    """A temporary table, which the client fills anew; small queries take the rows as parameters instead."""

    def __init__(self, session: DatabaseSession, table: exp.Table, rows: pa.Table) -> None:
        self._session = session
        self.table = table
        self._name = table.sql(POSTGRESQL.name)
        self._rows = rows
        session.write(temporary_table(table, rows.schema).sql(POSTGRESQL.name))
        session.load(rows, self._name)
        session.write(f"ANALYZE {self._name}")

    def supply(self, rows: pa.Table) -> None:
        """Let small queries read these rows, which have the same columns; the table has them after `fill`."""
        self._rows = rows

    def fill(self) -> None:
        """Replace the rows of the table; undone with the transaction."""
        self._session.write(f"TRUNCATE {self._name}")
        self._session.load(self._rows, self._name)

    def drop(self) -> None:
        """Remove the table from the session."""
        self._session.write(f"DROP TABLE IF EXISTS {self._name}")

    @property
    def is_passable(self) -> bool:
        """Whether parameters can be the rows: numbers alone, or one array without keys."""
        return self._is_array or not any(copy_format.is_list(field.type) for field in self._rows.schema)

    @property
    def _is_array(self) -> bool:
        return len(self._rows.schema) == 1 and copy_format.is_list(self._rows.schema[0].type)

    def parameters(self) -> list[bytes | None]:
        """The rows as values of the parameters of `source`."""
        if self._is_array and not self._rows.num_rows:
            return [None]
        return [copy_format.encode_array(column) for column in self._rows.columns]

    def source(self, first: int) -> exp.Expr:
        """The query that returns the rows from parameters, which have numbers from `first` on."""
        names = [exp.to_identifier(name, quoted=True).sql(POSTGRESQL.name) for name in self._rows.column_names]
        arrays = [
            f"CAST(${number} AS {type_named(copy_format.sql_type(field.type).removesuffix('[]')).sql('postgres')}[])"
            for number, field in enumerate(self._rows.schema, first)
        ]
        if self._is_array:
            text = f"SELECT {arrays[0]} AS {names[0]} WHERE ${first} IS NOT NULL"
        else:
            text = f"SELECT * FROM UNNEST({', '.join(arrays)}) AS supplied({', '.join(names)})"
        return parse_one(text, dialect="postgres")


class PostgreSQLQuery:
    """A query that is planned whenever it runs.

    Attributes:
        reads_filled_tables: Whether it reads supplied tables.
    """

    takes_one_number = True  # of those that only writing transactions take

    def __init__(self, session: DatabaseSession, query: str, reads_filled_tables: bool) -> None:
        self._session = session
        self._query = query
        self.reads_filled_tables = reads_filled_tables

    def arrow(self) -> pa.Table:
        """Run the query and return its result as an Arrow table."""
        return self._session.read(self._query)

    def drop(self) -> None:
        """Do nothing: the server does not know the query."""


class PostgreSQLSmallQuery:
    """A query of few rows that the server has parsed once; the rows of supplied tables are its parameters."""

    reads_filled_tables = False
    takes_one_number = True

    def __init__(self, session: DatabaseSession, query: exp.Select, tables: Sequence[PostgreSQLSuppliedTable]) -> None:
        self._session = session
        self._tables = tables
        sources: dict[str, exp.Expr] = {}
        for table in tables:
            sources[table.table.name] = table.source(1 + sum(len(t.parameters()) for t in tables[: len(sources)]))

        def with_parameters(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Table) or node.name not in sources:
                return node
            return exp.Subquery(
                this=sources[node.name].copy(), alias=exp.TableAlias(this=exp.to_identifier(node.alias_or_name))
            )

        self._text = write_sql(query.transform(with_parameters), POSTGRESQL)

    def arrow(self) -> pa.Table:
        """Run the query and return its result as an Arrow table."""
        return self._session.read_small(self._text, [value for table in self._tables for value in table.parameters()])

    def drop(self) -> None:
        """Do nothing: the driver removes statements that were not used for long."""


def prepared_query(
    session: DatabaseSession,
    query: exp.Select | str,
    supplied: Sequence[PostgreSQLSuppliedTable],
    is_small: bool,
) -> PostgreSQLSmallQuery | PostgreSQLQuery:
    """Prepare a query; the arguments are those of `Engine.prepared_query`."""
    if isinstance(query, str):
        return PostgreSQLQuery(session, query, reads_filled_tables=bool(supplied))
    names = {table.name for table in query.find_all(exp.Table)}
    tables = [table for table in supplied if table.table.name in names]
    if is_small and all(table.is_passable for table in tables):
        return PostgreSQLSmallQuery(session, query, tables)
    return PostgreSQLQuery(session, write_sql(query, POSTGRESQL), reads_filled_tables=bool(tables))


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


def own_tables(session: DatabaseSession) -> frozenset[tuple[str, str]]:
    """The schemas and names of permanent tables without policies, parents, children and computed columns."""
    return frozenset((str(schema), str(name)) for schema, name in session.fetch(_OWN_TABLES))


def transaction_mark(session: DatabaseSession, is_reading: bool) -> TransactionMark:
    """The mark of the open transaction, by the numbers of transactions that write, in any database of the server."""
    if is_reading:  # takes no number
        return next(iter(_reading_marks(session, _STATE)), TransactionMark(0, 0, False, ()))
    ((own, is_alone, role),) = session.fetch(_MARK)
    return TransactionMark(int(str(own)), int(str(own)), bool(is_alone), (role,))


def mark_after(session: DatabaseSession, mark: TransactionMark) -> TransactionMark | None:
    """The mark of a transaction whose last statement sees all changes before it, if there are none since `mark`."""
    marks = _reading_marks(
        session, f"{_STATE} AND pg_catalog.current_setting('transaction_isolation') = 'read committed'"
    )
    return next((present for present in marks if present.follows(mark)), None)


def _reading_marks(session: DatabaseSession, state: str) -> list[TransactionMark]:
    return [
        TransactionMark(int(str(number)), int(str(number)) - 1, True, (role,)) for number, role in session.fetch(state)
    ]
