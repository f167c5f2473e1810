"""Engines: sessions with a PostgreSQL server, through psycopg."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sparseeinsum.engines.engine import Column
from sparseeinsum.engines.postgresql import copy_format, text_format
from sparseeinsum.engines.postgresql.sessions import Isolation, column_type
from sparseeinsum.engines.statement_text import check_text
from sparseeinsum.errors import EngineError

if TYPE_CHECKING:
    import psycopg


_TO_A_MACHINE = "failure on connection"  # of a coordinator to a worker; some have no SQLSTATE of their own


def load_driver() -> Any:  # noqa: ANN401  # a module
    """psycopg, which is an optional dependency.

    Raises:
        EngineError: It is not installed.
    """
    try:
        import psycopg  # noqa: PLC0415
    except ImportError:
        raise EngineError("psycopg is needed for PostgreSQL; pip install 'sparseeinsum[postgres]'") from None
    return psycopg


class ClientSession:
    """A connection of psycopg's.

    Statements take effect at once where nobody began a transaction, even on a connection that commits by hand.
    """

    def __init__(self, connection: "psycopg.Connection[Any]", driver: ModuleType, is_owned: bool) -> None:
        self.connection = connection
        self._driver = driver
        self._is_owned = is_owned
        self._is_copying = False

    @property
    def version(self) -> int:
        """Of the server, as in 150018."""
        return self.connection.info.server_version

    def fetch(self, text: str, *parameters: str) -> Sequence[tuple[object, ...]]:
        """All rows of a query, whose parameters are $1, $2, ..."""
        rows = self._driver.rows.tuple_row  # whatever rows the connection makes for its user
        for parameter in parameters:
            check_text(parameter)
        with self._errors(text), self._driver.RawCursor(self.connection, row_factory=rows) as cursor:
            found: Sequence[tuple[object, ...]] = cursor.execute(text, parameters or None, prepare=False).fetchall()
            return found

    def write(self, text: str) -> int:
        """Run a statement; returns how many rows it wrote, where it writes any."""
        with self._errors(text):
            return self.connection.execute(text, prepare=False).rowcount

    def columns(self, query: str) -> list[Column]:
        """Columns of a query; it is not run: Citus runs parts of one even where no row is asked for."""
        libpq, encoding = self.connection.pgconn, self.connection.info.encoding
        with self._errors(query):
            for described in (libpq.prepare(b"", query.encode(encoding)), libpq.describe_prepared(b"")):
                if described.status != self._driver.pq.ExecStatus.COMMAND_OK:
                    raise self._driver.errors.error_from_result(described, encoding=encoding)
        return [self._column(described, number) for number in range(described.nfields)]

    def _column(self, described: "psycopg.pq.abc.PGresult", number: int) -> Column:
        name, oid = described.fname(number), described.ftype(number)
        assert name is not None
        known = self.connection.adapters.types.get(oid)
        shown = str(oid) if known is None else known.get_type_display(oid, described.fmod(number))
        return Column(name.decode(self.connection.info.encoding), column_type(shown))

    def read(self, query: str) -> pa.Table:
        """The result of a query as an Arrow table."""
        columns = self.columns(query)
        with self._errors(query), self.connection.cursor() as cursor:
            data = bytearray()
            is_text = all(each.sql_type == copy_format.TEXT for each in columns)
            way = "(FORMAT CSV, FORCE_QUOTE *)" if is_text else "(FORMAT BINARY)"
            with cursor.copy(f"COPY ({query}) TO STDOUT {way}") as copy:
                for piece in copy:  # waits for it
                    data += piece
                    if not is_text:
                        self._take_arrived(data)
        names = [each.name for each in columns]
        if is_text:
            return text_format.decode(data, names)
        return copy_format.decode(data, names, [each.sql_type for each in columns])

    def batches(self, query: str, rows: int) -> Iterator[pa.Table]:
        """The result of a query while it is computed, so many rows at once; one table at least, which may be empty."""
        columns = self.columns(query)
        command = f"COPY ({query}) TO STDOUT (FORMAT BINARY)"
        # In a savepoint: to leave off half-way cancels the statement, which undoes the transaction that it is in.
        with (
            self._errors(query),
            self.connection.transaction(),
            self.connection.cursor() as cursor,
            cursor.copy(command) as copy,
        ):
            names, types = [each.name for each in columns], [each.sql_type for each in columns]
            self._is_copying = True
            try:
                yield from copy_format.decode_batches(copy, names, types, rows)
            finally:
                self._is_copying = False

    def _take_arrived(self, data: bytearray) -> None:
        """Add the rows of a binary COPY that are here by now: the driver prepares to wait for every single one.

        What looks like the end is left to the driver, which then asks for the result of the whole.
        """
        libpq = self.connection.pgconn
        while not data.endswith(copy_format.TRAILER):
            size, piece = libpq.get_copy_data(1)
            if size == 0:
                return
            if size < 0:
                failed = libpq.get_result()
                while libpq.get_result() is not None:  # until the connection is free again
                    pass
                raise self._driver.errors.error_from_result(failed, encoding=self.connection.info.encoding)
            data += piece

    def load(self, rows: pa.Table | pa.RecordBatchReader, name: str) -> None:
        """Add the rows of an Arrow table, or batches, to a table, of which the whole name is given as SQL has it."""
        has_text = any(copy_format.sql_type(each.type) == copy_format.TEXT for each in rows.schema)
        command = f"COPY {name} FROM STDIN (FORMAT {'CSV' if has_text else 'BINARY'})"
        with self._errors(command), self.connection.cursor() as cursor, cursor.copy(command) as copy:
            for piece in (text_format if has_text else copy_format).encode(rows):
                copy.write(piece)

    def is_in_transaction(self) -> bool:
        """Whether statements are in a transaction that somebody began."""
        return bool(self.connection.info.transaction_status != self._driver.pq.TransactionStatus.IDLE)

    @contextmanager
    def transaction(self, isolation: Isolation | None = None) -> Iterator[None]:
        """All of the statements within take effect, or none; in a transaction that is open, once that is committed.

        Args:
            isolation: That one that begins here has; else it is what the user has by default.
        """
        self._check_free()
        try:
            with self._isolated(isolation), self.connection.transaction():
                yield
        except self._driver.Error as error:
            raise self._engine_error(error) from error

    @contextmanager
    def _isolated(self, isolation: Isolation | None) -> Iterator[None]:
        """Within, a transaction that begins is so isolated."""
        if self.is_in_transaction() or isolation is None:
            yield
            return
        before = self.connection.isolation_level
        self.connection.isolation_level = self._driver.IsolationLevel[isolation.name]
        try:
            yield
        finally:
            if not self.connection.closed:
                self.connection.isolation_level = before

    @contextmanager
    def _errors(self, text: str) -> Iterator[None]:
        self._check_free()
        check_text(text)
        try:
            with self._own_transaction():
                yield
        except self._driver.Error as error:
            raise self._engine_error(error, text) from error

    def _check_free(self) -> None:
        """Refuse a statement for which psycopg would wait until somebody else has read the last batch."""
        if self._is_copying:
            raise EngineError(
                "this connection has a result that is being read in batches; read it to its end or drop it"
            )

    def _engine_error(self, error: Exception, statement: str | None = None) -> EngineError:
        lost = ""
        if self.connection.closed:
            lost = "the connection to the server is lost; connect again: "
        elif isinstance(error, self._driver.errors.ConnectionFailure) or _TO_A_MACHINE in str(error):
            lost = "a machine of the cluster does not answer; bring it back, or remove it from the cluster: "
        return EngineError(f"{lost}{error}", statement)

    def _own_transaction(self) -> AbstractContextManager[object]:
        is_alone = not self.is_in_transaction() and not self.connection.autocommit
        return self.connection.transaction() if is_alone else nullcontext()

    @contextmanager
    def another_connection(self) -> Iterator["ClientSession"]:
        """Another connection to the same database, which sees what is committed, whatever happens on this one."""
        info = self.connection.info
        try:
            other = self._driver.connect(info.dsn, password=info.password or None, autocommit=True)
        except self._driver.Error as error:
            raise EngineError(f"cannot connect again: {error}") from error
        with other:
            yield ClientSession(other, self._driver, is_owned=False)

    def close(self) -> None:
        """Close the connection, if it was opened here."""
        if self._is_owned:
            self.connection.close()
