"""Results of all libraries in one form, in which they are compared."""

from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from bench.peers.unfolding import Fibres

TOLERANCE = 1e-9  # of the greatest value: products of 10^4 factors, added in any order, differ by less


def entries(result: object) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The values that are not 0 and their row-major positions, sorted.

    Args:
        result: An array, a sparse array of scipy of any rank, or fibres. Axes may have been unfolded.
    """
    positions, values = _positions(result)
    filled = values != 0
    positions, values = positions[filled], values[filled]
    if np.all(positions[1:] > positions[:-1]):
        return positions, values
    order = np.argsort(positions)
    return positions[order], values[order]


def same(result: object, expected: tuple[NDArray[np.int64], NDArray[np.float64]]) -> bool:
    """Whether a result has the expected entries, up to rounding."""
    positions, values = entries(result)
    if not np.array_equal(positions, expected[0]):
        return False
    if not len(values):
        return True
    return bool(np.abs(values - expected[1]).max() <= TOLERANCE * np.abs(expected[1]).max())


def _positions(result: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:  # noqa: ANN401  # of any library
    if isinstance(result, Fibres):
        width = result.values.shape[1]
        return (result.positions[:, None] * width + np.arange(width)).ravel(), result.values.ravel()
    if hasattr(result, "tocoo"):
        coo = result.tocoo()
        return np.ravel_multi_index([axis.astype(np.int64) for axis in coo.coords], coo.shape), coo.data
    values = np.asarray(result, np.float64).ravel()
    return np.arange(len(values)), values


def of_table(table: pa.Table, shape: tuple[int, ...]) -> object:
    """A tensor of that shape from a table with a column for every axis, followed by one of values."""
    *coordinates, values = (column.to_numpy() for column in table.columns)
    if not shape:
        return values
    content: Any = values, tuple(coordinates)  # stubs know matrices only
    return sp.coo_array(content, shape=shape)
