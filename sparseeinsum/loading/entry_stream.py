"""Loading: checks batches of a user while they stream, and converts them to the columns that are stored."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.loading.conversion import converted_values, dtype_of_values
from sparseeinsum.loading.frames import dictionaries_of_frame, entries_of_frame
from sparseeinsum.loading.tensor_columns import check_indices, entry_columns
from sparseeinsum.statistics.columns import INT_BOUND
from sparseeinsum.storage.catalogue_rows import StoredDictionary
from sparseeinsum.storage.dictionaries import dictionaries_of, sizes_of
from sparseeinsum.storage.natural_keys import KeyColumn
from sparseeinsum.storage.tensor_description import GREATEST_BOUND, TensorDescription


class EntryStream:
    """Entries that can be read once, and what is known of them after that.

    Attributes:
        name: The name of the tensor.
        failure: The error that ended the reading, if there was one; the database that reads raises another one.
        ascends: Whether every coordinate is greater than the one before it, so that none is repeated.
    """

    def __init__(self, description: TensorDescription, source: pa.RecordBatchReader) -> None:
        self.failure: BaseException | None = None
        self.ascends = True
        self.name = description.name
        self._description = description
        self._source = source
        self._rows = 0
        self._last: list[int] | None = None
        names, coordinates, values = self._entries(source.schema.empty_table())
        self._names = names
        self._dictionaries = dictionaries_of_frame(description, source.schema)
        self._key_types = [column.key_type if isinstance(column, KeyColumn) else None for column in coordinates]
        self._greatest = [-1] * len(names)
        self._dtype = dtype_of_values(self.name, description.checked_dtype(), values.dtype)
        # Indices are checked against these bounds. Without a shape, they follow from the types of the columns.
        bounds = self._user_bounds([None if column is None else GREATEST_BOUND for column in self._key_types])
        if bounds is not None and len(bounds) != len(names):
            raise ShapeError(f"tensor {self.name} is given shape {bounds}, but data of {len(names)} index columns")
        type_bounds = [
            INT_BOUND if np.can_cast(_indices(column).dtype, np.int32) else GREATEST_BOUND for column in coordinates
        ]
        self._bounded_tensor = description.tensor(bounds or type_bounds, self._dtype, names)

    def reader(self) -> pa.RecordBatchReader:
        """Return the converted batches, which can be read once.

        Raises:
            DataError: While batches are read: a row is invalid; the message names the first such row.
        """
        schema = self._convert(self._source.schema.empty_table()).schema
        return pa.RecordBatchReader.from_batches(schema, self._batches())

    @property
    def columns(self) -> list[tuple[str, str | None, str | None]]:
        """For every axis its column, and the name of its dictionary and the type of its keys, which may be None."""
        axes = [axis.name for axis in self._bounded_tensor.axes]
        return list(zip(axes, self._dictionaries, self._key_types, strict=True))

    def tensor(self, dictionaries: Sequence[StoredDictionary | None]) -> Tensor:
        """Return the tensor in the batches, after all of them were read and the dictionaries have their keys."""
        sizes = sizes_of(dictionaries)
        bounds = self._user_bounds(sizes)
        data_bounds = [
            size if size is not None else greatest + 1 for size, greatest in zip(sizes, self._greatest, strict=True)
        ]
        known_dictionaries = dictionaries_of(dictionaries)
        return self._description.tensor(
            bounds or data_bounds, self._dtype, self._names, dictionaries=known_dictionaries
        )

    def _user_bounds(self, sizes: Sequence[int | None]) -> tuple[int, ...] | None:
        return None if self._description.shape is None else self._description.bounds(sizes)

    def _entries(self, table: pa.Table) -> tuple[list[str], list[NDArray[Any] | KeyColumn], NDArray[Any]]:
        return entries_of_frame(self._description, table, self._rows)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the converted batches, and remember an error, as the database that reads them replaces it."""
        try:
            for batch in self._source:
                yield from self._convert(pa.table(batch)).to_batches()
                self._rows += batch.num_rows
        except pa.ArrowException as error:
            reason = str(error).partition(". Detail: Python exception")[0]  # a whole traceback
            self.failure = DataError(f"tensor {self.name} cannot be read: {reason}")
            raise self.failure from None
        except BaseException as error:
            self.failure = error
            raise

    def _convert(self, table: pa.Table) -> pa.Table:
        """Check a batch, update what is known of all batches, and return its key columns and values."""
        _, columns, values = self._entries(table)
        coordinates = [_indices(column) for column in columns]
        check_indices(self._bounded_tensor, coordinates, self._rows)
        converted = converted_values(self.name, values, self._dtype, self._rows)
        if len(values):
            self._greatest = [
                max(before, int(indices.max())) for before, indices in zip(self._greatest, coordinates, strict=True)
            ]
            self.ascends = self.ascends and not any(self._key_types) and self._follows(coordinates)
            self._last = [int(indices[-1]) for indices in coordinates]
        result = entry_columns(self._bounded_tensor, coordinates, converted)
        for position, column in enumerate(columns):
            if isinstance(column, KeyColumn):
                result = result.set_column(
                    position, result.column_names[position], column.keys.take(pa.array(column.positions))
                )
        return result

    def _follows(self, coordinates: Sequence[NDArray[Any]]) -> bool:
        """Return whether the coordinates of a batch ascend, and follow the last coordinate of the batch before."""
        if self._last is not None and [int(indices[0]) for indices in coordinates] <= self._last:
            return False
        rows = len(coordinates[0]) if coordinates else 2  # without axes, there is one coordinate for all rows
        is_later, is_same = np.zeros(rows - 1, bool), np.ones(rows - 1, bool)
        for indices in coordinates:
            is_later |= is_same & (indices[1:] > indices[:-1])
            is_same &= indices[1:] == indices[:-1]
        return bool(is_later.all())


def _indices(column: NDArray[Any] | KeyColumn) -> NDArray[Any]:
    """Return the indices of a column; keys, whose indices are not known yet, have their positions in the batch."""
    return column.positions if isinstance(column, KeyColumn) else column
