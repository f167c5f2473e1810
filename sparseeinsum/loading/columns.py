"""Loading: entries and arrays in memory as columns of a tensor relation."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.dtypes import ITEM_BYTES
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN, Decomposition, Tensor, entries
from sparseeinsum.loading.conversion import converted_values, dtype_of_values
from sparseeinsum.loading.sources.given import Dense, Entries
from sparseeinsum.statistics.measure import describe_index
from sparseeinsum.storage.arguments import Description
from sparseeinsum.storage.dictionaries import Dictionaries, dictionaries_of, encoded, sizes_of

# A dense array is stored as entries where fewer than this share of its values differ from the fill.
_SPARSE_BELOW = 0.25
# Entries of a sparse matrix are stored in arrays where those take less, and entries more than this: a table of fewer is
# best as everybody can read it.
_MOST_BYTES_OF_ENTRIES = 16 << 20
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


def columns_of(
    description: Description, given: Entries | Dense, promoted: Promoted, dictionaries: Dictionaries, entry_bytes: int
) -> Columns:
    """Turn data in memory into columns.

    Args:
        description: What the user says of the tensor; a shape must be given where data have none, and agree where
            they have.
        given: The data.
        promoted: Axes to store as key columns, and their tiles; by default chosen by density and size.
        dictionaries: Those of the database, which get the natural keys of the data.
        entry_bytes: That an entry takes in a table; 0 where entries are to stay entries.

    Raises:
        DataError: The data are of a type that cannot be stored, or an index is out of range.
        ShapeError: Axes or shape do not fit the data.
    """
    if isinstance(given, Dense):
        return _from_array(description, given, promoted, dictionaries)
    return _from_entries(description, given, promoted, dictionaries, entry_bytes)


def _from_entries(
    description: Description, given: Entries, promoted: Promoted, dictionaries: Dictionaries, entry_bytes: int
) -> Columns:
    name, values = description.name, given.values
    axes = description.axis_names(len(given.coordinates), given.axes)
    coordinates, known = encoded(dictionaries, description, axes, given.coordinates)
    sizes = sizes_of(known)
    if given.shape is not None:
        bounds = description.agreed_bounds(given.shape, sizes)
    else:
        bounds = _bounds(coordinates, sizes) if description.shape is None else description.bounds(sizes)
    if len(bounds) != len(coordinates):
        raise ShapeError(f"tensor {name} is given shape {bounds}, but coordinates of {len(coordinates)} axes")
    dtype = dtype_of_values(name, description.wanted_dtype(), values.dtype)
    tensor = description.tensor(bounds, dtype, given.axes, given.fill, dictionaries_of(known))
    check_indices(tensor, coordinates)
    converted = converted_values(name, values, dtype)
    order = _ascending_order(tensor, coordinates)
    if order is not None and order.size:
        coordinates, converted = [indices[order] for indices in coordinates], converted[order]
    table = entry_columns(tensor, coordinates, converted)
    wanted = wanted_for_entries(tensor, promoted)
    if promoted is None and given.shape is not None:  # without a shape they are rows, which users read as such
        wanted = _smaller(tensor, len(converted), entry_bytes)
    return Columns(tensor, entries(len(tensor.axes)), wanted, table, order is None)


def _smaller(tensor: Tensor, count: int, entry_bytes: int) -> Decomposition:
    """Entries, or arrays where so many entries take much, and arrays of all elements less."""
    arrays = _in_arrays(tensor)
    rows = math.prod(tensor.shape[position] for position in arrays.promoted)
    array_bytes = rows * entry_bytes + tensor.size * ITEM_BYTES[tensor.dtype]
    is_smaller = max(array_bytes, _MOST_BYTES_OF_ENTRIES) < count * entry_bytes
    return arrays if is_smaller else entries(len(tensor.axes))


def wanted_for_entries(tensor: Tensor, promoted: Promoted) -> Decomposition:
    """How entries are to be stored: as they are, unless the user says otherwise.

    Raises:
        ShapeError: There is no such axis, or a tile is no whole number.
    """
    return entries(len(tensor.axes)) if promoted is None else _named(tensor, promoted)


def _bounds(coordinates: Iterable[NDArray[Any]], sizes: Iterable[int | None]) -> tuple[int, ...]:
    """The smallest shape that holds these indices, and all keys of dictionaries of these sizes."""
    return tuple(
        size if size is not None else max(int(indices.max()) + 1, 0) if indices.size else 0
        for indices, size in zip(coordinates, sizes, strict=True)
    )


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


def check_indices(tensor: Tensor, coordinates: Iterable[NDArray[Any]], first_row: int = 0) -> None:
    """Refuse indices out of range while rows still have the numbers that the user gave them.

    Raises:
        DataError: There is one; the first row that has one is named, counted from the number of the first row.
    """
    offences = []
    for axis, indices in zip(tensor.axes, coordinates, strict=True):
        if indices.size and (indices.min() < 0 or indices.max() >= axis.bound):
            row = int(np.flatnonzero((indices < 0) | (indices >= axis.bound))[0])
            offences.append((row, describe_index(axis.name, int(indices[row]), axis)))
    if offences:
        row, problem = min(offences)
        raise DataError(f"tensor {tensor.name}, row {first_row + row} (counted from 0): {problem}")


def _key_type(bound: int) -> pa.DataType:
    return pa.int32() if bound <= 1 << 31 else pa.int64()


def _from_array(description: Description, given: Dense, promoted: Promoted, dictionaries: Dictionaries) -> Columns:
    name, array = description.name, given.values
    dtype = dtype_of_values(name, description.wanted_dtype(), array.dtype)
    known = dictionaries.of_axes(description, description.axis_names(array.ndim, given.axes))
    bounds = description.agreed_bounds(array.shape, sizes_of(known))
    tensor = description.tensor(bounds, dtype, given.axes, dictionaries=dictionaries_of(known))
    values = converted_values(name, array, dtype)
    wanted = _chosen(tensor, values) if promoted is None else _named(tensor, promoted)
    decomposition = _chosen(tensor, values) if wanted.has_tiles else wanted
    if decomposition.is_scalar and tensor.axes:
        coordinates = np.nonzero(_present(tensor, values))
        table = entry_columns(tensor, coordinates, values[coordinates])
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
    """Entries for sparse data, else arrays."""
    if values.size and np.count_nonzero(_present(tensor, values)) < _SPARSE_BELOW * values.size:
        return entries(len(tensor.axes))
    return _in_arrays(tensor)


def _in_arrays(tensor: Tensor) -> Decomposition:
    """The first axis as key, and more of them where the arrays would be large.

    Axes with a dictionary are keys, whose number may grow.
    """
    rank = len(tensor.axes)
    keys = 1 if rank >= 2 else 0
    while keys < rank and math.prod(tensor.shape[keys:]) * ITEM_BYTES[tensor.dtype] > _LARGEST_ARRAY_BYTES:
        keys += 1
    has_keys = [place < keys or axis.dictionary is not None for place, axis in enumerate(tensor.axes)]
    return Decomposition(tuple(1 if has_key else DEMOTED for has_key in has_keys))


def entry_columns(tensor: Tensor, coordinates: Iterable[NDArray[Any]], values: NDArray[Any]) -> pa.Table:
    """One row for every entry: keys by the names of the axes, then the value."""
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
