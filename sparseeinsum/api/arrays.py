"""API: numpy's einsum on arrays and sparse arrays, computed by numpy or in a database."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from sparseeinsum.api.array_products import plan_product
from sparseeinsum.api.dense_products import multiply_dense
from sparseeinsum.api.einsum_arguments import EinsumCall, plan_call
from sparseeinsum.api.einsum_operands import EinsumOperand, SparseOperand, as_dense, read_operands
from sparseeinsum.api.einsum_options import (
    PLAIN,
    Optimize,
    PathSearch,
    ResultOptions,
    read_path_search,
    read_result_options,
)
from sparseeinsum.api.sparse_products import multiply_sparse
from sparseeinsum.environment.extras import late
from sparseeinsum.language.numpy_notation import RESULT_NAME, read_subscripts
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.presentation.tracebacks import one_frame
from sparseeinsum.results.dense_size import check_dense_size

if TYPE_CHECKING:
    from sparseeinsum.api.database import Database
    from sparseeinsum.results.results import TensorResult

# Up to these sizes sparse operands are fastest as dense ones: elements of an operand, operations of the product.
_TINY_OPERAND, _FEW_OPERATIONS = 1 << 16, 1 << 18
# Up to these sizes they are faster as dense ones than in a database.
_SMALL_OPERAND, _SOME_OPERATIONS = 1 << 18, 1 << 25
_SPARSE_INSTEAD = "sparse=True returns a sparse array"


@one_frame
def einsum(
    *operands: object,
    out: object = None,
    optimize: Optimize = True,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    casting: str = "safe",
    join: str = "*",
    agg: str = "sum",
    fill: Number = 0,
    optimizer: str | None = None,
    sparse: bool = False,
) -> Any:  # noqa: ANN401  # an array or a number of numpy, or a sparse array
    """Evaluate an Einstein summation in numpy's notation, where I and i are different labels.

    Arguments of numpy.einsum mean the same and give the same dtype: any number of operands, an ellipsis, stretched axes
    of size 1, lists of labels, booleans, whose product is `and` and whose sum is `any`, and values that are or become
    NaN or infinite. Differences: the result never shares memory with an operand, and always has the dtype that is
    asked for; a sum of int64 that overflows is an error, while other integers wrap around; letters of any alphabet and
    any values that have a hash are labels.

    Args:
        operands: Subscripts such as 'ij,jk->ik', then arrays; or every operand followed by the list of its labels, and
            optionally the list of the result's labels, as in einsum(A, [0, 1], [1, 0]). Arrays are of numpy, torch,
            pandas or xarray, sparse arrays of scipy, sparse or torch, nested lists, or numbers.
        out: The array of numpy that gets the result and is returned. It may share memory with operands.
        optimize: The order of contractions in memory: True, the name of a search of opt_einsum, such as 'greedy', or a
            path, as from numpy.einsum_path or `contract_path`; False contracts all operands at once. A database finds
            an order of its own.
        dtype: The dtype in which to compute, and that of the result.
        order: The order of the result in memory: C, F, A or K.
        casting: The conversions that are allowed, as for numpy.can_cast: no, equiv, safe, same_kind or unsafe.
        join: Joins values of the operands: an operator, such as '+'; a function, such as 'max'; or a scalar expression
            of operands named u, v, w, x, y, z, a, b, ..., such as '(u - v) ^ 2'.
        agg: The aggregate over the labels that the result lacks: sum, prod, max, min, any, all or logsumexp.
        fill: The value of absent entries of sparse operands of scipy and torch; arrays of sparse have their own.
        optimizer: As for Database.plan; the product is then computed in a database. By default, opt_einsum and numpy
            compute the products that are as fast or faster on dense arrays in memory, and a database computes others.
        sparse: Whether to return a sparse array: of the package sparse if an operand is; otherwise of scipy, a
            csr_array if the result has two axes and else a coo_array.

    Returns:
        A dense array, or a sparse one; a number of numpy if the result has no labels.

    Raises:
        ParseError: The subscripts or the join have a syntax error.
        ShapeError: The subscripts do not match the shapes of the operands, or `out` that of the result.
        ArgumentError: An option has a wrong type or value, or `casting` does not allow a conversion.
        DataError: An operand is no array of numbers, or has a dtype that a database cannot represent exactly.
        ResultSizeError: The dense result does not fit into memory.

    >>> import numpy as np
    >>> einsum("ij,jk->ik", np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    options = read_result_options(out, dtype, order, casting, sparse)
    text, arrays = read_operands(operands, fill)
    search = read_path_search(optimize, len(arrays))
    is_product = (join, agg) == ("*", "sum")
    if options is not PLAIN:
        arrays = _prepared(text, arrays, options, is_product)
    product = _multiplied(text, arrays, search) if optimizer is None and is_product else None
    if product is None:
        return _einsum_in_database(plan_call(text, arrays, join, agg), options, optimizer or "dp")
    if options is PLAIN and isinstance(product, np.ndarray):
        return product[()]
    return _delivered(product, arrays, options)


def _prepared(text: str, arrays: list[EinsumOperand], options: ResultOptions, is_product: bool) -> list[EinsumOperand]:
    """The operands in the dtype in which to compute; refuses an `out` of another shape than the result."""
    if options.out is not None:
        subscripts, shapes = read_subscripts(text, [array.ndim for array in arrays]), [array.shape for array in arrays]
        subscripts.stretched_axes(shapes)
        options.check_shape(subscripts.result_shape(shapes))
    return options.converted(arrays, is_product)


def _multiplied(text: str, arrays: list[EinsumOperand], search: PathSearch) -> EinsumOperand | None:
    """A product of arrays in memory; None if a database computes it faster, or alone computes it exactly."""
    product = plan_product(text, tuple(array.shape for array in arrays), tuple(array.dtype for array in arrays), search)
    if all(isinstance(array, np.ndarray) for array in arrays):
        return multiply_dense(product, arrays)
    largest = max(math.prod(array.shape) for array in arrays)
    if largest <= _TINY_OPERAND and product.operations <= _FEW_OPERATIONS:
        return multiply_dense(product, arrays)
    result = multiply_sparse(product, arrays)
    if result is None and largest <= _SMALL_OPERAND and product.operations <= _SOME_OPERATIONS:
        return multiply_dense(product, arrays)
    return result


def _delivered(result: EinsumOperand, arrays: Sequence[EinsumOperand], options: ResultOptions) -> Any:  # noqa: ANN401  # as einsum
    if options.sparse:
        return late("sparseeinsum.api.sparse_results").as_sparse_array(result, arrays)
    if isinstance(result, SparseOperand):
        check_dense_size("the result", result.shape, result.dtype, _SPARSE_INSTEAD)
    is_fortran = all(isinstance(array, np.ndarray) and array.flags.f_contiguous for array in arrays)
    return options.delivered(as_dense(result), is_fortran)


def _einsum_in_database(call: EinsumCall, options: ResultOptions, optimizer: str) -> Any:  # noqa: ANN401  # as einsum
    arrays = list(call.operands.values())
    if not options.sparse:
        check_dense_size("the result", call.shape, call.dtype or np.dtype("float64"), _SPARSE_INSTEAD)
    with late("sparseeinsum.api.process_database").process_database() as database:
        result = compute_in(database, call, optimizer)
    if options.sparse:
        dtype = call.dtype or options.dtype
        if call.dtype is None:
            options.check_result(np.dtype(result.schema.tensor.dtype))
        return late("sparseeinsum.api.sparse_results").rows_as_sparse_array(result, dtype, arrays)
    return _delivered(call.convert(result.to_numpy()), arrays, options)


def compute_in(database: "Database", call: EinsumCall, optimizer: str) -> "TensorResult":
    """Compute a call in a database, whose tensors of the same names as the operands are replaced."""
    for name, data in call.operands.items():
        if isinstance(data, SparseOperand):
            database.tensor(name, (data.coordinates, data.values), shape=data.shape, fill=data.fill)
        else:
            database.tensor(name, data)
    return database.run(call.program, optimizer=optimizer, layout="any", nonfinite="allow", progress=False)[RESULT_NAME]
