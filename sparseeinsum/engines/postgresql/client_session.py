"""Engines: sessions of a client with a PostgreSQL server, through psycopg."""

from collections.abc import Iterator, Sequence, Set
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from sparseeinsum.engines.engine import Column
from sparseeinsum.engines.postgresql import copy_format, text_format
from sparseeinsum.engines.postgresql.binary_cursor import BinaryValue, binary_cursor, byte_views
from sparseeinsum.engines.postgresql.sessions import ISOLATION, Isolation, column_type, has_snapshot
from sparseeinsum.engines.postgresql.value_parts import parts_query, whole_value
from sparseeinsum.engines.statement_text import check_text
from sparseeinsum.errors import EngineError

if TYPE_CHECKING:
    import psycopg


_SECONDS_TO_CANCEL = 5.0
_LONGEST_LOCK = "200ms"  # that another connection waits for: what this one has locked, it would wait for forever
_NUMBER_ARRAYS = ("DOUBLE[]", "FLOAT[]", "BIGINT[]")  # that tensor_bytes takes
_WORKER_FAILURE = "failure on connection"  # of a coordinator to a worker; some of these errors have no SQLSTATE


def load_driver() -> Any:  # noqa: ANN401  # a module
    """Import psycopg, which is an optional dependency.

    Raises:
        EngineError: It is not installed.
    """
    try:
        import psycopg  # noqa: PLC0415
    except ImportError:
        raise EngineError("psycopg is needed for PostgreSQL; pip install 'sparseeinsum[postgres]'") from None
    return psycopg


class ClientSession:
    """A connection of psycopg.

    Without an open transaction every statement is committed at once, even on a connection without autocommit.
    """

    def __init__(self, connection: "psycopg.Connection[Any]", driver: ModuleType, is_owned: bool) -> None:
        self.connection = connection
        self.place = "" if connection.closed else _place(connection.info)
        self._driver = driver
        self._is_owned = is_owned
        self._is_copying = False
        self._binary_cursor: Any = None

    @property
    def version(self) -> int:
        """The version of the server as a number, such as 150018."""
        return self.connection.info.server_version

    def fetch(self, text: str, *parameters: str) -> Sequence[tuple[object, ...]]:
        """Run a query with the parameters $1, $2, ... and return all its rows."""
        row_factory = self._driver.rows.tuple_row  # the connection of a user may have another one
        for parameter in parameters:
            check_text(parameter)
        with self._errors(text), self._driver.RawCursor(self.connection, row_factory=row_factory) as cursor:
            rows: Sequence[tuple[object, ...]] = cursor.execute(text, parameters or None, prepare=False).fetchall()
            return rows

    def write(self, text: str) -> int:
        """Run a statement; return how many rows it wrote."""
        with self._errors(text):
            return self.connection.execute(text, prepare=False).rowcount

    def columns(self, query: str) -> list[Column]:
        """Return the columns of a query, which is prepared but not run: with LIMIT 0, Citus would run parts of it."""
        libpq, encoding = self.connection.pgconn, self.connection.info.encoding
        with self._errors(query):
            for described in (libpq.prepare(b"", query.encode(encoding)), libpq.describe_prepared(b"")):
                if described.status != self._driver.pq.ExecStatus.COMMAND_OK:
                    raise self._driver.errors.error_from_result(described, encoding=encoding)
        return [self._column(described, number) for number in range(described.nfields)]

    def _column(self, described: "psycopg.pq.abc.PGresult", number: int) -> Column:
        name, oid = described.fname(number), described.ftype(number)
        assert name is not None
        type_info = self.connection.adapters.types.get(oid)
        shown = str(oid) if type_info is None else type_info.get_type_display(oid, described.fmod(number))
        return Column(name.decode(self.connection.info.encoding), column_type(shown))

    def read(self, query: str, arrays_as_bytes: bool = False) -> pa.Table:
        """Run a query and return its result as an Arrow table.

        Args:
            query: The query.
            arrays_as_bytes: Whether arrays are sent as the bytes of their elements, which takes functions of ours.
        """
        columns = self.columns(query)
        bytea = frozenset(column.name for column in columns if arrays_as_bytes and column.sql_type in _NUMBER_ARRAYS)
        if bytea:
            query = _with_bytes(query, columns, bytea)
        with self._errors(query), self.connection.cursor() as cursor:
            data = bytearray()
            is_text = all(column.sql_type == copy_format.TEXT for column in columns)
            copy_options = "(FORMAT CSV, FORCE_QUOTE *)" if is_text else "(FORMAT BINARY)"
            with cursor.copy(f"COPY ({query}) TO STDOUT {copy_options}") as copy:
                for piece in copy:  # waits for the next piece
                    data += piece
                    if not is_text:
                        self._append_received(data)
        names = [column.name for column in columns]
        if is_text:
            return text_format.decode(data, names)
        return copy_format.decode(data, names, [column.sql_type for column in columns], bytea)

    def read_bytes(self, query: str, item_bytes: int = 1) -> memoryview | None:
        """Run a query that returns one computed value, as `DatabaseSession`."""
        text, row_factory = parts_query(query, item_bytes), self._driver.rows.tuple_row
        with self._errors(text), self._driver.RawCursor(self.connection, row_factory=row_factory) as cursor:
            cursor.adapters.register_loader("bytea", byte_views(self._driver))
            with closing(cursor.stream(text, binary=True)) as parts:
                return whole_value(parts, item_bytes)

    def read_small(self, query: str, parameters: Sequence[bytes | None]) -> pa.Table:
        """Run a query of few rows, which the server parses once, and return its result as an Arrow table.

        Args:
            query: The query.
            parameters: The values of $1, $2, ... in the binary format of the types that the query casts them to.
        """
        if self._binary_cursor is None:
            self._binary_cursor = binary_cursor(self.connection, self._driver)
        cursor = self._binary_cursor
        with self._errors(query):
            cursor.execute(query, tuple(map(BinaryValue.of, parameters)), prepare=True, binary=True)
            rows = cursor.fetchall()
        columns = [self._column(cursor.pgresult, number) for number in range(cursor.pgresult.nfields)]
        fields = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
        return copy_format.decode_fields(fields, [c.name for c in columns], [c.sql_type for c in columns])

    def batches(self, query: str, rows: int) -> Iterator[pa.Table]:
        """Yield the result of a query in tables of `rows` rows while it is computed: at least one, perhaps empty."""
        columns = self.columns(query)
        command = f"COPY ({query}) TO STDOUT (FORMAT BINARY)"
        # In a savepoint, because to stop before the end cancels the statement, which would undo an open transaction.
        with (
            self._errors(query),
            self.connection.transaction(),
            self.connection.cursor() as cursor,
            cursor.copy(command) as copy,
        ):
            names, types = [column.name for column in columns], [column.sql_type for column in columns]
            self._is_copying = True
            try:
                yield from copy_format.decode_batches(copy, names, types, rows)
            finally:
                self._is_copying = False

    def _append_received(self, data: bytearray) -> None:
        """Append the rows of a binary COPY that libpq has received; psycopg would prepare to wait for each of them.

        It stops at what looks like the trailer, so that psycopg fetches the result of the whole command.
        """
        libpq = self.connection.pgconn
        while not data.endswith(copy_format.TRAILER):
            size, piece = libpq.get_copy_data(1)
            if size == 0:
                return
            if size < 0:
                failed = libpq.get_result()
                while libpq.get_result() is not None:  # until the connection accepts statements again
                    pass
                raise self._driver.errors.error_from_result(failed, encoding=self.connection.info.encoding)
            data += piece

    def load(self, rows: pa.Table | pa.RecordBatchReader, name: str) -> None:
        """Add the rows of an Arrow table, or batches, to the table with the qualified, quoted name `name`."""
        has_text = any(copy_format.sql_type(field.type) == copy_format.TEXT for field in rows.schema)
        command = f"COPY {name} FROM STDIN (FORMAT {'CSV' if has_text else 'BINARY'})"
        with self._errors(command), self.connection.cursor() as cursor, cursor.copy(command) as copy:
            for piece in (text_format if has_text else copy_format).encode(rows):
                copy.write(piece)

    def is_in_transaction(self) -> bool:
        """Return whether a transaction is open."""
        return bool(self.connection.info.transaction_status != self._driver.pq.TransactionStatus.IDLE)

    def has_snapshot(self) -> bool:
        """Return whether all statements of the open transaction see the same data."""
        return has_snapshot(self.fetch(ISOLATION)[0][0])

    def lock_for_reading(self, relations: str) -> None:
        """Prevent that others replace relations until the transaction ends; their quoted names, as LOCK TABLE takes."""
        self.write(f"LOCK TABLE {relations} IN ACCESS SHARE MODE")

    @contextmanager
    def transaction(self, isolation: Isolation | None = None) -> Iterator[None]:
        """Run the statements of the context in a transaction, or in a savepoint of one that is open.

        Args:
            isolation: The isolation level of a transaction that begins here; None for the user's default.
        """
        self._check_free()
        try:
            with self._isolated(isolation), self._ended():
                yield
        except self._driver.Error as error:
            raise self._engine_error(error) from error

    @contextmanager
    def _ended(self) -> Iterator[None]:
        """Run the statements of the context in a transaction that ends with it, even if Ctrl-C left one running."""
        is_outermost = not self.is_in_transaction()
        try:
            with self.connection.transaction():
                try:
                    yield
                except BaseException:
                    self._cancel_statement()  # ROLLBACK would wait for it
                    raise
        finally:
            self._cancel_statement()
            if is_outermost and not self.connection.closed and self.is_in_transaction():
                self.connection.rollback()  # Ctrl-C came before COMMIT was sent, or was executed

    def _cancel_statement(self) -> bool:
        """Cancel the statement that an interrupted wait left running; return whether there was one."""
        if self.connection.info.transaction_status != self._driver.pq.TransactionStatus.ACTIVE:
            return False
        self.connection.cancel_safe(timeout=_SECONDS_TO_CANCEL)
        libpq, status = self.connection.pgconn, self._driver.pq.ExecStatus
        while (result := libpq.get_result()) is not None:
            if result.status in (status.COPY_IN, status.COPY_OUT, status.COPY_BOTH):
                self.connection.close()  # data are on their way
                break
        return True

    @contextmanager
    def _isolated(self, isolation: Isolation | None) -> Iterator[None]:
        """Set the isolation level of a transaction that begins in the context."""
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
        """Raise errors of the driver as EngineError; `text` is the statement that the context runs."""
        self._check_free()
        check_text(text)
        try:
            with self._own_transaction():
                yield
        except self._driver.Error as error:
            raise self._engine_error(error, text) from error

    def _check_free(self) -> None:
        """Refuse a statement while batches are read: psycopg would wait until the last batch is read."""
        if self._is_copying:
            raise EngineError(
                "this connection has a result that is being read in batches; read it to its end or drop it"
            )

    def _engine_error(self, error: Exception, statement: str | None = None) -> EngineError:
        lost = ""
        if self.connection.closed:
            lost = "the connection to the server is lost; connect again: "
        elif isinstance(error, self._driver.errors.ConnectionFailure) or _WORKER_FAILURE in str(error):
            lost = "a machine of the cluster does not answer; bring it back, or remove it from the cluster: "
        return EngineError(f"{lost}{error}", statement)

    def _own_transaction(self) -> AbstractContextManager[object]:
        """Open a transaction for one statement, if none is open and the connection would begin one by itself."""
        needs_one = not self.is_in_transaction() and not self.connection.autocommit
        return self._ended() if needs_one else nullcontext()

    @contextmanager
    def another_connection(self) -> Iterator["ClientSession"]:
        """Open another connection to the same database, which sees committed data even if this connection failed."""
        info = self.connection.info
        try:
            connection = self._driver.connect(info.dsn, password=info.password or None, autocommit=True)
        except self._driver.Error as error:
            raise EngineError(f"cannot connect again: {error}") from error
        with connection:
            connection.execute(f"SET lock_timeout = '{_LONGEST_LOCK}'")
            yield ClientSession(connection, self._driver, is_owned=False)

    def close(self) -> None:
        """Close the connection if it was opened here."""
        if self._is_owned:
            self.connection.close()


def _with_bytes(query: str, columns: Sequence[Column], bytea: Set[str]) -> str:
    """The query with the bytes of the elements of some columns in place of arrays."""
    names = [exp.to_identifier(column.name, quoted=True).sql("postgres") for column in columns]
    selected = [
        f"tensor_bytes({name}) AS {name}" if column.name in bytea else name
        for name, column in zip(names, columns, strict=True)
    ]
    return f"SELECT {', '.join(selected)} FROM ({query}) AS result"


def _place(info: "psycopg.ConnectionInfo") -> str:
    """The name of a database and its server, which may be a folder of sockets; no password."""
    return f"{info.dbname} at {info.host or 'localhost'}:{info.port}"
