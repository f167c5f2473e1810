"""Operators: the inverse of the normal distribution function, the same to the bit in numpy, in kernels and in SQL.

It adds, multiplies, divides and takes square roots, which IEEE 754 defines to the last bit, in an order that is written
down here. The approximation is algorithm AS 241, function PPND16, with a relative error of about 1e-16 (Wichura: The
percentage points of the normal distribution; Applied Statistics 37, 1988).
"""

import math

import numpy as np

from sparseeinsum.operators.dtypes import Array

# Numerators and denominators of the fractions, from the highest power down.
CENTRAL = 0.425
CENTRAL_ABOVE = (
    *(2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4),
    *(1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080),
)
CENTRAL_BELOW = (
    *(5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4),
    *(5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)
TAIL_ABOVE = (
    *(7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258),
    *(3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734),
)
TAIL_BELOW = (
    *(1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1),
    *(6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0),
)
FAR_TAIL_ABOVE = (
    *(2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2),
    *(2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720),
)
FAR_TAIL_BELOW = (
    *(2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4),
    *(1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)
LN_2 = math.log(2)
SQRT_HALF = math.sqrt(0.5)
# The logarithm of m is 2 s (1 + s^2 / 3 + s^4 / 5 + ...) with s = (m - 1) / (m + 1).
LOGARITHM = tuple(1 / (2 * power + 1) for power in range(10, -1, -1))


def normal_quantile(u: float) -> float:
    """The number below which a standard normal random number lies with probability u; NaN if u is no probability.

    Kernels compile this function, which is why it calls none.
    """
    u = float(u)
    if not 0 < u < 1:
        return -math.inf if u == 0 else math.inf if u == 1 else math.nan
    distance = u - 0.5
    if abs(distance) <= CENTRAL:
        argument, factor, above, below = 0.180625 - distance * distance, distance, CENTRAL_ABOVE, CENTRAL_BELOW
    else:
        mantissa = u if distance < 0 else 1 - u
        exponent, factor = 0.0, -1.0 if distance < 0 else 1.0
        while mantissa < SQRT_HALF:
            mantissa *= 2
            exponent -= 1
        ratio = (mantissa - 1) / (mantissa + 1)
        square, series = ratio * ratio, 0.0
        for coefficient in LOGARITHM:
            series = series * square + coefficient
        root = math.sqrt(-(exponent * LN_2 + 2 * ratio * series))
        argument, above, below = root - 1.6, TAIL_ABOVE, TAIL_BELOW
        if root > 5:
            argument, above, below = root - 5, FAR_TAIL_ABOVE, FAR_TAIL_BELOW
    numerator, denominator = 0.0, 0.0
    for coefficient in above:
        numerator = numerator * argument + coefficient
    for coefficient in below:
        denominator = denominator * argument + coefficient
    return factor * numerator / denominator


def normal_quantiles(u: Array) -> Array:
    """`normal_quantile` of every element, with the dtype that numpy gives such functions."""
    dtype = np.tanh(np.zeros(1, np.asarray(u).dtype)).dtype
    with np.errstate(all="ignore"):
        return np.asarray(np.vectorize(normal_quantile, otypes=[np.float64])(u)).astype(dtype)
