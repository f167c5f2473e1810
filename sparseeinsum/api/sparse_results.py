"""API: results of einsum as sparse arrays of the library that the operands are of."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.api.einsum_operands import Operand, SparseOperand
from sparseeinsum.errors import DataError
from sparseeinsum.extras import imported
from sparseeinsum.results.results import TensorResult


def uses_pydata(operands: Iterable[Operand]) -> bool:
    """Whether a sparse result is of the package sparse, because an operand is; otherwise it is of scipy."""
    return any(isinstance(operand, SparseOperand) and operand.library == "sparse" for operand in operands)


def sparse_from_dense(array: NDArray[Any], is_pydata: bool) -> Any:  # noqa: ANN401  # of scipy or sparse
    """An array as one of sparse, or as one of scipy: a csr_array if it has two axes, otherwise a coo_array.

    Raises:
        PackageError: The package is not installed.
        DataError: scipy has no sparse arrays of this dtype.
    """
    if not array.ndim:
        return array[()]
    if is_pydata:
        return imported("sparse", "tests", "a result of the package sparse").COO.from_numpy(array)
    scipy_sparse = imported("scipy.sparse", "scipy", "sparse=True")
    if array.dtype == np.float16 or array.dtype.kind == "O":
        raise DataError(f"scipy has no sparse arrays of {array.dtype}; ask for another dtype, as in dtype='float32'")
    return scipy_sparse.csr_array(array) if array.ndim == 2 else scipy_sparse.coo_array(array)


def sparse_from_rows(result: TensorResult, dtype: np.dtype[Any] | None, is_pydata: bool) -> Any:  # noqa: ANN401
    """A result of a database as a sparse array, as by `sparse_from_dense`.

    Args:
        result: The result.
        dtype: The dtype of the array; None for that of the result.
        is_pydata: Whether to return an array of sparse.

    Raises:
        SemanticsError: The result has a fill other than 0, which scipy cannot represent.
        PackageError: The package is not installed.
        DataError: scipy has no sparse arrays of this dtype.
    """
    if not result.shape:
        number = result.to_numpy()
        return number.astype(dtype or number.dtype)[()]
    if dtype == np.float16 and not is_pydata:
        raise DataError("scipy has no sparse arrays of float16; ask for another dtype, as in dtype='float32'")
    array = result.to_sparse() if is_pydata else result.to_scipy()
    return array if dtype is None else array.astype(dtype)
