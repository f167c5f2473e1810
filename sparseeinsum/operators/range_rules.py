"""Operators: rules of ranges, which give the range of a function for the ranges of its arguments.

Rules for complex numbers are about the real and the imaginary parts, which share one range.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sparseeinsum.operators.ranges import ANY_VALUE, BOOL_RANGE, Range, exact_range

_GREATEST_TANGENT = 1e20  # no float64 is close enough to an odd multiple of pi / 2 for a greater tangent


def _may_be_nan(*arguments: Range) -> bool:
    return any(argument.may_be_nan for argument in arguments)


def sum_range(a: Range, b: Range) -> Range:
    may_cancel = (a.low == -math.inf and b.high == math.inf) or (a.high == math.inf and b.low == -math.inf)
    if _is_one_infinity(a) and b.is_finite:
        return a
    if _is_one_infinity(b) and a.is_finite:
        return b
    low = -math.inf if -math.inf in (a.low, b.low) else a.low + b.low
    high = math.inf if math.inf in (a.high, b.high) else a.high + b.high
    return Range(low, high, _may_be_nan(a, b) or may_cancel)


def _is_one_infinity(a: Range) -> bool:
    """Whether the only value is an infinity, which adding finite values does not change."""
    return a.exact is not None and math.isinf(abs(a.exact))


def negative_range(a: Range) -> Range:
    return Range(-a.high, -a.low, a.may_be_nan, None if a.exact is None else -a.exact)


def difference_range(a: Range, b: Range) -> Range:
    return sum_range(a, negative_range(b))


def product_range(a: Range, b: Range) -> Range:
    for first, second in ((a, b), (b, a)):
        if first.exact is not None and first.exact == 0 and second.is_finite:
            return first
    may_meet_zero = (0 in a and math.inf in (abs(b.low), abs(b.high))) or (
        0 in b and math.inf in (abs(a.low), abs(a.high))
    )
    corners = [_product(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners), _may_be_nan(a, b) or may_meet_zero)


def _product(x: float, y: float) -> float:
    return 0 if 0 in (x, y) else x * y


def quotient_range(a: Range, b: Range) -> Range:
    if 0 in b or b.may_be_nan or not b.is_finite:
        return ANY_VALUE
    if a.exact is not None and a.exact == 0:
        return exact_range(0.0)
    corners = [_quotient(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners), a.may_be_nan)


def _quotient(x: float, y: float) -> float:
    try:
        return x / y
    except OverflowError:
        return math.copysign(math.inf, x) * math.copysign(1, y)


def abs_range(a: Range) -> Range:
    low = 0 if 0 in a else min(abs(a.low), abs(a.high))
    return Range(low, a.magnitude, a.may_be_nan)


def power_range(a: Range, b: Range) -> Range:
    if not _is_whole_exponent(b):
        is_positive = a.low > 0 and a.is_finite and b.is_finite
        return _range_of_corners(np.power, a, b) if is_positive else ANY_VALUE
    if b.exact == 0:
        return exact_range(1.0)
    exponent = int(b.low)
    base = abs_range(a) if exponent % 2 == 0 else a
    return Range(saturating_power(base.low, exponent), saturating_power(base.high, exponent), a.may_be_nan)


def _is_whole_exponent(b: Range) -> bool:
    exponent = b.exact
    return exponent is not None and not isinstance(exponent, complex) and 0 <= exponent < math.inf and exponent % 1 == 0


def saturating_power(base: float, exponent: int) -> float:
    """An end of a range to an integer power; infinite beyond floating point."""
    try:
        return float(base) ** exponent if not isinstance(base, int) or exponent > 64 else base**exponent
    except OverflowError:
        return math.copysign(math.inf, base)


def _range_of_corners(function: Callable[..., Any], a: Range, b: Range) -> Range:
    with np.errstate(all="ignore"):
        corners = [float(function(float(x), float(y))) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(corners), max(corners), _may_be_nan(a, b))


def range_of_increasing(
    function: Callable[..., Any], least: float = -math.inf, most: float = math.inf
) -> Callable[[Range], Range]:
    """The rule of a numpy function that decreases nowhere between `least` and `most`, and is NaN elsewhere."""

    def rule(a: Range) -> Range:
        with np.errstate(all="ignore"):
            low, high = (float(function(float(min(max(end, least), most)))) for end in (a.low, a.high))
        return Range(low, high, a.may_be_nan or a.low < least or a.high > most)

    return rule


def range_of_rounding(function: Callable[..., Any]) -> Callable[[Range], Range]:
    """The rule of a numpy function that rounds to integers."""

    def rule(a: Range) -> Range:
        low, high = (end if isinstance(end, int) else float(function(end)) for end in (a.low, a.high))
        return Range(low, high, a.may_be_nan)

    return rule


def sine_range(a: Range) -> Range:
    return Range(-1, 1, not a.is_finite)


def tangent_range(a: Range) -> Range:
    return symmetric_range(_GREATEST_TANGENT) if a.is_finite else ANY_VALUE


def arc_cosine_range(a: Range) -> Range:
    rising = range_of_increasing(lambda x: -np.arccos(x), -1.0, 1.0)
    return negative_range(rising(a))


def hyperbolic_cosine_range(a: Range) -> Range:
    return range_of_increasing(np.cosh)(abs_range(a))


def remainder_range(a: Range, b: Range) -> Range:
    if not (a.is_finite and b.is_finite):
        return ANY_VALUE
    return Range(min(b.low, 0), max(b.high, 0), 0 in b)


def logaddexp_range(a: Range, b: Range) -> Range:
    low, high = (float(np.logaddexp(x, y)) for x, y in ((a.low, b.low), (a.high, b.high)))
    # The kernel adds terms that may cancel, which rounds more than one operation does.
    room = 1e-5 * (a.magnitude + b.magnitude) if a.is_finite and b.is_finite else 0
    return Range(low - room, high + room, _may_be_nan(a, b))


def min_range(a: Range, b: Range) -> Range:
    return _lesser_if_disjoint(a, b) or Range(min(a.low, b.low), min(a.high, b.high), _may_be_nan(a, b))


def max_range(a: Range, b: Range) -> Range:
    least_of_negatives = _lesser_if_disjoint(negative_range(a), negative_range(b))
    return (
        negative_range(least_of_negatives)
        if least_of_negatives
        else Range(max(a.low, b.low), max(a.high, b.high), _may_be_nan(a, b))
    )


def _lesser_if_disjoint(a: Range, b: Range) -> Range | None:
    """The smaller of two ranges that do not overlap and have no NaN; else None."""
    if _may_be_nan(a, b):
        return None
    return a if a.high <= b.low else b if b.high <= a.low else None


def relu_range(a: Range) -> Range:
    return max_range(a, exact_range(0.0))


def clip_range(a: Range, low: Range, high: Range) -> Range:
    return min_range(max_range(a, low), high)


def sign_range(a: Range) -> Range:
    if not a.may_be_nan and (a.low > 0 or a.high < 0):
        return exact_range(1.0 if a.low > 0 else -1.0)
    return Range(-1 if a.low < 0 else 0, 1 if a.high > 0 else 0, a.may_be_nan)


def less_range(a: Range, b: Range) -> Range:
    if a.high < b.low and not _may_be_nan(a, b):
        return exact_range(True)
    return exact_range(False) if a.low >= b.high else BOOL_RANGE


def less_or_equal_range(a: Range, b: Range) -> Range:
    if a.high <= b.low and not _may_be_nan(a, b):
        return exact_range(True)
    return exact_range(False) if a.low > b.high else BOOL_RANGE


def equal_range(a: Range, b: Range) -> Range:
    return exact_range(False) if a.high < b.low or b.high < a.low else BOOL_RANGE


def not_range(a: Range) -> Range:
    truth = _truth_value(a)
    return BOOL_RANGE if truth is None else exact_range(not truth)


def _truth_value(a: Range) -> bool | None:
    """True or False where all values are so; None where both may occur. NaN is true."""
    if a.exact is not None:
        return bool(a.exact)
    return True if 0 not in a else None


def and_range(a: Range, b: Range) -> Range:
    truths = (_truth_value(a), _truth_value(b))
    if False in truths:
        return exact_range(False)
    return exact_range(True) if truths == (True, True) else BOOL_RANGE


def or_range(a: Range, b: Range) -> Range:
    return not_range(and_range(not_range(a), not_range(b)))


def where_range(condition: Range, a: Range, b: Range) -> Range:
    truth = _truth_value(condition)
    if truth is None:
        return a.union(b)
    return a if truth else b


def complex_product_range(a: Range, b: Range) -> Range:
    for first, second in ((a, b), (b, a)):
        if first.exact is not None and first.exact == 0 and second.is_finite:
            return first
    return symmetric_range(2 * a.magnitude * b.magnitude) if a.is_finite and b.is_finite else ANY_VALUE


def complex_quotient_range(a: Range, b: Range) -> Range:
    """Finite only where the divisor is one known number other than 0."""
    if b.exact is None or b.exact == 0 or not a.is_finite:
        return ANY_VALUE
    return exact_range(0.0) if a.exact is not None and a.exact == 0 else symmetric_range(2 * a.magnitude / abs(b.exact))


def symmetric_range(magnitude: float) -> Range:
    """The range of all numbers up to a magnitude."""
    return Range(-magnitude, magnitude)


def any_bool(*arguments: Range) -> Range:
    return BOOL_RANGE


def complex_sign_change_range(a: Range) -> Range:
    return symmetric_range(a.magnitude) if a.is_finite else ANY_VALUE


def complex_abs_range(a: Range) -> Range:
    return Range(0, 2 * a.magnitude) if a.is_finite else ANY_VALUE


def complex_rounding_range(a: Range) -> Range:
    return symmetric_range(a.magnitude + 1) if a.is_finite else ANY_VALUE


def complex_and_range(a: Range, b: Range) -> Range:
    return exact_range(False) if False in _exact_truths(a, b) else BOOL_RANGE


def complex_or_range(a: Range, b: Range) -> Range:
    return exact_range(True) if True in _exact_truths(a, b) else BOOL_RANGE


def any_value(*arguments: Range) -> Range:
    return ANY_VALUE


def _exact_truths(*arguments: Range) -> list[bool | None]:
    return [None if argument.exact is None else bool(argument.exact) for argument in arguments]
