"""Operators: ranges, which are intervals that contain all values of an expression.

A range proves three things: that an expression has one value whatever one operand is (0 * v, inf + v, max(9, v) where v
is at most 5), that values stay finite, and that integers stay small enough for floating point. An infinite end means
that infinity may occur; values that are known to be finite have finite ends.
"""

import math
from dataclasses import dataclass

from sparseeinsum.operators.dtypes import Number

# The most that rounding changes a value of each dtype by, relative to the value.
_ROUNDING = {"float64": 1e-12, "complex128": 1e-12, "float32": 1e-5, "complex64": 1e-5}
# A little less than the greatest finite number, because of rounding.
_GREATEST = {"float64": 1.7e308, "complex128": 1.7e308, "float32": 3.4e38, "complex64": 3.4e38}
_LEAST = 1.2e-38  # smaller numbers may become 0 in float32
_GREATEST_INT64 = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Range:
    """An interval of values; for complex numbers, of their real and of their imaginary parts.

    Attributes:
        low: The lower end.
        high: The upper end.
        may_be_nan: Whether a value may be NaN.
        exact: The only value, if there is one and it is known.
    """

    low: float
    high: float
    may_be_nan: bool = False
    exact: Number | None = None

    @property
    def is_finite(self) -> bool:
        """Whether no value is NaN or infinite."""
        return not self.may_be_nan and -math.inf < self.low and self.high < math.inf

    @property
    def magnitude(self) -> float:
        """The greatest absolute value; 0 if there are no values."""
        return 0 if self == EMPTY_RANGE else max(abs(self.low), abs(self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def union(self, other: "Range") -> "Range":
        """The smallest range that contains both."""
        if EMPTY_RANGE in (self, other):
            return self if other == EMPTY_RANGE else other
        exact = self.exact if self.exact is not None and _is_same(self.exact, other.exact) else None
        nan = self.may_be_nan or other.may_be_nan
        return Range(min(self.low, other.low), max(self.high, other.high), nan, exact)


ANY_VALUE = Range(-math.inf, math.inf, may_be_nan=True)
EMPTY_RANGE = Range(math.inf, -math.inf)  # there are no values
BOOL_RANGE = Range(0, 1)


def finite_range(dtype: str) -> Range:
    """The range of all finite values of a dtype."""
    if dtype == "bool":
        return BOOL_RANGE
    greatest = _GREATEST.get(dtype, _GREATEST_INT64)
    return Range(-greatest, greatest)


def exact_range(value: Number) -> Range:
    """The range of one value."""
    if isinstance(value, complex):
        parts = (value.real, value.imag)
        return Range(min(parts), max(parts), any(map(math.isnan, parts)), value)
    return ANY_VALUE if math.isnan(value) else Range(value, value, exact=value)


def _is_same(value: Number, other: Number | None) -> bool:
    return other is not None and value == other


def with_rounding(unrounded: Range, dtype: str) -> Range:
    """A range widened by the error of rounding; ends beyond the greatest finite number become infinite.

    Rounding alone makes no number infinite: `_GREATEST` is less than the greatest one by more than its error.
    """
    if unrounded.exact is not None or dtype not in _ROUNDING:
        return unrounded
    relative_error, greatest = _ROUNDING[dtype], _GREATEST[dtype]

    def widened(end: float, direction: int) -> float:
        if 0 < -direction * end < _LEAST:  # rounded to 0
            return 0
        wider = end if math.isinf(end) else end + direction * abs(end) * relative_error
        if abs(wider) <= greatest:
            return wider
        beyond = greatest if abs(end) <= greatest else math.inf
        return math.copysign(beyond, wider) if wider * direction > 0 else end

    return Range(widened(unrounded.low, -1), widened(unrounded.high, 1), unrounded.may_be_nan)
