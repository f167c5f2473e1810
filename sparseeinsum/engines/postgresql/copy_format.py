"""Engines: Arrow tables in PostgreSQL's binary COPY format, and back.

Rows of one size are encoded and decoded as one structured array of numpy.

Source: the PostgreSQL manual, COPY, "Binary Format": a row is the number of its fields, then the length and the bytes
of every field, all big-endian; an array is its dimensions, then every element with a length of its own.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Sequence, Set
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
    """A type whose values have a fixed size.

    Attributes:
        oid: Its object identifier in PostgreSQL.
        wire: The numpy dtype of the values that are sent.
        arrow: The type of a column of Arrow.
        epoch: The year 2000, from which PostgreSQL counts dates, in Arrow's count from 1970; 0 for other types.
    """

    oid: int
    wire: str
    arrow: pa.DataType
    epoch: int = 0

    @property
    def native(self) -> Any:  # noqa: ANN401  # numpy's types
        """The numpy dtype of the values in this machine's byte order."""
        return np.dtype(self.wire).newbyteorder("=") if self.epoch or self.is_bytes else self.arrow.to_pandas_dtype()

    @property
    def is_bytes(self) -> bool:
        """Whether the values are bytes and not numbers."""
        return self.wire.startswith("V")

    def column(self, numbers: NDArray[Any]) -> pa.Array:
        """Return a column of Arrow from values that were received."""
        if self.is_bytes:
            data = pa.py_buffer(np.ascontiguousarray(numbers).tobytes())
            return pa.ExtensionArray.from_storage(
                self.arrow, pa.FixedSizeBinaryArray.from_buffers(self.arrow.storage_type, len(numbers), [None, data])
            )
        plain = pa.array(numbers.astype(self.native))
        return pa.array(numbers.astype(self.native) + self.epoch).view(self.arrow) if self.epoch else plain

    def numbers(self, column: pa.ChunkedArray) -> NDArray[Any]:
        """Return the values of a column of Arrow as they are sent."""
        if self.is_bytes:
            arrays = [np.frombuffer(b"".join(chunk.storage.to_pylist()), self.wire) for chunk in column.chunks]
            return np.concatenate([np.empty(0, self.wire), *arrays])
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
ELEMENT_OIDS = tuple(element.oid for element in _ELEMENTS.values())
_TYPES = {element.arrow: name for name, element in _ELEMENTS.items()}
TEXT = "TEXT"  # has no fixed size: see `text_format`


def sql_type(kind: pa.DataType) -> str:
    """Return the SQL type for a column of Arrow, in the spelling of `statistics.columns`."""
    if is_list(kind):
        return f"{sql_type(kind.value_type).removesuffix('[]')}[]"  # arrays of arrays have the type of their elements
    return TEXT if pa.types.is_large_string(kind) else _TYPES[kind]


def arrow_type(name: str, kind: str) -> pa.DataType:
    """Return the Arrow type for a column of a result.

    Args:
        name: The name of the column, for messages.
        kind: Its SQL type, in the spelling of `statistics.columns`.

    Raises:
        EngineError: No tensor has values of this type.
    """
    element = kind.removesuffix("[]")
    if element not in _ELEMENTS:
        raise EngineError(f"the column {name} of a result has the type {kind}, which no tensor has")
    return _ELEMENTS[element].arrow if element == kind else pa.large_list(_ELEMENTS[element].arrow)


@dataclass(frozen=True, slots=True)
class _Field:
    """A column of rows that all have the same size.

    Attributes:
        element: The type of its values or elements.
        shape: The shape of its arrays; None if it has no arrays.
        is_bytea: Whether its arrays are sent as the bytes of their elements in memory.
    """

    element: _Element
    shape: tuple[int, ...] | None
    is_bytea: bool = False

    @property
    def payload(self) -> np.dtype[Any]:
        """The dtype of what follows the length of the field."""
        if self.shape is None:
            return np.dtype(self.element.wire)
        if self.is_bytea:
            return np.dtype((self.element.native, self.shape))
        header: list[Any] = [("ndim", ">i4"), ("nulls", ">i4"), ("oid", ">i4")]
        if 0 in self.shape:
            return np.dtype(header)
        item = np.dtype([("bytes", ">i4"), ("number", self.element.wire)])
        extents = np.dtype([("extent", ">i4"), ("first", ">i4")])
        return np.dtype([*header, ("extents", extents, (len(self.shape),)), ("items", item, self.shape)])


def _row_dtype(fields: Sequence[_Field]) -> np.dtype[Any]:
    """Return the dtype of a row with these fields."""
    row_fields: list[tuple[str, Any]] = [("count", ">i2")]
    for position, field in enumerate(fields):
        row_fields += [(f"bytes_{position}", ">i4"), (f"field_{position}", field.payload)]
    return np.dtype(row_fields)


def encode(rows: pa.Table | pa.RecordBatchReader) -> Iterator[bytes]:
    """Yield the encoding of an Arrow table, or of batches, without NULL, in pieces.

    Rows are sorted by the lengths of their arrays, longest first.
    """
    yield _HEADER
    for table in [rows] if isinstance(rows, pa.Table) else map(pa.table, rows):
        for part in _parts_of_equal_lengths(table):
            yield from _encoded_rows(part)
    yield TRAILER


def _parts_of_equal_lengths(table: pa.Table) -> Iterator[pa.Table]:
    """Split a table into parts whose rows have arrays of the same lengths."""
    for column in table.columns:
        lengths = pc.list_value_length(column).to_numpy() if is_list(column.type) else np.empty(0, np.int64)
        if len(lengths) and lengths.min() < lengths.max():
            order = np.argsort(-lengths, kind="stable")
            ordered, starts = table.take(pa.array(order)), np.flatnonzero(np.diff(lengths[order])) + 1
            for start, stop in zip([0, *starts], [*starts, len(order)], strict=True):
                yield from _parts_of_equal_lengths(ordered.slice(start, stop - start))
            return
    yield table


def is_list(kind: pa.DataType) -> bool:
    """Whether a column of Arrow has arrays."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _encoded_rows(table: pa.Table) -> Iterator[bytes]:
    """Yield the encoding of rows that all have the same size."""
    columns = [_to_numbers(column) for column in table.columns]
    fields = [
        _Field(_ELEMENTS[sql_type(column.type).removesuffix("[]")], numbers.shape[1:] or None)
        for column, numbers in zip(table.columns, columns, strict=True)
    ]
    row_type = _row_dtype(fields)
    rows_per_chunk = max(1, _CHUNK_BYTES // row_type.itemsize)
    for start in range(0, table.num_rows, rows_per_chunk):
        chunk = np.zeros(min(rows_per_chunk, table.num_rows - start), row_type)
        chunk["count"] = len(fields)
        for position, (field, numbers) in enumerate(zip(fields, columns, strict=True)):
            chunk[f"bytes_{position}"] = field.payload.itemsize
            _fill_field(chunk, f"field_{position}", field, numbers[start : start + len(chunk)])
        yield chunk.tobytes()


def _fill_field(chunk: NDArray[Any], name: str, field: _Field, numbers: NDArray[Any]) -> None:
    """Write numbers into the field `name` of the rows in `chunk`."""
    if field.shape is None:
        chunk[name] = numbers
        return
    payload = chunk[name]
    payload["oid"] = field.element.oid
    if 0 not in field.shape:
        payload["ndim"], payload["extents"]["extent"], payload["extents"]["first"] = len(field.shape), field.shape, 1
        payload["items"]["bytes"] = np.dtype(field.element.wire).itemsize
        payload["items"]["number"] = numbers


def _to_numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as an array of numbers, with an axis for its rows, and one for each level of arrays."""
    if not is_list(column.type):
        return _ELEMENTS[_TYPES[column.type]].numbers(column)
    elements, rows = column.combine_chunks().flatten(), len(column)
    length = len(elements) // rows if rows else 0
    if is_list(elements.type):
        inner = _to_numbers(pa.chunked_array([elements]))
        return inner.reshape((rows, length, *inner.shape[1:]))
    return np.asarray(elements.to_numpy(zero_copy_only=False)).reshape((rows, length))


def encode_array(column: pa.ChunkedArray) -> bytes:
    """The numbers of a column, or the elements of all its arrays, as one array in the binary format of parameters.

    Booleans are sent as integers, as SQL of this package casts from integers to Booleans only.
    """
    numbers = _to_numbers(column).reshape(-1)
    kind = sql_type(column.type).removesuffix("[]")
    field = _Field(_ELEMENTS["INTEGER" if kind == "BOOLEAN" else kind], numbers.shape)
    parameter = np.zeros(1, [("array", field.payload)])
    _fill_field(parameter, "array", field, numbers)
    return parameter.tobytes()


def decode_fields(columns: Sequence[Sequence[bytes | None]], names: Sequence[str], types: Sequence[str]) -> pa.Table:
    """Return the fields of rows in the binary format, by columns, as an Arrow table; raises as `decode`."""
    return pa.table([_column_of_fields(*column) for column in zip(columns, names, types, strict=True)], list(names))


def _column_of_fields(fields: Sequence[bytes | None], name: str, kind: str) -> pa.Array:
    arrow_type(name, kind)
    element = _ELEMENTS[kind.removesuffix("[]")]
    present = [field for field in fields if field is not None]
    if len(present) < len(fields):
        raise EngineError("a result holds NULL, which no tensor has")
    if not kind.endswith("[]"):
        return element.column(np.frombuffer(b"".join(present), element.wire))
    return _array_column([_field_numbers(memoryview(field), element, is_array=True) for field in present], element)


def decode(
    data: bytes | bytearray, names: Sequence[str], types: Sequence[str], bytea: Set[str] = frozenset()
) -> pa.Table:
    """Return the output of COPY ... TO STDOUT (FORMAT BINARY) as an Arrow table.

    Args:
        data: The whole output.
        names: The names of the columns.
        types: Their types, in the spelling of `statistics.columns`.
        bytea: Columns of arrays that are sent as the bytes of their elements in memory.

    Raises:
        EngineError: A column has a type that no tensor has, or holds NULL.
    """
    return _decode_rows(memoryview(data)[len(_HEADER) : len(data) - len(TRAILER)], names, types, bytea)


def decode_batches(
    pieces: Iterable[bytes | bytearray | memoryview], names: Sequence[str], types: Sequence[str], rows: int
) -> Iterator[pa.Table]:
    """Yield the output of COPY ... TO STDOUT (FORMAT BINARY) as Arrow tables while it arrives: at least one.

    Args:
        pieces: The output as libpq returns it: every piece ends at the end of a row.
        names: The names of the columns.
        types: Their types, in the spelling of `statistics.columns`.
        rows: The number of rows of all tables but the last, give or take one.

    Raises:
        EngineError: A column has a type that no tensor has, or holds NULL.
    """
    yield _decode_rows(memoryview(b""), names, types)
    data, last = bytearray(), b""  # one piece is held back: the last one contains the trailer, perhaps after a row
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


def _decode_rows(
    body: memoryview, names: Sequence[str], types: Sequence[str], bytea: Set[str] = frozenset()
) -> pa.Table:
    """Return rows as an Arrow table: all at once if they have the same size, else one by one."""
    for name, kind in zip(names, types, strict=True):
        arrow_type(name, kind)
    elements = [_ELEMENTS[kind.removesuffix("[]")] for kind in types]
    are_arrays = [kind.endswith("[]") for kind in types]
    are_bytea = [name in bytea for name in names]
    rows = _rows_of_one_size(body, elements, are_arrays, are_bytea)
    if rows is None:
        return pa.table(_columns_row_by_row(body, elements, are_arrays, are_bytea), names=list(names))
    columns = [
        _column(rows[f"field_{position}"], element, is_array)
        for position, (element, is_array) in enumerate(zip(elements, are_arrays, strict=True))
    ]
    return pa.table(columns, names=list(names))


def _rows_of_one_size(
    body: memoryview, elements: Sequence[_Element], are_arrays: Sequence[bool], are_bytea: Sequence[bool]
) -> NDArray[Any] | None:
    """Return all rows as a structured array, if they have the layout of the first row; else None."""
    fields = []
    offset = 2
    for element, is_array, is_bytea in zip(elements, are_arrays, are_bytea, strict=True):
        shape: tuple[int, ...] | None = None
        if len(body) and is_bytea:
            (size,) = struct.unpack_from(">i", body, offset) if offset + 4 <= len(body) else (0,)
            shape = (max(size, 0) // np.dtype(element.native).itemsize,)
        elif len(body) and is_array:
            size, ndim = struct.unpack_from(">ii", body, offset) if offset + 8 <= len(body) else (0, 0)
            shape = (struct.unpack_from(">i", body, offset + 16)[0] if size > 12 and ndim == 1 else 0,)
        elif is_array:
            shape = (0,)
        fields.append(_Field(element, shape, is_bytea))
        offset += 4 + fields[-1].payload.itemsize
    row_dtype = _row_dtype(fields)
    if len(body) % row_dtype.itemsize:
        return None
    rows = np.frombuffer(body, row_dtype)
    for number, field in enumerate(fields):
        is_same = (rows[f"bytes_{number}"] == field.payload.itemsize).all()
        if is_same and field.shape and 0 not in field.shape and not field.is_bytea:
            payload = rows[f"field_{number}"]
            is_same = (payload["extents"]["extent"] == field.shape).all() and not payload["nulls"].any()
        if not is_same:
            return None
    return rows


def _column(payload: NDArray[Any], element: _Element, is_array: bool) -> pa.Array:
    """Return a column of Arrow from the fields of rows that have the same size."""
    if not is_array:
        return element.column(payload)
    native = element.native
    numbers = payload  # the elements, where their bytes are sent
    if payload.dtype.names is not None:
        has_items = "items" in payload.dtype.names
        numbers = payload["items"]["number"] if has_items else np.empty((len(payload), 0), native)
    flat, length = np.ascontiguousarray(numbers, native).reshape(-1), numbers.shape[1]
    offsets = np.arange(len(payload) + 1, dtype=np.int64) * length
    return pa.LargeListArray.from_arrays(pa.array(offsets), element.column(flat))


def _columns_row_by_row(
    body: memoryview, elements: Sequence[_Element], are_arrays: Sequence[bool], are_bytea: Sequence[bool]
) -> list[pa.Array]:
    """Return the columns of rows whose arrays differ in length."""
    fields: list[list[NDArray[Any]]] = [[] for _ in elements]
    offset = 0
    while offset < len(body):
        offset += 2
        for column, (element, is_array, is_bytea) in enumerate(zip(elements, are_arrays, are_bytea, strict=True)):
            (size,) = struct.unpack_from(">i", body, offset)
            if size < 0:
                raise EngineError("a result holds NULL, which no tensor has")
            field = body[offset + 4 : offset + 4 + size]
            numbers = np.frombuffer(field, element.native) if is_bytea else _field_numbers(field, element, is_array)
            fields[column].append(numbers)
            offset += 4 + size
    return [
        _array_column(arrays, element) if is_array else element.column(np.concatenate(arrays))
        for arrays, element, is_array in zip(fields, elements, are_arrays, strict=True)
    ]


def _array_column(arrays: Sequence[NDArray[Any]], element: _Element) -> pa.Array:
    """Return a column of Arrow from the numbers of its arrays, which may differ in length."""
    offsets = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int64)
    numbers = np.concatenate([np.empty(0, element.wire), *arrays])
    return pa.LargeListArray.from_arrays(pa.array(offsets), element.column(numbers))


def _field_numbers(payload: memoryview, element: _Element, is_array: bool) -> NDArray[Any]:
    """Return the number, or the elements of the array, of one field."""
    if not is_array:
        return np.frombuffer(payload, element.wire)
    ndim, nulls = struct.unpack_from(">ii", payload)
    if nulls:
        raise EngineError("an array of a result holds NULL, which no tensor has")
    count = math.prod(struct.unpack_from(">i", payload, 12 + 8 * axis)[0] for axis in range(ndim)) if ndim else 0
    items = np.frombuffer(payload, [("bytes", ">i4"), ("number", element.wire)], count, 12 + 8 * ndim)
    return items["number"]
