"""Engines: what users hand over (arrays, sparse matrices, frames, coordinates) as columns of a tensor relation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.tensors import DEMOTED, ITEM_BYTES, VALUE_COLUMN, Axis, Decomposition, Tensor, entries

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
        coordinates, values = np.vstack(coo.coords), coo.data
        return _from_entries(name, coordinates, values, axes, _agreed(name, shape, coo.shape), dtype, promoted)
    if isinstance(data, tuple) and len(data) == 2:
        coordinates, values = _as_coordinates(name, *data)
        return _from_entries(name, coordinates, values, axes, shape, dtype, promoted)
    if hasattr(data, "__arrow_c_stream__") or isinstance(data, pa.Table):
        return _from_frame(name, pa.table(data), axes, shape, dtype, promoted)
    if isinstance(data, np.ndarray | Sequence | int | float):
        array = np.asarray(data)
        return _from_array(name, array, axes, _agreed(name, shape, array.shape), dtype, promoted)
    raise DataError(
        f"tensor {name} cannot be made from {type(data).__name__}; give a numpy array, a scipy.sparse matrix, a frame "
        "or Arrow table (index columns, then the value), or (coordinates, values)"
    )


def _agreed(name: str, shape: Sequence[int] | None, found: Sequence[int]) -> tuple[int, ...]:
    actual = tuple(int(bound) for bound in found)
    if shape is not None and tuple(shape) != actual:
        raise ShapeError(f"tensor {name} is given shape {tuple(shape)}, but its data have shape {actual}")
    return actual


def _dtype_of(name: str, dtype: str | None, found: np.dtype[Any]) -> str:
    wanted = found.name if dtype is None else np.dtype(dtype).name
    if wanted not in ITEM_BYTES:
        hint = "pass dtype='float64' to convert it" if dtype is None else "choose float64 or float32"
        raise DataError(f"tensor {name} has dtype {wanted}, which is not supported yet; {hint}")
    if found.kind not in "fiub":
        raise DataError(f"tensor {name} holds {found.name}, which is no real number; its values cannot become {wanted}")
    return wanted


def _converted(name: str, values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Values of the dtype wanted; whole numbers only where none changes."""
    if values.dtype.name == dtype:
        return values
    converted = values.astype(dtype)
    if values.dtype.kind in "iu" and values.size:
        changed = np.flatnonzero(converted.astype(values.dtype) != values)
        if changed.size:
            raise DataError(
                f"tensor {name}, row {changed[0]} (counted from 0): {values.flat[changed[0]]} is no {dtype} exactly"
            )
    return converted


def _axes(name: str, given: Sequence[str] | None, shape: Sequence[int]) -> tuple[Axis, ...]:
    names = [f"dim_{position}" for position in range(len(shape))] if given is None else list(given)
    if len(names) != len(shape):
        raise ShapeError(f"tensor {name} has {len(shape)} axes, but {len(names)} names are given: {', '.join(names)}")
    return tuple(Axis(axis.lower(), int(bound)) for axis, bound in zip(names, shape, strict=True))


def _as_coordinates(name: str, coordinates: object, values: object) -> tuple[NDArray[np.int64], NDArray[Any]]:
    indices, numbers = np.asarray(coordinates), np.asarray(values)
    if indices.ndim != 2 or numbers.ndim != 1 or indices.shape[1] != numbers.shape[0]:
        raise ShapeError(
            f"tensor {name} needs coordinates of shape (rank, n) and n values; got {indices.shape} and {numbers.shape}"
        )
    if indices.size and indices.dtype.kind not in "iu":
        raise DataError(f"tensor {name} has coordinates of dtype {indices.dtype}; they must be whole numbers")
    return indices.astype(np.int64), numbers


def _from_entries(
    name: str,
    coordinates: NDArray[Any],
    values: NDArray[Any],
    axes: Sequence[str] | None,
    shape: Sequence[int] | None,
    dtype: str | None,
    promoted: Sequence[str] | None,
) -> Columns:
    if shape is None:
        shape = [int(indices.max()) + 1 if indices.size else 0 for indices in coordinates]
    if len(shape) != len(coordinates):
        raise ShapeError(f"tensor {name} is given shape {tuple(shape)}, but coordinates of {len(coordinates)} axes")
    tensor = Tensor(name, _axes(name, axes, shape), _dtype_of(name, dtype, values.dtype))
    numbers = _converted(name, values, tensor.dtype)
    keys = [
        pa.array(indices, type=_key_type(axis.bound), safe=True) if _fits(indices, axis.bound) else pa.array(indices)
        for indices, axis in zip(coordinates, tensor.axes, strict=True)
    ]
    table = pa.table([*keys, pa.array(numbers)], names=[*(axis.name for axis in tensor.axes), VALUE_COLUMN])
    _check_promoted(name, tensor, promoted)
    return Columns(tensor, entries(len(tensor.axes)), table)


def _check_promoted(name: str, tensor: Tensor, promoted: Sequence[str] | None) -> None:
    if promoted is not None and {axis.lower() for axis in promoted} != {axis.name for axis in tensor.axes}:
        raise DataError(
            f"tensor {name} is given as entries, which are stored with all axes promoted; leave promoted out"
        )


def _key_type(bound: int) -> pa.DataType:
    return pa.int32() if bound <= 1 << 31 else pa.int64()


def _fits(indices: NDArray[Any], bound: int) -> bool:
    """Whether indices fit the key column; those that do not are reported when the data are checked."""
    if bound > 1 << 31 or not indices.size:
        return True
    return bool(indices.min() >= -(1 << 31) and indices.max() < 1 << 31)


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
    coordinates = [table.column(column).to_numpy().astype(np.int64, copy=False) for column in index_names]
    values = table.column(value_name).to_numpy()
    stacked = np.vstack(coordinates) if coordinates else np.empty((0, len(values)), np.int64)
    names = index_names if axes is None else axes
    return _from_entries(name, stacked, values, names, shape, dtype, promoted)


def _check_nulls(name: str, table: pa.Table) -> None:
    """NULL in a frame: refused before numpy turns it into NaN."""
    nulls = []
    for column in table.column_names:
        values = table.column(column)
        if values.null_count:
            nulls.append((int(np.argmax(values.is_null().to_numpy())), column))
    if nulls:
        row, column = min(nulls)
        raise DataError(f"tensor {name}, row {row} (counted from 0): the column {column} is NULL")


def _from_array(
    name: str,
    array: NDArray[Any],
    axes: Sequence[str] | None,
    shape: Sequence[int],
    dtype: str | None,
    promoted: Sequence[str] | None,
) -> Columns:
    tensor = Tensor(name, _axes(name, axes, shape), _dtype_of(name, dtype, array.dtype))
    values = _converted(name, array, tensor.dtype)
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


def _entry_columns(tensor: Tensor, coordinates: Sequence[NDArray[Any]], values: NDArray[Any]) -> pa.Table:
    keys = [
        pa.array(indices.astype(_key_type(axis.bound).to_pandas_dtype()))
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
