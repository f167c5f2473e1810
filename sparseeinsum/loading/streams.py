"""Loading: batches of a user's, checked while they stream, as batches of what is stored: keys, then values."""

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
from sparseeinsum.storage.catalogue import StoredDictionary
from sparseeinsum.storage.dictionaries import dictionaries_of, sizes_of
from sparseeinsum.storage.natural_keys import KeyColumn
from sparseeinsum.storage.tensor_description import GREATEST_BOUND, TensorDescription

_INT_BOUND = 1 << 31


class EntryStream:
    """Entries that are read once, and what is known of them when all are.

    Attributes:
        name: Of the tensor.
        failure: What ended the reading; the database that reads has its own words for that.
        ascends: Whether every coordinate came after the one before it, so that none came twice.
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
        self._key_types = [each.key_type if isinstance(each, KeyColumn) else None for each in coordinates]
        self._greatest = [-1] * len(names)
        self._dtype = dtype_of_values(self.name, description.wanted_dtype(), values.dtype)
        # What every index is held to; without a shape, keys are as wide as the columns that they come from.
        given = self._given_bounds([None if each is None else GREATEST_BOUND for each in self._key_types])
        if given is not None and len(given) != len(names):
            raise ShapeError(f"tensor {self.name} is given shape {given}, but data of {len(names)} index columns")
        widest = [_INT_BOUND if np.can_cast(_indices(each).dtype, np.int32) else GREATEST_BOUND for each in coordinates]
        self._limits = description.tensor(given or widest, self._dtype, names)

    def reader(self) -> pa.RecordBatchReader:
        """The batches; can be read once.

        Raises:
            DataError: While they are read: a row is none of a tensor; the first such row is named.
        """
        schema = self._clean(self._source.schema.empty_table()).schema
        return pa.RecordBatchReader.from_batches(schema, self._batches())

    @property
    def columns(self) -> list[tuple[str, str | None, str | None]]:
        """For every axis its column, its dictionary, and the type of its keys; None where it has none."""
        axes = [axis.name for axis in self._limits.axes]
        return list(zip(axes, self._dictionaries, self._key_types, strict=True))

    def tensor(self, dictionaries: Sequence[StoredDictionary | None]) -> Tensor:
        """The tensor that all batches make, once they are read and dictionaries have their keys."""
        sizes = sizes_of(dictionaries)
        bounds = self._given_bounds(sizes)
        found = [
            size if size is not None else greatest + 1 for size, greatest in zip(sizes, self._greatest, strict=True)
        ]
        known = dictionaries_of(dictionaries)
        return self._description.tensor(bounds or found, self._dtype, self._names, dictionaries=known)

    def _given_bounds(self, sizes: Sequence[int | None]) -> tuple[int, ...] | None:
        return None if self._description.shape is None else self._description.bounds(sizes)

    def _entries(self, table: pa.Table) -> tuple[list[str], list[NDArray[Any] | KeyColumn], NDArray[Any]]:
        return entries_of_frame(self._description, table, self._rows)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._source:
                yield from self._clean(pa.table(batch)).to_batches()
                self._rows += batch.num_rows
        except pa.ArrowException as error:
            said = str(error).partition(". Detail: Python exception")[0]  # a whole traceback
            self.failure = DataError(f"tensor {self.name} cannot be read: {said}")
            raise self.failure from None
        except BaseException as error:
            self.failure = error
            raise

    def _clean(self, table: pa.Table) -> pa.Table:
        _, columns, values = self._entries(table)
        coordinates = [_indices(each) for each in columns]
        check_indices(self._limits, coordinates, self._rows)
        converted = converted_values(self.name, values, self._dtype, self._rows)
        if len(values):
            self._greatest = [
                max(before, int(indices.max())) for before, indices in zip(self._greatest, coordinates, strict=True)
            ]
            self.ascends = self.ascends and not any(self._key_types) and self._follows(coordinates)
            self._last = [int(indices[-1]) for indices in coordinates]
        found = entry_columns(self._limits, coordinates, converted)
        for place, each in enumerate(columns):
            if isinstance(each, KeyColumn):
                found = found.set_column(place, found.column_names[place], each.keys.take(pa.array(each.positions)))
        return found

    def _follows(self, coordinates: Sequence[NDArray[Any]]) -> bool:
        """Whether a batch goes on where the last one ended, and ascends."""
        if self._last is not None and [int(indices[0]) for indices in coordinates] <= self._last:
            return False
        rows = len(coordinates[0]) if coordinates else 2  # without axes, there is one coordinate for all rows
        is_later, is_same = np.zeros(rows - 1, bool), np.ones(rows - 1, bool)
        for indices in coordinates:
            is_later |= is_same & (indices[1:] > indices[:-1])
            is_same &= indices[1:] == indices[:-1]
        return bool(is_later.all())


def _indices(column: NDArray[Any] | KeyColumn) -> NDArray[Any]:
    """Indices of a column; positions among the keys of a batch are as good until all keys are known."""
    return column.positions if isinstance(column, KeyColumn) else column
