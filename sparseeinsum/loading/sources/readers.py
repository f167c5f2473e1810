"""Loading: data of any kind that users hand over, each read by the first reader that knows it."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from sparseeinsum.errors import DataError
from sparseeinsum.loading.frames import entries_of_frame
from sparseeinsum.loading.sources.arrow_tables import is_arrow, read_arrow
from sparseeinsum.loading.sources.database_relations import is_relation, read_relation
from sparseeinsum.loading.sources.input_data import ColumnSelection, Entries, InputData
from sparseeinsum.loading.sources.numpy_arrays import is_array, is_pair, read_array, read_pair
from sparseeinsum.loading.sources.sparse_arrays import is_pydata, is_scipy, read_pydata, read_scipy
from sparseeinsum.loading.sources.torch_tensors import is_torch, read_torch
from sparseeinsum.loading.sources.xarray_arrays import is_xarray, read_xarray
from sparseeinsum.storage.tensor_description import TensorDescription


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one family of data; without a look at the package of others, which need not be installed.

    Attributes:
        title: What it reads.
        takes: Whether data are of its family.
        read: Reads those that are, of which a tensor is made; the columns that are wanted are for rows.
        has_columns: Whether data have columns to choose from.
    """

    title: str
    takes: Callable[[object], bool]
    read: Callable[[TensorDescription, object, ColumnSelection], InputData]
    has_columns: bool = True


def _arrays(title: str, takes: Callable[[object], bool], read: Callable[[str, object], InputData]) -> _Reader:
    return _Reader(title, takes, lambda description, data, _: read(description.name, data), has_columns=False)


def _read_frame(description: TensorDescription, data: object, columns: ColumnSelection) -> InputData:
    frame = read_arrow(description.name, data, columns)
    if not isinstance(frame, pa.Table):
        return frame
    names, coordinates, values = entries_of_frame(description, frame)
    return Entries(coordinates, values, axes=names)


# What is of several kinds at once is read by the first: arrays of xarray have Arrow's interface, frames numpy's.
_READERS = (
    _arrays("a scipy.sparse matrix or array", is_scipy, read_scipy),
    _arrays("a tensor of torch", is_torch, read_torch),
    _arrays("an array of sparse", is_pydata, read_pydata),
    _arrays("an array of xarray", is_xarray, read_xarray),
    _arrays("(coordinates, values)", is_pair, read_pair),
    _Reader(
        "a relation of DuckDB, a table, a view, or a Parquet, CSV or JSON file",
        is_relation,
        lambda _, data, columns: read_relation(data, columns),
    ),
    _Reader("a frame or series of pandas or polars, an Arrow table, reader or data set", is_arrow, _read_frame),
    _arrays("an array of numpy, nested sequences or a number", is_array, read_array),
)


def read(description: TensorDescription, data: object, columns: ColumnSelection) -> InputData:
    """Read data of whatever kind.

    Args:
        description: What the user says of the tensor.
        data: The data.
        columns: Which columns to take, of data that have columns.

    Raises:
        DataError: Nobody can read them; the message lists what is taken.
        ShapeError: Coordinates and values do not fit together.
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
