"""Tensors as matrices, for libraries that have no others; unfolding is part of loading."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench.peers.workloads import Data


@dataclass(frozen=True)
class Fibres:
    """Vectors along the last axis of a tensor.

    Attributes:
        positions: Of each vector, the row-major position by the axes before, (vectors,).
        values: (vectors, bound of the last axis), as an array of any library.
    """

    positions: NDArray[np.int64]
    values: Any


@dataclass(frozen=True)
class Factors:
    """A tensor of three axes as two matrices: one gathers along axis 1, the other along axis 2 what is left.

    Attributes:
        inner: (fibres, bound of axis 1), the values.
        third: The index of axis 2 of every fibre.
        outer: (bound of axis 0, fibres), 1 for the fibres of an index.
    """

    inner: sp.csr_array
    third: NDArray[np.int64]
    outer: sp.csr_array


def csr(data: Data | sp.csr_array) -> sp.csr_array:
    """A sparse matrix, compressed by rows and sorted."""
    matrix = sp.csr_array(data)
    matrix.sort_indices()
    return matrix


def unfolded(data: Data, first: int) -> sp.csr_array:
    """A sparse tensor as a matrix with so many of its axes as rows."""
    tensor: Any = data
    sides = tensor.shape[:first], tensor.shape[first:]
    coordinates = tensor.coords[:first], tensor.coords[first:]
    rows, columns = (np.ravel_multi_index(part, side) for part, side in zip(coordinates, sides, strict=True))
    shape = int(np.prod(sides[0])), int(np.prod(sides[1]))
    return csr(sp.coo_array((tensor.data, (rows, columns)), shape=shape))


def fibres(data: Data) -> tuple[NDArray[np.int64], sp.csr_array]:
    """The vectors along the last axis that are not empty: their positions, and a matrix of them."""
    matrix = unfolded(data, data.ndim - 1)
    (positions,) = np.nonzero(np.diff(matrix.indptr))
    return positions, csr(matrix[positions])


def factors(data: Data) -> Factors:
    """A tensor of three axes as two matrices."""
    tensor: Any = data
    first, second, third = tensor.coords
    pairs, fibre = np.unique(first * np.int64(tensor.shape[2]) + third, return_inverse=True)
    rows, thirds = pairs // tensor.shape[2], pairs % tensor.shape[2]
    inner = csr(sp.coo_array((tensor.data, (fibre, second)), shape=(len(pairs), tensor.shape[1])))
    ones: Any = np.ones(len(pairs)), (rows, np.arange(len(pairs)))
    return Factors(inner, thirds, csr(sp.coo_array(ones, shape=(tensor.shape[0], len(pairs)))))
