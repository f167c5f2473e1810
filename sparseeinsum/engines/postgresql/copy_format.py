"""Engines: Arrow tables as PostgreSQL's binary COPY format, and back.

Source: the PostgreSQL manual, COPY, "Binary Format": a row is the number of its fields, then the length and the bytes
of each, all big-endian; an array is its dimensions, each element with a length of its own.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparseeinsum.errors import EngineError

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class _Element:
    """A fixed-size type.

    Attributes:
        oid: Its number in PostgreSQL.
        wire: As numpy reads it off the wire.
        arrow: As Arrow has it.
        epoch: What Arrow counts from 1970 to 2000, from which PostgreSQL counts.
    """

    oid: int
    wire: str
    arrow: pa.DataType
    epoch: int = 0

    @property
    def native(self) -> Any:  # noqa: ANN401  # numpy's types
        """Its dtype in numpy."""
        return np.dtype(self.wire).newbyteorder("=") if self.epoch or self.is_bytes else self.arrow.to_pandas_dtype()

    @property
    def is_bytes(self) -> bool:
        """Whether values are bytes, and no numbers."""
        return self.wire.startswith("V")

    def column(self, numbers: NDArray[Any]) -> pa.Array:
        """Numbers as they come as a column."""
        if self.is_bytes:
            data = pa.py_buffer(np.ascontiguousarray(numbers).tobytes())
            return pa.ExtensionArray.from_storage(
                self.arrow, pa.FixedSizeBinaryArray.from_buffers(self.arrow.storage_type, len(numbers), [None, data])
            )
        plain = pa.array(numbers.astype(self.native))
        return pa.array(numbers.astype(self.native) + self.epoch).view(self.arrow) if self.epoch else plain

    def numbers(self, column: pa.ChunkedArray) -> NDArray[Any]:
        """A column as the numbers that go."""
        if self.is_bytes:
            chunks = [np.frombuffer(b"".join(chunk.storage.to_pylist()), self.wire) for chunk in column.chunks]
            return np.concatenate([np.empty(0, self.wire), *chunks])
        if self.epoch:
            return np.asarray(column.cast(pa.from_numpy_dtype(self.native)).to_numpy() - self.epoch)
        return np.asarray(column.to_numpy())


_ELEMENTS = {
    "BOOLEAN": _Element(16, "u1", pa.bool_()),
    "BIGINT": _Element(20, ">i8", pa.int64()),
    "SMALLINT": _Element(21, ">i2", pa.int16()),
    "INTEGER": _Element(23, ">i4", pa.int32()),
    "FLOAT": _Element(700, ">f4", pa.float32()),
    "DOUBLE": _Element(701, ">f8", pa.float64()),
    "DATE": _Element(1082, ">i4", pa.date32(), epoch=10_957),
    "TIMESTAMP": _Element(1114, ">i8", pa.timestamp("us"), epoch=946_684_800_000_000),
    "TIMESTAMPTZ": _Element(1184, ">i8", pa.timestamp("us", "UTC"), epoch=946_684_800_000_000),
    "UUID": _Element(2950, "V16", pa.uuid()),
}
_TYPES = {element.arrow: name for name, element in _ELEMENTS.items()}
TEXT = "TEXT"  # of no fixed size: see `text_format`


def sql_type(kind: pa.DataType) -> str:
    """The type of a column that holds an Arrow column, in the spelling of `statistics.columns`."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"{_TYPES[kind.value_type]}[]"
    return TEXT if pa.types.is_large_string(kind) else _TYPES[kind]


def arrow_type(name: str, kind: str) -> pa.DataType:
    """The type of the Arrow column for a column of a result; its type in the spelling of `statistics.columns`.

    Raises:
        EngineError: It is one that no tensor has.
    """
    element = kind.removesuffix("[]")
    if element not in _ELEMENTS:
        raise EngineError(f"the column {name} of a result has the type {kind}, which no tensor has")
    return _ELEMENTS[element].arrow if element == kind else pa.large_list(_ELEMENTS[element].arrow)


@dataclass(frozen=True, slots=True)
class _Field:
    """A column of rows that are all of one size.

    Attributes:
        element: Of what type its numbers are.
        length: Numbers in its arrays; None where it has no arrays.
    """

    element: _Element
    length: int | None

    @property
    def payload(self) -> np.dtype[Any]:
        """What follows the length of the field."""
        if self.length is None:
            return np.dtype(self.element.wire)
        header = [("ndim", ">i4"), ("nulls", ">i4"), ("oid", ">i4")]
        if self.length == 0:
            return np.dtype(header)
        item = np.dtype([("bytes", ">i4"), ("number", self.element.wire)])
        return np.dtype([*header, ("extent", ">i4"), ("first", ">i4"), ("items", item, (self.length,))])


def _row_type(fields: Sequence[_Field]) -> np.dtype[Any]:
    parts: list[tuple[str, Any]] = [("count", ">i2")]
    for place, field in enumerate(fields):
        parts += [(f"bytes_{place}", ">i4"), (f"field_{place}", field.payload)]
    return np.dtype(parts)


def encode(rows: pa.Table | pa.RecordBatchReader) -> Iterator[bytes]:
    """An Arrow table or batches without NULL, in pieces; rows whose arrays are longer than others' come first."""
    yield _HEADER
    for table in [rows] if isinstance(rows, pa.Table) else map(pa.table, rows):
        for part in _of_equal_lengths(table):
            yield from _encoded_rows(part)
    yield TRAILER


def _of_equal_lengths(table: pa.Table) -> Iterator[pa.Table]:
    """The rows of a table, those together whose arrays are as long."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        lengths = pc.list_value_length(column).unique().to_pylist() if _holds_arrays(column) else []
        if len(lengths) > 1:
            for length in sorted(lengths, reverse=True):
                part = table.filter(pc.equal(pc.list_value_length(table[name]), length))
                yield from _of_equal_lengths(part)
            return
    yield table


def _holds_arrays(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_list(column.type) or pa.types.is_large_list(column.type))


def _encoded_rows(table: pa.Table) -> Iterator[bytes]:
    columns = [_numbers(column) for column in table.columns]
    fields = [
        _Field(_ELEMENTS[sql_type(column.type).removesuffix("[]")], None if numbers.ndim == 1 else numbers.shape[1])
        for column, numbers in zip(table.columns, columns, strict=True)
    ]
    kind = _row_type(fields)
    rows = max(1, _CHUNK_BYTES // kind.itemsize)
    for start in range(0, table.num_rows, rows):
        chunk = np.zeros(min(rows, table.num_rows - start), kind)
        chunk["count"] = len(fields)
        for place, (field, numbers) in enumerate(zip(fields, columns, strict=True)):
            chunk[f"bytes_{place}"] = field.payload.itemsize
            _put(chunk[f"field_{place}"], field, numbers[start : start + len(chunk)], chunk, f"field_{place}")
        yield chunk.tobytes()


def _put(payload: NDArray[Any], field: _Field, numbers: NDArray[Any], chunk: NDArray[Any], name: str) -> None:
    if field.length is None:
        chunk[name] = numbers
        return
    payload["oid"] = field.element.oid
    if field.length:
        payload["ndim"], payload["extent"], payload["first"] = 1, field.length, 1
        payload["items"]["bytes"] = np.dtype(field.element.wire).itemsize
        payload["items"]["number"] = numbers


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column as numbers, a row of them for every array."""
    if not _holds_arrays(column):
        return _ELEMENTS[_TYPES[column.type]].numbers(column)
    flat = np.asarray(column.combine_chunks().flatten().to_numpy(zero_copy_only=False))
    rows = len(column)
    return flat.reshape((rows, len(flat) // rows if rows else 0))


def decode(data: bytes | bytearray, names: Sequence[str], types: Sequence[str]) -> pa.Table:
    """What COPY ... TO STDOUT (FORMAT BINARY) wrote, as an Arrow table.

    Args:
        data: All of it.
        names: Of the columns.
        types: Of the columns, in the spelling of `statistics.columns`.

    Raises:
        EngineError: A column has a type that no tensor has, or holds NULL.
    """
    return _decode_rows(memoryview(data)[len(_HEADER) : len(data) - len(TRAILER)], names, types)


def decode_batches(
    pieces: Iterable[bytes | bytearray | memoryview], names: Sequence[str], types: Sequence[str], rows: int
) -> Iterator[pa.Table]:
    """What COPY ... TO STDOUT (FORMAT BINARY) writes, while it does: so many rows at once, and one table at least.

    Args:
        pieces: As libpq hands them out: each ends where a row does.
        names: As for `decode`; so are types.
        rows: Of all tables but the last, give or take one.

    Raises:
        EngineError: A column has a type that no tensor has, or holds NULL.
    """
    yield _decode_rows(memoryview(b""), names, types)
    data, last = bytearray(), b""  # the last piece ends the data, and may come with a row
    count, skipped = 0, len(_HEADER)
    for piece in pieces:
        data += last
        count += 1
        if count > rows:
            yield _decode_rows(memoryview(data)[skipped:], names, types)
            data, count, skipped = bytearray(), 0, 0
        last = bytes(piece)
    data += last
    yield _decode_rows(memoryview(data)[skipped : len(data) - len(TRAILER)], names, types)


def _decode_rows(body: memoryview, names: Sequence[str], types: Sequence[str]) -> pa.Table:
    for name, kind in zip(names, types, strict=True):
        arrow_type(name, kind)
    elements = [_ELEMENTS[kind.removesuffix("[]")] for kind in types]
    are_arrays = [kind.endswith("[]") for kind in types]
    rows = _rows_of_one_size(body, elements, are_arrays)
    if rows is None:
        return pa.table(_columns_row_by_row(body, elements, are_arrays), names=list(names))
    columns = [
        _column(rows[f"field_{place}"], element, is_array)
        for place, (element, is_array) in enumerate(zip(elements, are_arrays, strict=True))
    ]
    return pa.table(columns, names=list(names))


def _rows_of_one_size(
    body: memoryview, elements: Sequence[_Element], are_arrays: Sequence[bool]
) -> NDArray[Any] | None:
    """All rows, if they are laid out as the first one is; else None."""
    fields = []
    place = 2
    for element, is_array in zip(elements, are_arrays, strict=True):
        length = None
        if len(body) and is_array:
            size, ndim = struct.unpack_from(">ii", body, place) if place + 8 <= len(body) else (0, 0)
            length = struct.unpack_from(">i", body, place + 16)[0] if size > 12 and ndim == 1 else 0
        elif is_array:
            length = 0
        fields.append(_Field(element, length))
        place += 4 + fields[-1].payload.itemsize
    kind = _row_type(fields)
    if len(body) % kind.itemsize:
        return None
    rows = np.frombuffer(body, kind)
    for number, field in enumerate(fields):
        is_alike = (rows[f"bytes_{number}"] == field.payload.itemsize).all()
        if is_alike and field.length:
            payload = rows[f"field_{number}"]
            is_alike = (payload["extent"] == field.length).all() and not payload["nulls"].any()
        if not is_alike:
            return None
    return rows


def _column(payload: NDArray[Any], element: _Element, is_array: bool) -> pa.Array:
    if not is_array:
        return element.column(payload)
    native = element.native
    numbers = payload["items"]["number"].astype(native) if "items" in (payload.dtype.names or ()) else None
    flat = np.empty(0, native) if numbers is None else np.ascontiguousarray(numbers).reshape(-1)
    length = 0 if numbers is None else numbers.shape[1]
    offsets = np.arange(len(payload) + 1, dtype=np.int64) * length
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(flat))


def _columns_row_by_row(body: memoryview, elements: Sequence[_Element], are_arrays: Sequence[bool]) -> list[pa.Array]:
    """Columns of rows whose arrays differ in length."""
    found: list[list[NDArray[Any]]] = [[] for _ in elements]
    place = 0
    while place < len(body):
        place += 2
        for column, (element, is_array) in enumerate(zip(elements, are_arrays, strict=True)):
            (size,) = struct.unpack_from(">i", body, place)
            if size < 0:
                raise EngineError("a result holds NULL, which no tensor has")
            found[column].append(_field(body[place + 4 : place + 4 + size], element, is_array))
            place += 4 + size
    columns = []
    for arrays, element, is_array in zip(found, elements, are_arrays, strict=True):
        flat = np.concatenate(arrays).astype(element.arrow.to_pandas_dtype())
        offsets = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int64)
        values = pa.array(flat)
        columns.append(pa.LargeListArray.from_arrays(pa.array(offsets), values) if is_array else values)
    return columns


def _field(payload: memoryview, element: _Element, is_array: bool) -> NDArray[Any]:
    if not is_array:
        return np.frombuffer(payload, element.wire)
    ndim, nulls = struct.unpack_from(">ii", payload)
    if nulls:
        raise EngineError("an array of a result holds NULL, which no tensor has")
    count = math.prod(struct.unpack_from(">i", payload, 12 + 8 * axis)[0] for axis in range(ndim)) if ndim else 0
    items = np.frombuffer(payload, [("bytes", ">i4"), ("number", element.wire)], count, 12 + 8 * ndim)
    return items["number"]
