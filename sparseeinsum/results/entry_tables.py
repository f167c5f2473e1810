"""Results: Arrow tables of the entries of a result, made in parts and on the threads of Arrow."""

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.results.tensor_rows import TensorRows
from sparseeinsum.statistics.columns import index_dtype
from sparseeinsum.storage.tensor_metadata import metadata_of

BATCH_NUMBERS = 1 << 20  # per part: 8 MB of doubles, and as much for the indices of every axis


@dataclass(frozen=True, slots=True)
class EntryTables:
    """Tables with a column for every axis, then `val`; indices without a row hold the fill.

    Attributes:
        rows: The rows of the result.
        dictionaries: Natural keys in the order of their indices, by the name of the dictionary.
    """

    rows: TensorRows
    dictionaries: Mapping[str, pa.Array]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [*(axis.name for axis in self.rows.schema.tensor.axes), VALUE_COLUMN]

    def whole(self) -> pa.Table:
        """The table of all entries."""
        schema = self.rows.schema
        if schema.is_scalar and not self.dictionaries:
            return _with_index_types(self.rows.rows, schema).replace_schema_metadata(metadata_of(schema.tensor))
        if schema.is_scalar:
            return self._table(*self.rows.columns())
        parts = list(self._parts(BATCH_NUMBERS))
        if len(parts) == 1:
            return self._table_of(parts[0])
        with ThreadPoolExecutor(pa.cpu_count()) as threads:
            return pa.concat_tables(threads.map(self._table_of, parts))

    def parts(self, most_numbers: int) -> Iterator[pa.Table]:
        """The same in at least one table; these have at most `most_numbers` entries if rows hold arrays."""
        if self.rows.schema.is_scalar:
            yield self.whole()
            return
        yield from map(self._table_of, self._parts(most_numbers))

    def labelled(self, indices: Sequence[NDArray[Any]]) -> list[pa.Array]:
        """The columns of axes: natural keys in place of the indices of axes that have a dictionary."""
        axes = self.rows.schema.tensor.axes
        return [
            pa.array(column.astype(index_dtype(axis.bound), copy=False))
            if axis.dictionary is None
            else self.dictionaries[axis.dictionary.name].take(pa.array(column))
            for axis, column in zip(axes, indices, strict=True)
        ]

    def _parts(self, most_numbers: int) -> Iterator["_Part"]:
        """Rows that have at most `most_numbers` values together, and parts of longer arrays."""
        schema, rows = self.rows.schema, self.rows.rows
        count = max(1, most_numbers // max(schema.array_size, 1))
        slice_size = max(math.prod(schema.inside[1:]), 1)
        step = most_numbers // slice_size * slice_size or most_numbers  # of whole slices along the first axis, if any
        for first in range(0, max(rows.num_rows, 1), count):
            part = TensorRows(schema, rows.slice(first, count))
            length = part.count_numbers() if schema.array_size > most_numbers else 1
            for start in range(0, max(length, 1), step):
                yield _Part(part, start, start + step)

    def _table_of(self, part: "_Part") -> pa.Table:
        return self._table(*part.rows.entries(part.start, part.stop))

    def _table(self, indices: Sequence[NDArray[Any]], values: NDArray[Any]) -> pa.Table:
        columns = [*self.labelled(indices), _column(values)]
        return pa.table(columns, names=self.names, metadata=metadata_of(self.rows.schema.tensor))


@dataclass(frozen=True, slots=True)
class _Part:
    """The values of some rows from `start` to `stop`."""

    rows: TensorRows
    start: int
    stop: int


def _with_index_types(rows: pa.Table, schema: Schema) -> pa.Table:
    """Rows whose keys have the types that indices of these axes have; kernels and tables may use others."""
    for name, axis in zip(schema.keys, schema.tensor.axes, strict=True):
        index_type = pa.from_numpy_dtype(index_dtype(axis.bound))
        position = rows.schema.get_field_index(name)
        if rows.schema.field(position).type != index_type:
            rows = rows.set_column(position, name, rows.column(position).cast(index_type))
    return rows


def _column(values: NDArray[Any]) -> pa.Array:
    if values.dtype.kind != "c":
        return pa.array(values)
    return pa.StructArray.from_arrays([pa.array(values.real), pa.array(values.imag)], names=["re", "im"])
