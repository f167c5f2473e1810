"""Shifted indices that are read as parts of arrays give what numpy's slices give, in every layout and plan."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

Array = NDArray[Any]
AXES = ("dim_0", "dim_1", "dim_2")
LAYOUTS = [axes for count in range(4) for axes in itertools.combinations(AXES, count)]
PLANS = 4  # of each program and layout

STATEMENTS: dict[str, Callable[[Array], Array]] = {
    "Y[i, j, k] = X[i, j + 1, k]": lambda x: x[:, 1:],
    "Y[i, j, k] = X[i, j, k + 2]": lambda x: x[:, :, 2:],
    "Y[i, j, k] = X[i + 1, j, k] for j < 3": lambda x: x[1:, :3],
    "Y[k, j, i] = X[i + 1, j, k]": lambda x: x[1:].T,
    "Y[i, j, r, k] = X[i, j + r, k + 1] for r < 2": lambda x: sliding_window_view(x, 2, axis=1)[:, :, 1:].swapaxes(
        2, 3
    ),
    "Y[i, j, k] = X[i, 2 - j, 2*k]": lambda x: x[:, 2::-1, ::2],
    "Y[i, k] = X[i, i + 1, k + 1]": lambda x: x[[0, 1, 2], [1, 2, 3], 1:],
    "Y[j, k] = X[1, j + 1, k]": lambda x: x[1, 1:],
    "Y[i, k] = X[i, -1, k]": lambda x: x[:, -1],
    "Y[k] = X[2, 0, k + 1]": lambda x: x[2, 0, 1:],
}
DTYPES: list[tuple[str, Any]] = [
    ("float64", 0.0),
    ("float64", -np.inf),
    ("float32", 0.5),
    ("int64", 0),
    ("int64", 3),
    ("bool", False),
    ("bool", True),
    ("complex128", 0j),
]


def values_of(dtype: str, fill: Any) -> Array:  # noqa: ANN401  # a number
    """Numbers of which half are the fill; those of floating point also have NaN and infinity."""
    rng = np.random.default_rng(5)
    values = np.full((3, 4, 5), fill, dtype)
    entries = rng.integers(-3, 4, values.shape) + (1j * rng.integers(-3, 4, values.shape) if dtype[0] == "c" else 0)
    values = np.where(rng.random(values.shape) < 0.5, entries.astype(dtype), values)
    values[1, 2] = fill  # an array without entries
    if dtype.startswith("float"):
        values[0, 1, 3], values[2, 3, 1] = np.nan, np.inf
    return values


@pytest.mark.parametrize(("dtype", "fill"), DTYPES)
@pytest.mark.parametrize("text", STATEMENTS)
def test_every_layout_and_plan_gives_slices(shared_db: se.Database, text: str, dtype: str, fill: Any) -> None:  # noqa: ANN401
    values = values_of(dtype, fill)
    first = list(STATEMENTS).index(text) + DTYPES.index((dtype, fill))
    for layout in (LAYOUTS[0], *(LAYOUTS[(first + step) % len(LAYOUTS)] for step in (1, 4))):
        shared_db.tensor("X", values, fill=fill, promoted=layout)
        for plan in shared_db.plan(text, top=PLANS, nonfinite="allow"):
            result = shared_db.run(plan)["Y"].to_numpy()
            np.testing.assert_array_equal(result, STATEMENTS[text](values), err_msg=f"{layout}: {plan}")


@pytest.mark.parametrize("shape", [(6, 7), (1, 7), (6, 2), (2, 2)])
def test_convolutions_of_every_layout_and_plan(shared_db: se.Database, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    image, weights = rng.integers(-2, 3, shape).astype(float), rng.integers(1, 4, (1, 2)).astype(float)
    windows = sliding_window_view(image, weights.shape)
    shared_db.tensor("W", weights)
    for layout in ((), ("dim_0",), ("dim_1",), ("dim_0", "dim_1")):
        shared_db.tensor("X", image, promoted=layout)
        for plan in shared_db.plan("Y[y, x] = sum(X[y + r, x + s] * W[r, s])", top=PLANS):
            result = shared_db.run(plan)["Y"].to_numpy()
            np.testing.assert_array_equal(
                result, np.einsum("yxrs,rs->yx", windows, weights), err_msg=f"{layout}: {plan}"
            )


@pytest.mark.engines("duckdb", reason="its costs")
def test_images_are_read_in_slices(db: se.Database) -> None:
    rng = np.random.default_rng(1)
    db.tensor("X", rng.normal(size=(300, 300)))
    db.tensor("W", rng.normal(size=(3, 3)))
    text = db.plan("Y[y, x] = sum(X[y + r, x + s] * W[r, s])").sql()
    assert "v.val[u.val + 1:u.val + 298]" in text
    assert "tensor_reduce" not in text
