"""Arithmetic of int64 that never wraps: an overflow is reported as an error.

Self-contained: numba and numpy only, no allocation, the same source for every host. Functions of arrays return 0 or a
code; functions of elements return a value, or a value and a code. Loops run to the end even after an error, because
loops without exits are faster.
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
    """Make a function of two int64 that returns the wrapped result of an instruction, and whether it overflowed."""

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
    """Return the code for an overflow, 0 for none."""
    return OVERFLOW if overflows else 0


@njit
def add(a, b):
    """Return a + b, and 0 or a code."""
    value, overflows = _add(a, b)
    return value, code_of(overflows)


@njit
def subtract(a, b):
    """Return a - b, and 0 or a code."""
    value, overflows = _subtract(a, b)
    return value, code_of(overflows)


@njit
def multiply(a, b):
    """Return a * b, and 0 or a code."""
    value, overflows = _multiply(a, b)
    return value, code_of(overflows)


@njit
def negate(a):
    """Return -a, and 0 or a code."""
    return subtract(0, a)


@njit
def size(a):
    """Return |a|, and 0 or a code."""
    return negate(a) if a < 0 else (a, 0)


@njit
def sign(a):
    """Return -1, 0 or 1, the sign of a."""
    return np.int64(a > 0) - np.int64(a < 0)


@njit
def remainder(a, b):
    """Return a - b * floor(a / b), and 0 if b is 0, as numpy does."""
    return 0 if b == 0 or b == -1 else a % b  # the processor traps if it divides the least int64 by -1


@njit
def power(base, exponent):
    """Return base ^ exponent, and 0 or a code."""
    value, overflows = 1, False
    if exponent < 0:
        return value, NEGATIVE_EXPONENT
    while exponent > 0:
        if exponent & 1 == 1:
            value, overflow = _multiply(value, base)
            overflows |= overflow
        exponent >>= 1
        if exponent > 0:
            base, overflow = _multiply(base, base)
            overflows |= overflow
    return value, code_of(overflows)


@njit
def scale(factor, u, out):
    """Write factor * u to out; u and out: (n,)."""
    overflows = False
    for i in range(out.size):
        out[i], overflow = _multiply(factor, u[i])
        overflows |= overflow
    return code_of(overflows)


@njit
def outer(u, v, out):
    """Write u[i] * v[j] to out[i, j]; u: (m,), v: (n,), out: (m * n,) in C order."""
    code = 0
    for i in range(u.size):
        code |= scale(u[i], v, out[i * v.size : (i + 1) * v.size])
    return code


@njit
def dot(u, v, out):
    """Write the sum of u[i] * v[i] to out[0]; u and v: (n,)."""
    out[0] = 0
    return add_line(out, 0, 0, u, 0, 1, v, 0, 1, u.size)


@njit
def scaled_dot(factor, u, v, out):
    """Write the sum of factor * u[i] * v[i] to out[0]; u and v: (n,)."""
    total, overflows = 0, False
    for i in range(u.size):
        scaled, scaled_overflow = _multiply(factor, u[i])
        product, product_overflow = _multiply(scaled, v[i])
        total, sum_overflow = _add(total, product)
        overflows |= scaled_overflow | product_overflow | sum_overflow
    out[0] = total
    return code_of(overflows)


@njit
def add_scaled(w, factor, v):
    """Add factor * v to w; v and w: (n,)."""
    overflows = False
    for i in range(w.size):
        product, product_overflow = _multiply(factor, v[i])
        w[i], sum_overflow = _add(w[i], product)
        overflows |= product_overflow | sum_overflow
    return code_of(overflows)


@njit
def add_scaled_product(w, factor, u, v):
    """Add factor * u * v to w, element by element; u, v and w: (n,)."""
    overflows = False
    for i in range(w.size):
        scaled, scaled_overflow = _multiply(factor, u[i])
        product, product_overflow = _multiply(scaled, v[i])
        w[i], sum_overflow = _add(w[i], product)
        overflows |= product_overflow | scaled_overflow | sum_overflow
    return code_of(overflows)


@njit
def add_line(w, offset_w, stride_w, u, offset_u, stride_u, v, offset_v, stride_v, extent):
    """Add u[offset_u + i * stride_u] * v[offset_v + i * stride_v] to w[offset_w + i * stride_w] for i < extent."""
    if stride_w == 1 and stride_u == 0 and stride_v == 1:
        return add_scaled(w[offset_w : offset_w + extent], u[offset_u], v[offset_v : offset_v + extent])
    if stride_w == 1 and stride_u == 1 and stride_v == 0:
        return add_scaled(w[offset_w : offset_w + extent], v[offset_v], u[offset_u : offset_u + extent])
    overflows = False
    for i in range(extent):
        product, product_overflow = _multiply(u[offset_u + i * stride_u], v[offset_v + i * stride_v])
        w[offset_w + i * stride_w], sum_overflow = _add(w[offset_w + i * stride_w], product)
        overflows |= product_overflow | sum_overflow
    return code_of(overflows)


@njit
def check_program(program, kinds, has):
    """Return 0 if a program has only whole literals and functions of integers, else a code.

    Args:
        program: The program, as in expression.py.
        kinds: The kinds of its literals.
        has: By code of a function, whether integers have it.
    """
    for position in range(1, program[0] + 1):
        operands, code = program[position] & 3, program[position] >> 2
        if operands == 0:
            if code >= _FIRST_CONSTANT and kinds[code - _FIRST_CONSTANT] != _WHOLE:
                return NOT_WHOLE
        elif code >= has.size or not has[code]:
            return NOT_OF_INTEGERS
    return 0
