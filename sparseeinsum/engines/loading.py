"""Engines: what users hand over (arrays, sparse matrices, frames, coordinates) as columns of a tensor relation."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import scipy  # loads scipy.sparse where it is first used
from numpy.typing import NDArray

from sparseeinsum.engines.arguments import Description
from sparseeinsum.engines.conversion import converted_values, dtype_of_values, place_of
from sparseeinsum.engines.frames import entries_of_frame, is_frame, metadata_of_frame
from sparseeinsum.engines.tensor_metadata import completed
from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.dtypes import ITEM_BYTES
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN, Decomposition, Tensor, entries
from sparseeinsum.statistics.measure import describe_index

# A dense array is stored as entries where fewer than this share of its values differ from the fill.
_SPARSE_BELOW = 0.25
# One array in a tuple may have so many bytes before another axis becomes a key.
_LARGEST_ARRAY_BYTES = 1 << 20
# Coordinates of larger tensors are not numbered.
_LARGEST_NUMBER = 1 << 62


@dataclass(frozen=True, slots=True)
class Columns:
    """A tensor as it will be stored.

    Attributes:
        tensor: Name, axes, dtype, fill.
        decomposition: How the rows have it.
        wanted: How it is to be stored.
        table: Key columns by the names of the promoted axes, then the values; complex ones as arrays of their parts.
        may_repeat: Whether a coordinate may stand in several rows.
    """

    tensor: Tensor
    decomposition: Decomposition
    wanted: Decomposition
    table: pa.Table
    may_repeat: bool


Promoted = Sequence[str] | Mapping[str, int] | None


def columns_of(description: Description, data: object, promoted: Promoted) -> Columns:
    """Turn data into columns.

    Args:
        description: What the user says of the tensor; a shape must be given where data have none, and agree where
            they have.
        data: A numpy array, a scipy.sparse matrix, a frame or Arrow table (index columns, then the value), or
            (coordinates of shape (rank, n), values).
        promoted: Axes to store as key columns, and their tiles; by default chosen by density and size.

    Raises:
        DataError: The data are none of these, or of a type that cannot be stored.
        ShapeError: Axes or shape do not fit the data.
    """
    name = description.name
    if scipy.sparse.issparse(data):
        matrix: Any = data
        coo = matrix.tocoo()
        bounds = description.agreed_bounds(coo.shape)
        return _from_entries(description, coo.coords, coo.data, promoted, bounds)
    if isinstance(data, tuple) and len(data) == 2:
        return _from_entries(description, *_as_coordinates(name, *data), promoted)
    if is_frame(data):
        names, coordinates, values = entries_of_frame(name, data, description.wanted_dtype())
        description = completed(description, metadata_of_frame(data), names)
        return _from_entries(description, coordinates, values, promoted, names=names)
    if isinstance(data, np.ndarray | np.generic | Sequence | int | float | complex):
        return _from_array(description, _as_array(name, data), promoted)
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
    description: Description,
    coordinates: Sequence[NDArray[Any]] | NDArray[Any],
    values: NDArray[Any],
    promoted: Promoted,
    bounds: tuple[int, ...] | None = None,
    names: Sequence[str] | None = None,
) -> Columns:
    name = description.name
    if bounds is None:
        bounds = _bounds(coordinates) if description.shape is None else description.bounds()
    if len(bounds) != len(coordinates):
        raise ShapeError(f"tensor {name} is given shape {bounds}, but coordinates of {len(coordinates)} axes")
    dtype = dtype_of_values(name, description.wanted_dtype(), values.dtype)
    tensor = description.tensor(bounds, dtype, names)
    _check_indices(tensor, coordinates)
    converted = converted_values(name, values, dtype)
    order = _ascending_order(tensor, coordinates)
    if order is not None and order.size:
        coordinates, converted = [indices[order] for indices in coordinates], converted[order]
    given = entries(len(tensor.axes))
    wanted = given if promoted is None else _named(tensor, promoted)
    return Columns(tensor, given, wanted, _entry_columns(tensor, coordinates, converted), order is None)


def _bounds(coordinates: Iterable[NDArray[Any]]) -> tuple[int, ...]:
    """The smallest shape that holds these indices."""
    return tuple(max(int(indices.max()) + 1, 0) if indices.size else 0 for indices in coordinates)


def _ascending_order(tensor: Tensor, coordinates: Iterable[NDArray[Any]]) -> NDArray[np.intp] | None:
    """The order of rows in which coordinates ascend, empty where they do; None if one stands twice, or there is none.

    Rows that are stored in it lie together where they are added up; and no coordinate need be looked for twice.
    """
    if not tensor.axes or not 0 < tensor.size < _LARGEST_NUMBER:
        return None
    numbers = np.ravel_multi_index([indices.astype(np.int64, copy=False) for indices in coordinates], tensor.shape)
    order = np.empty(0, np.intp)
    if not np.all(numbers[1:] > numbers[:-1]):
        order = np.argsort(numbers)
        numbers = numbers[order]
    return order if np.all(numbers[1:] > numbers[:-1]) else None


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


def _key_type(bound: int) -> pa.DataType:
    return pa.int32() if bound <= 1 << 31 else pa.int64()


def _from_array(description: Description, array: NDArray[Any], promoted: Promoted) -> Columns:
    name = description.name
    dtype = dtype_of_values(name, description.wanted_dtype(), array.dtype)
    tensor = description.tensor(description.agreed_bounds(array.shape), dtype)
    values = converted_values(name, array, dtype)
    wanted = _chosen(tensor, values) if promoted is None else _named(tensor, promoted)
    decomposition = _chosen(tensor, values) if wanted.has_tiles else wanted
    if decomposition.is_scalar and tensor.axes:
        coordinates = np.nonzero(_present(tensor, values))
        table = _entry_columns(tensor, coordinates, values[coordinates])
    else:
        table = _array_columns(tensor, decomposition, values)
    return Columns(tensor, decomposition, wanted, table, may_repeat=False)


def _present(tensor: Tensor, values: NDArray[Any]) -> NDArray[Any]:
    """An array that is not 0 where values are not the fill: the values themselves where that is 0."""
    return values if tensor.fill == 0 else values != tensor.fill


def _named(tensor: Tensor, promoted: Sequence[str] | Mapping[str, int]) -> Decomposition:
    known = [axis.name for axis in tensor.axes]
    tiles = promoted if isinstance(promoted, Mapping) else dict.fromkeys(promoted, 1)
    for axis, tile in tiles.items():
        if axis.lower() not in known:
            raise ShapeError(f"tensor {tensor.name} has no axis {axis} to promote; it has {', '.join(known)}")
        if not isinstance(tile, int) or tile < 1:
            raise ShapeError(
                f"tensor {tensor.name} is to have tiles of {tile!r} on axis {axis}; a tile is a whole number of "
                "indices, 1 or more"
            )
    chosen = {axis.lower(): tile for axis, tile in tiles.items()}
    return Decomposition(tuple(chosen.get(axis, DEMOTED) for axis in known))


def _chosen(tensor: Tensor, values: NDArray[Any]) -> Decomposition:
    """Entries for sparse data; else the first axis as key, and more of them where the arrays would be large."""
    rank = len(tensor.axes)
    if values.size and np.count_nonzero(_present(tensor, values)) < _SPARSE_BELOW * values.size:
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
    column = _value_column(values, len(values), is_scalar=True)
    return pa.table([*keys, column], names=[*(axis.name for axis in tensor.axes), VALUE_COLUMN])


def _array_columns(tensor: Tensor, decomposition: Decomposition, values: NDArray[Any]) -> pa.Table:
    """One row for every combination of keys, its array in C order."""
    moved: NDArray[Any] = np.transpose(values, (*decomposition.promoted, *decomposition.inside))
    key_shape = moved.shape[: len(decomposition.promoted)]
    key_axes = [tensor.axes[position] for position in decomposition.promoted]
    rows = math.prod(key_shape)
    indices = np.indices(key_shape).reshape((len(key_axes), rows))
    keys = [
        pa.array(positions.astype(_key_type(axis.bound).to_pandas_dtype()))
        for positions, axis in zip(indices, key_axes, strict=True)
    ]
    column = _value_column(moved, rows, decomposition.is_scalar)
    return pa.table([*keys, column], names=[*(axis.name for axis in key_axes), VALUE_COLUMN])


def _value_column(values: NDArray[Any], rows: int, is_scalar: bool) -> pa.Array:
    """Numbers, or an array of them a row, in C order; a complex number is an array of its real and imaginary part."""
    flat = np.ascontiguousarray(values).reshape(-1)
    is_pair = flat.dtype.kind == "c"
    column = pa.array(flat.view(flat.real.dtype) if is_pair else flat)
    if is_scalar and not is_pair:
        return column
    offsets = np.arange(rows + 1, dtype=np.int64) * (len(column) // max(rows, 1))
    return pa.LargeListArray.from_arrays(pa.array(offsets), column)
