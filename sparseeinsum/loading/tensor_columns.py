"""Loading: converts entries and arrays in memory to the columns of a tensor relation."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.tensors import (
    DEMOTED,
    VALUE_COLUMN,
    Decomposition,
    StoredTensor,
    Tensor,
    count_keys,
    extent_of,
    fully_promoted,
    is_ragged,
)
from sparseeinsum.loading.conversion import converted_values, dtype_of_values
from sparseeinsum.loading.sources.input_data import DenseArray, EntryArrays
from sparseeinsum.loading.stored_layouts import (
    PromotedAxes,
    RowSizes,
    layout_of_array,
    layout_of_entries,
    layout_of_sparse,
    named_layout,
)
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.columns import LARGEST_COORDINATE
from sparseeinsum.statistics.loaded_measurements import LoadedMeasurement, measure_array, measure_entries
from sparseeinsum.statistics.row_checks import describe_index
from sparseeinsum.storage.dictionaries import Dictionaries, dictionaries_of, encode_keys, sizes_of
from sparseeinsum.storage.tensor_description import TensorDescription


@dataclass(frozen=True, slots=True)
class TensorColumns:
    """A tensor as columns in memory.

    Attributes:
        tensor: Name, axes, dtype and fill.
        decomposition: The decomposition of the columns.
        stored_decomposition: The decomposition in which the tensor is to be stored.
        table: Key columns, named as the promoted axes, then the values; a complex number is an array of its two parts.
        may_have_duplicates: Whether a coordinate may be repeated.
        measure: Measures the tensor as it is stored from the values; None if a coordinate may be repeated.
    """

    tensor: Tensor
    decomposition: Decomposition
    stored_decomposition: Decomposition
    table: pa.Table
    may_have_duplicates: bool
    measure: Callable[[StoredTensor], LoadedMeasurement] | None = None


def columns_of(
    description: TensorDescription,
    data: EntryArrays | DenseArray,
    promoted: PromotedAxes,
    dictionaries: Dictionaries,
    sizes: RowSizes,
) -> TensorColumns:
    """Convert data in memory to columns.

    Args:
        description: What the user says of the tensor; its shape must be that of the data, if they have one.
        data: The data.
        promoted: Axes to store as key columns, and their tiles; None to choose them by density and size.
        dictionaries: The dictionaries of the database, which get the natural keys of the data.
        sizes: The sizes of rows in the database.

    Raises:
        DataError: Values of this type cannot be stored, or an index is out of range.
        ShapeError: Axes or shape do not fit the data.
    """
    if isinstance(data, DenseArray):
        return _from_array(description, data, promoted, dictionaries, sizes)
    return _from_entries(description, data, promoted, dictionaries, sizes)


def _from_entries(
    description: TensorDescription,
    data: EntryArrays,
    promoted: PromotedAxes,
    dictionaries: Dictionaries,
    sizes: RowSizes,
) -> TensorColumns:
    """Convert entries to columns, sorted by their coordinates if these are not repeated."""
    name, values = description.name, data.values
    axes = description.axis_names(len(data.coordinates), data.axes)
    coordinates, dictionaries_of_data = encode_keys(dictionaries, description, axes, data.coordinates)
    key_counts = sizes_of(dictionaries_of_data)
    if data.shape is not None:
        bounds = description.agreed_bounds(data.shape, key_counts)
    else:
        bounds = _bounds(coordinates, key_counts) if description.shape is None else description.bounds(key_counts)
    if len(bounds) != len(coordinates):
        raise ShapeError(f"tensor {name} is given shape {bounds}, but coordinates of {len(coordinates)} axes")
    dtype = dtype_of_values(name, description.checked_dtype(), values.dtype)
    tensor = description.tensor(bounds, dtype, data.axes, data.fill, dictionaries_of(dictionaries_of_data))
    entries, converted, may_have_duplicates = sorted_entries(tensor, coordinates, values)
    table = entry_columns(tensor, entries, converted)
    stored_decomposition = layout_of_entries(tensor, promoted)
    if promoted is None and data.shape is not None:  # without a shape they are rows, which users read as such
        stored_decomposition = layout_of_sparse(tensor, len(converted), sizes)
    measure = None if may_have_duplicates else partial(measure_entries, coordinates=entries, values=converted)
    decomposition = fully_promoted(len(tensor.axes))
    return TensorColumns(tensor, decomposition, stored_decomposition, table, may_have_duplicates, measure)


def sorted_entries(
    tensor: Tensor, coordinates: Sequence[NDArray[Any]], values: NDArray[Any]
) -> tuple[Sequence[NDArray[Any]], NDArray[Any], bool]:
    """Return entries with values of the tensor's dtype, sorted by their coordinates if these are not repeated.

    Args:
        tensor: The tensor.
        coordinates: The indices of the entries, an array for every axis.
        values: The values of the entries, in any dtype.

    Returns:
        Coordinates, values, and whether a coordinate may be repeated.

    Raises:
        DataError: An index is out of range, or a value would change; the message names the first such row.
    """
    check_indices(tensor, coordinates)
    converted = converted_values(tensor.name, values, tensor.dtype)
    order = _ascending_order(tensor, coordinates)
    if order is not None and order.size:
        coordinates, converted = [indices[order] for indices in coordinates], converted[order]
    return coordinates, converted, order is None


def _bounds(coordinates: Iterable[NDArray[Any]], sizes: Iterable[int | None]) -> tuple[int, ...]:
    """Return the smallest shape for these indices; the bound of an axis with a dictionary is its size."""
    return tuple(
        size if size is not None else max(int(indices.max()) + 1, 0) if indices.size else 0
        for indices, size in zip(coordinates, sizes, strict=True)
    )


def _ascending_order(tensor: Tensor, coordinates: Iterable[NDArray[Any]]) -> NDArray[np.intp] | None:
    """Return the order of rows in which coordinates ascend.

    Rows in this order are close together where they are aggregated, and need no search for repeated coordinates.

    Returns:
        A permutation of the rows, which is empty if they are in this order already; None if a coordinate is repeated,
        or if the tensor has no axes, no entries or too many.
    """
    if not tensor.axes or not 0 < tensor.size < LARGEST_COORDINATE:
        return None
    numbers = np.ravel_multi_index([indices.astype(np.int64, copy=False) for indices in coordinates], tensor.shape)
    order = np.empty(0, np.intp)
    if not np.all(numbers[1:] > numbers[:-1]):
        order = np.argsort(numbers)
        numbers = numbers[order]
    return order if np.all(numbers[1:] > numbers[:-1]) else None


def check_indices(tensor: Tensor, coordinates: Iterable[NDArray[Any]], first_row: int = 0) -> None:
    """Refuse indices out of range, before rows are sorted, so that messages have the user's row numbers.

    Args:
        tensor: The tensor.
        coordinates: The indices of the rows, an array for every axis.
        first_row: The number of the first row.

    Raises:
        DataError: An index is out of range; the message names the first such row.
    """
    offences = []
    for axis, indices in zip(tensor.axes, coordinates, strict=True):
        if indices.size and (indices.min() < 0 or indices.max() >= axis.bound):
            row = int(np.flatnonzero((indices < 0) | (indices >= axis.bound))[0])
            offences.append((row, describe_index(axis.name, int(indices[row]), axis)))
    if offences:
        row, problem = min(offences)
        raise DataError(f"tensor {tensor.name}, row {first_row + row} (counted from 0): {problem}")


def _key_column_type(bound: int) -> pa.DataType:
    return pa.int32() if bound <= 1 << 31 else pa.int64()


def _from_array(
    description: TensorDescription,
    data: DenseArray,
    promoted: PromotedAxes,
    dictionaries: Dictionaries,
    sizes: RowSizes,
) -> TensorColumns:
    """Convert an array to columns: of entries if most values are the fill, else of arrays."""
    name, array = description.name, data.values
    dtype = dtype_of_values(name, description.checked_dtype(), array.dtype)
    dictionaries_of_data = dictionaries.for_axes(description, description.axis_names(array.ndim, data.axes))
    bounds = description.agreed_bounds(array.shape, sizes_of(dictionaries_of_data))
    tensor = description.tensor(bounds, dtype, data.axes, dictionaries=dictionaries_of(dictionaries_of_data))
    values = converted_values(name, array, dtype)
    stored_decomposition = decomposition = None if promoted is None else named_layout(tensor, promoted)
    if decomposition is None or not _is_contiguous(decomposition):
        decomposition = layout_of_array(tensor, _present(tensor, values), sizes)
    table = rows_of_array(tensor, decomposition, values)
    return TensorColumns(
        tensor,
        decomposition,
        stored_decomposition or decomposition,
        table,
        may_have_duplicates=False,
        measure=partial(measure_array, values=values, tuples=table.num_rows),
    )


def rows_of_array(tensor: Tensor, decomposition: Decomposition, values: NDArray[Any]) -> pa.Table:
    """Return the rows of a dense array of the tensor's dtype; the decomposition is contiguous."""
    if decomposition.is_scalar and tensor.axes:
        coordinates = np.nonzero(_present(tensor, values))
        return entry_columns(tensor, coordinates, values[coordinates])
    return _array_columns(tensor, decomposition, values)


def _present(tensor: Tensor, values: NDArray[Any]) -> NDArray[Any]:
    """Return an array that is not 0 where a value is not the fill; for the fill 0, these are the values themselves."""
    return values if tensor.fill == 0 else values != tensor.fill


def entry_columns(tensor: Tensor, coordinates: Iterable[NDArray[Any]], values: NDArray[Any]) -> pa.Table:
    """Return one row per entry: key columns with the names of the axes, then the value.

    Args:
        tensor: The tensor.
        coordinates: For every axis the indices of all entries.
        values: The values of all entries.
    """
    keys = [
        pa.array(indices.astype(_key_column_type(axis.bound).to_pandas_dtype(), copy=False))
        for indices, axis in zip(coordinates, tensor.axes, strict=True)
    ]
    column = _value_column(values, np.ones(len(values), np.int64), is_scalar=True)
    return pa.table([*keys, column], names=[*(axis.name for axis in tensor.axes), VALUE_COLUMN])


def _is_contiguous(decomposition: Decomposition) -> bool:
    """Return whether every array is contiguous in row-major order after the promoted axes were moved to the front."""
    return all(decomposition.tiles[position] == DEMOTED for position in decomposition.array_axes[1:])


def _array_columns(tensor: Tensor, decomposition: Decomposition, values: NDArray[Any]) -> pa.Table:
    """Return one row per combination of keys with its array in row-major order; the decomposition is contiguous."""
    inside = decomposition.array_axes
    before = [position for position in decomposition.promoted if position not in inside]
    moved: NDArray[Any] = np.transpose(values, (*before, *inside))
    by_key = [*before, *(position for position in decomposition.promoted if position in inside)]
    counts = [count_keys(decomposition.tiles[position], tensor.shape[position]) for position in by_key]
    indices = dict(zip(by_key, np.indices(counts).reshape((len(counts), math.prod(counts))), strict=True))
    keys = {
        tensor.axes[position].name: pa.array(
            indices[position].astype(_key_column_type(tensor.axes[position].bound).to_pandas_dtype())
        )
        for position in decomposition.promoted
    }
    lengths = _lengths(decomposition, tensor.shape, math.prod(counts))
    column = _value_column(moved, lengths, decomposition.is_scalar)
    return pa.table([*keys.values(), column], names=[*keys, VALUE_COLUMN])


def _lengths(decomposition: Decomposition, shape: tuple[int, ...], rows: int) -> NDArray[np.int64]:
    """Return the length of the array in every row; the last tile of an axis may be shorter."""
    lengths = np.full(rows, decomposition.array_size(shape), np.int64)
    for position in decomposition.array_axes[:1]:
        tile, bound = decomposition.tiles[position], shape[position]
        if is_ragged(tile, bound):
            count = count_keys(tile, bound)
            lengths[count - 1 :: count] = lengths[:1] // extent_of(tile, bound) * (bound - tile * (count - 1))
    return lengths


def row_schema(tensor: Tensor, decomposition: Decomposition) -> pa.Schema:
    """Return the columns that `entry_columns` and `rows_of_array` return."""
    keys = [(tensor.axes[axis].name, _key_column_type(tensor.axes[axis].bound)) for axis in decomposition.promoted]
    number = pa.from_numpy_dtype(np.zeros(0, tensor.dtype).real.dtype)
    has_lists = is_complex(tensor.dtype) or not decomposition.is_scalar
    return pa.schema([*keys, (VALUE_COLUMN, pa.large_list(number) if has_lists else number)])


def _value_column(values: NDArray[Any], lengths: NDArray[np.int64], is_scalar: bool) -> pa.Array:
    """Return the value column from values in row-major order.

    Args:
        values: The values of all rows.
        lengths: The length of the array in every row.
        is_scalar: Whether rows have numbers in place of arrays; a complex number is an array of two parts.
    """
    flat = np.ascontiguousarray(values).reshape(-1)
    is_pair = flat.dtype.kind == "c"
    column = pa.array(flat.view(flat.real.dtype) if is_pair else flat)
    if is_scalar and not is_pair:
        return column
    offsets = np.concatenate([[0], np.cumsum(lengths * (1 + is_pair))])
    return pa.LargeListArray.from_arrays(pa.array(offsets), column)
