"""Operators: functions that numpy has in another form, or not at all: what defines them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sparseeinsum.operators.dtypes import Array


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-x)))


def relu(x: Array) -> Array:
    """What is less than 0 becomes 0; NaN stays."""
    return np.maximum(x, 0)


def clip(x: Array, low: Array, high: Array) -> Array:
    """As numpy.clip, of any dtypes: at least `low`, then at most `high`."""
    return np.minimum(np.maximum(x, low), high)


def erf(x: Array) -> Array:
    """The error function of C, of the dtype that numpy gives such functions."""
    dtype = np.tanh(np.zeros(1, np.asarray(x).dtype)).dtype
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x)).astype(dtype)


def of_fractions(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function of numpy that leaves whole numbers as they are, which numpy before 2.1 makes floats."""

    def evaluate(x: Array) -> Array:
        return np.asarray(x) if np.asarray(x).dtype.kind in "biu" else np.asarray(function(x))

    return evaluate
