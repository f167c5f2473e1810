"""Functions that kernels compute by polynomials are accurate to three units in the last place, in both dtypes."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se

Array = NDArray[np.floating]

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "log": np.log,
    "erf": np.vectorize(math.erf, otypes=[float]),
}
SPECIAL = (0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 88.7, 88.8, -87.4, -103.9, -104.0, 709.7, 709.8, -745.1, -746.0)


def arguments(dtype: str) -> Array:
    """Numbers of all sizes, of both signs, and special ones."""
    rng = np.random.default_rng(0)
    sizes = 10 ** rng.uniform(-8, 3, 20_000)
    near_one = 1 + rng.normal(0, 0.1, 5_000)
    information = np.finfo(dtype)
    limits = [information.max, information.smallest_normal, information.smallest_normal / 4]
    return np.concatenate([sizes, -sizes, near_one, -near_one, limits, SPECIAL]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_three_units_in_the_last_place(shared_db: se.Database, name: str, dtype: str) -> None:
    x = arguments(dtype)
    shared_db.tensor("X", x, dtype=dtype)
    actual = shared_db.run(f"Y[i] = {name}(X[i])", nonfinite="allow")["Y"].to_numpy()
    assert actual.dtype == dtype
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name](x.astype(np.longdouble))
        expected = exact.astype(dtype)
    is_exact = ~np.isfinite(expected)
    np.testing.assert_array_equal(actual[is_exact], expected[is_exact])
    if name == "sigmoid":  # exp overflows first, as in numpy
        is_exact |= exact < 1 / np.longdouble(np.finfo(dtype).max)
    error = np.abs(actual[~is_exact] - exact[~is_exact]) / np.spacing(np.abs(expected[~is_exact]))
    assert error.max() <= 3
