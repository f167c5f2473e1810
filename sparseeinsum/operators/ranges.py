"""Operators: ranges: where values lie.

A range says where all values of an expression lie. It proves three things: that an expression has one value whatever
one operand holds (0 * v, inf + v, max(9, v) where v is at most 5), that values stay finite, and that whole numbers
stay small enough for floating point. A bound of infinity means that an infinity may occur; values that are known to
be finite have finite bounds.
"""

import math
from dataclasses import dataclass

from sparseeinsum.operators.dtypes import Number

# What rounding may add to a value of each dtype, relative to it.
_ROUNDING = {"float64": 1e-12, "complex128": 1e-12, "float32": 1e-5, "complex64": 1e-5}
# A little less than the greatest finite number, for the same reason.
_GREATEST = {"float64": 1.7e308, "complex128": 1.7e308, "float32": 3.4e38, "complex64": 3.4e38}
_LEAST = 1.2e-38  # what is less in float32 may become 0
_GREATEST_INT64 = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Range:
    """Where values lie; for complex numbers, where their real and imaginary parts do.

    Attributes:
        low: No value is less.
        high: No value is greater.
        may_be_nan: Whether one may be NaN.
        exact: The one value that there is, if it is known.
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
        """The greatest absolute value."""
        return 0 if self == NOTHING else max(abs(self.low), abs(self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def united(self, other: "Range") -> "Range":
        """The smallest range that holds both."""
        if NOTHING in (self, other):
            return self if other == NOTHING else other
        exact = self.exact if self.exact is not None and _is_same(self.exact, other.exact) else None
        nan = self.may_be_nan or other.may_be_nan
        return Range(min(self.low, other.low), max(self.high, other.high), nan, exact)


ANYTHING = Range(-math.inf, math.inf, may_be_nan=True)
NOTHING = Range(math.inf, -math.inf)  # of no values at all
TRUTH = Range(0, 1)


def finite_range(dtype: str) -> Range:
    """Of all finite values of a dtype."""
    if dtype == "bool":
        return TRUTH
    greatest = _GREATEST.get(dtype, _GREATEST_INT64)
    return Range(-greatest, greatest)


def exactly(value: Number) -> Range:
    """Of one value."""
    if isinstance(value, complex):
        parts = (value.real, value.imag)
        return Range(min(parts), max(parts), any(map(math.isnan, parts)), value)
    return ANYTHING if math.isnan(value) else Range(value, value, exact=value)


def _is_same(value: Number, other: Number | None) -> bool:
    return other is not None and value == other


def rounded(found: Range, dtype: str) -> Range:
    """A range with room for rounding; beyond the greatest finite number it is infinite."""
    if found.exact is not None or dtype not in _ROUNDING:
        return found
    room, greatest = _ROUNDING[dtype], _GREATEST[dtype]

    def moved(end: float, direction: int) -> float:
        if 0 < -direction * end < _LEAST:  # rounded to 0
            return 0
        wider = end if math.isinf(end) else end + direction * abs(end) * room
        return wider if abs(wider) <= greatest else math.copysign(math.inf, wider) if wider * direction > 0 else end

    return Range(moved(found.low, -1), moved(found.high, 1), found.may_be_nan)
