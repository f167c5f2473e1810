"""Arithmetic of int64 that never wraps: what leaves the range is found, and reported instead of a result.

Self-contained: numba and numpy only, no allocation, the same source for every host. Functions of arrays return
0 or a code, those of elements a value, or a value and 0 or a code; all run to their end, since loops without exits are
faster.
"""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

OVERFLOW = -61
NEGATIVE_EXPONENT = -62
NOT_WHOLE = -63
NOT_OF_INTEGERS = -64

_WHOLE, _FIRST_CONSTANT = 0, 2  # as in expression.py


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


_add, _subtract, _multiply = _checked("sadd"), _checked("ssub"), _checked("smul")


@njit
def code_of(overflows):
    """What a function returns that found an overflow or none."""
    return OVERFLOW if overflows else 0


@njit
def add(a, b):
    """A + b, and 0 or a code."""
    value, overflows = _add(a, b)
    return value, code_of(overflows)


@njit
def subtract(a, b):
    """A - b, and 0 or a code."""
    value, overflows = _subtract(a, b)
    return value, code_of(overflows)


@njit
def multiply(a, b):
    """A * b, and 0 or a code."""
    value, overflows = _multiply(a, b)
    return value, code_of(overflows)


@njit
def negate(a):
    """-a, and 0 or a code."""
    return subtract(0, a)


@njit
def size(a):
    """|a|, and 0 or a code."""
    return negate(a) if a < 0 else (a, 0)


@njit
def sign(a):
    """-1, 0 or 1."""
    return np.int64(a > 0) - np.int64(a < 0)


@njit
def remainder(a, b):
    """A - b * floor(a / b); 0 where b is 0, as numpy's."""
    return 0 if b == 0 or b == -1 else a % b  # the least int64 divided by -1 would be a trap


@njit
def power(base, exponent):
    """Base ^ exponent, and 0 or a code."""
    value, overflows = 1, False
    if exponent < 0:
        return value, NEGATIVE_EXPONENT
    while exponent > 0:
        if exponent & 1 == 1:
            value, found = _multiply(value, base)
            overflows |= found
        exponent >>= 1
        if exponent > 0:
            base, found = _multiply(base, base)
            overflows |= found
    return value, code_of(overflows)


@njit
def scale(factor, u, out):
    """Out = factor * u; (n,) each."""
    overflows = False
    for i in range(out.size):
        out[i], found = _multiply(factor, u[i])
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
        product, too_large = _multiply(factor, v[i])
        w[i], found = _add(w[i], product)
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
        product, too_large = _multiply(u[at_u + i * in_u], v[at_v + i * in_v])
        w[at_w + i * in_w], found = _add(w[at_w + i * in_w], product)
        overflows |= too_large | found
    return code_of(overflows)


@njit
def check_program(program, kinds, has):
    """Whether a program computes with whole literals and functions of integers alone: 0 or a code.

    kinds: of literals; has: whether integers have a function, by its code.
    """
    for position in range(1, program[0] + 1):
        taken, code = program[position] & 3, program[position] >> 2
        if taken == 0:
            if code >= _FIRST_CONSTANT and kinds[code - _FIRST_CONSTANT] != _WHOLE:
                return NOT_WHOLE
        elif code >= has.size or not has[code]:
            return NOT_OF_INTEGERS
    return 0
