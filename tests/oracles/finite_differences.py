"""Gradients and tangents by central differences of what programs compute on dense arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]
STEP = 1e-6


def numeric_gradient(program: se.Program, of: str, by: str, inputs: Mapping[str, Array]) -> Array:
    """The gradient of the scalar `of` by the input `by`."""
    gradient = np.zeros(inputs[by].shape)
    for index in np.ndindex(gradient.shape):
        change = np.zeros(gradient.shape)
        change[index] = 1
        gradient[index] = numeric_tangent(program, of, {by: change}, inputs)
    return gradient


def numeric_tangent(program: se.Program, of: str, changes: Mapping[str, Array], inputs: Mapping[str, Array]) -> Array:
    """What the changes of inputs add to the result `of`, per unit."""
    ahead, behind = (
        evaluate_program(
            program, {**inputs, **{name: inputs[name] + sign * STEP * change for name, change in changes.items()}}
        )[of]
        for sign in (1, -1)
    )
    return np.asarray((ahead - behind) / (2 * STEP))
