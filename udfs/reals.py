"""Functions of one real number, or two, that take more than a line; of float64, to which float32 is widened.

Self-contained: numba and numpy only, no allocation, the same source for every host.
"""

import math

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload


@njit
def exponential(x):
    """exp(x)."""
    return _exponential(np.float64(x))


@njit
def sigmoid(x):
    """1 / (1 + exp(-x)), of which the exponential is infinite where its dtype ends, as numpy's."""
    return 1.0 / (1.0 + _rounded(_exponential(-np.float64(x)), x))


def _rounded(value, like):
    """A value in the dtype of another one."""


@overload(_rounded)
def _rounded_to(value, like):
    dtype = like
    return lambda value, like: dtype(value)


@njit
def power(x, exponent):
    """X ^ exponent; squares, of which there are most, by multiplication."""
    return x * x if exponent == 2 else x**exponent


@njit
def sign(x):
    """-1, 0 or 1; of -0, 0, as numpy's."""
    return np.sign(x) + 0.0


@njit
def relu(x):
    """X, or 0 where it is less; NaN stays."""
    return 0.0 if x <= 0 else x


@njit
def log_of_sum(a, b):
    """log(exp(a) + exp(b)); equal infinities have no difference, but a sum."""
    distance = np.float64(0) if a == b else abs(np.float64(a) - np.float64(b))
    return np.maximum(a, b) + math.log1p(np.exp(-distance))


# exp(x) = 2^k exp(r) with r = x - k ln 2: the polynomial of exp(r), scaled in two steps, so that results beyond the
# range of one scale become infinite or subnormal as they should. Without branches, several elements go at a time.
_LIMIT = 800.0  # exp is infinite, or 0, well before
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # few enough digits that k times this is exact
_LN2_LOW = 1.90821492927058770002e-10
_TO_WHOLE = 6755399441055744.0  # 1.5 * 2^52: added to a number, it leaves the nearest whole one in the lowest bits
_EXPONENT_BIAS = 1023
_MANTISSA_BITS = 52


@njit(fastmath={"contract"})
def _exponential(x):
    """exp(x) of a double within an ulp or two."""
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
    """The Taylor series of exp to r^13, for |r| <= ln 2 / 2."""
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
    """The bits of a double as an int64."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def _number_of(typing_context, bits):
    """The double of some bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate
