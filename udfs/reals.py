"""Functions of real numbers that take more than a line, in float64; float32 operands are widened.

Self-contained: numba and numpy only, no allocation, the same source for every host.
"""

import math

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload


@njit
def exponential(x):
    """Return exp(x)."""
    return _exponential(np.float64(x))


@njit
def sigmoid(x):
    """Return 1 / (1 + exp(-x)); exp overflows to infinity in the dtype of x, as in numpy."""
    return 1.0 / (1.0 + _rounded(_exponential(-np.float64(x)), x))


def _rounded(value, like):
    """Convert a value to the dtype of `like`; numba compiles `_rounded_to` instead."""


@overload(_rounded)
def _rounded_to(value, like):
    dtype = like
    return lambda value, like: dtype(value)


@njit
def power(x, exponent):
    """Return x ^ exponent; squares, the most frequent case, by multiplication."""
    return x * x if exponent == 2 else x**exponent


@njit
def sign(x):
    """Return -1, 0 or 1, the sign of x; 0 for -0, as in numpy."""
    return np.sign(x) + 0.0


@njit
def relu(x):
    """Return x, or 0 if x is negative; NaN for NaN."""
    return 0.0 if x <= 0 else x


@njit
def log_of_sum(a, b):
    """Return log(exp(a) + exp(b)); equal infinities, whose difference is NaN, have the distance 0."""
    distance = np.float64(0) if a == b else abs(np.float64(a) - np.float64(b))
    return np.maximum(a, b) + math.log1p(np.exp(-distance))


# exp(x) = 2^k exp(r) with r = x - k ln 2. The polynomial of exp(r) is scaled in two steps, so that results beyond the
# range of one scale become infinite or subnormal. There are no branches, so that the loop is vectorised.
_LIMIT = 800.0  # exp is infinite, or 0, well before this
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # few enough digits that k times this is exact
_LN2_LOW = 1.90821492927058770002e-10
_TO_WHOLE = 6755399441055744.0  # 1.5 * 2^52: added to a number, it leaves the nearest whole one in the lowest bits
_EXPONENT_BIAS = 1023
_MANTISSA_BITS = 52


@njit(fastmath={"contract"})
def _exponential(x):
    """Return exp(x) of a double, accurate to an ulp or two."""
    x = _LIMIT if x > _LIMIT else x
    x = -_LIMIT if x < -_LIMIT else x
    shifted = x * _LOG2_E + _TO_WHOLE
    k = shifted - _TO_WHOLE
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    half = k * 0.5 + _TO_WHOLE
    first = _bits_of(half) - _bits_of(_TO_WHOLE)
    second = _bits_of(shifted) - _bits_of(_TO_WHOLE) - first
    return _exponential_near_zero(r) * _power_of_two(first) * _power_of_two(second)


@njit(fastmath={"contract"})
def _exponential_near_zero(r):
    """Return the Taylor series of exp up to r^13, for |r| <= ln 2 / 2."""
    p = r * (1 / 6227020800) + 1 / 479001600
    p = p * r + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 0.5
    return 1 + (r + r * r * p)


@njit
def _power_of_two(exponent):
    return _number_of((exponent + _EXPONENT_BIAS) << _MANTISSA_BITS)


@intrinsic
def _bits_of(typing_context, number):
    """Return the bits of a double as an int64."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def _number_of(typing_context, bits):
    """Return the double that has some bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate
