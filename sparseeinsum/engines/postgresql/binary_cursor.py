"""Engines: a cursor of psycopg whose parameters and results are bytes in PostgreSQL's binary format."""

from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from sparseeinsum.engines.postgresql.copy_format import ELEMENT_OIDS

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import Buffer


class BinaryValue(bytes):
    """A value in the binary format of whatever type the statement casts it to."""

    @classmethod
    def of(cls, value: bytes | None) -> Self | None:
        """The value; None stands for NULL."""
        return None if value is None else cls(value)


def binary_cursor(connection: "psycopg.Connection[Any]", driver: ModuleType) -> Any:  # noqa: ANN401  # psycopg's
    """A cursor that takes `BinaryValue` as parameters, and returns numbers and arrays of numbers as bytes."""

    class ValueDumper(driver.adapt.Dumper):  # type: ignore[misc, name-defined]  # psycopg is imported late
        """Sends the bytes as they are."""

        format = driver.pq.Format.BINARY
        oid = 0  # the server takes the type from the cast

        def dump(self, value: BinaryValue) -> bytes:
            return value

    cursor = driver.RawCursor(connection, row_factory=driver.rows.tuple_row)
    cursor.adapters.register_dumper(BinaryValue, ValueDumper)
    types = driver.adapters.types
    as_bytes = driver.adapters.get_loader(types["bytea"].oid, driver.pq.Format.BINARY)
    for oid in ELEMENT_OIDS:
        for received in (oid, types[oid].array_oid):
            cursor.adapters.register_loader(received, as_bytes)
    return cursor


@lru_cache(maxsize=1)
def byte_views(driver: ModuleType) -> type[Any]:
    """A loader that returns values as views of the bytes that libpq has received, without a copy."""

    class ByteViews(driver.adapt.Loader):  # type: ignore[misc, name-defined]  # psycopg is imported late
        """Returns the bytes as they are."""

        format = driver.pq.Format.BINARY

        def load(self, data: "Buffer") -> memoryview:
            return memoryview(data)

    return ByteViews
