"""Operators: rules of ranges: where the values of a function lie, from where those of its arguments do.

Rules of complex numbers speak of real and imaginary parts, where both keep to one range.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sparseeinsum.operators.ranges import ANYTHING, TRUTH, Range, exactly

_GREATEST_TANGENT = 1e20  # no float64 is so near to an odd multiple of pi / 2 that its tangent is greater


def _nan(*arguments: Range) -> bool:
    return any(argument.may_be_nan for argument in arguments)


def of_sum(a: Range, b: Range) -> Range:
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


def of_negative(a: Range) -> Range:
    return Range(-a.high, -a.low, a.may_be_nan, None if a.exact is None else -a.exact)


def of_difference(a: Range, b: Range) -> Range:
    return of_sum(a, of_negative(b))


def of_product(a: Range, b: Range) -> Range:
    for one, other in ((a, b), (b, a)):
        if one.exact is not None and one.exact == 0 and other.is_finite:
            return one
    loses = (0 in a and math.inf in (abs(b.low), abs(b.high))) or (0 in b and math.inf in (abs(a.low), abs(a.high)))
    corners = [_product(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners), _nan(a, b) or loses)


def _product(x: float, y: float) -> float:
    return 0 if 0 in (x, y) else x * y


def of_quotient(a: Range, b: Range) -> Range:
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


def of_size(a: Range) -> Range:
    low = 0 if 0 in a else min(abs(a.low), abs(a.high))
    return Range(low, a.magnitude, a.may_be_nan)


def of_power(a: Range, b: Range) -> Range:
    if not _is_whole_exponent(b):
        is_positive = a.low > 0 and a.is_finite and b.is_finite
        return _hull_of(np.power, a, b) if is_positive else ANYTHING
    if b.exact == 0:
        return exactly(1.0)
    exponent = int(b.low)
    base = of_size(a) if exponent % 2 == 0 else a
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


def of_increasing(
    function: Callable[..., Any], least: float = -math.inf, most: float = math.inf
) -> Callable[[Range], Range]:
    """Of a function of numpy that decreases nowhere between `least` and `most`, and is NaN beyond."""

    def rule(a: Range) -> Range:
        with np.errstate(all="ignore"):
            low, high = (float(function(float(min(max(end, least), most)))) for end in (a.low, a.high))
        return Range(low, high, a.may_be_nan or a.low < least or a.high > most)

    return rule


def of_rounding(function: Callable[..., Any]) -> Callable[[Range], Range]:
    """Of a function of numpy that makes whole numbers, and leaves those as they are."""

    def rule(a: Range) -> Range:
        low, high = (end if isinstance(end, int) else float(function(end)) for end in (a.low, a.high))
        return Range(low, high, a.may_be_nan)

    return rule


def of_waves(a: Range) -> Range:
    return Range(-1, 1, not a.is_finite)


def of_tangent(a: Range) -> Range:
    return around(_GREATEST_TANGENT) if a.is_finite else ANYTHING


def of_arc_cosine(a: Range) -> Range:
    rising = of_increasing(lambda x: -np.arccos(x), -1.0, 1.0)
    return of_negative(rising(a))


def of_hyperbolic_cosine(a: Range) -> Range:
    return of_increasing(np.cosh)(of_size(a))


def of_remainder(a: Range, b: Range) -> Range:
    if not (a.is_finite and b.is_finite):
        return ANYTHING
    return Range(min(b.low, 0), max(b.high, 0), 0 in b)


def of_log_of_sum(a: Range, b: Range) -> Range:
    low, high = (float(np.logaddexp(x, y)) for x, y in ((a.low, b.low), (a.high, b.high)))
    room = 1e-5 * (a.magnitude + b.magnitude) if a.is_finite and b.is_finite else 0  # of parts that cancel
    return Range(low - room, high + room, _nan(a, b))


def of_least(a: Range, b: Range) -> Range:
    return _one_of(a, b) or Range(min(a.low, b.low), min(a.high, b.high), _nan(a, b))


def of_greatest(a: Range, b: Range) -> Range:
    negated = _one_of(of_negative(a), of_negative(b))
    return of_negative(negated) if negated else Range(max(a.low, b.low), max(a.high, b.high), _nan(a, b))


def _one_of(a: Range, b: Range) -> Range | None:
    """The smaller of two ranges that do not overlap and have no NaN."""
    if _nan(a, b):
        return None
    return a if a.high <= b.low else b if b.high <= a.low else None


def of_relu(a: Range) -> Range:
    return of_greatest(a, exactly(0.0))


def of_clip(a: Range, low: Range, high: Range) -> Range:
    return of_least(of_greatest(a, low), high)


def of_sign(a: Range) -> Range:
    if not a.may_be_nan and (a.low > 0 or a.high < 0):
        return exactly(1.0 if a.low > 0 else -1.0)
    return Range(-1 if a.low < 0 else 0, 1 if a.high > 0 else 0, a.may_be_nan)


def of_less(a: Range, b: Range) -> Range:
    if a.high < b.low and not _nan(a, b):
        return exactly(True)
    return exactly(False) if a.low >= b.high else TRUTH


def of_less_or_equal(a: Range, b: Range) -> Range:
    if a.high <= b.low and not _nan(a, b):
        return exactly(True)
    return exactly(False) if a.low > b.high else TRUTH


def of_equal(a: Range, b: Range) -> Range:
    return exactly(False) if a.high < b.low or b.high < a.low else TRUTH


def of_not(a: Range) -> Range:
    truth = _truth_of(a)
    return TRUTH if truth is None else exactly(not truth)


def _truth_of(a: Range) -> bool | None:
    """Whether all values are true, or all false; NaN is true."""
    if a.exact is not None:
        return bool(a.exact)
    return True if 0 not in a else None


def of_and(a: Range, b: Range) -> Range:
    truths = (_truth_of(a), _truth_of(b))
    if False in truths:
        return exactly(False)
    return exactly(True) if truths == (True, True) else TRUTH


def of_or(a: Range, b: Range) -> Range:
    return of_not(of_and(of_not(a), of_not(b)))


def of_choice(condition: Range, a: Range, b: Range) -> Range:
    truth = _truth_of(condition)
    if truth is None:
        return a.united(b)
    return a if truth else b


def of_complex_product(a: Range, b: Range) -> Range:
    for one, other in ((a, b), (b, a)):
        if one.exact is not None and one.exact == 0 and other.is_finite:
            return one
    return around(2 * a.magnitude * b.magnitude) if a.is_finite and b.is_finite else ANYTHING


def of_complex_quotient(a: Range, b: Range) -> Range:
    """Finite where the divisor is a number other than 0."""
    if b.exact is None or b.exact == 0 or not a.is_finite:
        return ANYTHING
    return exactly(0.0) if a.exact is not None and a.exact == 0 else around(2 * a.magnitude / abs(b.exact))


def around(magnitude: float) -> Range:
    """Numbers of up to a magnitude."""
    return Range(-magnitude, magnitude)


def of_any_truth(*arguments: Range) -> Range:
    return TRUTH


def of_complex_turn(a: Range) -> Range:
    return around(a.magnitude) if a.is_finite else ANYTHING


def of_complex_size(a: Range) -> Range:
    return Range(0, 2 * a.magnitude) if a.is_finite else ANYTHING


def of_complex_rounding(a: Range) -> Range:
    return around(a.magnitude + 1) if a.is_finite else ANYTHING


def of_complex_and(a: Range, b: Range) -> Range:
    return exactly(False) if False in _exact_truths(a, b) else TRUTH


def of_complex_or(a: Range, b: Range) -> Range:
    return exactly(True) if True in _exact_truths(a, b) else TRUTH


def of_anything(*arguments: Range) -> Range:
    return ANYTHING


def _exact_truths(*arguments: Range) -> list[bool | None]:
    return [None if argument.exact is None else bool(argument.exact) for argument in arguments]
