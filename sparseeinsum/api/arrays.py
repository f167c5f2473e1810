"""numpy's einsum on arrays and sparse matrices, computed in a database of its own."""

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

_Array: TypeAlias = Any  # a numpy array, or one of any of scipy's sparse classes, which have no common type

# What holds all values of dtypes that tensors lack.
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
    """A call of einsum, read.

    Attributes:
        program: What computes it; its result is named RESULT_NAME.
        operands: What the program reads, by name.
        dtype: Of the result; None where it is that which the program gives.
    """

    program: Program
    operands: dict[str, _Array]
    dtype: np.dtype[Any] | None

    def convert(self, result: NDArray[Any]) -> NDArray[Any]:
        """The result in the dtype that numpy gives it; whole numbers wrap, as they do there."""
        return result if self.dtype is None else result.astype(self.dtype, copy=False)


@one_frame
def einsum(
    *operands: object, join: str = "*", agg: str = "sum", fill: Number = 0, optimizer: str = "dp"
) -> NDArray[Any]:
    """Evaluate an Einstein summation, in numpy's notation, where I and i are two labels.

    All that numpy.einsum takes has the same meaning and gives the same dtype: any number of operands, an ellipsis,
    sizes 1 that stretch, lists of labels, booleans, whose product is `and` and whose sum is `any`, values that are or
    turn NaN or infinite. Any letter of any alphabet is a label. What differs: a sum of int64 that overflows is an
    error.

    Args:
        operands: Subscripts such as 'ij,jk->ik', then arrays or scipy.sparse arrays; or every operand followed by the
            list of its labels, and at the end, if need be, that of the result, as in einsum(A, [0, 1], [1, 0]).
        join: Joins values of the operands: an operator, as in '+'; a function, as in 'max'; or a scalar expression of
            operands named u, v, w, x, y, z, a, b, ..., as in '(u - v) ^ 2'.
        agg: What folds the labels that the result lacks: sum, prod, max, min, any, all or logsumexp.
        fill: Value of what sparse operands lack.
        optimizer: As for Database.plan.

    Returns:
        A dense array; of shape () where no label is left.

    Raises:
        ParseError: The subscripts or the join make no sense.
        ShapeError: They do not fit the operands.
        DataError: An operand is of a dtype that no tensor can hold exactly.

    >>> import numpy as np
    >>> einsum("ij,jk->ik", np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    call = read_call(operands, join, agg, fill)
    with connect() as database:
        for name, data in call.operands.items():
            if is_scipy(data):  # scipy adds up what a matrix holds twice
                database.tensor(name, data, fill=fill, duplicates="sum")
            else:
                database.tensor(name, data)
        results = database.run(call.program, optimizer=optimizer, layout="any", nonfinite="allow", progress=False)
        return call.convert(results[RESULT_NAME].to_numpy())


def read_call(arguments: Sequence[object], join: str = "*", agg: str = "sum", fill: Number = 0) -> EinsumCall:
    """Read the arguments of einsum.

    Raises:
        ParseError: The subscripts or the join make no sense.
        ShapeError: They do not fit the operands.
        DataError: An operand is of a dtype that no tensor can hold exactly.
    """
    subscripts, operands = read_arguments(arguments)
    given = [_read_operand(number, operand) for number, operand in enumerate(operands, 1)]
    read = read_subscripts(subscripts, [array.ndim for array in given])
    stretched = read.stretched_axes([array.shape for array in given])
    is_plain = (join, agg) == ("*", "sum")
    if is_plain and all(array.dtype == bool for array in given):
        join, agg = "and", "any"
    program = read.program(stretched, join, agg)
    _check_dtypes(given)
    dtype = np.result_type(*(array.dtype for array in given)) if is_plain else None
    widened = [_widened(array, dtype) for array in given]
    arrays = [_without(array, axes, fill) for array, axes in zip(widened, stretched, strict=True)]
    return EinsumCall(program, dict(zip(operand_names(len(arrays)), arrays, strict=True)), dtype)


def _read_operand(number: int, operand: object) -> _Array:
    if is_scipy(operand):
        return operand
    try:
        return np.asarray(operand)
    except (TypeError, ValueError, RuntimeError) as error:  # each package has its own for what does not convert
        raise DataError(f"operand {number} of einsum cannot be read as an array: {error}") from error


def _check_dtypes(arrays: Sequence[_Array]) -> None:
    for number, array in enumerate(arrays, 1):
        if _supported(array.dtype) not in ITEM_BYTES:
            known = ", ".join((*ITEM_BYTES, *_WIDER))
            raise DataError(
                f"operand {number} of einsum has dtype {array.dtype.name}; supported are {known}: convert it, as in "
                "operand.astype('float64')"
            )


def _widened(array: _Array, result: np.dtype[Any] | None) -> _Array:
    """The array in a dtype that tensors have; numpy multiplies in the dtype of the result, which is given if so."""
    name = _supported(array.dtype)
    if result is not None and name != "bool":  # booleans are exact in every dtype
        wider = np.dtype(_supported(result))
        name = wider.name if array.dtype.kind == "c" else np.empty(0, wider).real.dtype.name
    return array.astype(name, copy=False)


def _supported(dtype: np.dtype[Any]) -> str:
    """Name of the dtype that holds all values of another one; of that itself where there is none."""
    return _WIDER.get(dtype.name, dtype.name)


def _without(array: _Array, axes: tuple[int, ...], fill: Number) -> _Array:
    """The array without axes of size 1; what is left of a sparse one may be dense, since most of it is gone."""
    if not axes:
        return array
    return np.squeeze(array if isinstance(array, np.ndarray) else _dense(array, fill), axis=axes)


def _dense(array: _Array, fill: Number) -> NDArray[Any]:
    """A sparse array as a dense one; entries that it holds twice are added."""
    entries = array.tocoo(copy=True)
    entries.sum_duplicates()
    dense = np.full(array.shape, fill, dtype=array.dtype)
    dense[entries.coords] = entries.data
    return dense
