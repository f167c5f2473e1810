"""Arithmetic of int64 that never wraps: what leaves the range is found, and reported instead of a result.

Self-contained: numba and numpy only, no allocation, the same source for every host. Functions that compute return
0 or OVERFLOW; they run to their end either way, since loops without exits are faster.
"""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

OVERFLOW = -61
NEGATIVE_EXPONENT = -62
NOT_WHOLE = -63
NOT_OF_INTEGERS = -64

ADD, SUBTRACT, MULTIPLY = range(3)  # as in elementwise.py
SUM, PROD, MAX, MIN, ANY, ALL = range(6)  # as in aggregation.py
# As in evaluation.py; functions without a name here are none of integers.
_OR, _AND, _NOT, _LT, _LE, _GT, _GE, _EQ, _NE, _ADD, _SUB, _MUL, _DIV, _NEG, _POW = range(15)
_ABS, _SIGN, _RELU, _CONJ, _MIN, _MAX, _WHERE = 15, 19, 20, 23, 24, 25, 26
_WHOLE, _FIRST_CONSTANT = 0, 2  # as in expression.py

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def _checked(instruction):
    """A function of two int64 that gives their result, wrapped, and whether it overflowed."""

    @intrinsic
    def compute(typing_context, a, b):
        result_type = types.Tuple((types.int64, types.boolean))

        def generate(context, builder, signature, arguments):
            pair = getattr(builder, f"{instruction}_with_overflow")(*arguments)
            parts = [builder.extract_value(pair, index) for index in range(2)]
            return context.make_tuple(builder, signature.return_type, parts)

        return result_type(types.int64, types.int64), generate

    return compute


add, subtract, multiply = _checked("sadd"), _checked("ssub"), _checked("smul")


@njit
def code_of(overflows):
    """What a function returns that found an overflow or none."""
    return OVERFLOW if overflows else 0


@njit
def combine(operation, u, v, out):
    """Out = u + v, u - v or u * v, by code; (n,) each."""
    overflows = False
    if operation == ADD:
        for i in range(out.size):
            out[i], found = add(u[i], v[i])
            overflows |= found
    elif operation == SUBTRACT:
        for i in range(out.size):
            out[i], found = subtract(u[i], v[i])
            overflows |= found
    else:
        for i in range(out.size):
            out[i], found = multiply(u[i], v[i])
            overflows |= found
    return code_of(overflows)


@njit
def scale(factor, u, out):
    """Out = factor * u; (n,) each."""
    overflows = False
    for i in range(out.size):
        out[i], found = multiply(factor, u[i])
        overflows |= found
    return code_of(overflows)


@njit
def outer(u, v, out):
    """out[i, j] = u[i] * v[j]; u: (m,), v: (n,), out: (m * n,) in C order."""
    code = 0
    for i in range(u.size):
        code |= scale(u[i], v, out[i * v.size : (i + 1) * v.size])
    return code


@njit
def dot(u, v, out):
    """out[0] = the sum of u[i] * v[i]; (n,) each."""
    out[0] = 0
    return add_line(out, 0, 0, u, 0, 1, v, 0, 1, u.size)


@njit
def add_scaled(w, factor, v):
    """W += factor * v; (n,) each."""
    overflows = False
    for i in range(w.size):
        product, too_large = multiply(factor, v[i])
        w[i], found = add(w[i], product)
        overflows |= too_large | found
    return code_of(overflows)


@njit
def add_line(w, at_w, in_w, u, at_u, in_u, v, at_v, in_v, extent):
    """w[at_w + i * in_w] += u[at_u + i * in_u] * v[at_v + i * in_v] for every i below extent."""
    if in_w == 1 and in_u == 0 and in_v == 1:
        return add_scaled(w[at_w : at_w + extent], u[at_u], v[at_v : at_v + extent])
    if in_w == 1 and in_u == 1 and in_v == 0:
        return add_scaled(w[at_w : at_w + extent], v[at_v], u[at_u : at_u + extent])
    overflows = False
    for i in range(extent):
        product, too_large = multiply(u[at_u + i * in_u], v[at_v + i * in_v])
        w[at_w + i * in_w], found = add(w[at_w + i * in_w], product)
        overflows |= too_large | found
    return code_of(overflows)


@njit
def identity_of(aggregate):
    """What folding nothing gives."""
    if aggregate == MAX:
        return _LEAST
    if aggregate == MIN:
        return _GREATEST
    return 1 if aggregate == PROD or aggregate == ALL else 0


@njit
def fold(aggregate, w, u):
    """Fold u into w element by element; (n,) each."""
    return fold_line(aggregate, w, 0, 1, u, w.size)


@njit
def fold_line(aggregate, w, at, stride, u, n):
    """Fold u[0:n] into w[at], w[at + stride], ...; stride 0 folds all into one element."""
    overflows = False
    if aggregate == SUM:
        for i in range(n):
            w[at + i * stride], found = add(w[at + i * stride], u[i])
            overflows |= found
    elif aggregate == PROD:
        for i in range(n):
            w[at + i * stride], found = multiply(w[at + i * stride], u[i])
            overflows |= found
    elif aggregate == MAX:
        for i in range(n):
            w[at + i * stride] = max(w[at + i * stride], u[i])
    elif aggregate == MIN:
        for i in range(n):
            w[at + i * stride] = min(w[at + i * stride], u[i])
    elif aggregate == ANY:
        for i in range(n):
            w[at + i * stride] = np.int64(w[at + i * stride] != 0 or u[i] != 0)
    else:
        for i in range(n):
            w[at + i * stride] = np.int64(w[at + i * stride] != 0 and u[i] != 0)
    return code_of(overflows)


@njit
def check_program(program, kinds):
    """Whether a program computes with whole literals and functions of integers alone: 0 or a code."""
    for position in range(1, program[0] + 1):
        taken, code = program[position] & 3, program[position] >> 2
        if taken == 0:
            if code >= _FIRST_CONSTANT and kinds[code - _FIRST_CONSTANT] != _WHOLE:
                return NOT_WHOLE
        elif not _has_integers(code):
            return NOT_OF_INTEGERS
    return 0


@njit
def _has_integers(code):
    if code <= _ABS:
        return code != _DIV
    return code == _SIGN or code == _RELU or _CONJ <= code <= _WHERE


@njit
def apply(code, taken, a, b, c):
    """Put function(a, b, c) into a, as many of them as it takes, element by element; 0 or a code."""
    if code == _ADD or code == _SUB or code == _MUL:
        return combine(code - _ADD, a, b, a)
    if code == _POW:
        return _raise(a, b)
    if code == _NEG or code == _ABS:
        return _negate(a, code == _ABS)
    if code == _WHERE:
        for i in range(a.size):
            a[i] = b[i] if a[i] != 0 else c[i]
    elif code == _NOT or code == _SIGN or code == _RELU or code == _CONJ:
        _apply_unary(code, a)
    else:
        _compare(code, a, b)
    return 0


@njit
def _apply_unary(code, a):
    if code == _NOT:
        for i in range(a.size):
            a[i] = np.int64(a[i] == 0)
    elif code == _SIGN:
        for i in range(a.size):
            a[i] = np.int64(a[i] > 0) - np.int64(a[i] < 0)
    elif code == _RELU:
        for i in range(a.size):
            a[i] = max(a[i], 0)


@njit
def _compare(code, a, b):
    for i in range(a.size):
        first, second = a[i], b[i]
        if code == _MIN:
            a[i] = min(first, second)
        elif code == _MAX:
            a[i] = max(first, second)
        else:
            a[i] = np.int64(_holds(code, first, second))


@njit
def _holds(code, a, b):
    if code == _OR:
        return a != 0 or b != 0
    if code == _AND:
        return a != 0 and b != 0
    if code == _EQ or code == _NE:
        return (a == b) == (code == _EQ)
    if code == _LT or code == _GE:
        return (a < b) == (code == _LT)
    return (a > b) == (code == _GT)


@njit
def _negate(a, negative_only):
    overflows = False
    for i in range(a.size):
        if a[i] < 0 or not negative_only:
            a[i], found = subtract(0, a[i])
            overflows |= found
    return code_of(overflows)


@njit
def _raise(a, b):
    overflows = False
    for i in range(a.size):
        if b[i] < 0:
            return NEGATIVE_EXPONENT
        a[i], found = _power(a[i], b[i])
        overflows |= found
    return code_of(overflows)


@njit
def _power(base, exponent):
    """The power of an exponent that is not negative, and whether it overflowed."""
    power, overflows = 1, False
    while exponent > 0:
        if exponent & 1 == 1:
            power, found = multiply(power, base)
            overflows |= found
        exponent >>= 1
        if exponent > 0:
            base, found = multiply(base, base)
            overflows |= found
    return power, overflows
