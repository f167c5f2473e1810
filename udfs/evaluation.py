"""Evaluating scalar expressions: the programs that expression.py reads, block by block over arrays.

Each operation runs over up to BLOCK elements at a time. Comparisons and logic give 0 or 1; whatever is not 0 is true,
NaN, too. Self-contained: numba and numpy only, no allocation.
"""

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

BLOCK = 256

# Codes of the functions, in the order of expression.py.
OR, AND, NOT, LT, LE, GT, GE, EQ, NE, ADD, SUB, MUL, DIV, NEG, POW = range(15)
ABS, EXP, LOG, SQRT, SIGN, RELU, SIGMOID, TANH, CONJ, MIN, MAX, WHERE = range(15, 27)
_FIRST_CONSTANT = 2


@njit
def evaluate_block(program, constants, u, v, stack, block, constant, apply):
    """Run a program over one block: u, v, (n,) with n <= block; stack: (MAX_DEPTH * block,), one dtype.

    constant(constants, index) gives a literal's value, and apply(code, taken, a, b, c) computes a function of so
    many arguments in place of a; it returns 0 or a code, and so does this. The result is stack[0:n].
    """
    n = u.size
    depth = 0
    for position in range(1, program[0] + 1):
        taken, code = program[position] & 3, program[position] >> 2
        depth -= taken
        first = stack[depth * block : depth * block + n]
        second = stack[(depth + 1) * block : (depth + 1) * block + n] if taken > 1 else first
        third = stack[(depth + 2) * block : (depth + 2) * block + n] if taken > 2 else first
        if taken > 0:
            failure = apply(code, taken, first, second, third)
            if failure < 0:
                return failure
        elif code < _FIRST_CONSTANT:
            _copy(u if code == 0 else v, first)
        else:
            _spread(constant(constants, code - _FIRST_CONSTANT), first)
        depth += 1
    return 0


@njit
def _copy(source, out):
    for i in range(out.size):
        out[i] = source[i]


@njit
def _spread(value, out):
    for i in range(out.size):
        out[i] = value


@njit
def constant(constants, index):
    """The value of a literal, as a float64."""
    return constants[1 + index]


@njit
def apply(code, taken, a, b, c):
    """Put function(a, b, c) into a, as many of them as it takes, element by element, of real numbers; returns 0."""
    if code > WHERE:
        addresses = (a.ctypes.data, b.ctypes.data, c.ctypes.data, a.ctypes.data)
        _call_function(code, (*addresses, a.size, a.itemsize))
    elif taken == 1:
        _apply_unary(code, a)
    elif taken == 2:
        _apply_binary(code, a, b)
    else:
        _choose(a, b, c)
    return 0


@njit
def _choose(condition, chosen, other):
    for i in range(condition.size):
        condition[i] = chosen[i] if condition[i] != 0 else other[i]


@njit
def _apply_binary(code, a, b):
    if code == ADD:
        for i in range(a.size):
            a[i] += b[i]
    elif code == SUB:
        for i in range(a.size):
            a[i] -= b[i]
    elif code == MUL:
        for i in range(a.size):
            a[i] *= b[i]
    elif code == DIV:
        for i in range(a.size):
            a[i] /= b[i]
    elif code == POW:
        for i in range(a.size):
            a[i] = a[i] * a[i] if b[i] == 2 else a[i] ** b[i]
    elif code == MIN:
        for i in range(a.size):
            a[i] = np.minimum(a[i], b[i])
    elif code == MAX:
        for i in range(a.size):
            a[i] = np.maximum(a[i], b[i])
    else:
        _compare(code, a, b)


@njit
def _compare(code, a, b):
    if code == OR:
        for i in range(a.size):
            a[i] = (a[i] != 0) | (b[i] != 0)
    elif code == AND:
        for i in range(a.size):
            a[i] = (a[i] != 0) & (b[i] != 0)
    elif code == LT:
        for i in range(a.size):
            a[i] = a[i] < b[i]
    elif code == LE:
        for i in range(a.size):
            a[i] = a[i] <= b[i]
    elif code == GT:
        for i in range(a.size):
            a[i] = a[i] > b[i]
    elif code == GE:
        for i in range(a.size):
            a[i] = a[i] >= b[i]
    elif code == EQ:
        for i in range(a.size):
            a[i] = a[i] == b[i]
    else:
        for i in range(a.size):
            a[i] = a[i] != b[i]


@njit
def _apply_unary(code, a):
    one = a.dtype.type(1)
    zero = a.dtype.type(0)
    if code == NOT:
        for i in range(a.size):
            a[i] = a[i] == 0
    elif code == NEG:
        for i in range(a.size):
            a[i] = -a[i]
    elif code == ABS:
        for i in range(a.size):
            a[i] = abs(a[i])
    elif code == EXP:
        for i in range(a.size):
            a[i] = _exponential(np.float64(a[i]))
    elif code == LOG:
        for i in range(a.size):
            a[i] = np.log(a[i])
    elif code == SQRT:
        for i in range(a.size):
            a[i] = np.sqrt(a[i])
    elif code == SIGN:
        for i in range(a.size):
            a[i] = np.sign(a[i]) + zero  # numpy's sign of -0 is 0
    elif code == RELU:
        for i in range(a.size):
            a[i] = zero if a[i] <= zero else a[i]
    elif code == SIGMOID:
        for i in range(a.size):
            a[i] = one / (one + a.dtype.type(_exponential(-np.float64(a[i]))))
    elif code == TANH:
        for i in range(a.size):
            a[i] = np.tanh(a[i])


@intrinsic
def _call_function(typing_context, address, arguments):
    """Call a user's function: addresses of three operands and of the result, elements, and bytes of an element."""

    def generate(context, builder, signature, values):
        word = context.get_value_type(types.int64)
        function_type = cgutils.ir.FunctionType(word, [word] * 6)
        function = builder.inttoptr(values[0], function_type.as_pointer())
        return builder.call(function, cgutils.unpack_tuple(builder, values[1], 6))

    return types.int64(types.int64, types.UniTuple(types.int64, 6)), generate


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
