"""numpy's einsum on arrays and sparse matrices, computed in a database of its own."""

from typing import Any, TypeAlias

import numpy as np
import scipy  # loads scipy.sparse where it is first used
from numpy.typing import NDArray

from sparseeinsum.database import connect
from sparseeinsum.errors import DataError, SemanticsError
from sparseeinsum.language.numpy_notation import OPERAND_NAMES, RESULT_NAME, read_subscripts
from sparseeinsum.language.tensors import ITEM_BYTES

_Array: TypeAlias = Any  # a numpy array, or one of any of scipy's sparse classes, which have no common type


def einsum(
    subscripts: str, *operands: object, join: str = "*", agg: str = "sum", fill: float = 0, optimizer: str = "dp"
) -> NDArray[Any]:
    """Evaluate an Einstein summation, in numpy's notation, where I and i are two labels.

    Args:
        subscripts: As for numpy.einsum, such as 'ij,jk->ik'; no ellipsis yet.
        operands: One or two arrays or scipy.sparse matrices of float64 or float32. As in numpy, an axis of size 1
            stretches to the size that its label has in the other operand.
        join: Operator between two operands: + - * / or ^.
        agg: What folds the labels that the result lacks: sum, prod, max or min.
        fill: Value of what sparse operands lack; only 0 is supported yet.
        optimizer: As for Database.plan.

    Returns:
        A dense array; of shape () where no label is left.

    Raises:
        ParseError: The subscripts make no sense.
        ShapeError: They do not fit the operands.
        DataError: An operand is of another dtype.

    >>> import numpy as np
    >>> einsum("ij,jk->ik", np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    if fill != 0:
        raise SemanticsError(f"fill {fill} is not supported yet; only 0 is")
    read = read_subscripts(subscripts, len(operands))
    arrays = [_array(number, operand) for number, operand in enumerate(operands, 1)]
    stretched = read.stretched_axes([array.shape for array in arrays])
    program = read.program(stretched, join, agg)
    with connect() as database:
        for name, array, axes in zip(OPERAND_NAMES, arrays, stretched, strict=False):
            data = _without(array, axes)
            # scipy adds up what a matrix holds twice
            database.tensor(name, data, duplicates="sum" if scipy.sparse.issparse(data) else "error")
        results = database.run(program, optimizer=optimizer, layout="any", progress=False)
        return results[RESULT_NAME].to_numpy()


def _array(number: int, operand: object) -> _Array:
    array: _Array = operand if scipy.sparse.issparse(operand) else np.asarray(operand)
    if array.dtype.name not in ITEM_BYTES:
        raise DataError(
            f"operand {number} of einsum has dtype {array.dtype.name}; supported are {', '.join(ITEM_BYTES)}: convert "
            "it, as in operand.astype('float64')"
        )
    return array


def _without(array: _Array, axes: tuple[int, ...]) -> _Array:
    """The array without axes of size 1; of a sparse matrix at most a vector is left then, which may be dense."""
    if not axes:
        return array
    return np.squeeze(array if isinstance(array, np.ndarray) else array.toarray(), axis=axes)
