"""API: numpy's einsum on arrays and sparse matrices, computed by numpy or in a database."""

from typing import Any

from numpy.typing import NDArray

from sparseeinsum.api.dense_products import multiply_dense
from sparseeinsum.api.einsum_arguments import EinsumCall, read_call, read_operands
from sparseeinsum.extras import late
from sparseeinsum.language.numpy_notation import RESULT_NAME
from sparseeinsum.loading.sources.sparse_arrays import is_scipy
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.tracebacks import one_frame


@one_frame
def einsum(
    *operands: object, join: str = "*", agg: str = "sum", fill: Number = 0, optimizer: str | None = None
) -> NDArray[Any]:
    """Evaluate an Einstein summation in numpy's notation, where I and i are different labels.

    Everything that numpy.einsum accepts has the same meaning and the same dtype: any number of operands, an ellipsis,
    stretched axes of size 1, lists of labels, booleans, whose product is `and` and whose sum is `any`, and values that
    are or become NaN or infinite. Any letter of any alphabet is a label. One difference: a sum of int64 that overflows
    is an error.

    Args:
        operands: Subscripts such as 'ij,jk->ik', then arrays or scipy.sparse arrays; or every operand followed by the
            list of its labels, and optionally the list of the result's labels, as in einsum(A, [0, 1], [1, 0]).
        join: Joins values of the operands: an operator, such as '+'; a function, such as 'max'; or a scalar expression
            of operands named u, v, w, x, y, z, a, b, ..., such as '(u - v) ^ 2'.
        agg: The aggregate over the labels that the result lacks: sum, prod, max, min, any, all or logsumexp.
        fill: The value of absent entries of sparse operands.
        optimizer: As for Database.plan; the product is then computed in a database. By default, opt_einsum and numpy
            compute the products that are as fast or faster on dense arrays in memory, and a database computes others.

    Returns:
        A dense array; its shape is () if the result has no labels.

    Raises:
        ParseError: The subscripts or the join have a syntax error.
        ShapeError: The subscripts do not match the shapes of the operands.
        DataError: An operand has a dtype that no tensor can represent exactly.

    >>> import numpy as np
    >>> einsum("ij,jk->ik", np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    text, arrays = read_operands(operands)
    if optimizer is None and (join, agg) == ("*", "sum"):
        product = multiply_dense(text, arrays, fill)
        if product is not None:
            return product
    return _einsum_in_database(read_call((text, *arrays), join, agg, fill), fill, optimizer or "dp")


def _einsum_in_database(call: EinsumCall, fill: Number, optimizer: str) -> NDArray[Any]:
    with late("sparseeinsum.api.process_database").process_database() as database:
        for name, data in call.operands.items():
            if is_scipy(data):  # scipy adds up entries that a matrix has twice
                database.tensor(name, data, fill=fill, duplicates="sum")
            else:
                database.tensor(name, data)
        results = database.run(call.program, optimizer=optimizer, layout="any", nonfinite="allow", progress=False)
        result: NDArray[Any] = results[RESULT_NAME].to_numpy()
    return call.convert(result)
