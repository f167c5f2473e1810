"""Loading: reads Arrow tables, streams of batches, and other objects with Arrow's interface, such as polars frames."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from sparseeinsum.errors import DataError
from sparseeinsum.loading.sources.input_data import ColumnSelection, DenseArray, EntryBatches
from sparseeinsum.loading.sources.pandas_frames import is_pandas, pandas_table
from sparseeinsum.storage.natural_keys import value_type_of

_BATCH_ROWS = 1 << 20  # limits the memory of a batch, however large the batches of the reader are
_ONES = "sparseeinsum_ones"


def is_arrow(data: object) -> bool:
    """Return whether data have Arrow's interface, or are a lazy frame of polars or a data set of Arrow."""
    interfaces = ("__arrow_c_stream__", "__arrow_c_array__")
    return any(hasattr(data, interface) for interface in interfaces) or _is_lazy(data) or _is_dataset(data)


def read_arrow(name: str, data: Any, columns: ColumnSelection) -> pa.Table | EntryBatches | DenseArray:  # noqa: ANN401  # of many kinds
    """Read data as a table in memory or a stream of batches, whose last column is the value; a column as an array.

    Args:
        name: The name of the tensor, for messages.
        data: The data.
        columns: The columns that the user chooses.

    Raises:
        DataError: Arrow cannot read the data, or they lack a column.
    """
    if is_pandas(data):
        return chosen_columns(name, pandas_table(name, data), columns)
    try:
        if is_column(data):
            return _read_column(name, data)
        if _is_in_memory(data):
            return chosen_columns(name, pa.table(data), columns)
        return stream_of(name, _reader(data), columns)
    except pa.ArrowException as error:
        raise DataError(f"tensor {name} cannot be read as an Arrow table: {error}") from None


def _is_of_polars(data: object, kind: str) -> bool:
    polars: Any = sys.modules.get("polars")
    return polars is not None and isinstance(data, getattr(polars, kind))


def _is_lazy(data: object) -> bool:
    return _is_of_polars(data, "LazyFrame")


def _is_dataset(data: object) -> bool:
    datasets: Any = sys.modules.get("pyarrow.dataset")
    return datasets is not None and isinstance(data, datasets.Dataset | datasets.Scanner)


def is_column(data: object) -> bool:
    """Return whether data are an array of Arrow or a series of polars: values without indices."""
    return isinstance(data, pa.Array | pa.ChunkedArray) or _is_of_polars(data, "Series")


def _is_in_memory(data: object) -> bool:
    """Return whether data hold their rows: they have a length, as tables, frames and results do."""
    return hasattr(data, "__arrow_c_stream__") and hasattr(data, "__len__")


def _reader(data: Any) -> pa.RecordBatchReader:  # noqa: ANN401
    if _is_lazy(data):
        return pa.RecordBatchReader.from_batches(pa.table(data.head(0).collect()).schema, _lazy_batches(data))
    if _is_dataset(data):
        return (data if hasattr(data, "to_reader") else data.scanner()).to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    return pa.table(data).to_reader()


def _lazy_batches(frame: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
    for piece in frame.collect_batches(maintain_order=True):
        yield from pa.table(piece).to_batches()


def _read_column(name: str, data: Any) -> DenseArray:  # noqa: ANN401
    column = pa.chunked_array(data) if hasattr(data, "__arrow_c_stream__") else pa.chunked_array([data])
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise DataError(f"tensor {name}, row {row} (counted from 0): the value is NULL; give it a number")
    return DenseArray(np.asarray(column.to_numpy()))


def stream_of(name: str, reader: pa.RecordBatchReader, columns: ColumnSelection) -> EntryBatches:
    """Return a stream of the chosen columns in batches of limited size.

    Raises:
        DataError: The data lack a column.
    """
    schema = chosen_columns(name, reader.schema.empty_table(), columns).schema

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield from chosen_columns(name, pa.table(batch), columns).to_batches(_BATCH_ROWS)

    return EntryBatches(pa.RecordBatchReader.from_batches(schema, batches()))


def chosen_columns(name: str, table: pa.Table, columns: ColumnSelection) -> pa.Table:
    """A table of the index columns and, last, that of the values, of ones where there is none; categories as values.

    Raises:
        DataError: There are no such columns, or two of a name, or the values are no numbers.
    """
    names = table.column_names
    for column in names:
        if names.count(column) > 1:
            raise DataError(f"tensor {name} is given a table with two columns named {column}; rename one")
    index, value = columns.among(name, names)
    if value is not None:
        _check_numbers(name, value, table.select([column for column in names if column not in index]).schema)
    selected = [_decoded(table.column(column)) for column in (*index, *([] if value is None else [value]))]
    if value is None:
        selected.append(pa.array(np.ones(table.num_rows)))
    return pa.table(selected, names=[*index, _ONES if value is None else value])


def _check_numbers(name: str, value: str, schema: pa.Schema) -> None:
    """Refuse a value column of another type than numbers; `schema` has all columns that are not those of indices."""
    kind = schema.field(value).type
    if _are_numbers(kind):
        return
    others = [column.name for column in schema if _are_numbers(column.type)]
    hint = f"choose the value, as in value={others[0]!r}" if others else "the last column must be the value"
    raise DataError(f"tensor {name}: the value column {value} holds {kind}, which is no number; {hint}")


def _are_numbers(kind: pa.DataType) -> bool:
    """Return whether values can be those of a tensor; complex numbers are struct<re, im>, as in results."""
    kind = value_type_of(kind)
    if pa.types.is_struct(kind):
        return [(part.name, pa.types.is_floating(part.type)) for part in kind] == [("re", True), ("im", True)]
    checks = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(kind) for check in checks)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    is_of_numbers = pa.types.is_dictionary(kind) and pa.types.is_primitive(kind.value_type)
    return column.cast(kind.value_type) if is_of_numbers else column
