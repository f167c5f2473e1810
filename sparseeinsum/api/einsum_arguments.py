"""API: makes programs of calls of einsum, and says which dtypes they can have."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.api.einsum_operands import EinsumOperand, squeezed
from sparseeinsum.errors import DataError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.numpy_notation import operand_names, read_subscripts
from sparseeinsum.operators.dtypes import ITEM_BYTES

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
_NUMBERS = "biufcO"  # the kinds of dtypes that numpy multiplies and adds


@dataclass(frozen=True, slots=True)
class EinsumCall:
    """A call of einsum that a database computes.

    Attributes:
        program: The program that computes the result, which is named RESULT_NAME.
        operands: The inputs of the program, by name.
        shape: The shape of the result.
        dtype: The dtype of the result in numpy, in which narrow integers wrap around; None to keep that of the program.
    """

    program: Program
    operands: dict[str, EinsumOperand]
    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None

    def convert(self, result: NDArray[Any]) -> NDArray[Any]:
        """The result in the dtype that numpy would return."""
        return result if self.dtype is None else result.astype(self.dtype, copy=False)


def plan_call(text: str, arrays: Sequence[EinsumOperand], join: str = "*", agg: str = "sum") -> EinsumCall:
    """Make a program of the subscripts and the operands of einsum.

    Args:
        text: The subscripts, as in ij,jk->ik.
        arrays: The operands.
        join: The function of two operands, or an operator.
        agg: The aggregate over labels that the result lacks.

    Raises:
        ParseError: The subscripts or the join have a syntax error.
        ShapeError: The subscripts do not match the shapes of the operands.
        DataError: An operand has a dtype that no tensor can represent exactly.
    """
    shapes = [array.shape for array in arrays]
    subscripts = read_subscripts(text, [array.ndim for array in arrays])
    stretched = subscripts.stretched_axes(shapes)
    is_plain = (join, agg) == ("*", "sum")
    join, agg = for_booleans(join, agg, [array.dtype.name for array in arrays])
    program = subscripts.program(stretched, join, agg)
    check_dtypes([array.dtype for array in arrays])
    dtype = np.result_type(*(array.dtype for array in arrays)) if is_plain else None
    widened = [array.astype(_computed_dtype(array.dtype, dtype), copy=False) for array in arrays]
    inputs = [squeezed(array, axes) for array, axes in zip(widened, stretched, strict=True)]
    named = dict(zip(operand_names(len(inputs)), inputs, strict=True))
    return EinsumCall(program, named, subscripts.result_shape(shapes), dtype)


def for_booleans(join: str, agg: str, dtypes: Sequence[str]) -> tuple[str, str]:
    """The join and the aggregate; for operands of bool, numpy's product is `and`, and its sum `any`.

    Args:
        join: The join, as a call names it.
        agg: The aggregate, as a call names it.
        dtypes: The dtype of every operand.
    """
    is_logical = (join, agg) == ("*", "sum") and all(dtype == "bool" for dtype in dtypes)
    return ("and", "any") if is_logical else (join, agg)


def check_dtypes(dtypes: Sequence[np.dtype[Any]], first: int = 1) -> None:
    """Refuse operands with values that no tensor of a database can represent exactly.

    Args:
        dtypes: The dtype of every operand.
        first: The number of the first one.

    Raises:
        DataError: There is such an operand.
    """
    check_numbers(dtypes, first)
    for number, dtype in enumerate(dtypes, first):
        if supported_dtype(dtype) not in ITEM_BYTES:
            supported = ", ".join((*ITEM_BYTES, *_WIDER))
            raise DataError(
                f"operand {number} of einsum has dtype {dtype.name}; the database that computes this call supports "
                f"{supported}: convert it, as in operand.astype('float64')"
            )


def check_numbers(dtypes: Sequence[np.dtype[Any]], first: int = 1) -> None:
    """Refuse operands that are not of numbers.

    Args:
        dtypes: The dtype of every operand.
        first: The number of the first one.

    Raises:
        DataError: There is such an operand.
    """
    for number, dtype in enumerate(dtypes, first):
        if dtype.kind not in _NUMBERS:
            raise DataError(
                f"operand {number} of einsum has dtype {dtype.name}, which is not of numbers: convert it, as in "
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
