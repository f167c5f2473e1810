"""Engines: the session of a function that runs inside a PostgreSQL server, through the module plpy of PL/Python."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from sparseeinsum.engines.engine import Column
from sparseeinsum.engines.postgresql.copy_format import arrow_type
from sparseeinsum.engines.postgresql.sessions import ISOLATION, Isolation, column_type, has_snapshot
from sparseeinsum.errors import EngineError

_CANCELED = "57014"  # the SQLSTATE if the user, or statement_timeout, cancels a statement


class ServerSession:
    """Runs statements in the transaction of the function's caller, with the caller's rights and search_path.

    A statement that is cancelled raises the server's own error, which is not caught here.

    Args:
        server: The module plpy, which only a server has.
        is_stable: Whether the function is declared STABLE: it only reads, and all its statements see the same data as
            the statement that called it.
    """

    def __init__(self, server: Any, is_stable: bool = False) -> None:  # noqa: ANN401  # plpy has no type
        self.connection = server
        self.place = "of this server"
        self._is_stable = is_stable
        self._type_query: Any = None

    @property
    def version(self) -> int:
        """The version of the server as a number, such as 150018."""
        ((version,),) = self.fetch("SELECT pg_catalog.current_setting('server_version_num')")
        return int(str(version))

    def fetch(self, text: str, *parameters: str) -> Sequence[tuple[object, ...]]:
        """Run a query with the parameters $1, $2, ... and return all its rows."""
        with self._errors(text):
            result = self._result(text, parameters)
        names = result.colnames()
        # Rows of PL/Python are dictionaries: of two columns with the same name, such as MAX(i), MAX(j), one is lost.
        if len(set(names)) < len(names):
            numbered = ", ".join(f"column_{number}" for number in range(len(names)))
            return self.fetch(f"SELECT * FROM ({text}) AS result ({numbered})", *parameters)
        return [tuple(row[name] for name in names) for row in result]

    def _result(self, text: str, parameters: Sequence[str]) -> Any:  # noqa: ANN401  # plpy's
        if not parameters:
            return self.connection.execute(text)
        return self.connection.execute(self.connection.prepare(text, ["text"] * len(parameters)), list(parameters))

    def write(self, text: str) -> int:
        """Run a statement; return how many rows it wrote."""
        with self._errors(text):
            return int(self.connection.execute(text).nrows())

    def columns(self, query: str) -> list[Column]:
        """Return the columns of a query, which is run with LIMIT 0."""
        with self._errors(query):
            result = self.connection.execute(f"SELECT * FROM ({query}) AS described LIMIT 0")
            types = zip(result.coltypes(), result.coltypmods(), strict=True)
            shown = [self._shown_type(oid, modifier) for oid, modifier in types]
        return [Column(name, column_type(text)) for name, text in zip(result.colnames(), shown, strict=True)]

    def _shown_type(self, oid: int, modifier: int) -> str:
        if self._type_query is None:
            self._type_query = self.connection.prepare("SELECT pg_catalog.format_type($1, $2) AS shown", ["oid", "int"])
        (row,) = self.connection.execute(self._type_query, [oid, modifier])
        return str(row["shown"])

    def read(self, query: str, arrays_as_bytes: bool = False) -> pa.Table:
        """Run a query and return its result as an Arrow table; nothing is sent."""
        columns = self.columns(query)
        types = [arrow_type(column.name, column.sql_type) for column in columns]
        rows = self.fetch(query)
        values = [[row[position] for row in rows] for position in range(len(columns))]
        if any(_holds_null(value) for column in values for value in column):
            raise EngineError("a result holds NULL, which no tensor has", query)
        arrays = [pa.array(column, arrow) for column, arrow in zip(values, types, strict=True)]
        return pa.table(arrays, names=[column.name for column in columns])

    def read_bytes(self, query: str, item_bytes: int = 1) -> bytes | None:
        """Run a query that returns one computed value, as `DatabaseSession`."""
        if item_bytes > 1:
            query = f"SELECT tensor_bytes(computed.value) FROM ({query}) AS computed(value)"
        rows = self.fetch(query)
        value = rows[0][0] if rows else None
        assert value is None or isinstance(value, bytes)
        return value

    def read_small(self, query: str, parameters: Sequence[bytes | None]) -> pa.Table:
        """Refuse parameters, as a function in the server has only tables.

        Raises:
            EngineError: Always.
        """
        raise EngineError("a function in the server cannot take values from a client", query)

    def batches(self, query: str, rows: int) -> Iterator[pa.Table]:
        """Refuse batches, as a function in the server has nobody to return them to.

        Raises:
            EngineError: Always.
        """
        raise EngineError("a function in the server returns no results in batches; keep them in tables", query)

    def load(self, rows: pa.Table | pa.RecordBatchReader, name: str) -> None:
        """Refuse to load data, as a function in the server has only tables.

        Raises:
            EngineError: Always.
        """
        raise EngineError(f"a function in the server cannot load {name}; load it from a client")

    def is_in_transaction(self) -> bool:
        """Return True: the caller's transaction is open."""
        return True

    def has_snapshot(self) -> bool:
        """Return whether all statements of the function see the same data."""
        return self._is_stable or has_snapshot(self.fetch(ISOLATION)[0][0])

    def lock_for_reading(self, relations: str) -> None:
        """Prevent that others replace relations, by a function, because a stable one must not run LOCK TABLE."""
        self.fetch("SELECT sparseeinsum.lock_for_reading($1)", relations)

    @contextmanager
    def transaction(self, isolation: Isolation | None = None) -> Iterator[None]:
        """Run the statements of the context in a subtransaction of the caller's transaction."""
        with self._errors(None), self.connection.subtransaction():
            yield

    @contextmanager
    def _errors(self, text: str | None) -> Iterator[None]:
        try:
            yield
        except self.connection.SPIError as error:
            if error.sqlstate == _CANCELED:
                raise
            raise EngineError(str(error), text) from error

    @contextmanager
    def another_connection(self) -> Iterator["ServerSession"]:
        """Return this session: every statement is a subtransaction, so that one that fails undoes no other."""
        yield self

    def close(self) -> None:
        """Do nothing: the session belongs to the caller."""


def _holds_null(value: object) -> bool:
    return value is None or (isinstance(value, list) and None in value)
