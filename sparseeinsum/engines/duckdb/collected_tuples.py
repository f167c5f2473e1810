"""Engines: Arrow tables over tuples that a statement of DuckDB left in memory; nothing is copied but keys."""

import ctypes
import math
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.machine_memory import has_memory
from sparseeinsum.engines.tuple_numbers import keys_of
from sparseeinsum.kernels import collection as c
from sparseeinsum.kernels.duckdb.library import DuckdbLibrary, require_library
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.collecting_queries import can_collect, can_place
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.statistics.columns import index_dtype

_ELEMENTS = {10: pa.float32(), 11: pa.float64()}  # by duckdb_type in duckdb.h
ELEMENT_BYTES = 8
_LEAST_BYTES = 1 << 20  # of elements from which on collecting takes less time than Arrow batches
_WORD = 8
_PLACED_DENSITY = 0.9  # the smallest share of all keys that have a tuple, from which on arrays of all keys are written
_PLACED_SHARE = 0.25  # the largest share of the memory for these arrays
_MOST_OFFSET = (1 << 31) - 1  # in an array of Arrow


class _Memory:
    """Owns the memory of a handle, which is released with the last array that refers to it."""

    def __init__(self, library: DuckdbLibrary, handle: int) -> None:
        weakref.finalize(self, library.release, handle)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk of tuples; see kernels/collection.py.

    Attributes:
        address: Where it begins.
        memory: What owns it.
    """

    address: int
    memory: _Memory

    @property
    def words(self) -> "ctypes.Array[ctypes.c_int64]":
        """The words at its beginning."""
        return (ctypes.c_int64 * c.CHUNK_WORDS).from_address(self.address)

    def numbers(self) -> NDArray[np.int64]:
        """The numbers of its tuples."""
        return np.frombuffer(self._buffer(self.address + _WORD * c.CHUNK_WORDS, _WORD * self.words[c.USED]), np.int64)

    def values(self, element: pa.DataType) -> pa.Array:
        """The arrays of its tuples."""
        words = self.words
        size = words[c.ELEMENTS]
        numbers = self._buffer(words[c.ELEMENTS_ADDRESS], size * element.bit_width // 8)
        elements = pa.Array.from_buffers(element, size, [None, numbers])
        starts = self._buffer(words[c.STARTS_ADDRESS], 4 * (words[c.USED] + 1))
        return pa.Array.from_buffers(pa.list_(element), words[c.USED], [None, starts], children=[elements])

    def _buffer(self, address: int, size: int) -> pa.Buffer:
        return pa.foreign_buffer(address, size, self.memory)


def text_in_memory(statement: SqlStatement, schema: Schema, count: float) -> str | None:
    """The text of a statement of about `count` tuples that leaves them in memory; None if Arrow batches are better.

    The arrays of all keys are written in one place if most keys have a tuple, else what tuples there are.
    """
    size_bytes = count * schema.list_length * ELEMENT_BYTES
    if size_bytes < _LEAST_BYTES or not can_collect(schema) or not require_library().can_keep():
        return None
    keys = math.prod(schema.key_counts.values())
    whole_bytes = keys * schema.list_length * ELEMENT_BYTES
    is_addressed = schema.list_length <= _MOST_OFFSET
    is_dense = is_addressed and count >= keys * _PLACED_DENSITY
    if can_place(schema) and is_dense and has_memory(whole_bytes, _PLACED_SHARE):
        return statement.placing_text(schema)
    return statement.collecting_text(schema)


def table_in_memory(library: DuckdbLibrary, handle: int | None, schema: Schema) -> pa.Table:
    """The tuples of a handle as a table with the columns of a schema; None stands for no tuples."""
    element = pa.from_numpy_dtype(np.empty(0, schema.tensor.dtype).real.dtype)
    counts = list(schema.key_counts.values())
    keys, values = [list[pa.Array]() for _ in counts], list[pa.Array]()
    if handle is not None:
        for numbers, arrays in _parts(library, handle, schema):
            for column, key in zip(keys, keys_of(numbers, counts), strict=True):
                column.append(pa.array(key))
            values.append(arrays)
        element = values[0].type.value_type
    key_types = [pa.from_numpy_dtype(index_dtype(count)) for count in counts]
    columns = [pa.chunked_array(column, kind) for column, kind in zip(keys, key_types, strict=True)]
    columns.append(pa.chunked_array(values, pa.list_(element)))
    return pa.table(columns, names=[*schema.keys, VALUE_COLUMN])


def _parts(library: DuckdbLibrary, handle: int, schema: Schema) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """Yield numbers and arrays of the tuples of a handle."""
    memory, tuples = _Memory(library, handle), library.kept_tuples(handle)
    if tuples is not None:
        for chunk in _chunks(tuples.address, memory):
            yield chunk.numbers(), chunk.values(_ELEMENTS[tuples.element_type])
        return
    array = library.kept_array(handle)
    element, size, rows = _ELEMENTS[array.element_type], schema.list_length, math.prod(schema.key_counts.values())
    step = _MOST_OFFSET // max(size, 1)
    for first in range(0, rows, step):
        count, item_bytes = min(step, rows - first), element.bit_width // 8
        starts = np.arange(count + 1, dtype=np.int32) * np.int32(size)
        numbers = pa.foreign_buffer(array.address + first * size * item_bytes, count * size * item_bytes, memory)
        elements = pa.Array.from_buffers(element, count * size, [None, numbers])
        yield np.arange(first, first + count), pa.ListArray.from_arrays(starts, elements)


def _chunks(address: int, memory: _Memory) -> Iterator[_Chunk]:
    while address:
        chunk = _Chunk(address, memory)
        yield chunk
        address = chunk.words[c.NEXT]
