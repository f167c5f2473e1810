"""Engines: what users hand over (arrays, sparse matrices, frames, coordinates) as columns of a tensor relation."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import scipy  # loads scipy.sparse where it is first used
from numpy.typing import NDArray

from sparseeinsum.engines.arguments import (
    agreed_bounds,
    axes_of,
    bounds_of,
    converted_values,
    dtype_of_values,
    place_of,
)
from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.tensors import DEMOTED, ITEM_BYTES, VALUE_COLUMN, Decomposition, Tensor, entries
from sparseeinsum.statistics.measure import describe_index

# A dense array is stored as entries where fewer than this share of its values differ from the fill.
_SPARSE_BELOW = 0.25
# One array in a tuple may have so many bytes before another axis becomes a key.
_LARGEST_ARRAY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Columns:
    """A tensor as it will be stored.

    Attributes:
        tensor: Name, axes, dtype.
        decomposition: How it is cut into tuples.
        table: Key columns by the names of the promoted axes, then the values.
    """

    tensor: Tensor
    decomposition: Decomposition
    table: pa.Table


def columns_of(
    name: str,
    data: object,
    axes: Sequence[str] | None,
    shape: Sequence[int] | None,
    dtype: str | None,
    promoted: Sequence[str] | None,
) -> Columns:
    """Turn data into columns.

    Args:
        name: Of the tensor.
        data: A numpy array, a scipy.sparse matrix, a frame or Arrow table (index columns, then the value), or
            (coordinates of shape (rank, n), values).
        axes: Names of the axes.
        shape: Bounds; must be given where data have none, and agree where they have.
        dtype: float64 or float32; by default that of the data.
        promoted: Axes to store as key columns; by default chosen by density and size.

    Raises:
        DataError: The data are none of these, or of a type that cannot be stored.
        ShapeError: Axes or shape do not fit the data.
    """
    if scipy.sparse.issparse(data):
        matrix: Any = data
        coo = matrix.tocoo()
        return _from_entries(name, coo.coords, coo.data, axes, agreed_bounds(name, shape, coo.shape), dtype, promoted)
    if isinstance(data, tuple) and len(data) == 2:
        coordinates, values = _as_coordinates(name, *data)
        return _from_entries(name, coordinates, values, axes, shape, dtype, promoted)
    if hasattr(data, "__arrow_c_stream__") or isinstance(data, pa.Table):
        return _from_frame(name, _as_table(name, data), axes, shape, dtype, promoted)
    if isinstance(data, np.ndarray | np.generic | Sequence | int | float):
        array = _as_array(name, data)
        return _from_array(name, array, axes, agreed_bounds(name, shape, array.shape), dtype, promoted)
    raise DataError(
        f"tensor {name} cannot be made from {type(data).__name__}; give a numpy array, a scipy.sparse matrix, a frame "
        "or Arrow table (index columns, then the value), or (coordinates, values)"
    )


def _as_array(name: str, data: object) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        masked = np.ravel_multi_index(np.nonzero(np.ma.getmaskarray(data)), data.shape)[0]
        raise DataError(f"tensor {name}, {place_of(masked, data)}: the value is masked; fill masked values first")
    try:
        return np.asarray(data)
    except ValueError as error:
        raise DataError(f"tensor {name} is no array: {error}") from None


def _as_table(name: str, data: object) -> pa.Table:
    try:
        table = pa.table(data)
    except pa.ArrowException as error:
        raise DataError(f"tensor {name} cannot be read as an Arrow table: {error}") from None
    columns = table.column_names
    if not columns:
        raise DataError(f"tensor {name} is given a table without columns; it needs index columns, then the value")
    for column in columns:
        if columns.count(column) > 1:
            raise DataError(f"tensor {name} is given a table with two columns named {column}; rename one")
    return table


def _as_coordinates(name: str, coordinates: object, values: object) -> tuple[NDArray[Any], NDArray[Any]]:
    indices, numbers = _as_array(name, coordinates), _as_array(name, values)
    if indices.ndim != 2 or numbers.ndim != 1 or indices.shape[1] != numbers.shape[0]:
        raise ShapeError(
            f"tensor {name} needs coordinates of shape (rank, n) and n values; got {indices.shape} and {numbers.shape}"
        )
    if indices.size and indices.dtype.kind not in "iu":
        raise DataError(f"tensor {name} has coordinates of dtype {indices.dtype}; they must be whole numbers")
    return indices, numbers


def _from_entries(
    name: str,
    coordinates: Sequence[NDArray[Any]] | NDArray[Any],
    values: NDArray[Any],
    axes: Sequence[str] | None,
    shape: Sequence[int] | None,
    dtype: str | None,
    promoted: Sequence[str] | None,
) -> Columns:
    if shape is None:
        bounds = tuple(max(int(indices.max()) + 1, 0) if indices.size else 0 for indices in coordinates)
    else:
        bounds = bounds_of(name, shape)
    if len(bounds) != len(coordinates):
        raise ShapeError(f"tensor {name} is given shape {bounds}, but coordinates of {len(coordinates)} axes")
    tensor = Tensor(name, axes_of(name, axes, bounds), dtype_of_values(name, dtype, values.dtype))
    _check_promoted(name, tensor, promoted)
    _check_indices(tensor, coordinates)
    table = _entry_columns(tensor, coordinates, converted_values(name, values, tensor.dtype))
    return Columns(tensor, entries(len(tensor.axes)), table)


def _check_indices(tensor: Tensor, coordinates: Iterable[NDArray[Any]]) -> None:
    """Refuse indices out of range while rows still have the numbers that the user gave them."""
    offences = []
    for axis, indices in zip(tensor.axes, coordinates, strict=True):
        if indices.size and (indices.min() < 0 or indices.max() >= axis.bound):
            row = int(np.flatnonzero((indices < 0) | (indices >= axis.bound))[0])
            offences.append((row, describe_index(axis.name, int(indices[row]), axis)))
    if offences:
        row, problem = min(offences)
        raise DataError(f"tensor {tensor.name}, row {row} (counted from 0): {problem}")


def _check_promoted(name: str, tensor: Tensor, promoted: Sequence[str] | None) -> None:
    if promoted is not None and {axis.lower() for axis in promoted} != {axis.name for axis in tensor.axes}:
        raise DataError(
            f"tensor {name} is given as entries, which are stored with all axes promoted; leave promoted out"
        )


def _key_type(bound: int) -> pa.DataType:
    return pa.int32() if bound <= 1 << 31 else pa.int64()


def _from_frame(
    name: str,
    table: pa.Table,
    axes: Sequence[str] | None,
    shape: Sequence[int] | None,
    dtype: str | None,
    promoted: Sequence[str] | None,
) -> Columns:
    *index_names, value_name = table.column_names
    for column in index_names:
        if not pa.types.is_integer(table.schema.field(column).type):
            raise DataError(
                f"tensor {name}: the index column {column} holds {table.schema.field(column).type}; indices must be "
                "whole numbers, and the value must be the last column"
            )
    _check_nulls(name, table)
    coordinates = [table.column(column).to_numpy() for column in index_names]
    values = _frame_values(name, value_name, table.column(value_name), dtype)
    names = index_names if axes is None else axes
    return _from_entries(name, coordinates, values, names, shape, dtype, promoted)


def _check_nulls(name: str, table: pa.Table) -> None:
    """NULL in a frame: refused before numpy turns it into NaN."""
    nulls = []
    for position, column in enumerate(table.columns):
        if column.null_count:
            nulls.append((int(np.argmax(column.is_null().to_numpy())), position))
    if nulls:
        row, position = min(nulls)
        raise DataError(
            f"tensor {name}, row {row} (counted from 0): the column {table.column_names[position]} is NULL; leave such "
            "rows out"
        )


def _frame_values(name: str, column: str, values: pa.ChunkedArray, dtype: str | None) -> NDArray[Any]:
    kind = values.type
    if pa.types.is_decimal(kind):
        if dtype is None:
            raise DataError(
                f"tensor {name}: the value column {column} holds {kind}; pass dtype='float64' to convert it"
            )
        return np.asarray(values.cast(pa.float64()).to_numpy())  # numpy has no decimals
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"tensor {name}: the value column {column} holds {kind}, which is no real number; the last column must be "
            "the value"
        )
    return np.asarray(values.to_numpy())


def _from_array(
    name: str,
    array: NDArray[Any],
    axes: Sequence[str] | None,
    shape: Sequence[int],
    dtype: str | None,
    promoted: Sequence[str] | None,
) -> Columns:
    tensor = Tensor(name, axes_of(name, axes, shape), dtype_of_values(name, dtype, array.dtype))
    values = converted_values(name, array, tensor.dtype)
    decomposition = _chosen(tensor, values) if promoted is None else _named(name, tensor, promoted)
    if decomposition.is_scalar and tensor.axes:
        coordinates = np.nonzero(values)
        table = _entry_columns(tensor, coordinates, values[coordinates])
    else:
        table = _array_columns(tensor, decomposition, values)
    return Columns(tensor, decomposition, table)


def _named(name: str, tensor: Tensor, promoted: Sequence[str]) -> Decomposition:
    known = [axis.name for axis in tensor.axes]
    for axis in promoted:
        if axis.lower() not in known:
            raise ShapeError(f"tensor {name} has no axis {axis} to promote; it has {', '.join(known)}")
    chosen = {axis.lower() for axis in promoted}
    return Decomposition(tuple(1 if axis in chosen else DEMOTED for axis in known))


def _chosen(tensor: Tensor, values: NDArray[Any]) -> Decomposition:
    """Entries for sparse data; else the first axis as key, and more of them where the arrays would be large."""
    rank = len(tensor.axes)
    if values.size and np.count_nonzero(values) < _SPARSE_BELOW * values.size:
        return entries(rank)
    keys = 1 if rank >= 2 else 0
    while keys < rank and math.prod(tensor.shape[keys:]) * ITEM_BYTES[tensor.dtype] > _LARGEST_ARRAY_BYTES:
        keys += 1
    return Decomposition((1,) * keys + (DEMOTED,) * (rank - keys))


def _entry_columns(tensor: Tensor, coordinates: Iterable[NDArray[Any]], values: NDArray[Any]) -> pa.Table:
    keys = [
        pa.array(indices.astype(_key_type(axis.bound).to_pandas_dtype(), copy=False))
        for indices, axis in zip(coordinates, tensor.axes, strict=True)
    ]
    return pa.table([*keys, pa.array(values)], names=[*(axis.name for axis in tensor.axes), VALUE_COLUMN])


def _array_columns(tensor: Tensor, decomposition: Decomposition, values: NDArray[Any]) -> pa.Table:
    """One row for every combination of keys, its array in C order."""
    moved: NDArray[Any] = np.transpose(values, (*decomposition.promoted, *decomposition.demoted))
    key_shape = moved.shape[: len(decomposition.promoted)]
    size = decomposition.array_size(tensor.shape)
    rows = math.prod(key_shape)
    flat = np.ascontiguousarray(moved).reshape(-1)
    key_axes = [tensor.axes[position] for position in decomposition.promoted]
    indices = np.indices(key_shape).reshape((len(key_axes), rows))
    keys = [
        pa.array(positions.astype(_key_type(axis.bound).to_pandas_dtype()))
        for positions, axis in zip(indices, key_axes, strict=True)
    ]
    column = pa.array(flat)
    if decomposition.demoted:
        offsets = pa.array(np.arange(rows + 1, dtype=np.int64) * size)
        column = pa.LargeListArray.from_arrays(offsets, column)
    return pa.table([*keys, column], names=[*(axis.name for axis in key_axes), VALUE_COLUMN])
