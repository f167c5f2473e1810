"""Functions of real numbers that take more than a line, in float64 and float32.

Polynomials are of the dtype of their operands, and accurate to three ulp. They have no branches and call nothing, so
that loops over them are vectorised; float32 has twice the lanes of float64, and shorter polynomials. Self-contained:
numba and numpy only, no allocation, the same source for every host.
"""

import math
from collections import namedtuple

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

# Loops are vectorised only if all that they call is inlined; these functions are longer than the compiler would inline.
_inlined = njit(forceinline=True, fastmath={"contract"})


# Constants of a dtype, as numbers of that dtype.
#
# to_whole is 1.5 * 2^m with m bits of mantissa: added to a number, it leaves the nearest whole one in the lowest bits.
# ln2_high has so few digits that whole multiples of it are exact; with ln2_low, it is ln 2. Beyond exponent_limit, exp
# is infinite or 0; beyond half of tangent_limit, tanh is 1 or -1, and so is erf beyond error_limit. least_normal is the
# least number that is not subnormal; scale, 2^scale_bits, makes those numbers normal.
#
# Coefficients of polynomials, from the lowest on: exponential of (exp(r) - 1 - r) / r^2 by r, for |r| <= ln(2) / 2;
# logarithm of (2 atanh(s) / s - 2) / s^2 by s^2, for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1); error of erf(x) / x - 1 by
# x^2, for |x| <= 1; error_tail of (1 - erf(x)) exp(x^2) / t by t = 1 / (x + error_shift), for 1 <= x <= error_limit.
#
# Whole numbers: the bits of the mantissa, what is added to exponents, and the bits of to_whole and sqrt(1/2).
_Constants = namedtuple(
    "_Constants",
    "zero half one two infinity nan to_whole log2_e ln2_high ln2_low exponent_limit tangent_limit error_limit "
    "least_normal scale scale_bits exponential logarithm error error_shift error_tail "
    "mantissa_bits bias bits_of_to_whole bits_of_root",
)

# Coefficients are of minimax polynomials, computed by Remez's algorithm.
_DOUBLE = _Constants(
    zero=np.float64(0),
    half=np.float64(0.5),
    one=np.float64(1),
    two=np.float64(2),
    infinity=np.float64(np.inf),
    nan=np.float64(np.nan),
    to_whole=np.float64(1.5 * 2**52),
    log2_e=np.float64(1.4426950408889634),
    ln2_high=np.float64(6.93147180369123816490e-01),
    ln2_low=np.float64(1.90821492927058770002e-10),
    exponent_limit=np.float64(800),
    tangent_limit=np.float64(44),
    error_limit=np.float64(6),
    least_normal=np.finfo(np.float64).smallest_normal,
    scale=np.float64(2**54),
    scale_bits=np.float64(54),
    exponential=(
        *(0.5000000000000013, 0.166666666666667, 0.04166666666651436, 0.00833333333330696, 0.001388888894732139),
        *(0.00019841269917925087, 2.4801489600776535e-05, 2.7557215806618216e-06, 2.763141018777096e-07),
        2.511802048937468e-08,
    ),
    logarithm=(
        *(0.6666666666666735, 0.39999999999407493, 0.28571428744140187, 0.222221983786773, 0.1818357515106139),
        *(0.1531375622271619, 0.1479906065263033),
    ),
    error=(
        *(0.12837916709551256, -0.3761263890318355, 0.11283791670945252, -0.02686617064327608, 0.005223977607422791),
        *(-0.0008548325989682853, 0.00012055295320544262, -1.4924744671861169e-05, 1.6447517862349794e-06),
        *(-1.6209177842401475e-07, 1.3722986534321046e-08, -7.801211115014895e-10),
    ),
    error_shift=np.float64(2),
    error_tail=(
        *(0.564235506738599, 1.1262036653331804, 2.021736955480407, 2.2068666452171954, 8.041780768362981),
        *(-33.110298247030634, 135.7840262053447, -452.0545196410266, 898.5291022115169, -1046.9059023473685),
        *(677.3030122604363, -190.59587532027712),
    ),
    mantissa_bits=52,
    bias=1023,
    bits_of_to_whole=int(np.float64(1.5 * 2**52).view(np.int64)),
    bits_of_root=int(np.float64(math.sqrt(0.5)).view(np.int64)),
)
_SINGLE = _Constants(
    zero=np.float32(0),
    half=np.float32(0.5),
    one=np.float32(1),
    two=np.float32(2),
    infinity=np.float32(np.inf),
    nan=np.float32(np.nan),
    to_whole=np.float32(1.5 * 2**23),
    log2_e=np.float32(1.4426950408889634),
    ln2_high=np.float32(0.693359375),
    ln2_low=np.float32(-2.12194440e-4),
    exponent_limit=np.float32(120),
    tangent_limit=np.float32(20),
    error_limit=np.float32(4),
    least_normal=np.finfo(np.float32).smallest_normal,
    scale=np.float32(2**25),
    scale_bits=np.float32(25),
    exponential=tuple(map(np.float32, (0.50000001, 0.16666518, 0.041666205, 0.0083689535, 0.0013950573))),
    logarithm=tuple(map(np.float32, (0.66666777, 0.3997745, 0.29874415))),
    error=tuple(map(np.float32, (0.12837913, -0.37612356, 0.11280412, -0.026717706, 0.004924788, -0.000566015))),
    error_shift=np.float32(1),
    error_tail=tuple(map(np.float32, (0.56585664, 0.53185715, 0.51832749, -1.0991331, 0.49906733))),
    mantissa_bits=23,
    bias=127,
    bits_of_to_whole=int(np.float32(1.5 * 2**23).view(np.int32)),
    bits_of_root=int(np.float32(math.sqrt(0.5)).view(np.int32)),
)


def _constants_of(x):
    """Return the constants of the dtype of x; numba compiles `_constants_of_dtype` instead."""


@overload(_constants_of)
def _constants_of_dtype(x):
    constants = _SINGLE if x == types.float32 else _DOUBLE
    return lambda x: constants


@_inlined
def exponential(x):
    """Return exp(x)."""
    c = _constants_of(x)
    x = _select(x > c.exponent_limit, c.exponent_limit, x)
    x = _select(x < -c.exponent_limit, -c.exponent_limit, x)
    k, rest = _split_exponent(x)
    # 2^k is applied in two steps, so that results beyond the range of one become infinite or subnormal.
    half = _nearest_whole(k * c.half)
    return (c.one + rest) * _power_of_two(half) * _power_of_two(k - half)


@_inlined
def sigmoid(x):
    """Return 1 / (1 + exp(-x)); exp overflows to infinity in the dtype of x, as in numpy."""
    c = _constants_of(x)
    return c.one / (c.one + exponential(-x))


@_inlined
def hyperbolic_tangent(x):
    """Return tanh(x)."""
    c = _constants_of(x)
    y = -c.two * abs(x)
    y = _select(y < -c.tangent_limit, -c.tangent_limit, y)
    k, rest = _split_exponent(y)
    power = _power_of_two(k)
    less = power * rest + (power - c.one)  # exp(y) - 1
    return _with_sign_of(less / (less + c.two), x)


@_inlined
def logarithm(x):
    """Return log(x); -inf of 0, and NaN of less."""
    c = _constants_of(x)
    is_subnormal = x < c.least_normal
    bits = _bits_of(_select(is_subnormal, x * c.scale, x))
    # The number is 2^k m with sqrt(1/2) <= m < sqrt(2).
    k = (bits - c.bits_of_root) >> c.mantissa_bits
    g = _number_of(bits - (k << c.mantissa_bits), x) - c.one
    exponent = _number_of(k + c.bits_of_to_whole, x) - c.to_whole
    exponent = _select(is_subnormal, exponent - c.scale_bits, exponent)
    s = g / (c.two + g)
    z = s * s
    less = c.half * g * g  # log(m) = g - less + s (less + ...): g is exact
    series = s * (less + z * _polynomial(z, c.logarithm))
    result = exponent * c.ln2_high - ((less - (series + exponent * c.ln2_low)) - g)
    result = _select(x == c.infinity, x, result)
    return _select(x > c.zero, result, _select(x == c.zero, -c.infinity, c.nan))


@_inlined
def error_function(x):
    """Return erf(x)."""
    c = _constants_of(x)
    size = abs(x)
    size = _select(size > c.error_limit, c.error_limit, size)
    near = size + size * _polynomial(size * size, c.error)
    t = c.one / (size + c.error_shift)
    far = c.one - exponential(-size * size) * t * _polynomial(t, c.error_tail)
    return _with_sign_of(_select(size < c.one, near, far), x)


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
    zero = _constants_of(x).zero
    return _select(x <= zero, zero, x)


@njit
def log_of_sum(a, b):
    """Return log(exp(a) + exp(b)), computed in float64: sums have many terms."""
    # Equal infinities, whose difference is NaN, have the distance 0.
    small = exponential(-_select(a == b, np.float64(0), abs(np.float64(a) - np.float64(b))))
    total = 1.0 + small
    return np.maximum(a, b) + (logarithm(total) + (small - (total - 1.0)) / total)


@_inlined
def _split_exponent(x):
    """Return k and exp(r) - 1 for x = k ln 2 + r, where k is whole and |r| <= ln(2) / 2."""
    c = _constants_of(x)
    k = _nearest_whole(x * c.log2_e)
    r = (x - k * c.ln2_high) - k * c.ln2_low
    return k, r + r * r * _polynomial(r, c.exponential)


@njit
def _nearest_whole(x):
    """Return the nearest whole number, for sizes below 2^22."""
    c = _constants_of(x)
    return (x + c.to_whole) - c.to_whole


@njit
def _power_of_two(k):
    """Return 2^k, a normal number, for a whole number k."""
    c = _constants_of(k)
    return _number_of((_bits_of(k + c.to_whole) - c.bits_of_to_whole + c.bias) << c.mantissa_bits, k)


@intrinsic
def _polynomial(typing_context, x, coefficients):
    """Return the polynomial with these coefficients, a tuple from the lowest on, of the dtype of x."""

    def generate(context, builder, signature, arguments):
        number, tuple_of_numbers = arguments
        *lower, result = cgutils.unpack_tuple(builder, tuple_of_numbers, len(coefficients))
        for coefficient in reversed(lower):
            product = builder.fmul(result, number, flags=("contract",))
            result = builder.fadd(product, coefficient, flags=("contract",))
        return result

    return x(x, coefficients), generate


@intrinsic
def _select(typing_context, condition, x, y):
    """Return x if the condition holds, else y, without a branch, which would keep loops from being vectorised."""

    def generate(context, builder, signature, arguments):
        return builder.select(*arguments)

    return x(types.boolean, x, y), generate


@intrinsic
def _with_sign_of(typing_context, size, x):
    """Return a number of this size with the sign of x, which has the same dtype."""

    def generate(context, builder, signature, arguments):
        kind = context.get_value_type(x)
        function_type = cgutils.ir.FunctionType(kind, [kind, kind])
        return builder.call(builder.module.declare_intrinsic("llvm.copysign", [kind], function_type), arguments)

    return x(size, x), generate


@intrinsic
def _bits_of(typing_context, number):
    """Return the bits of a float64 as an int64, those of a float32 as an int32."""
    word = types.Integer.from_bitwidth(number.bitwidth)

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(word))

    return word(number), generate


@intrinsic
def _number_of(typing_context, bits, like):
    """Return the number that has some bits, of the dtype of `like`."""
    word = types.Integer.from_bitwidth(like.bitwidth)

    def generate(context, builder, signature, arguments):
        low = builder.trunc(arguments[0], context.get_value_type(word)) if bits != word else arguments[0]
        return builder.bitcast(low, context.get_value_type(like))

    return like(bits, like), generate
