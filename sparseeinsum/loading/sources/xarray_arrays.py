"""Loading: reads arrays of xarray, whose dimensions give the axes their names."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from sparseeinsum.errors import DataError
from sparseeinsum.loading.sources.input_data import DenseArray, EntryArrays
from sparseeinsum.loading.sources.numpy_arrays import as_array
from sparseeinsum.loading.sources.sparse_arrays import is_pydata, read_pydata


def is_xarray(data: object) -> bool:
    """Return whether data are an array or a dataset of xarray."""
    xarray: Any = sys.modules.get("xarray")
    return xarray is not None and isinstance(data, xarray.DataArray | xarray.Dataset)


def read_xarray(name: str, data: Any) -> DenseArray | EntryArrays:  # noqa: ANN401  # xarray is none of our dependencies
    """Read the values of an array by their positions.

    Raises:
        DataError: It is a dataset, or it has coordinates other than positions, which would be lost.
    """
    if hasattr(data, "data_vars"):
        variables = ", ".join(map(str, data.data_vars)) or "no variable"
        raise DataError(f"tensor {name} is given a dataset of xarray, which has {variables}; choose one of them")
    for dimension in data.dims:
        _check_positions(name, data, dimension)
    axes = [str(dimension) for dimension in data.dims]
    if is_pydata(data.data):
        return replace(read_pydata(name, data.data), axes=axes)
    return DenseArray(as_array(name, data.values), axes)


def _check_positions(name: str, data: Any, dimension: object) -> None:  # noqa: ANN401
    """Refuse coordinates that are not 0, 1, 2, ..., because a tensor has only indices."""
    if dimension not in data.indexes:
        return
    coordinates = np.asarray(data.indexes[dimension])
    if coordinates.dtype.kind not in "iu" or not np.array_equal(coordinates, np.arange(coordinates.size)):
        raise DataError(
            f"tensor {name} is given an array of xarray with coordinates on the dimension {dimension}, which an array "
            "of indices from 0 would lose; give its to_series(), whose coordinates become natural keys (whole numbers "
            f"with keys={{{str(dimension)!r}: 'a name'}}), or leave them out with drop_vars({dimension!r})"
        )
