"""API: results of einsum as sparse arrays of the library that the operands are of."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from sparseeinsum.api.einsum_operands import EinsumOperand, SparseOperand, as_dense, entries_of
from sparseeinsum.environment.extras import imported, late
from sparseeinsum.errors import DataError
from sparseeinsum.results.results import TensorResult


def as_sparse_array(result: EinsumOperand, operands: Iterable[EinsumOperand]) -> Any:  # noqa: ANN401  # of scipy or sparse
    """A result as an array of sparse if an operand is one, otherwise of scipy; without axes it is a number.

    An array of scipy is a csr_array if it has two axes, otherwise a coo_array.

    Raises:
        PackageError: scipy is not installed.
        DataError: scipy has no sparse arrays of this dtype.
    """
    if not result.shape:
        return as_dense(result)[()]
    entries = entries_of(result)
    if _uses_pydata(operands):
        return late("sparse").COO(entries.coordinates, entries.values, shape=entries.shape, has_duplicates=False)
    _check_dtype(entries.dtype)
    scipy_sparse = imported("scipy.sparse", "scipy", "sparse=True")
    array = scipy_sparse.coo_array((entries.values, tuple(entries.coordinates)), shape=entries.shape)
    return array.tocsr() if array.ndim == 2 else array


def rows_as_sparse_array(result: TensorResult, dtype: np.dtype[Any] | None, operands: Iterable[EinsumOperand]) -> Any:  # noqa: ANN401
    """A result of a database as a sparse array, as by `as_sparse_array`.

    Args:
        result: The result.
        dtype: The dtype of the array; None for that of the result.
        operands: The operands of the call.

    Raises:
        SemanticsError: The result has a fill other than 0, which scipy cannot represent.
        PackageError: scipy is not installed.
        DataError: scipy has no sparse arrays of this dtype.
    """
    if not result.shape:
        number = result.to_numpy()
        return number.astype(dtype or number.dtype)[()]
    if _uses_pydata(operands):
        array = result.to_sparse()
    else:
        _check_dtype(dtype or np.dtype(result.schema.tensor.dtype))
        array = result.to_scipy()
    return array if dtype is None else array.astype(dtype)


def _uses_pydata(operands: Iterable[EinsumOperand]) -> bool:
    return any(isinstance(operand, SparseOperand) and operand.library == "sparse" for operand in operands)


def _check_dtype(dtype: np.dtype[Any]) -> None:
    if dtype == np.float16 or dtype.kind == "O":
        raise DataError(f"scipy has no sparse arrays of {dtype}; ask for another dtype, as in dtype='float32'")
