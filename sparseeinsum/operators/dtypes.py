"""Operators: the dtypes of tensors, and numbers in them."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import SemanticsError

Number: TypeAlias = bool | int | float | complex
Array: TypeAlias = NDArray[Any]

# Bytes of an element in arithmetic: a bool is computed as a float32 of 0 or 1.
ITEM_BYTES = {"float64": 8, "float32": 4, "int64": 8, "bool": 4, "complex128": 16, "complex64": 8}

_INT64 = np.iinfo(np.int64)


def smallest_value(dtype: str) -> Number:
    """The least value of a dtype: -inf, False, or the least int64."""
    return {"int64": int(_INT64.min), "bool": False}.get(dtype, -math.inf)


def largest_value(dtype: str) -> Number:
    """The greatest value of a dtype: inf, True, or the greatest int64."""
    return {"int64": int(_INT64.max), "bool": True}.get(dtype, math.inf)


def is_complex(dtype: str) -> bool:
    """Whether a dtype is of complex numbers."""
    return dtype.startswith("complex")


def is_float(dtype: str) -> bool:
    """Whether a dtype is of real numbers in floating point."""
    return dtype.startswith("float")


def as_number(value: object, dtype: str) -> Number:
    """A value as a Python number that `dtype` represents exactly, or rounded for floating point.

    Raises:
        SemanticsError: `value` is no number, or the dtype has no such number.
    """
    if dtype == "float64" and type(value) is float:
        return value
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise SemanticsError(f"{value!r} is no number")
    python_value = value.item() if isinstance(value, np.generic) else value
    if isinstance(python_value, complex) and not is_complex(dtype):
        raise SemanticsError(f"{python_value!r} is no {dtype}")
    try:
        with np.errstate(all="ignore"):
            number: Number = np.asarray(python_value).astype(dtype).item()
    except (OverflowError, ValueError):
        raise SemanticsError(f"{python_value!r} is no {dtype}") from None
    is_lost = number != python_value and number == number
    if is_lost and dtype in ("int64", "bool"):
        raise SemanticsError(f"{python_value!r} is no {dtype}")
    if np.isinf(number) and not np.isinf(python_value):
        raise SemanticsError(f"{python_value!r} is beyond {dtype}")
    return number


def result_dtype(dtypes: Sequence[str]) -> str:
    """The dtype of an operation on values of all of these dtypes, by numpy's rules."""
    distinct = tuple(dict.fromkeys(dtypes))
    return distinct[0] if len(distinct) == 1 else str(np.result_type(*distinct))
