"""Semantics: intervals of values through scalar expressions and aggregates.

A range says where all values of an expression lie. It proves three things: that an expression has one value whatever
one operand holds (0 * v, inf + v, max(9, v) where v is at most 5), that values stay finite, and that whole numbers
stay small enough for floating point. A bound of infinity means that an infinity may occur; values that are known to
be finite have finite bounds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparseeinsum.language.dtypes import Number, is_complex
from sparseeinsum.language.scalar import FUNCTIONS, Call, Literal, Operand, Scalar, write

# What rounding may add to a value of each dtype, relative to it.
_ROUNDING = {"float64": 1e-12, "complex128": 1e-12, "float32": 1e-5, "complex64": 1e-5}
# A little less than the greatest finite number, for the same reason.
_GREATEST = {"float64": 1.7e308, "complex128": 1.7e308, "float32": 3.4e38, "complex64": 3.4e38}
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


def range_of(expression: Scalar, operands: Sequence[Range], dtype: str) -> Range:
    """Where the values of an expression lie.

    Args:
        expression: Of operands.
        operands: Where their values lie.
        dtype: That the expression is computed in.
    """
    match expression:
        case Operand(index):
            return operands[index]
        case Literal(value):
            return exactly(value)
        case Call(function, arguments):
            return _applied(function, [range_of(argument, operands, dtype) for argument in arguments], dtype)
        case _:
            raise ValueError(f"{write(expression)} is not known yet")


def _applied(function: str, arguments: list[Range], dtype: str) -> Range:
    if NOTHING in arguments and function != "where":
        return NOTHING
    if all(argument.exact is not None for argument in arguments):
        return _computed(function, [argument.exact for argument in arguments])
    rules = _COMPLEX_RULES if is_complex(dtype) else _RULES
    rule = rules.get(function)
    if rule is None:
        return ANYTHING
    found = rule(*arguments)
    is_one_value = found.low == found.high and not found.may_be_nan and not is_complex(dtype)
    return exactly(found.low) if is_one_value and found.exact is None else rounded(found, dtype)


def _computed(function: str, values: Sequence[Any]) -> Range:
    """What a function makes of numbers, by numpy; truth is 0 and 1, as it is to kernels."""
    numbers = [int(value) if isinstance(value, bool) else value for value in values]
    with np.errstate(all="ignore"):
        try:
            value = FUNCTIONS[function].numpy(*numbers)
        except (ArithmeticError, TypeError, ValueError):
            return ANYTHING
    return exactly(np.asarray(value).item())


def rounded(found: Range, dtype: str) -> Range:
    """A range with room for rounding; beyond the greatest finite number it is infinite."""
    if found.exact is not None or dtype not in _ROUNDING:
        return found
    room, greatest = _ROUNDING[dtype], _GREATEST[dtype]

    def moved(end: float, direction: int) -> float:
        wider = end if math.isinf(end) else end + direction * abs(end) * room
        return wider if abs(wider) <= greatest else math.copysign(math.inf, wider) if wider * direction > 0 else end

    return Range(moved(found.low, -1), moved(found.high, 1), found.may_be_nan)


def _nan(*arguments: Range) -> bool:
    return any(argument.may_be_nan for argument in arguments)


def _add(a: Range, b: Range) -> Range:
    opposed = (a.low == -math.inf and b.high == math.inf) or (a.high == math.inf and b.low == -math.inf)
    if _is_infinite(a) and b.is_finite:
        return a
    if _is_infinite(b) and a.is_finite:
        return b
    low = -math.inf if -math.inf in (a.low, b.low) else a.low + b.low
    high = math.inf if math.inf in (a.high, b.high) else a.high + b.high
    return Range(low, high, _nan(a, b) or opposed)


def _is_infinite(a: Range) -> bool:
    """Whether there is one value, which is infinite: adding anything finite leaves it as it is."""
    return a.exact is not None and math.isinf(abs(a.exact))


def _neg(a: Range) -> Range:
    return Range(-a.high, -a.low, a.may_be_nan, None if a.exact is None else -a.exact)


def _sub(a: Range, b: Range) -> Range:
    return _add(a, _neg(b))


def _mul(a: Range, b: Range) -> Range:
    for one, other in ((a, b), (b, a)):
        if one.exact is not None and one.exact == 0 and other.is_finite:
            return one
    loses = (0 in a and math.inf in (abs(b.low), abs(b.high))) or (0 in b and math.inf in (abs(a.low), abs(a.high)))
    corners = [_product(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners), _nan(a, b) or loses)


def _product(x: float, y: float) -> float:
    return 0 if 0 in (x, y) else x * y


def _div(a: Range, b: Range) -> Range:
    if 0 in b or b.may_be_nan or not b.is_finite:
        return ANYTHING
    if a.exact is not None and a.exact == 0:
        return exactly(0.0)
    corners = [_quotient(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners), a.may_be_nan)


def _quotient(x: float, y: float) -> float:
    try:
        return x / y
    except OverflowError:
        return math.copysign(math.inf, x) * math.copysign(1, y)


def _abs(a: Range) -> Range:
    low = 0 if 0 in a else min(abs(a.low), abs(a.high))
    return Range(low, a.magnitude, a.may_be_nan)


def _pow(a: Range, b: Range) -> Range:
    if not _is_whole_exponent(b):
        is_positive = a.low > 0 and a.is_finite and b.is_finite
        return _hull_of(np.power, a, b) if is_positive else ANYTHING
    if b.exact == 0:
        return exactly(1.0)
    exponent = int(b.low)
    base = _abs(a) if exponent % 2 == 0 else a
    return Range(power_of(base.low, exponent), power_of(base.high, exponent), a.may_be_nan)


def _is_whole_exponent(b: Range) -> bool:
    exponent = b.exact
    return exponent is not None and not isinstance(exponent, complex) and 0 <= exponent < math.inf and exponent % 1 == 0


def power_of(base: float, exponent: int) -> float:
    """A bound to a whole power; infinite where that is beyond floating point."""
    try:
        return float(base) ** exponent if not isinstance(base, int) or exponent > 64 else base**exponent
    except OverflowError:
        return math.copysign(math.inf, base)


def _hull_of(function: Callable[..., Any], a: Range, b: Range) -> Range:
    with np.errstate(all="ignore"):
        corners = [float(function(float(x), float(y))) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners), _nan(a, b))


def _increasing(function: str, least: float = -math.inf) -> Callable[[Range], Range]:
    """Of a function that grows everywhere; below `least` it is NaN."""

    def rule(a: Range) -> Range:
        with np.errstate(all="ignore"):
            low, high = (float(FUNCTIONS[function].numpy(float(max(value, least)))) for value in (a.low, a.high))
        return Range(low, high, a.may_be_nan or a.low < least)

    return rule


def _least(a: Range, b: Range) -> Range:
    return _one_of(a, b) or Range(min(a.low, b.low), min(a.high, b.high), _nan(a, b))


def _greatest(a: Range, b: Range) -> Range:
    negated = _one_of(_neg(a), _neg(b))
    return _neg(negated) if negated else Range(max(a.low, b.low), max(a.high, b.high), _nan(a, b))


def _one_of(a: Range, b: Range) -> Range | None:
    """The smaller of two ranges that do not overlap and have no NaN."""
    if _nan(a, b):
        return None
    return a if a.high <= b.low else b if b.high <= a.low else None


def _relu(a: Range) -> Range:
    return _greatest(a, exactly(0.0))


def _sign(a: Range) -> Range:
    if not a.may_be_nan and (a.low > 0 or a.high < 0):
        return exactly(1.0 if a.low > 0 else -1.0)
    return Range(-1 if a.low < 0 else 0, 1 if a.high > 0 else 0, a.may_be_nan)


def _less(a: Range, b: Range) -> Range:
    if a.high < b.low and not _nan(a, b):
        return exactly(True)
    return exactly(False) if a.low >= b.high else TRUTH


def _less_or_equal(a: Range, b: Range) -> Range:
    if a.high <= b.low and not _nan(a, b):
        return exactly(True)
    return exactly(False) if a.low > b.high else TRUTH


def _equal(a: Range, b: Range) -> Range:
    return exactly(False) if a.high < b.low or b.high < a.low else TRUTH


def _not(a: Range) -> Range:
    truth = _truth_of(a)
    return TRUTH if truth is None else exactly(not truth)


def _truth_of(a: Range) -> bool | None:
    """Whether all values are true, or all false; NaN is true."""
    if a.exact is not None:
        return bool(a.exact)
    return True if 0 not in a else None


def _and(a: Range, b: Range) -> Range:
    truths = (_truth_of(a), _truth_of(b))
    if False in truths:
        return exactly(False)
    return exactly(True) if truths == (True, True) else TRUTH


def _or(a: Range, b: Range) -> Range:
    return _not(_and(_not(a), _not(b)))


def _where(condition: Range, a: Range, b: Range) -> Range:
    truth = _truth_of(condition)
    if truth is None:
        return a.united(b)
    return a if truth else b


_RULES: dict[str, Callable[..., Range]] = {
    "or": _or,
    "and": _and,
    "not": _not,
    "lt": _less,
    "le": _less_or_equal,
    "gt": lambda a, b: _less(b, a),
    "ge": lambda a, b: _less_or_equal(b, a),
    "eq": _equal,
    "ne": lambda a, b: _not(_equal(a, b)),
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "pow": _pow,
    "abs": _abs,
    "exp": _increasing("exp"),
    "log": _increasing("log", 0.0),
    "sqrt": _increasing("sqrt", 0.0),
    "sign": _sign,
    "relu": _relu,
    "sigmoid": _increasing("sigmoid"),
    "tanh": _increasing("tanh"),
    "conj": lambda a: a,
    "min": _least,
    "max": _greatest,
    "where": _where,
}


def _complex_mul(a: Range, b: Range) -> Range:
    for one, other in ((a, b), (b, a)):
        if one.exact is not None and one.exact == 0 and other.is_finite:
            return one
    return _around(2 * a.magnitude * b.magnitude) if a.is_finite and b.is_finite else ANYTHING


def _complex_div(a: Range, b: Range) -> Range:
    """Finite where the divisor is a number other than 0."""
    if b.exact is None or b.exact == 0 or not a.is_finite:
        return ANYTHING
    return exactly(0.0) if a.exact is not None and a.exact == 0 else _around(2 * a.magnitude / abs(b.exact))


def _around(magnitude: float) -> Range:
    return Range(-magnitude, magnitude)


# Of real and imaginary parts, where both keep to one range.
_COMPLEX_RULES: dict[str, Callable[..., Range]] = {
    "add": _add,
    "sub": _sub,
    "neg": lambda a: _around(a.magnitude) if a.is_finite else ANYTHING,
    "conj": lambda a: _around(a.magnitude) if a.is_finite else ANYTHING,
    "abs": lambda a: Range(0, 2 * a.magnitude) if a.is_finite else ANYTHING,
    "mul": _complex_mul,
    "div": _complex_div,
    "where": _where,
    "eq": lambda a, b: TRUTH,
    "ne": lambda a, b: TRUTH,
    "and": lambda a, b: exactly(False) if False in _exact_truths(a, b) else TRUTH,
    "or": lambda a, b: exactly(True) if True in _exact_truths(a, b) else TRUTH,
    "not": lambda a: TRUTH,
}


def _exact_truths(*arguments: Range) -> list[bool | None]:
    return [None if argument.exact is None else bool(argument.exact) for argument in arguments]
