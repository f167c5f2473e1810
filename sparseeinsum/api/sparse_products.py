"""API: products of sparse arrays in memory; scipy multiplies two of them at a time, as sparse matrices."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.api.array_products import Product
from sparseeinsum.api.einsum_operands import EinsumOperand, SparseOperand, count_entries, entries_of, squeezed
from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import PackageError

# Larger products are for a database: entries of all operands, and multiplications of entries.
_MOST_ENTRIES = 1 << 21
_MOST_MULTIPLICATIONS = 1 << 24
# A matrix with more rows or columns has them numbered anew, because scipy has an array of the starts of all rows.
_MOST_ROWS = 1 << 16

_Labels = tuple[str, ...]
_Indices = NDArray[np.int64]


class _UnsuitedError(Exception):
    """A product for a database."""


@dataclass(frozen=True, slots=True)
class _Factor:
    """Entries at the coordinates of labels; entries at the same coordinates are added up."""

    coordinates: dict[str, _Indices]
    values: NDArray[Any]

    def with_labels(self, labels: set[str]) -> "_Factor":
        """The factor without other labels, added up over them."""
        places = {label: indices for label, indices in self.coordinates.items() if label in labels}
        return _Factor(places, self.values)


@dataclass(frozen=True, slots=True)
class _Numbering:
    """Numbers of the coordinates of several labels, as rows or columns of a matrix.

    Attributes:
        labels: The labels.
        bounds: Their bounds.
        places: The coordinates that have a number, in row-major order; None if all have one.
    """

    labels: _Labels
    bounds: tuple[int, ...]
    places: _Indices | None

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return math.prod(self.bounds) if self.places is None else len(self.places)

    def numbers(self, factor: _Factor) -> _Indices:
        """The number of every entry of a factor."""
        places = _places(factor, self.labels, self.bounds)
        return places if self.places is None else np.searchsorted(self.places, places)

    def coordinates(self, numbers: NDArray[Any]) -> dict[str, _Indices]:
        """The coordinates that have these numbers."""
        places = numbers.astype(np.int64) if self.places is None else self.places[numbers]
        return dict(zip(self.labels, np.unravel_index(places, self.bounds), strict=True)) if self.labels else {}


def multiply_sparse(product: Product, arrays: Sequence[EinsumOperand]) -> SparseOperand | None:
    """The sum of a product of arrays, as its entries that are not 0, in the dtype that numpy would return.

    Args:
        product: The product.
        arrays: The operands; dense ones become sparse.

    Returns:
        None if the product is one for a database: it is large, a fill is not 0, a value is or becomes NaN or infinite,
        a sum of int64 might overflow, or scipy is not installed or lacks the dtype.
    """
    if product.dtype.kind not in "biufc" or any(isinstance(array, SparseOperand) and array.fill for array in arrays):
        return None
    if 0 in product.sizes.values() or sum(map(count_entries, arrays)) > _MOST_ENTRIES:
        return None
    operands = [entries_of(squeezed(array, axes)) for array, axes in zip(arrays, product.stretched, strict=True)]
    values = [operand.values.astype(product.computed, copy=False) for operand in operands]
    if product.may_overflow(values):
        return None
    try:
        with np.errstate(all="ignore"):
            factors = [
                _factor(term, operand.coordinates, numbers)
                for term, operand, numbers in zip(product.terms, operands, values, strict=True)
            ]
            result = _contracted(factors, product)
    except (_UnsuitedError, PackageError):
        return None
    present = np.flatnonzero(result.values)
    places = [result.coordinates[label][present] for label in product.output]
    coordinates = np.array(places, np.int64).reshape(len(places), len(present))
    shape = tuple(product.sizes[label] for label in product.output)
    return SparseOperand(coordinates, result.values[present].astype(product.dtype, copy=False), shape, 0, "scipy")


def _factor(term: _Labels, coordinates: NDArray[Any], values: NDArray[Any]) -> _Factor:
    """The entries of an operand; of a label that it has twice, those on the diagonal."""
    on_diagonal = np.full(len(values), True)
    places: dict[str, _Indices] = {}
    for label, indices in zip(term, coordinates, strict=True):
        on_diagonal &= places.setdefault(label, indices) == indices
    if len(places) == len(term):
        return _checked(_Factor(places, values))
    return _checked(_Factor({label: indices[on_diagonal] for label, indices in places.items()}, values[on_diagonal]))


def _contracted(factors: list[_Factor], product: Product) -> _Factor:
    """The contractions of a path, in which a contraction of many factors multiplies one after the other."""
    for step in product.path:
        chosen = [factors[position] for position in step]
        factors = [factor for position, factor in enumerate(factors) if position not in step]
        result = chosen.pop(0)
        while chosen:
            other = chosen.pop(0)
            needed = set(product.output).union(*(factor.coordinates for factor in (*factors, *chosen)))
            result = _multiplied(result, other, needed, product.sizes)
        factors.append(result)
    if len(product.terms) > 1:
        return factors[0]
    one = _Factor({}, np.ones(1, product.computed))  # a product with it adds up the entries
    return _multiplied(factors[0], one, set(product.output), product.sizes)


def _multiplied(left: _Factor, right: _Factor, needed: set[str], sizes: Mapping[str, int]) -> _Factor:
    """The product of two factors, added up over labels that are not needed.

    It is the product of two matrices. Labels of both factors that are needed are among the rows of the left one, too.
    """
    left, right = left.with_labels(needed.union(right.coordinates)), right.with_labels(needed.union(left.coordinates))
    shared = tuple(label for label in left.coordinates if label in right.coordinates)
    rows = _numbering(tuple(label for label in left.coordinates if label in needed), sizes, left)
    columns = _numbering(tuple(label for label in right.coordinates if label not in shared), sizes, right)
    inner = _numbering(shared, sizes, left, right)
    csr = imported("scipy.sparse", "scipy", "a product of sparse arrays").csr_array
    first = csr((left.values, (rows.numbers(left), inner.numbers(left))), shape=(rows.count, inner.count))
    second = csr((right.values, (inner.numbers(right), columns.numbers(right))), shape=(inner.count, columns.count))
    if np.diff(second.indptr)[first.indices].sum() > _MOST_MULTIPLICATIONS:
        raise _UnsuitedError
    matrix = (first @ second).tocoo()
    coordinates = rows.coordinates(matrix.coords[0]) | columns.coordinates(matrix.coords[1])
    return _checked(_Factor(coordinates, matrix.data))


def _checked(factor: _Factor) -> _Factor:
    """The factor, if its values are finite: NaN and infinity do not vanish if they are multiplied by an absent 0."""
    if factor.values.dtype.kind in "fc" and not np.isfinite(factor.values).all():
        raise _UnsuitedError
    return factor


def _numbering(labels: _Labels, sizes: Mapping[str, int], *factors: _Factor) -> _Numbering:
    """Numbers for the coordinates of labels that factors have."""
    bounds = tuple(sizes[label] for label in labels)
    count = math.prod(bounds)
    if count <= _MOST_ROWS:
        return _Numbering(labels, bounds, None)
    if count > np.iinfo(np.int64).max:
        raise _UnsuitedError
    return _Numbering(
        labels, bounds, np.unique(np.concatenate([_places(factor, labels, bounds) for factor in factors]))
    )


def _places(factor: _Factor, labels: _Labels, bounds: tuple[int, ...]) -> _Indices:
    """The places of entries in an array of these labels, in row-major order."""
    if not labels:
        return np.zeros(len(factor.values), np.int64)
    return np.ravel_multi_index(tuple(factor.coordinates[label].astype(np.int64) for label in labels), bounds)
