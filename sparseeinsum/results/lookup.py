"""Results: the values of a tensor at some indices, looked up among its rows without a dense array of all."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.results.blocks import block
from sparseeinsum.results.result_indexing import Selection
from sparseeinsum.results.tensor_rows import TensorRows


def values_at(rows: TensorRows, selection: Selection) -> NDArray[Any]:
    """The values that a selection selects, as an array of its shape. It takes a pass over the rows.

    Args:
        rows: The rows of the tensor.
        selection: Made for the shape of the tensor.
    """
    ranges = selection.ranges
    if ranges is not None:
        return block(rows, ranges).reshape(selection.shape)
    tensor, shape = rows.schema.tensor, selection.shape
    indices = selection.indices()
    result = np.full(math.prod(shape), tensor.fill, tensor.dtype)
    coordinates, values = rows.columns() if rows.schema.is_scalar else _rows_with(rows, indices).entries()
    points = _numbered([np.broadcast_to(selected, shape).reshape(-1) for selected in indices], "point")
    entries = _numbered(coordinates, "entry")
    pairs = entries.join(points, points.column_names[:-1], join_type="inner")
    result[pairs.column("point").to_numpy()] = values[pairs.column("entry").to_numpy()]
    return result.reshape(shape)


def _numbered(coordinates: Sequence[NDArray[Any]], name: str) -> pa.Table:
    """A table with a column for every axis, then the number of every row."""
    columns = [pa.array(indices.astype(np.int64, copy=False)) for indices in coordinates]
    numbers = pa.array(np.arange(len(coordinates[0])))
    return pa.table([*columns, numbers], names=[*map(str, range(len(columns))), name])


def _rows_with(rows: TensorRows, indices: Sequence[NDArray[np.int64]]) -> TensorRows:
    """The rows that have keys of the indices; other rows hold none of them."""
    decomposition = rows.schema.decomposition
    is_needed = np.ones(rows.rows.num_rows, bool)
    for axis, column in zip(decomposition.promoted, rows.keys(), strict=True):
        is_needed &= np.isin(column, np.unique(indices[axis]) // decomposition.tiles[axis])
    return TensorRows(rows.schema, rows.rows.filter(is_needed))
