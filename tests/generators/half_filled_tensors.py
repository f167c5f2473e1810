"""Tensors of which half of the entries are the fill, and plans of EinSums over them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

DTYPES = ("float64", "float32", "int64", "complex128", "bool")

Array = NDArray[Any]


def half_filled(tensors: Mapping[str, str], bounds: Mapping[str, int], dtype: str, fill: float) -> dict[str, Array]:
    """Tensors with these labels, of which one row, and many entries, are the fill."""
    rng = np.random.default_rng(3)
    arrays = {}
    for name, labels in tensors.items():
        shape = tuple(bounds[label] for label in labels)
        values = rng.integers(-3, 4, shape).astype(dtype)
        if dtype == "complex128":
            values = values + 1j * rng.integers(1, 4, shape)
        values[rng.random(shape) < 0.5] = fill
        values[2] = fill
        arrays[name] = values
    return arrays


def plan_with_numpys_result(db: se.Database, text: str, keys: str, arrays: Mapping[str, Array], fill: float) -> se.Plan:
    """The plan of an EinSum, T, with promoted labels, after its result is compared with numpy's."""
    program = se.program(text)
    read = {tensor: arrays[tensor] for tensor in program.inputs}
    dtype = next(iter(read.values())).dtype.name
    if (dtype == "complex128" and "max" in text) or (dtype == "bool" and "-" in text):
        pytest.skip("numpy has no such operation")
    for tensor, array in read.items():
        db.tensor(tensor, array, fill=fill, dtype=dtype, promoted=["dim_0"])
    plan = db.plan(program, pin={"T": tuple(keys)}, layout="any")
    result, expected = db.run(plan, progress=False)["T"].to_numpy(), evaluate_program(program, read)["T"]
    np.testing.assert_allclose(result, expected, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-12)
    return plan
