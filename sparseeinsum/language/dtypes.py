"""Language: the dtypes of tensors, and what numpy makes of them in joins and aggregates."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import SemanticsError

Number: TypeAlias = bool | int | float | complex
Array: TypeAlias = NDArray[Any]

# Bytes of an element as it is computed with: a bool is a float32 of 0 or 1.
ITEM_BYTES = {"float64": 8, "float32": 4, "int64": 8, "bool": 4, "complex128": 16, "complex64": 8}

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What folds values.

    Attributes:
        numpy: (array, axes) -> the array folded over these axes, of which none is empty.
        identity: (dtype of the result) -> what folding nothing gives.
        repeat: (value, times) -> what folding a value that many times gives, at least once; an OverflowError where
            that is far beyond int64.
    """

    numpy: Callable[..., Array]
    identity: Callable[[str], Number]
    repeat: Callable[[Any, int], Any]


def _logsumexp(values: Array, axis: tuple[int, ...]) -> Array:
    for each in sorted(axis, reverse=True):
        values = np.logaddexp.reduce(values, axis=each)
    return np.asarray(values)


_Value = TypeVar("_Value")


def _once(value: _Value, times: int) -> _Value:
    return value


def _power(value: Any, times: int) -> Any:  # noqa: ANN401  # any number
    """A number to a whole power; whole numbers that leave int64 are not computed, which would take for ever."""
    if isinstance(value, int) and abs(value) > 1 and times > _INT64.bits:
        raise OverflowError("an integer to that power is beyond int64")
    return value**times


AGGREGATES: dict[str, Aggregate] = {
    "sum": Aggregate(np.sum, lambda _: 0, lambda value, times: value * times),
    "prod": Aggregate(np.prod, lambda _: 1, _power),
    "max": Aggregate(np.max, lambda dtype: least_of(dtype), _once),
    "min": Aggregate(np.min, lambda dtype: greatest_of(dtype), _once),
    "any": Aggregate(np.any, lambda _: False, _once),
    "all": Aggregate(np.all, lambda _: True, _once),
    "logsumexp": Aggregate(_logsumexp, lambda _: -math.inf, lambda value, times: value + np.log(np.float64(times))),
}


def least_of(dtype: str) -> Number:
    """The least value of a dtype: -inf, False, or the least int64."""
    return {"int64": int(_INT64.min), "bool": False}.get(dtype, -math.inf)


def greatest_of(dtype: str) -> Number:
    """The greatest value of a dtype: inf, True, or the greatest int64."""
    return {"int64": int(_INT64.max), "bool": True}.get(dtype, math.inf)


def is_complex(dtype: str) -> bool:
    """Whether values have a real and an imaginary part."""
    return dtype.startswith("complex")


def is_float(dtype: str) -> bool:
    """Whether values are real and of floating point."""
    return dtype.startswith("float")


def as_number(value: object, dtype: str) -> Number:
    """A number as a dtype holds it.

    Raises:
        SemanticsError: The dtype has no such number.
    """
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise SemanticsError(f"{value!r} is no number")
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, complex) and not is_complex(dtype):
        raise SemanticsError(f"{plain!r} is no {dtype}")
    try:
        with np.errstate(all="ignore"):
            number: Number = np.asarray(plain).astype(dtype).item()
    except (OverflowError, ValueError):
        raise SemanticsError(f"{plain!r} is no {dtype}") from None
    is_lost = number != plain and number == number
    if is_lost and dtype in ("int64", "bool"):
        raise SemanticsError(f"{plain!r} is no {dtype}")
    if np.isinf(number) and not np.isinf(plain):
        raise SemanticsError(f"{plain!r} is beyond {dtype}")
    return number


def aggregated_dtype(aggregate: str | None, dtype: str) -> str:
    """Dtype of an aggregate over values of a dtype, by numpy's rules.

    Raises:
        SemanticsError: numpy has no such aggregate of that dtype, or gives complex numbers an order.
    """
    if aggregate is None:
        return dtype
    if is_complex(dtype) and aggregate in ("max", "min", "logsumexp"):
        raise SemanticsError(f"{aggregate} needs an order, which {dtype} has not; take it of abs(...)")
    if aggregate in ("any", "all"):
        return "bool"
    if aggregate == "logsumexp":
        return dtype if is_float(dtype) else "float64"
    return _reduced_dtype(aggregate, dtype)


@cache
def _reduced_dtype(aggregate: str, dtype: str) -> str:
    return str(AGGREGATES[aggregate].numpy(np.zeros(1, dtype), axis=(0,)).dtype)


def promoted(dtypes: Sequence[str]) -> str:
    """The dtype that holds values of all of these, by numpy's rules."""
    return str(np.result_type(*dtypes))
