"""Engines: the session of a function that runs inside a PostgreSQL server, through PL/Python's module plpy."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from sparseeinsum.engines.engine import Column
from sparseeinsum.engines.postgresql.copy_format import arrow_type
from sparseeinsum.engines.postgresql.sessions import Isolation, column_type
from sparseeinsum.errors import EngineError

_CANCELED = "57014"  # SQLSTATE: by the user, or statement_timeout


class ServerSession:
    """What the caller of a function would see and may do: in their transaction, with their rights and search_path.

    Statements that are canceled end in the server's own error, which nothing here catches.
    """

    def __init__(self, server: Any) -> None:  # noqa: ANN401  # the module plpy, which only a server has
        self.connection = server
        self._type_query: Any = None

    @property
    def version(self) -> int:
        """Of the server, as in 150018."""
        ((version,),) = self.fetch("SELECT pg_catalog.current_setting('server_version_num')")
        return int(str(version))

    def fetch(self, text: str, *parameters: str) -> Sequence[tuple[object, ...]]:
        """All rows of a query, whose parameters are $1, $2, ..."""
        with self._errors(text):
            result = self._result(text, parameters)
        names = result.colnames()
        if len(set(names)) < len(names):  # PL/Python's rows have one value for every name, as MAX(i), MAX(j) have one
            numbered = ", ".join(f"column_{number}" for number in range(len(names)))
            return self.fetch(f"SELECT * FROM ({text}) AS found ({numbered})", *parameters)
        return [tuple(row[name] for name in names) for row in result]

    def _result(self, text: str, parameters: Sequence[str]) -> Any:  # noqa: ANN401  # plpy's
        if not parameters:
            return self.connection.execute(text)
        return self.connection.execute(self.connection.prepare(text, ["text"] * len(parameters)), list(parameters))

    def write(self, text: str) -> int:
        """Run a statement; returns how many rows it wrote, where it writes any."""
        with self._errors(text):
            return int(self.connection.execute(text).nrows())

    def columns(self, query: str) -> list[Column]:
        """Columns of a query; it is not run."""
        with self._errors(query):
            result = self.connection.execute(f"SELECT * FROM ({query}) AS described LIMIT 0")
            types = zip(result.coltypes(), result.coltypmods(), strict=True)
            shown = [self._type_shown(*each) for each in types]
        return [Column(name, column_type(kind)) for name, kind in zip(result.colnames(), shown, strict=True)]

    def _type_shown(self, oid: int, modifier: int) -> str:
        if self._type_query is None:
            self._type_query = self.connection.prepare("SELECT pg_catalog.format_type($1, $2) AS shown", ["oid", "int"])
        (row,) = self.connection.execute(self._type_query, [oid, modifier])
        return str(row["shown"])

    def read(self, query: str) -> pa.Table:
        """The result of a query as an Arrow table."""
        columns = self.columns(query)
        types = [arrow_type(column.name, column.sql_type) for column in columns]
        rows = self.fetch(query)
        values = [[row[place] for row in rows] for place in range(len(columns))]
        if any(_holds_null(value) for column in values for value in column):
            raise EngineError("a result holds NULL, which no tensor has", query)
        arrays = [pa.array(column, kind) for column, kind in zip(values, types, strict=True)]
        return pa.table(arrays, names=[column.name for column in columns])

    def batches(self, query: str, rows: int) -> Iterator[pa.Table]:
        """Nothing: who is in the server has nobody to hand batches to.

        Raises:
            EngineError: Always.
        """
        raise EngineError("a function in the server returns no results in batches; keep them in tables", query)

    def load(self, rows: pa.Table | pa.RecordBatchReader, name: str) -> None:
        """Nothing: who is in the server has no data but its tables.

        Raises:
            EngineError: Always.
        """
        raise EngineError(f"a function in the server cannot load {name}; load it from a client")

    def is_in_transaction(self) -> bool:
        """Yes: in the caller's."""
        return True

    @contextmanager
    def transaction(self, isolation: Isolation | None = None) -> Iterator[None]:
        """All of the statements within take effect, or none, once the caller's transaction is committed."""
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
        """This session: every statement is a subtransaction of its own, so that one that fails undoes no other."""
        yield self

    def close(self) -> None:
        """Nothing: the session is the caller's."""


def _holds_null(value: object) -> bool:
    return value is None or (isinstance(value, list) and None in value)
