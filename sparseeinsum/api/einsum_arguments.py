"""API: reads the arguments of einsum to arrays and a program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import DataError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.numpy_notation import operand_names, read_arguments, read_subscripts
from sparseeinsum.loading.sources.sparse_arrays import is_scipy
from sparseeinsum.operators.dtypes import ITEM_BYTES, Number

Array: TypeAlias = Any  # a numpy array, or an array of one of scipy's sparse classes, which have no common type

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
    operands: dict[str, Array]
    dtype: np.dtype[Any] | None

    def convert(self, result: NDArray[Any]) -> NDArray[Any]:
        """The result in the dtype that numpy would return; integers wrap around, as in numpy."""
        return result if self.dtype is None else result.astype(self.dtype, copy=False)


def read_call(arguments: Sequence[object], join: str = "*", agg: str = "sum", fill: Number = 0) -> EinsumCall:
    """Parse the arguments of einsum; see there.

    Raises:
        ParseError: The subscripts or the join have a syntax error.
        ShapeError: The subscripts do not match the shapes of the operands.
        DataError: An operand has a dtype that no tensor can represent exactly.
    """
    text, arrays = read_operands(arguments)
    subscripts = read_subscripts(text, [array.ndim for array in arrays])
    stretched = subscripts.stretched_axes([array.shape for array in arrays])
    is_plain = (join, agg) == ("*", "sum")
    join, agg = for_booleans(join, agg, [array.dtype.name for array in arrays])
    program = subscripts.program(stretched, join, agg)
    check_dtypes([array.dtype for array in arrays])
    dtype = np.result_type(*(array.dtype for array in arrays)) if is_plain else None
    widened = [array.astype(_computed_dtype(array.dtype, dtype), copy=False) for array in arrays]
    squeezed = [squeeze(array, axes, fill) for array, axes in zip(widened, stretched, strict=True)]
    return EinsumCall(program, dict(zip(operand_names(len(squeezed)), squeezed, strict=True)), dtype)


def for_booleans(join: str, agg: str, dtypes: Sequence[str]) -> tuple[str, str]:
    """The join and the aggregate; for operands of bool, numpy's product is `and`, and its sum `any`."""
    is_logical = (join, agg) == ("*", "sum") and all(dtype == "bool" for dtype in dtypes)
    return ("and", "any") if is_logical else (join, agg)


def read_operands(arguments: Sequence[object]) -> tuple[str, list[Array]]:
    """The subscripts and the operands of a call.

    Raises:
        ParseError: A list of labels has something else than whole numbers and Ellipsis.
        DataError: An operand is not an array.
    """
    text, operands = read_arguments(arguments)
    return text, [read_operand(number, operand) for number, operand in enumerate(operands, 1)]


def read_operand(number: int, operand: object) -> Array:
    """An operand as an array; `number` is its position in the call, from 1.

    Raises:
        DataError: It is not an array.
    """
    if is_scipy(operand):
        return operand
    try:
        return np.asarray(operand)
    except (TypeError, ValueError, RuntimeError) as error:  # packages of arrays raise different ones
        raise DataError(f"operand {number} of einsum cannot be read as an array: {error}") from error


def check_dtypes(dtypes: Sequence[np.dtype[Any]], first: int = 1) -> None:
    """Refuse operands with values that no tensor can represent exactly.

    Args:
        dtypes: The dtype of every operand.
        first: The number of the first one.

    Raises:
        DataError: There is such an operand.
    """
    for number, dtype in enumerate(dtypes, first):
        if supported_dtype(dtype) not in ITEM_BYTES:
            supported = ", ".join((*ITEM_BYTES, *_WIDER))
            raise DataError(
                f"operand {number} of einsum has dtype {dtype.name}; supported are {supported}: convert it, as in "
                "operand.astype('float64')"
            )


def _computed_dtype(dtype: np.dtype[Any], result: np.dtype[Any] | None) -> str:
    """The dtype of an operand in computations: that of the result, in which numpy computes, or else its own."""
    name = supported_dtype(dtype)
    if result is None or name == "bool":  # booleans are exact in every dtype
        return name
    wider = np.dtype(supported_dtype(result))
    return wider.name if dtype.kind == "c" else np.empty(0, wider).real.dtype.name


def supported_dtype(dtype: np.dtype[Any]) -> str:
    """The name of the tensor dtype that has all values of `dtype`; its own name if there is none."""
    return _WIDER.get(dtype.name, dtype.name)


def squeeze(array: Array, axes: tuple[int, ...], fill: Number) -> Array:
    """The array without `axes`, which have size 1; a sparse array becomes a dense one if there are any."""
    return np.squeeze(as_dense(array, fill), axis=axes) if axes else array


def as_dense(array: Array, fill: Number) -> NDArray[Any]:
    """The array as a dense one; entries that a sparse array has twice are added up, and `fill` is at the others."""
    if isinstance(array, np.ndarray):
        return array
    entries = array.tocoo(copy=True)
    entries.sum_duplicates()
    dense = np.full(array.shape, fill, dtype=array.dtype)
    dense[entries.coords] = entries.data
    return dense
