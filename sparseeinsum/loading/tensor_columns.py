"""Loading: entries and arrays in memory as columns of a tensor relation."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.tensors import (
    DEMOTED,
    VALUE_COLUMN,
    Decomposition,
    Tensor,
    count_keys,
    extent_of,
    fully_promoted,
    is_ragged,
)
from sparseeinsum.loading.conversion import converted_values, dtype_of_values
from sparseeinsum.loading.layouts import (
    Promoted,
    RowSizes,
    layout_of_array,
    layout_of_entries,
    layout_of_sparse,
    named_layout,
)
from sparseeinsum.loading.sources.input_data import Dense, Entries
from sparseeinsum.statistics.measure import describe_index
from sparseeinsum.storage.dictionaries import Dictionaries, dictionaries_of, encoded, sizes_of
from sparseeinsum.storage.tensor_description import TensorDescription

# Coordinates of larger tensors are not numbered.
_LARGEST_NUMBER = 1 << 62


@dataclass(frozen=True, slots=True)
class TensorColumns:
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


def columns_of(
    description: TensorDescription,
    given: Entries | Dense,
    promoted: Promoted,
    dictionaries: Dictionaries,
    sizes: RowSizes,
) -> TensorColumns:
    """Turn data in memory into columns.

    Args:
        description: What the user says of the tensor; a shape must be given where data have none, and agree where
            they have.
        given: The data.
        promoted: Axes to store as key columns, and their tiles; by default chosen by density and size.
        dictionaries: Those of the database, which get the natural keys of the data.
        sizes: What rows take in the database.

    Raises:
        DataError: The data are of a type that cannot be stored, or an index is out of range.
        ShapeError: Axes or shape do not fit the data.
    """
    if isinstance(given, Dense):
        return _from_array(description, given, promoted, dictionaries, sizes)
    return _from_entries(description, given, promoted, dictionaries, sizes)


def _from_entries(
    description: TensorDescription, given: Entries, promoted: Promoted, dictionaries: Dictionaries, sizes: RowSizes
) -> TensorColumns:
    name, values = description.name, given.values
    axes = description.axis_names(len(given.coordinates), given.axes)
    coordinates, known = encoded(dictionaries, description, axes, given.coordinates)
    key_counts = sizes_of(known)
    if given.shape is not None:
        bounds = description.agreed_bounds(given.shape, key_counts)
    else:
        bounds = _bounds(coordinates, key_counts) if description.shape is None else description.bounds(key_counts)
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
    wanted = layout_of_entries(tensor, promoted)
    if promoted is None and given.shape is not None:  # without a shape they are rows, which users read as such
        wanted = layout_of_sparse(tensor, len(converted), sizes)
    return TensorColumns(tensor, fully_promoted(len(tensor.axes)), wanted, table, order is None)


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


def _from_array(
    description: TensorDescription, given: Dense, promoted: Promoted, dictionaries: Dictionaries, sizes: RowSizes
) -> TensorColumns:
    name, array = description.name, given.values
    dtype = dtype_of_values(name, description.wanted_dtype(), array.dtype)
    known = dictionaries.of_axes(description, description.axis_names(array.ndim, given.axes))
    bounds = description.agreed_bounds(array.shape, sizes_of(known))
    tensor = description.tensor(bounds, dtype, given.axes, dictionaries=dictionaries_of(known))
    values = converted_values(name, array, dtype)
    wanted = decomposition = None if promoted is None else named_layout(tensor, promoted)
    if decomposition is None or not _is_contiguous(decomposition):
        decomposition = layout_of_array(tensor, _present(tensor, values), sizes)
    if decomposition.is_scalar and tensor.axes:
        coordinates = np.nonzero(_present(tensor, values))
        table = entry_columns(tensor, coordinates, values[coordinates])
    else:
        table = _array_columns(tensor, decomposition, values)
    return TensorColumns(tensor, decomposition, wanted or decomposition, table, may_repeat=False)


def _present(tensor: Tensor, values: NDArray[Any]) -> NDArray[Any]:
    """An array that is not 0 where values are not the fill: the values themselves where that is 0."""
    return values if tensor.fill == 0 else values != tensor.fill


def entry_columns(tensor: Tensor, coordinates: Iterable[NDArray[Any]], values: NDArray[Any]) -> pa.Table:
    """One row for every entry: keys by the names of the axes, then the value."""
    keys = [
        pa.array(indices.astype(_key_type(axis.bound).to_pandas_dtype(), copy=False))
        for indices, axis in zip(coordinates, tensor.axes, strict=True)
    ]
    column = _value_column(values, np.ones(len(values), np.int64), is_scalar=True)
    return pa.table([*keys, column], names=[*(axis.name for axis in tensor.axes), VALUE_COLUMN])


def _is_contiguous(decomposition: Decomposition) -> bool:
    """Whether the arrays are parts of the elements in C order, once axes whose keys are indices come first."""
    return all(decomposition.tiles[position] == DEMOTED for position in decomposition.array_axes[1:])


def _array_columns(tensor: Tensor, decomposition: Decomposition, values: NDArray[Any]) -> pa.Table:
    """One row for every combination of keys, its array in C order; of a decomposition that is contiguous."""
    inside = decomposition.array_axes
    before = [position for position in decomposition.promoted if position not in inside]
    moved: NDArray[Any] = np.transpose(values, (*before, *inside))
    by_key = [*before, *(position for position in decomposition.promoted if position in inside)]
    counts = [count_keys(decomposition.tiles[position], tensor.shape[position]) for position in by_key]
    indices = dict(zip(by_key, np.indices(counts).reshape((len(counts), math.prod(counts))), strict=True))
    keys = {
        tensor.axes[position].name: pa.array(
            indices[position].astype(_key_type(tensor.axes[position].bound).to_pandas_dtype())
        )
        for position in decomposition.promoted
    }
    lengths = _lengths(decomposition, tensor.shape, math.prod(counts))
    column = _value_column(moved, lengths, decomposition.is_scalar)
    return pa.table([*keys.values(), column], names=[*keys, VALUE_COLUMN])


def _lengths(decomposition: Decomposition, shape: tuple[int, ...], rows: int) -> NDArray[np.int64]:
    """Elements of the array in every row; the last one of an axis in tiles may be shorter."""
    lengths = np.full(rows, decomposition.array_size(shape), np.int64)
    for position in decomposition.array_axes[:1]:
        tile, bound = decomposition.tiles[position], shape[position]
        if is_ragged(tile, bound):
            count = count_keys(tile, bound)
            lengths[count - 1 :: count] = lengths[:1] // extent_of(tile, bound) * (bound - tile * (count - 1))
    return lengths


def _value_column(values: NDArray[Any], lengths: NDArray[np.int64], is_scalar: bool) -> pa.Array:
    """Numbers, or an array of them a row, in C order; a complex number is an array of its real and imaginary part."""
    flat = np.ascontiguousarray(values).reshape(-1)
    is_pair = flat.dtype.kind == "c"
    column = pa.array(flat.view(flat.real.dtype) if is_pair else flat)
    if is_scalar and not is_pair:
        return column
    offsets = np.concatenate([[0], np.cumsum(lengths * (1 + is_pair))])
    return pa.LargeListArray.from_arrays(pa.array(offsets), column)
