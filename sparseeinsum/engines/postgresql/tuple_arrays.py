"""Engines: results of many numbers as arrays, of which PostgreSQL sends the bytes in less time than rows."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.postgresql.sessions import sqlstate
from sparseeinsum.engines.tuple_numbers import keys_of
from sparseeinsum.errors import EngineError
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.collecting_queries import NUMBER_COLUMN, can_be_arrays
from sparseeinsum.render.compressed_rows import POSITION_COLUMN
from sparseeinsum.render.entry_bytes import COUNT_COLUMN, START_COLUMN

_LEAST, _MOST = 1 << 13, 1 << 21  # expected tuples: more of them would take much of the server's memory
_OUT_OF_MEMORY = ("53200", "54000")
_TOO_LARGE = "invalid memory alloc request size"  # of an array that array_agg lengthens


def are_arrays(schema: Schema, count: float) -> bool:
    """Whether so many tuples are better sent in arrays, and can be."""
    return _LEAST <= count <= _MOST and can_be_arrays(schema)


def are_too_large(error: EngineError) -> bool:
    """Whether the server refused arrays because there were many more tuples than expected."""
    return sqlstate(error) in _OUT_OF_MEMORY or _TOO_LARGE in str(error)


def table_of_arrays(arrays: pa.Table, schema: Schema) -> pa.Table:
    """The tuples in the arrays of `SqlStatement.array_text` as a table with the columns of a schema."""
    columns = {name: arrays.column(name).combine_chunks().flatten() for name in arrays.column_names}
    keys = keys_of(_numbers(columns), list(schema.key_counts.values()))
    return pa.table([*map(pa.array, keys), columns[VALUE_COLUMN]], names=[*schema.keys, VALUE_COLUMN])


def _numbers(columns: Mapping[str, pa.Array]) -> NDArray[np.int64]:
    """The numbers of tuples, which come as they are, or as positions in rows."""
    if NUMBER_COLUMN in columns:
        numbers: NDArray[np.int64] = columns[NUMBER_COLUMN].to_numpy()
        return numbers
    starts, counts, positions = (columns[name].to_numpy() for name in (START_COLUMN, COUNT_COLUMN, POSITION_COLUMN))
    of_positions: NDArray[np.int64] = np.repeat(starts, counts) + positions
    return of_positions
