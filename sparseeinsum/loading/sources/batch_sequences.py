"""Loading: reads lists and iterators of record batches, tables and frames as rows, one after the other."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from sparseeinsum.errors import DataError
from sparseeinsum.loading.sources.arrow_tables import is_arrow, is_column, read_arrow
from sparseeinsum.loading.sources.input_data import ColumnSelection, EntryBatches
from sparseeinsum.loading.sources.pandas_frames import is_pandas
from sparseeinsum.loading.sources.xarray_arrays import is_xarray
from sparseeinsum.storage.natural_keys import key_type_of_arrow


def is_batches(data: object) -> bool:
    """Return whether data are an iterator, or a sequence that has record batches, tables or frames."""
    if not isinstance(data, Sequence) or isinstance(data, str | bytes | range):
        return isinstance(data, Iterator)
    one_of_each_type = {type(item): item for item in data}
    return any(map(_has_rows, one_of_each_type.values()))


def read_batches(name: str, data: Any, columns: ColumnSelection) -> EntryBatches:  # noqa: ANN401  # of many kinds
    """Return the rows of all items as a stream; an iterator is read while they are stored.

    Args:
        name: The name of the tensor, for messages.
        data: A sequence or an iterator, of which `is_batches` is true.
        columns: The columns that the user chooses.

    Raises:
        DataError: There is no item, an item has no rows, or the items have different columns.
    """
    tables = _tables(name, type(data).__name__, iter(data), columns)
    first = next(tables, None)
    if first is None:
        raise DataError(
            f"tensor {name} is given a {type(data).__name__} without items, whose columns nobody knows; give a table "
            "without rows"
        )

    schema = first[1].schema

    def batches() -> Iterator[pa.RecordBatch]:
        for number, table in chain([first], tables):
            yield from _conformed(name, number, table, schema).to_batches()

    return EntryBatches(pa.RecordBatchReader.from_batches(schema, batches()))


def _has_rows(item: object) -> bool:
    """Return whether an item is a table or a frame, not an array."""
    return is_pandas(item) or (is_arrow(item) and not is_column(item) and not is_xarray(item))


def _tables(name: str, kind: str, items: Iterator[Any], columns: ColumnSelection) -> Iterator[tuple[int, pa.Table]]:
    """Yield the number of every item with its rows; a stream is at least one table, which may have no rows."""
    for number, item in enumerate(items):
        if not _has_rows(item):
            raise DataError(
                f"tensor {name} is given a {kind} whose item {number} (counted from 0) is of type "
                f"{type(item).__name__}; items must all be record batches, tables or frames, and numbers must be in a "
                "list or an array"
            )
        rows = read_arrow(name, item, columns)
        if isinstance(rows, pa.Table):
            yield number, rows
        elif isinstance(rows, EntryBatches):
            yield number, rows.batches.schema.empty_table()
            yield from ((number, pa.table(batch)) for batch in rows.batches)


def _conformed(name: str, number: int, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of `schema`; integers and keys may be of another type that holds the same."""
    if sorted(table.column_names) != sorted(schema.names):
        raise DataError(
            f"tensor {name}: item {number} (counted from 0) has the columns {', '.join(table.column_names)}, and item "
            f"0 has {', '.join(schema.names)}; give all items the same"
        )
    table = table.select(schema.names)
    for before, after in zip(table.schema, schema, strict=True):
        key_type = key_type_of_arrow(before.type)
        if before.type != after.type and (key_type is None or key_type != key_type_of_arrow(after.type)):
            raise DataError(
                f"tensor {name}: the column {before.name} of item {number} (counted from 0) holds {before.type}, and "
                f"that of item 0 {after.type}; give all items the same types"
            )
    return table.cast(schema)
