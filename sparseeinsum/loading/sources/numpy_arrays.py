"""Loading: reads arrays of numpy, nested sequences, numbers, and pairs (coordinates, values)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.loading.conversion import position_of
from sparseeinsum.loading.sources.input_data import DenseArray, EntryArrays


def is_array(data: object) -> bool:
    """Return whether data are an array, nested sequences, a number, or an object that numpy can convert."""
    is_plain = isinstance(data, Sequence | int | float | complex) and not isinstance(data, str | bytes)
    return is_plain or hasattr(data, "__array__")


def read_array(name: str, data: object) -> DenseArray:
    """Read data as an array.

    Raises:
        DataError: The data are no array, or a value is masked.
    """
    return DenseArray(as_array(name, data))


def is_pair(data: object) -> bool:
    """Return whether data are a pair (coordinates, values)."""
    return isinstance(data, tuple) and len(data) == 2


def read_pair(name: str, data: Any) -> EntryArrays:  # noqa: ANN401  # a pair of what can become arrays
    """Read a pair of coordinates of shape (rank, n) and n values.

    Raises:
        ShapeError: They have other shapes.
        DataError: Coordinates are no integers.
    """
    indices, numbers = (as_array(name, part) for part in data)
    if indices.ndim != 2 or numbers.ndim != 1 or indices.shape[1] != numbers.shape[0]:
        raise ShapeError(
            f"tensor {name} needs coordinates of shape (rank, n) and n values; got {indices.shape} and {numbers.shape}"
        )
    if indices.size and indices.dtype.kind not in "iu":
        raise DataError(f"tensor {name} has coordinates of dtype {indices.dtype}; they must be whole numbers")
    return EntryArrays(indices, numbers)


def as_array(name: str, data: object) -> NDArray[Any]:
    """Convert data to an array; `name` is the name of the tensor, for messages.

    Raises:
        DataError: The data are no array, or a value is masked.
    """
    refuse_masked(f"tensor {name}", data)
    try:
        array = np.asarray(data)
    except (ValueError, TypeError) as error:
        raise DataError(f"tensor {name} is no array: {error}") from None
    if array.dtype.names:
        raise DataError(
            f"tensor {name} is given an array with the fields {', '.join(array.dtype.names)}; make a table of it, as "
            "in pandas.DataFrame(array)"
        )
    if array.dtype.kind == "O" and array.size and isinstance(array.flat[0], Mapping):
        raise DataError(
            f"tensor {name} is given a list of {type(array.flat[0]).__name__}; make a table of it, as in "
            "pyarrow.Table.from_pylist(rows)"
        )
    return array


def refuse_masked(name: str, data: object) -> None:
    """Refuse masked values; `name` says whose they are.

    Raises:
        DataError: A value is masked.
    """
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        masked = np.ravel_multi_index(np.nonzero(np.ma.getmaskarray(data)), data.shape)[0]
        raise DataError(f"{name}, {position_of(masked, data)}: the value is masked; fill masked values first")
