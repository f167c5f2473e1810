"""Operators: Python definitions of functions that numpy lacks, or has in another form."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sparseeinsum.operators.dtypes import Array


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-x)))


def relu(x: Array) -> Array:
    """The greater of `x` and 0; NaN stays NaN."""
    return np.maximum(x, 0)


def clip(x: Array, low: Array, high: Array) -> Array:
    """As numpy.clip, for any dtypes: at least `low`, then at most `high`."""
    return np.minimum(np.maximum(x, low), high)


def erf(x: Array) -> Array:
    """The error function of C, with the dtype that numpy gives such functions."""
    dtype = np.tanh(np.zeros(1, np.asarray(x).dtype)).dtype
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x)).astype(dtype)


def keeping_integers(function: Callable[..., Any]) -> Callable[..., Array]:
    """A numpy function that leaves integers and bools as they are, which numpy before 2.1 turns into floats."""

    def evaluate(x: Array) -> Array:
        return np.asarray(x) if np.asarray(x).dtype.kind in "biu" else np.asarray(function(x))

    return evaluate


def unchanged(x: Array) -> Array:
    """The argument itself."""
    return np.asarray(x)
