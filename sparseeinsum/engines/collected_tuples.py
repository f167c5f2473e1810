"""Engines: Arrow tables over tuples that a statement of DuckDB collected in memory; nothing is copied but keys."""

import ctypes
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.tuple_numbers import keys_of
from sparseeinsum.kernels import collection as c
from sparseeinsum.kernels.duckdb.library import DuckdbLibrary, require_library
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.collecting_queries import can_collect
from sparseeinsum.statistics.columns import index_dtype

_ELEMENTS = {10: pa.float32(), 11: pa.float64()}  # by duckdb_type in duckdb.h
ELEMENT_BYTES = 8
_LEAST_BYTES = 1 << 20  # of elements from which on collecting takes less time than Arrow batches
_WORD = 8


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


def are_collected(schema: Schema, count: float) -> bool:
    """Whether so many tuples are better collected than returned in Arrow batches, and can be."""
    is_large = count * schema.list_length * ELEMENT_BYTES >= _LEAST_BYTES
    return is_large and can_collect(schema) and require_library().can_keep()


def collected_table(library: DuckdbLibrary, handle: int | None, schema: Schema) -> pa.Table:
    """The tuples of a handle as a table with the columns of a schema; None stands for no tuples."""
    element = pa.from_numpy_dtype(np.empty(0, schema.tensor.dtype).real.dtype)
    counts = list(schema.key_counts.values())
    keys, values = [list[pa.Array]() for _ in counts], list[pa.Array]()
    if handle is not None:
        address, kind = library.kept_tuples(handle)
        element = _ELEMENTS[kind]
        for chunk in _chunks(address, _Memory(library, handle)):
            for column, key in zip(keys, keys_of(chunk.numbers(), counts), strict=True):
                column.append(pa.array(key))
            values.append(chunk.values(element))
    key_types = [pa.from_numpy_dtype(index_dtype(count)) for count in counts]
    columns = [pa.chunked_array(column, kind) for column, kind in zip(keys, key_types, strict=True)]
    columns.append(pa.chunked_array(values, pa.list_(element)))
    return pa.table(columns, names=[*schema.keys, VALUE_COLUMN])


def _chunks(address: int, memory: _Memory) -> Iterator[_Chunk]:
    while address:
        chunk = _Chunk(address, memory)
        yield chunk
        address = chunk.words[c.NEXT]
