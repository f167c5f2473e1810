"""Fixed, shifted and affine indices read what numpy's slices read, and labels range over the indices that exist."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.signal import correlate2d

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

Array = NDArray[Any]

_RNG = np.random.default_rng(3)
A = np.where(_RNG.random((5, 6)) < 0.6, _RNG.uniform(-2, 2, (5, 6)), 0)
V = np.arange(7.0) ** 2
CUBE = _RNG.uniform(-1, 1, (3, 4, 5))
W = _RNG.uniform(-1, 1, (2, 3))

STATEMENTS: list[tuple[str, Callable[[], Array]]] = [
    ("Y[j] = A[0, j] - A[-1, j]", lambda: A[0] - A[-1]),
    ("Y[] = A[2, -3]", lambda: A[2, -3]),
    ("Y[i] = v[i + 1] - v[i]", lambda: np.diff(V)),
    ("Y[i] = v[i + 1] + v[i] * v[i + 2]", lambda: V[1:-1] + V[:-2] * V[2:]),
    ("Y[i] = v[-1 - i]", lambda: V[::-1]),
    ("Y[i] = v[3 - i] * v[2*i]", lambda: V[3::-1] * V[::2]),
    ("Y[i] = v[2*i + 1] - v[2*i]", lambda: V[1::2] - V[:6:2]),
    ("Y[i] = A[i, i + 1]", lambda: np.diagonal(A, 1)),
    (
        "Y[i, k] = v[2*k] * A[i + k, -1 - k] for k < 2",
        lambda: np.array([V[:4:2] * A[[i, i + 1], [-1, -2]] for i in range(4)]),
    ),
    ("Y[i, k] = A[i + k, k + 3]", lambda: np.array([[A[i + k, k + 3] for k in range(3)] for i in range(3)])),
    (
        "Y[i, k, p] = v[k + 1] * A[i + k, k + 3] * A[i + p, p + 2]",
        lambda: np.array(
            [[[V[k + 1] * A[i + k, k + 3] * A[i + p, p + 2] for p in range(4)] for k in range(3)] for i in (0, 1)]
        ),
    ),
    ("Y[j, i] = A[i, j + 2] for j < 3", lambda: A[:, 2:5].T),
    ("tensor Y[i: 5, j: 3]; Y[i, j] = A[i, j + 2]", lambda: A[:, 2:5]),
    ("Y[i] = sum[j](A[i, j]) * max[j](A[i, j + 1]) for j < 3", lambda: A[:, :3].sum(1) * A[:, 1:4].max(1)),
    ("Y[i] = prod(A[i, j + 3] + ones(j: 2))", lambda: (A[:, 3:5] + 1).prod(1)),
    ("Y[i] = cumsum[i](v[i + 1]) / index(i: 3)", lambda: V[1:4].cumsum() / [0, 1, 2]),
    ("Y[i] = sum[j](A[i + 1, j] * A[i, j]) + last[j](A[i, j])", lambda: (A[1:] * A[:-1]).sum(1) + A[:-1, -1]),
    ("Y[i] = index(i) + sum(v[k + 5]) for i < 2", lambda: np.arange(2) + V[5:].sum()),
    ("Y[I:2, j] = A[I + 1, j]", lambda: A[1:]),
    ("Y[y, x] = sum(A[y + r, x + s] * W[r, s])", lambda: correlate2d(A, W, mode="valid")),
    (
        "Y[y, x] = max(A[2*y + r, x + 2*s]) for r < 3, s < 2",
        lambda: np.stack([_windows()[..., s] for s in (0, 2)]).max(0),
    ),
]


@pytest.mark.parametrize(
    "text",
    [
        "Y[i, j, k] = T[i, i + j] * T[k, j]",
        "Y[i, j, k] = B[i, 0 + 1*j, i + k] * B[i, -1 - k, k]",
        "Y[i, k, p] = C[-1 - k, i + 2*k] * A[k, i + 1] * A[-1 - k, i + p] for k < 2",
        "Y[i, k, p] = C[i + 1, k - p + 3] * C[k - p + 3, -1 - k] * C[i, i + p]",
    ],
)
def test_labels_have_the_same_bounds_in_the_text(text: str) -> None:
    """A statement that selects one index bounds its labels as the whole statement does, without further limits."""
    written = str(se.program(text))
    assert str(se.program(written)) == written


def _windows() -> Array:
    """The greatest of three rows, every second of them, in windows of three columns."""
    return sliding_window_view(sliding_window_view(A, 3, axis=0)[::2].max(-1), 3, axis=1)


@pytest.mark.parametrize(("text", "expected"), STATEMENTS, ids=[text for text, _ in STATEMENTS])
def test_values_are_those_of_slices(shared_db: se.Database, text: str, expected: Callable[[], Array]) -> None:
    for name, array in (("A", A), ("v", V), ("W", W)):
        shared_db.tensor(name, array)
    program = se.program(text)
    assert se.program(str(program)) == program
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(shared_db.run(program, nonfinite="allow")["Y"].to_numpy(), expected(), atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("float64", 0.0),
        ("float32", np.inf),
        ("float64", -np.inf),
        ("float64", 0.5),
        ("int64", 0),
        ("int64", 3),
        ("bool", False),
        ("bool", True),
        ("complex128", 0j),
    ],
)
def test_absent_entries_keep_the_fill(shared_db: se.Database, dtype: str, fill: Any) -> None:  # noqa: ANN401  # a number
    values = np.full((4, 3), fill, dtype)
    values[[1, 2, 3, 0], [0, 2, 1, 1]] = [5, 0, 1, 7]
    if dtype.startswith("float"):
        values[3, 2] = np.nan
    shared_db.tensor("X", values, fill=fill)
    result = shared_db.run("Y[i, j] = X[i + 1, j]\nZ[j] = X[-2, j]")
    for name, expected in (("Y", values[1:]), ("Z", values[2])):
        np.testing.assert_array_equal(result[name].to_numpy(), expected)
        assert result[name].to_numpy().dtype == np.dtype(dtype)
    assert fill in (0.5, 3) or result["Y"].fill == fill  # where it pays to keep the fill


def test_large_tensors_of_any_fill_stay_sparse(shared_db: se.Database) -> None:
    entries = ([[0, 1, 99_999], [5, 6, 7]], [1.0, 0.0, 3.0])
    shared_db.tensor("X", entries, shape=(100_000, 10_000), fill=0.5)
    result = shared_db.run("Y[i, j] = X[i + 1, j + 6]\nZ[j] = X[1, j]")
    assert result["Y"].fill == 0.5
    assert sorted(map(tuple, result["Y"].df().to_numpy().tolist())) == [(0, 0, 0), (99_998, 1, 3)]
    assert result["Z"].to_numpy()[[5, 6, 7]].tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_ranges_may_be_empty(shared_db: se.Database, count: int) -> None:
    shared_db.tensor("v", np.arange(3.0)[:count])
    result = shared_db.run("Y[i] = v[i + 1] - v[i]\nZ[] = sum(v[i + 1] * v[i])\nM[] = max(v[i + 1])", nonfinite="allow")
    assert result["Y"].to_numpy().tolist() == [1.0] * (count - 1)
    assert result["Z"].to_numpy() == 0
    assert result["M"].to_numpy() == (1 if count == 2 else -np.inf)


def test_a_step_of_a_cellular_automaton(shared_db: se.Database) -> None:
    cells = _RNG.random((9, 8)) < 0.4
    shared_db.tensor("C", cells)
    shared_db.tensor("ring", np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]]))
    life = """
        N[y, x] = sum(C[y + r, x + s] * ring[r, s])
        Y[y, x] = N[y, x] == 3 or N[y, x] == 2 and C[y + 1, x + 1]
    """
    neighbours = sliding_window_view(cells.astype(int), (3, 3)).sum((2, 3)) - cells[1:-1, 1:-1]
    expected = (neighbours == 3) | ((neighbours == 2) & cells[1:-1, 1:-1])
    np.testing.assert_array_equal(shared_db.run(life)["Y"].to_numpy(), expected)


def test_channels_and_batches(shared_db: se.Database) -> None:
    images, filters = _RNG.normal(size=(2, 5, 6, 3)), _RNG.normal(size=(2, 2, 3, 4))
    shared_db.tensor("X", images, promoted=["dim_0"])
    shared_db.tensor("F", filters)
    result = shared_db.run("Y[n, y, x, d] = sum(X[n, 2*y + r, x + s, c] * F[r, s, c, d])")["Y"].to_numpy()
    windows = sliding_window_view(images, (2, 2), axis=(1, 2))[:, ::2]
    np.testing.assert_allclose(result, np.einsum("nyxcrs,rscd->nyxd", windows, filters), atol=1e-12)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "Y[i] = v[i + 1] * u[i]",
            r"Y: with i < 7 as in u, the index i \+ 1 becomes 7 on axis 0 of v \(dim_0\), which has",
        ),
        (
            "Y[i] = v[i + 2] for i < 6",
            r"Y: with i < 6, the index i \+ 2 becomes 7 on axis 0 of v .*; write `for i < 5` after",
        ),
        ("Y[i] = v[2 - i] for i < 4", r"with i < 4, the index -i \+ 2 becomes -1 on axis 0 of v"),
        ("Y[i] = A[i + 1]", r"A\[axis0\] has 1 label, but tensor A has 2 axes: dim_0, dim_1"),
        ("Y[i] = v[i, 0, i + 1]", r"v is read at 2 indices or more, but has 1 axes: dim_0"),
        ("Y[j] = A[5, j]", r"there is no index 5 of axis 0 of A \(dim_0\), which has 5 indices"),
        ("Y[j] = A[-6, j]", r"there is no index -6 of axis 0 of A"),
        ("Y[i, k] = A[i, k + j] for j < 2", r"label j must be aggregated"),
        ("Y[i] = v[i + 1] + A[i, 0] for i < 9", r"with i < 9, the index i \+ 1 becomes 9"),
        (
            "Y[i, k] = sum[j](C[i, j, i]) * C[i + k, -1 - k, 1]",
            r"Y: with i < 3 as in C and k < 4 as in C, the index i \+ k becomes 5 on axis 0 of C \(dim_0\), which "
            r"has 3 indices; write `for k < 1` after the statement",
        ),
        (
            "Y[i, k] = A[i + 1, i + k] * A[k, i]",
            r"with i < 4.* and k < 5 as in A, the index i \+ k becomes 7 .*; write `for i < 2` after",
        ),
    ],
)
def test_indices_that_do_not_exist_are_refused(shared_db: se.Database, text: str, problem: str) -> None:
    for name, array in (("A", A), ("v", V), ("u", V), ("C", CUBE)):
        shared_db.tensor(name, array)
    with pytest.raises(se.SparseEinsumError, match=problem):
        shared_db.run(text)


@pytest.mark.engines("duckdb", reason="Python expressions are program text")
def test_python_expressions(db: se.Database) -> None:
    db.tensor("A", A)
    tensor = se.tensor("A")
    result = se.tensor("Y", {"i": 3, "j": 2})
    result["i", "j"] = tensor["i + 1", "2*j"] * tensor[0, np.int64(-1)] - tensor["-1 - i", "j"]
    expected = A[1:4, :4:2] * A[0, -1] - A[::-1][:3, :2]
    np.testing.assert_allclose(db.run(se.program(result))["Y"].to_numpy(), expected, atol=1e-12)
    assert repr(tensor["i + 1", 0]) == "A[i + 1, 0]"
    with pytest.raises(TypeError, match=r"is a slice, which needs a label; write A\['j \+ 2'\]"):
        tensor["i", 2:5]  # type: ignore[index]  # as users of numpy write it
    with pytest.raises(TypeError, match=r"1\.5 is no index"):
        tensor[1.5]  # type: ignore[index]
    with pytest.raises(se.ParseError, match=r"i \* j is no index"):
        tensor["i*j", 0]


def test_natural_keys_are_read_by_their_positions(shared_db: se.Database) -> None:
    days = ["1 mon", "2 tue", "3 wed", "4 thu"]
    shared_db.tensor("sales", pd.DataFrame({"day": days, "value": [3.0, 5.0, 4.0, 9.0]}), keys={"day": "weekday"})
    result = shared_db.run("Y[d] = sales[d + 1] - sales[d]\nZ[] = sales[-1]")
    assert result["Y"].to_numpy().tolist() == [2.0, -1.0, 5.0]
    assert result["Z"].to_numpy() == 9.0


def test_equivalence_is_refused() -> None:
    with pytest.raises(se.SemanticsError, match="Y_v reads shifted or fixed indices, for which no rules are known"):
        se.equivalent("Y[i] = v[i + 1] - v[i]", "Y[i] = v[i + 1] - v[i]")
