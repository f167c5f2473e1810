"""Loading: reads data of any kind that users pass, with the first reader that accepts it."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from sparseeinsum.errors import DataError
from sparseeinsum.loading.frames import entries_of_frame
from sparseeinsum.loading.sources.arrow_tables import is_arrow, read_arrow
from sparseeinsum.loading.sources.batch_sequences import is_batches, read_batches
from sparseeinsum.loading.sources.database_relations import is_relation, read_relation
from sparseeinsum.loading.sources.input_data import ColumnSelection, EntryArrays, InputData
from sparseeinsum.loading.sources.numpy_arrays import is_array, is_pair, read_array, read_pair
from sparseeinsum.loading.sources.sparse_arrays import is_pydata, is_scipy, read_pydata, read_scipy
from sparseeinsum.loading.sources.torch_tensors import is_torch, read_torch
from sparseeinsum.loading.sources.xarray_arrays import is_xarray, read_xarray
from sparseeinsum.storage.tensor_description import TensorDescription


@dataclass(frozen=True, slots=True)
class _DataReader:
    """Reads one kind of data; it does not import the package of that kind, which need not be installed.

    Attributes:
        title: What messages call this kind of data.
        takes: Returns whether data are of this kind.
        read: Reads data of this kind, given the description of the tensor and the chosen columns.
        has_columns: Whether this kind of data has columns to choose from.
    """

    title: str
    takes: Callable[[object], bool]
    read: Callable[[TensorDescription, object, ColumnSelection], InputData]
    has_columns: bool = True


def _arrays(title: str, takes: Callable[[object], bool], read: Callable[[str, object], InputData]) -> _DataReader:
    return _DataReader(title, takes, lambda description, data, _: read(description.name, data), has_columns=False)


def _read_frame(description: TensorDescription, data: object, columns: ColumnSelection) -> InputData:
    frame = read_arrow(description.name, data, columns)
    if not isinstance(frame, pa.Table):
        return frame
    names, coordinates, values = entries_of_frame(description, frame)
    return EntryArrays(coordinates, values, axes=names)


# The order matters for data of several kinds: arrays of xarray have Arrow's interface, frames have numpy's, readers are
# iterators, and two tables are a pair.
_READERS = (
    _arrays("a scipy.sparse matrix or array", is_scipy, read_scipy),
    _arrays("a tensor of torch", is_torch, read_torch),
    _arrays("an array of sparse", is_pydata, read_pydata),
    _arrays("an array of xarray", is_xarray, read_xarray),
    _DataReader(
        "a relation of DuckDB, a table, a view, or a Parquet, CSV or JSON file",
        is_relation,
        lambda _, data, columns: read_relation(data, columns),
    ),
    _DataReader("a frame or series of pandas or polars, an Arrow table, reader or data set", is_arrow, _read_frame),
    _DataReader(
        "a list or an iterator of record batches, tables or frames",
        is_batches,
        lambda description, data, columns: read_batches(description.name, data, columns),
    ),
    _arrays("(coordinates, values)", is_pair, read_pair),
    _arrays("an array of numpy, nested sequences or a number", is_array, read_array),
)


def read(description: TensorDescription, data: object, columns: ColumnSelection) -> InputData:
    """Read data of any kind.

    Args:
        description: What the user says of the tensor.
        data: The data.
        columns: The columns that the user chooses, for data that have columns.

    Raises:
        DataError: No reader accepts the data; the message lists what can be read.
        ShapeError: The shapes of coordinates and values do not fit together.
    """
    name = description.name
    reader = next((candidate for candidate in _READERS if candidate.takes(data)), None)
    if reader is None:
        kinds = [candidate.title for candidate in reversed(_READERS)]
        raise DataError(
            f"tensor {name} cannot be made from {type(data).__name__}; give {', '.join(kinds[:-1])}, or {kinds[-1]}"
        )
    if columns.are_chosen and not reader.has_columns:
        raise DataError(f"tensor {name} is given index or value columns, but {reader.title} has none; leave them out")
    return reader.read(description, data, columns)
