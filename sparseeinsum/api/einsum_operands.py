"""API: reads the operands of einsum, from any library of arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import DataError
from sparseeinsum.language.label_lists import read_arguments
from sparseeinsum.loading.sources.input_data import EntryArrays
from sparseeinsum.loading.sources.numpy_arrays import refuse_masked
from sparseeinsum.loading.sources.sparse_arrays import is_pydata, is_scipy, read_pydata, read_scipy
from sparseeinsum.loading.sources.torch_tensors import is_torch, read_torch
from sparseeinsum.loading.sources.xarray_arrays import is_xarray
from sparseeinsum.operators.dtypes import Number

_MAY_REPEAT = ("coo", "csr", "csc", "bsr")  # scipy's formats that may have an entry twice


@dataclass(frozen=True, slots=True)
class SparseOperand:
    """The entries of a sparse array of any library.

    Attributes:
        coordinates: The indices, of shape (axes, entries); no entry occurs twice.
        values: The values of the entries.
        shape: The bounds of the axes.
        fill: The value at all other places.
        library: The package that the array is of: scipy, sparse or torch.
    """

    coordinates: NDArray[Any]
    values: NDArray[Any]
    shape: tuple[int, ...]
    fill: Number
    library: str

    @property
    def ndim(self) -> int:
        """The number of axes, as for an array of numpy."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return self.values.dtype

    def astype(self, dtype: str | np.dtype[Any], copy: bool = True) -> "SparseOperand":
        """The same entries in another dtype."""
        with np.errstate(all="ignore"):
            fill = np.asarray(self.fill).astype(dtype).item()
            return replace(self, values=self.values.astype(dtype, copy=copy), fill=fill)

    def squeeze(self, axes: tuple[int, ...]) -> "SparseOperand":
        """The operand without `axes`, which have size 1."""
        others = [axis for axis in range(self.ndim) if axis not in axes]
        return replace(self, coordinates=self.coordinates[others], shape=tuple(self.shape[axis] for axis in others))

    def dense(self) -> NDArray[Any]:
        """The operand as an array."""
        array = np.full(self.shape, self.fill, dtype=self.dtype)
        if self.values.size:
            array[tuple(self.coordinates)] = self.values if self.shape else self.values[0]
        return array


EinsumOperand: TypeAlias = NDArray[Any] | SparseOperand


def read_operands(arguments: Sequence[object], fill: Number = 0) -> tuple[str, list[EinsumOperand]]:
    """The subscripts and the operands of a call.

    Args:
        arguments: Subscripts and operands, or operands and lists of labels.
        fill: The value of absent entries of sparse operands whose library has no fill of its own.

    Raises:
        ArgumentError: There are no subscripts.
        DataError: An operand is not an array.
    """
    text, operands = read_arguments(arguments)
    return text, [read_operand(number, operand, fill) for number, operand in enumerate(operands, 1)]


def read_operand(number: int, operand: object, fill: Number = 0) -> EinsumOperand:
    """An operand as an array or as entries; `number` is its position in the call, from 1.

    Raises:
        DataError: It is not an array, or has masked values.
    """
    if type(operand) is np.ndarray:
        return operand
    name = f"operand {number} of einsum"
    data: Any = operand.data if is_xarray(operand) and hasattr(operand, "data") else operand
    if is_scipy(data):
        return _entries_of_scipy(name, data, fill)
    if is_pydata(data):
        return _sparse_operand(name, read_pydata(name, data), fill, "sparse")
    if is_torch(data):
        tensor = read_torch(name, data)
        return _sparse_operand(name, tensor, fill, "torch") if isinstance(tensor, EntryArrays) else tensor.values
    refuse_masked(name, data)
    try:
        return np.asarray(data)
    except (TypeError, ValueError, RuntimeError) as error:  # packages of arrays raise different ones
        raise DataError(f"{name} cannot be read as an array: {error}") from error


def squeezed(operand: EinsumOperand, axes: tuple[int, ...]) -> EinsumOperand:
    """The operand without `axes`, which have size 1."""
    if not axes:
        return operand
    return _with_axes(operand.squeeze(axes)) if isinstance(operand, SparseOperand) else operand.squeeze(axes)


def as_dense(operand: EinsumOperand) -> NDArray[Any]:
    """The operand as an array."""
    return operand if isinstance(operand, np.ndarray) else operand.dense()


def entries_of(operand: EinsumOperand) -> SparseOperand:
    """The entries of an operand; of an array those that are not 0."""
    if isinstance(operand, SparseOperand):
        return operand
    if not operand.ndim:
        return SparseOperand(np.empty((0, 1), np.int64), operand.reshape(1), (), 0, "numpy")
    places = np.nonzero(operand)
    return SparseOperand(np.array(places, np.int64), operand[places], operand.shape, 0, "numpy")


def count_entries(operand: EinsumOperand) -> int:
    """The number of entries of an operand; of an array that of all its numbers."""
    return operand.values.size if isinstance(operand, SparseOperand) else operand.size


def _entries_of_scipy(name: str, data: Any, fill: Number) -> EinsumOperand:  # noqa: ANN401  # of scipy's
    """The entries of a sparse array; those that it has twice are added up, as scipy does."""
    if data.format in _MAY_REPEAT and not getattr(data, "has_canonical_format", True):
        data = data.tocoo(copy=True)
        data.sum_duplicates()
    return _sparse_operand(name, read_scipy(name, data), fill, "scipy")


def _sparse_operand(name: str, entries: EntryArrays, fill: Number, library: str) -> EinsumOperand:
    shape = entries.shape or ()
    coordinates = np.asarray(entries.coordinates).reshape(len(shape), len(entries.values))
    own_fill = fill if entries.fill is None else entries.fill
    if own_fill and not _has(entries.values.dtype, own_fill):
        raise DataError(f"{name} has dtype {entries.values.dtype}, which lacks the fill {own_fill}; convert it first")
    return _with_axes(SparseOperand(coordinates, entries.values, shape, own_fill, library))


def _with_axes(operand: SparseOperand) -> EinsumOperand:
    """The operand; an array if it has no axes, because a sparse tensor has some."""
    return operand if operand.shape else operand.dense()


def _has(dtype: np.dtype[Any], number: Number) -> bool:
    """Whether a dtype has a number, or one that is rounded from it."""
    if isinstance(number, complex):
        return dtype.kind in "cO"
    with np.errstate(all="ignore"):
        return dtype.kind not in "biu" or bool(np.asarray(number).astype(dtype) == number)
