"""Arithmetic and functions of complex numbers, with the results of numpy, made from functions of real numbers.

Self-contained: numba and numpy only, no allocation, the same source for every host. Sums and products are computed in
the arrays' dtype, complex128 or complex64, everything else in complex128.
"""

import math

import numpy as np
from numba import njit

NOT_OF_COMPLEX = -71

BLOCK = 128  # elements for which an expression is evaluated at a time
_IMAGINARY = 2  # as in expression.py

_LARGE, _SMALL = 2.0**1000, 2.0**-900  # beyond these, squares and sums of parts leave the range of float64
_UP, _DOWN = 2.0**200, 2.0**-200  # factors that bring numbers back into range; their roots are powers of 2, too
_LARGEST_EXPONENT = 700.0  # exp is finite up to a little more
_SATURATED = 22.0  # tanh of larger numbers is 1
_MULTIPLIED = 100  # numpy multiplies for whole exponents below this, and uses logarithms for others


@njit
def multiply(a, b):
    """Return a * b by the plain formula, in the dtype of a and b."""
    return complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


@njit
def divide(a, b):
    """Return a / b by Smith's formula, which divides by the larger part of b first."""
    a, b = np.complex128(a), np.complex128(b)
    if abs(b.real) >= abs(b.imag):
        if b.real == 0 and b.imag == 0:
            return complex(a.real / abs(b.real), a.imag / abs(b.real))
        ratio = b.imag / b.real
        factor = 1 / (b.real + b.imag * ratio)
        return complex((a.real + a.imag * ratio) * factor, (a.imag - a.real * ratio) * factor)
    ratio = b.real / b.imag
    factor = 1 / (b.imag + b.real * ratio)
    return complex((a.real * ratio + a.imag) * factor, (a.imag * ratio - a.real) * factor)


@njit
def size_of(z):
    """Return |z| without intermediate overflow."""
    z = np.complex128(z)
    return math.hypot(z.real, z.imag)


@njit
def sign(z):
    """Return z / |z|, and 0 for 0; if one part is infinite, its direction."""
    z = np.complex128(z)
    size = size_of(z)
    if size == 0:
        return complex(0.0, 0.0)
    if math.isinf(size) and math.isinf(z.real) != math.isinf(z.imag):
        return complex(_direction(z.real), _direction(z.imag))
    return complex(z.real / size, z.imag / size)


@njit
def _direction(part):
    return math.copysign(1.0, part) if math.isinf(part) else 0.0


@njit
def exponential(z):
    """Return exp(z)."""
    z = np.complex128(z)
    if z.imag == 0:
        return complex(math.exp(z.real), z.imag)
    if math.isinf(z.real) and not math.isfinite(z.imag):
        return complex(0.0, 0.0) if z.real < 0 else complex(math.inf, math.nan)
    if z.real > _LARGEST_EXPONENT:  # a small cosine or sine may bring the result back into range
        half = math.exp(z.real / 2)
        return complex(half * math.cos(z.imag) * half, half * math.sin(z.imag) * half)
    size = math.exp(z.real)
    return complex(size * math.cos(z.imag), size * math.sin(z.imag))


@njit
def logarithm(z):
    """Return the principal value of log(z)."""
    z = np.complex128(z)
    return complex(_log_of_size(z), math.atan2(z.imag, z.real))


@njit
def _log_of_size(z):
    if not (math.isfinite(z.real) and math.isfinite(z.imag)):
        return math.log(size_of(z))
    larger, smaller = max(abs(z.real), abs(z.imag)), min(abs(z.real), abs(z.imag))
    if larger > _LARGE:
        return math.log(math.hypot(z.real * _DOWN, z.imag * _DOWN)) - math.log(_DOWN)
    if 0 < larger < _SMALL:
        return math.log(math.hypot(z.real * _UP, z.imag * _UP)) - math.log(_UP)
    if 0.5 < larger < 2:  # near |z| = 1 the logarithm is small: the rounding of |z| would be a large error
        return 0.5 * math.log1p((larger - 1) * (larger + 1) + smaller * smaller)
    return math.log(size_of(z))


@njit
def square_root(z):
    """Return the principal value of sqrt(z)."""
    z = np.complex128(z)
    if z.real == 0 and z.imag == 0:
        return complex(0.0, z.imag)
    if math.isinf(z.imag):
        return complex(math.inf, z.imag)
    if math.isnan(z.real):
        return complex(z.real, math.nan)
    if math.isinf(z.real):
        rest = z.imag - z.imag  # NaN or 0
        if z.real < 0:
            return complex(abs(rest), math.copysign(z.real, z.imag))
        return complex(z.real, math.copysign(rest, z.imag))
    larger = max(abs(z.real), abs(z.imag))
    if larger > _LARGE:
        return _finite_root(complex(z.real * _DOWN, z.imag * _DOWN), math.sqrt(_UP))
    if larger < _SMALL:
        return _finite_root(complex(z.real * _UP, z.imag * _UP), math.sqrt(_DOWN))
    return _finite_root(z, 1.0)


@njit
def _finite_root(z, scale):
    root = math.sqrt((abs(z.real) + size_of(z)) * 0.5)
    if z.real >= 0:
        return complex(scale * root, scale * (z.imag / (2 * root)))
    return complex(scale * (abs(z.imag) / (2 * root)), scale * math.copysign(root, z.imag))


@njit
def hyperbolic_tangent(z):
    """Return tanh(z), by Kahan's formula."""
    z = np.complex128(z)
    if math.isinf(z.real):
        turn = z.imag if math.isinf(z.imag) else math.sin(z.imag) * math.cos(z.imag)
        return complex(math.copysign(1.0, z.real), math.copysign(0.0, turn))
    if math.isnan(z.real) or not math.isfinite(z.imag):
        real = z.real if z.real == 0 else math.nan
        return complex(real, z.imag if z.imag == 0 else math.nan)
    if abs(z.real) > _SATURATED:
        small = math.exp(-abs(z.real))
        return complex(math.copysign(1.0, z.real), 4 * math.sin(z.imag) * math.cos(z.imag) * small * small)
    tangent, sine = math.tan(z.imag), math.sinh(z.real)
    beta = 1 + tangent * tangent
    divisor = 1 + beta * sine * sine
    return complex(beta * math.sqrt(1 + sine * sine) * sine / divisor, tangent / divisor)


@njit
def tangent(z):
    """Return tan(z), from tanh(iz)."""
    turned = hyperbolic_tangent(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


@njit
def sigmoid(z):
    """Return 1 / (1 + exp(-z))."""
    z = np.complex128(z)
    return divide(complex(1.0, 0.0), complex(1.0, 0.0) + exponential(-z))


@njit
def power(a, b):
    """Return a ^ b: by multiplication for small whole exponents, by logarithms for others."""
    a, b = np.complex128(a), np.complex128(b)
    if b.real == 0 and b.imag == 0:
        return complex(1.0, 0.0)
    if a.real == 0 and a.imag == 0:
        return complex(0.0, 0.0) if b.real > 0 else complex(math.nan, math.nan)
    if b.imag == 0 and abs(b.real) < _MULTIPLIED and b.real == math.floor(b.real):
        repeated = _whole_power(a, np.int64(abs(b.real)))
        return repeated if b.real > 0 else divide(complex(1.0, 0.0), repeated)
    return exponential(multiply(b, logarithm(a)))


@njit
def _whole_power(a, times):
    square = a
    while times & 1 == 0:
        square, times = multiply(square, square), times >> 1
    product = square
    while times > 1:
        square, times = multiply(square, square), times >> 1
        if times & 1 == 1:
            product = multiply(product, square)
    return product


@njit
def scale(factor, u, out):
    """Write factor * u to out; u and out: (n,), one dtype."""
    for i in range(out.size):
        out[i] = multiply(factor, u[i])
    return 0


@njit
def outer(u, v, out):
    """Write u[i] * v[j] to out[i, j]; u: (m,), v: (n,), out: (m * n,) in C order."""
    for i in range(u.size):
        scale(u[i], v, out[i * v.size : (i + 1) * v.size])
    return 0


@njit
def dot(u, v, out):
    """Write the sum of u[i] * v[i] to out[0]; u and v: (n,), one dtype."""
    out[0] = 0
    return add_line(out, 0, 0, u, 0, 1, v, 0, 1, u.size)


@njit
def add_scaled(w, factor, v):
    """Add factor * v to w; v and w: (n,), one dtype."""
    for i in range(w.size):
        w[i] += multiply(factor, v[i])
    return 0


@njit
def add_line(w, offset_w, stride_w, u, offset_u, stride_u, v, offset_v, stride_v, extent):
    """Add u[offset_u + i * stride_u] * v[offset_v + i * stride_v] to w[offset_w + i * stride_w] for i < extent."""
    for i in range(extent):
        w[offset_w + i * stride_w] += multiply(u[offset_u + i * stride_u], v[offset_v + i * stride_v])
    return 0


@njit
def count_not_finite(u, fill):
    """Return the number of elements with a part that is NaN or infinite; an infinite fill does not count."""
    count = 0
    for i in range(u.size):
        count += not (math.isfinite(u[i].real) and math.isfinite(u[i].imag)) and u[i] != fill
    return count


@njit
def from_real(u, out):
    """Write u with imaginary parts 0 to out; u and out: (n,)."""
    for i in range(u.size):
        out[i] = complex(u[i], 0)


@njit
def real_parts(u, out):
    """Write the real parts of u to out; u and out: (n,)."""
    for i in range(u.size):
        out[i] = u[i].real


@njit
def imaginary_parts(u, out):
    """Write the imaginary parts of u to out; u and out: (n,)."""
    for i in range(u.size):
        out[i] = u[i].imag


@njit
def check_program(program, has):
    """Return 0 if complex numbers have all functions of a program, else a code; has: by code, whether they have one."""
    for position in range(1, program[0] + 1):
        operands, code = program[position] & 3, program[position] >> 2
        if operands > 0 and (code >= has.size or not has[code]):
            return NOT_OF_COMPLEX
    return 0


@njit
def constant(constants, kinds, index):
    """Return the value of a literal, as a complex128."""
    value = constants[1 + index]
    return complex(0.0, value) if kinds[index] == _IMAGINARY else complex(value, 0.0)
