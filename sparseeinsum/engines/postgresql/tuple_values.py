"""Engines: results of many tuples as one value of bytes, which PostgreSQL sends in less time than rows."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.postgresql.sessions import sqlstate
from sparseeinsum.engines.tuple_numbers import keys_of
from sparseeinsum.errors import EngineError
from sparseeinsum.kernels.compression import BLOCK_ENTRIES, BLOCK_ROWS, BLOCK_WORDS
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.render.collecting_queries import can_be_value

# To open a savepoint, from which rows are fetched if the value is too large, takes as long as to send a few hundred
# rows, or a MB; but expected numbers of tuples are often too low.
_LEAST, _LEAST_BYTES = 1 << 6, 1 << 20
_MOST_BYTES = 1 << 28  # more of them would take much of the server's memory, which has several copies
_NUMBER_BYTES = 8
_TYPE_WORDS = 1  # before a block of entries: the type of their numbers
_OUT_OF_MEMORY = ("53200", "54000")


def is_one_value(schema: Schema, count: float) -> bool:
    """Whether so many tuples are better sent as one value, and can be."""
    tuple_bytes = _NUMBER_BYTES + schema.list_length * ITEM_BYTES[schema.tensor.dtype]
    is_worth_it = count >= _LEAST or count * tuple_bytes >= _LEAST_BYTES
    return is_worth_it and count * tuple_bytes <= _MOST_BYTES and can_be_value(schema)


def is_too_large(error: EngineError) -> bool:
    """Whether the server refused the value because there were many more tuples than expected."""
    return sqlstate(error) in _OUT_OF_MEMORY


def table_of_value(value: bytes | memoryview | None, schema: Schema, row_keys: int | None) -> pa.Table:
    """The tuples in the value of `SqlStatement.value_text` as a table with the columns of a schema.

    Args:
        value: The bytes, None if there are no tuples.
        schema: The schema of the tuples.
        row_keys: As in `ValueOfTuples`.
    """
    dtype, counts = np.dtype(schema.tensor.dtype), list(schema.key_counts.values())
    if value is None or row_keys is None:
        keys, elements = _of_tuples(value or b"", counts, schema.list_length, dtype)
    else:
        keys, elements = _of_rows(value, counts, row_keys, dtype)
    column = pa.array(elements)
    if not schema.is_scalar:
        count = len(keys[0]) if keys else len(elements) // schema.list_length
        offsets = np.arange(count + 1, dtype=np.int64) * schema.list_length
        column = pa.LargeListArray.from_arrays(pa.array(offsets), column)
    return pa.table([*map(pa.array, keys), column], names=[*schema.keys, VALUE_COLUMN])


def _of_tuples(
    value: bytes | memoryview, counts: list[int], length: int, dtype: np.dtype[Any]
) -> tuple[list[NDArray[np.signedinteger]], NDArray[Any]]:
    """The keys and the elements of tuples: the value has their numbers, if they have keys, then all elements."""
    if not counts:
        return [], np.frombuffer(value, dtype)
    tuples = len(value) // (_NUMBER_BYTES + length * dtype.itemsize)
    elements = np.frombuffer(value, dtype, tuples * length, tuples * _NUMBER_BYTES)
    return keys_of(np.frombuffer(value, np.int64, tuples), counts), elements


def _of_rows(
    value: bytes | memoryview, counts: list[int], row_keys: int, dtype: np.dtype[Any]
) -> tuple[list[NDArray[np.signedinteger]], NDArray[Any]]:
    """The keys and the numbers of entries that are ordered by row; see kernels/compression.py."""
    block = np.frombuffer(value, np.int64)[_TYPE_WORDS:]
    rows, entries = int(block[BLOCK_ROWS]), int(block[BLOCK_ENTRIES])
    positions_at = 8 * (_TYPE_WORDS + BLOCK_WORDS + rows + 1)
    numbers_at = positions_at + (4 * entries + 7) // 8 * 8
    starts, positions = (
        block[BLOCK_WORDS : BLOCK_WORDS + rows + 1],
        np.frombuffer(value, np.int32, entries, positions_at),
    )
    row_numbers = np.repeat(np.arange(rows, dtype=np.int32), np.diff(starts))
    keys = [*_split(row_numbers, counts[:row_keys]), *_split(positions, counts[row_keys:])]
    return keys, np.frombuffer(value, dtype, entries, numbers_at)


def _split(numbers: NDArray[np.int32], counts: list[int]) -> list[NDArray[np.signedinteger]]:
    """The keys that numbers of less than 32 bits consist of."""
    return [numbers] if len(counts) == 1 else keys_of(numbers, counts)
