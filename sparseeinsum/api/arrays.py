"""numpy's einsum on arrays and sparse matrices, computed in a temporary database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.api.database import connect
from sparseeinsum.errors import DataError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.numpy_notation import RESULT_NAME, operand_names, read_arguments, read_subscripts
from sparseeinsum.loading.sources.sparse_arrays import is_scipy
from sparseeinsum.operators.dtypes import ITEM_BYTES, Number
from sparseeinsum.tracebacks import one_frame

_Array: TypeAlias = Any  # a numpy array, or an array of one of scipy's sparse classes, which have no common type

# Dtypes of numpy that tensors lack, and dtypes of tensors that have all their values.
_WIDER = {
    "int8": "int64",
    "int16": "int64",
    "int32": "int64",
    "uint8": "int64",
    "uint16": "int64",
    "uint32": "int64",
    "float16": "float32",
}


@dataclass(frozen=True, slots=True)
class EinsumCall:
    """A parsed call of einsum.

    Attributes:
        program: The program that computes the result, which is named RESULT_NAME.
        operands: The inputs of the program, by name.
        dtype: The dtype of the result in numpy; None to keep that of the program.
    """

    program: Program
    operands: dict[str, _Array]
    dtype: np.dtype[Any] | None

    def convert(self, result: NDArray[Any]) -> NDArray[Any]:
        """The result in the dtype that numpy would return; integers wrap around, as in numpy."""
        return result if self.dtype is None else result.astype(self.dtype, copy=False)


@one_frame
def einsum(
    *operands: object, join: str = "*", agg: str = "sum", fill: Number = 0, optimizer: str = "dp"
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
        optimizer: As for Database.plan.

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
    call = read_call(operands, join, agg, fill)
    with connect() as database:
        for name, data in call.operands.items():
            if is_scipy(data):  # scipy adds up entries that a matrix has twice
                database.tensor(name, data, fill=fill, duplicates="sum")
            else:
                database.tensor(name, data)
        results = database.run(call.program, optimizer=optimizer, layout="any", nonfinite="allow", progress=False)
        return call.convert(results[RESULT_NAME].to_numpy())


def read_call(arguments: Sequence[object], join: str = "*", agg: str = "sum", fill: Number = 0) -> EinsumCall:
    """Parse the arguments of einsum; see there.

    Raises:
        ParseError: The subscripts or the join have a syntax error.
        ShapeError: The subscripts do not match the shapes of the operands.
        DataError: An operand has a dtype that no tensor can represent exactly.
    """
    text, operands = read_arguments(arguments)
    arrays = [_read_operand(number, operand) for number, operand in enumerate(operands, 1)]
    subscripts = read_subscripts(text, [array.ndim for array in arrays])
    stretched = subscripts.stretched_axes([array.shape for array in arrays])
    is_plain = (join, agg) == ("*", "sum")
    if is_plain and all(array.dtype == bool for array in arrays):
        join, agg = "and", "any"
    program = subscripts.program(stretched, join, agg)
    _check_dtypes(arrays)
    dtype = np.result_type(*(array.dtype for array in arrays)) if is_plain else None
    widened = [_widen(array, dtype) for array in arrays]
    squeezed = [_squeeze(array, axes, fill) for array, axes in zip(widened, stretched, strict=True)]
    return EinsumCall(program, dict(zip(operand_names(len(squeezed)), squeezed, strict=True)), dtype)


def _read_operand(number: int, operand: object) -> _Array:
    if is_scipy(operand):
        return operand
    try:
        return np.asarray(operand)
    except (TypeError, ValueError, RuntimeError) as error:  # packages of arrays raise different ones
        raise DataError(f"operand {number} of einsum cannot be read as an array: {error}") from error


def _check_dtypes(arrays: Sequence[_Array]) -> None:
    for number, array in enumerate(arrays, 1):
        if _supported(array.dtype) not in ITEM_BYTES:
            dtypes = ", ".join((*ITEM_BYTES, *_WIDER))
            raise DataError(
                f"operand {number} of einsum has dtype {array.dtype.name}; supported are {dtypes}: convert it, as in "
                "operand.astype('float64')"
            )


def _widen(array: _Array, result: np.dtype[Any] | None) -> _Array:
    """The array in a dtype that tensors have: that of the result, in which numpy computes, or else its own."""
    name = _supported(array.dtype)
    if result is not None and name != "bool":  # booleans are exact in every dtype
        wider = np.dtype(_supported(result))
        name = wider.name if array.dtype.kind == "c" else np.empty(0, wider).real.dtype.name
    return array.astype(name, copy=False)


def _supported(dtype: np.dtype[Any]) -> str:
    """The name of the tensor dtype that has all values of `dtype`; its own name if there is none."""
    return _WIDER.get(dtype.name, dtype.name)


def _squeeze(array: _Array, axes: tuple[int, ...], fill: Number) -> _Array:
    """The array without `axes`, which have size 1; a sparse array becomes a dense one."""
    if not axes:
        return array
    return np.squeeze(array if isinstance(array, np.ndarray) else _dense(array, fill), axis=axes)


def _dense(array: _Array, fill: Number) -> NDArray[Any]:
    """A sparse array as a dense one; entries that it has twice are added up."""
    entries = array.tocoo(copy=True)
    entries.sum_duplicates()
    dense = np.full(array.shape, fill, dtype=array.dtype)
    dense[entries.coords] = entries.data
    return dense
