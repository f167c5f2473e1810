"""Loading: converts values that a user supplies for a run to rows of a stored tensor's layout, without a database."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import DataError, PlanError, ShapeError
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor, Tensor
from sparseeinsum.loading.conversion import converted_values, dtype_of_values
from sparseeinsum.loading.sources.input_data import ColumnSelection, DenseArray, EntryArrays
from sparseeinsum.loading.sources.readers import read
from sparseeinsum.loading.tensor_columns import entry_columns, row_schema, rows_of_array, sorted_entries
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.columns import value_of
from sparseeinsum.statistics.loaded_measurements import facts_of_entries
from sparseeinsum.statistics.tensor_rows import table_of_rows
from sparseeinsum.storage.tensor_description import TensorDescription
from sparseeinsum.storage.tensor_metadata import completed_from_metadata


@dataclass(frozen=True, slots=True)
class SuppliedRows:
    """The rows of a tensor.

    Attributes:
        stored: The tensor and the layout of the rows.
        table: The rows.
        values: Of the dtype of the tensor: all that are not the fill, and perhaps others.
    """

    stored: StoredTensor
    table: pa.Table
    values: NDArray[Any]

    @property
    def is_complete(self) -> bool:
        """Whether there is a row for every possible key."""
        return bool(self.table.num_rows == self.stored.max_tuples)

    def facts(self) -> ValueFacts:
        """The range of the values that are not the fill, and whether some index holds the fill."""
        tensor = self.stored.tensor
        return facts_of_entries(tensor, self.values[self.values != tensor.fill])

    def identifies(self, axis: int) -> bool:
        """Whether no two rows have the same key of an axis."""
        position = self.stored.decomposition.promoted.index(axis)
        keys = self.table.column(position).to_numpy()
        return bool(np.unique(keys).size == keys.size)


def check_suppliable(stored: StoredTensor) -> None:
    """Refuse a stored tensor whose rows cannot be made from data of a client alone.

    Raises:
        PlanError: An axis has natural keys, which the database holds, or several axes of arrays have tiles.
    """
    tensor = stored.tensor
    for axis in tensor.axes:
        if axis.dictionary is not None:
            raise PlanError(
                f"{tensor.name} cannot be an input of a prepared program, because its axis {axis.name} has natural "
                "keys, which the database looks up; load its values as a tensor"
            )
    if any(stored.decomposition.tiles[axis] for axis in stored.decomposition.array_axes[1:]):
        raise PlanError(
            f"{tensor.name} cannot be an input of a prepared program as it is stored, {stored.notation}: several axes "
            "of its arrays are tiled; load it with another layout, as in promoted=[...]"
        )


def present_rows(stored: StoredTensor, engine: Engine) -> pa.Table:
    """The rows of a stored tensor as they are now, with the columns of `SuppliedRows.table`.

    Raises:
        EngineError: The relation cannot be read.
    """
    columns: list[exp.Expr] = [exp.column(key, quoted=True) for key in stored.keys]
    rows = engine.arrow(
        exp.select(*columns, exp.alias_(value_of(stored), VALUE_COLUMN)).from_(
            table_of_rows(stored, engine.dialect_name)
        )
    )
    schema = row_schema(stored.tensor, stored.decomposition)
    return rows.rename_columns(schema.names).cast(schema)


def supplied_rows(stored: StoredTensor, data: object) -> SuppliedRows:
    """Convert data of any kind that is in memory to rows.

    Args:
        stored: The tensor that the data replace, which gives shape, dtype, fill and layout; see `check_suppliable`.
        data: As for `Database.tensor`.

    Raises:
        DataError: The data cannot be read here, an index is out of range or repeated, or a value would change.
        ShapeError: The data have another shape.
    """
    tensor = stored.tensor
    axes = [axis.name for axis in tensor.axes]
    _check_metadata(tensor, data)
    description = TensorDescription(tensor.name, axes, tensor.shape, tensor.fill, tensor.dtype)
    source = read(description, data, ColumnSelection())
    if isinstance(source, DenseArray):
        return _from_array(stored, source.values)
    if not isinstance(source, EntryArrays):
        raise DataError(
            f"{tensor.name} is given {type(data).__name__}, which is read in batches or by the database; give an array "
            "or a table in memory, or load it as a tensor"
        )
    return _from_entries(stored, description, source)


def _check_metadata(tensor: Tensor, data: object) -> None:
    """Refuse a result, or a table of one, that has another shape or fill: rows alone would not tell."""
    said = completed_from_metadata(TensorDescription(tensor.name), data, None)
    if said.shape is not None and tuple(said.shape) != tensor.shape:
        raise ShapeError(f"{tensor.name} is given shape {tuple(said.shape)}, but was prepared with {tensor.shape}")
    if said.fill is not None and said.fill != tensor.fill:
        raise DataError(
            f"{tensor.name} is given a table whose absent entries hold {said.fill}, but was prepared with the fill "
            f"{tensor.fill}; give an array, as in result.to_numpy()"
        )


def _from_array(stored: StoredTensor, array: NDArray[Any]) -> SuppliedRows:
    tensor = stored.tensor
    if array.shape != tensor.shape:
        raise ShapeError(f"{tensor.name} is given shape {array.shape}, but was prepared with {tensor.shape}")
    dtype_of_values(tensor.name, tensor.dtype, array.dtype)  # refuses what is no number
    values = converted_values(tensor.name, array, tensor.dtype)
    return SuppliedRows(stored, rows_of_array(tensor, stored.decomposition, values), values)


def _from_entries(stored: StoredTensor, description: TensorDescription, source: EntryArrays) -> SuppliedRows:
    tensor = stored.tensor
    if source.shape is not None and tuple(source.shape) != tensor.shape:
        raise ShapeError(f"{tensor.name} is given shape {tuple(source.shape)}, but was prepared with {tensor.shape}")
    description.tensor(tensor.shape, tensor.dtype, source.axes, source.fill)  # refuses another fill, or other axes
    coordinates = [np.asarray(indices) for indices in source.coordinates]
    if len(coordinates) != len(tensor.axes) or any(indices.dtype.kind not in "iu" for indices in coordinates):
        raise ShapeError(f"{tensor.name} takes an index column for each of its {len(tensor.axes)} axes, of integers")
    dtype_of_values(tensor.name, tensor.dtype, source.values.dtype)
    entries, values, may_have_duplicates = sorted_entries(tensor, coordinates, source.values)
    if may_have_duplicates and _has_duplicates(coordinates, len(values)):
        raise DataError(f"{tensor.name} is given a coordinate twice; add up its values first")
    if stored.decomposition.is_scalar:
        return SuppliedRows(stored, entry_columns(tensor, entries, values), values)
    array = np.full(tensor.shape, tensor.fill, tensor.dtype)
    array[tuple(entries)] = values
    return _from_array(stored, array)


def _has_duplicates(coordinates: list[NDArray[Any]], rows: int) -> bool:
    return rows > (len(np.unique(np.stack(coordinates), axis=1).T) if coordinates else 1)
