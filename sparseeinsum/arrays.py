"""numpy's einsum on arrays and sparse matrices, computed in a database of its own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.database import connect
from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.numpy_notation import OPERAND_NAMES, RESULT_NAME, read_subscripts


def einsum(
    subscripts: str, *operands: object, join: str = "*", agg: str = "sum", fill: float = 0, optimizer: str = "dp"
) -> NDArray[Any]:
    """Evaluate an Einstein summation, in numpy's notation, where I and i are two labels.

    Args:
        subscripts: As for numpy.einsum, such as 'ij,jk->ik'; no ellipsis yet.
        operands: One or two arrays or scipy.sparse matrices of float64 or float32.
        join: Operator between two operands: + - * or /.
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
    program = read_subscripts(subscripts, len(operands), join, agg)
    with connect() as database:
        for name, operand in zip(OPERAND_NAMES, operands, strict=False):
            database.tensor(name, np.asarray(operand) if isinstance(operand, list | int | float) else operand)
        results = database.run(program, optimizer=optimizer, layout="any", progress=False)
        return results[RESULT_NAME].to_numpy()
