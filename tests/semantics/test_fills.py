"""Functions, reductions and products of tensors with any fill give numpy's values and the right fill."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se

Array = NDArray[Any]

OPTIMIZERS = ("dp", "relational", "dense")


def sparse(shape: tuple[int, ...], fill: float, seed: int = 0, dtype: str = "float64") -> Array:
    """Small numbers, with the fill in most positions and in all of the first slice."""
    rng = np.random.default_rng((seed, *shape))
    values = rng.integers(-4, 5, shape) / (1 if dtype == "int64" else 2)
    array = np.where(rng.random(shape) < 0.3, values, fill).astype(dtype)
    array[0] = fill
    return array


def load(db: se.Database, name: str, array: Array, fill: float) -> None:
    db.tensor(name, array, fill=fill, promoted=[f"dim_{axis}" for axis in range(array.ndim)])


UNARY: dict[str, Callable[[Array], Any]] = {
    "-U[i, j]": lambda u: -u,
    "abs(U[i, j])": np.abs,
    "exp(U[i, j])": np.exp,
    "sign(U[i, j]) + 1": lambda u: np.sign(u) + 1,
    "relu(U[i, j])": lambda u: np.maximum(u, 0),
    "sigmoid(U[i, j])": lambda u: 1 / (1 + np.exp(-u)),
    "tanh(U[i, j])": np.tanh,
    "sqrt(abs(U[i, j]))": lambda u: np.sqrt(np.abs(u)),
    "U[i, j] ^ 2": lambda u: u**2,
    "2 ^ U[i, j]": lambda u: 2**u,
    "U[i, j] > 0.25": lambda u: u > 0.25,
    "not U[i, j]": np.logical_not,
    "where(U[i, j] == 0, 7.0, U[i, j])": lambda u: np.where(u == 0, 7.0, u),
    "1 / (abs(U[i, j]) + 1)": lambda u: 1 / (np.abs(u) + 1),
}
BINARY: dict[str, Callable[[Array, Array], Any]] = {
    "U[i, j] + V[i, j]": np.add,
    "U[i, j] - V[i, j]": np.subtract,
    "U[i, j] * V[i, j]": np.multiply,
    "U[i, j] / (V[i, j] ^ 2 + 1)": lambda u, v: u / (v**2 + 1),
    "max(U[i, j], V[i, j])": np.maximum,
    "min(U[i, j], V[i, j])": np.minimum,
    "U[i, j] == V[i, j]": np.equal,
    "U[i, j] < V[i, j]": np.less,
    "U[i, j] >= V[i, j]": np.greater_equal,
    "U[i, j] and V[i, j]": np.logical_and,
    "U[i, j] or V[i, j]": np.logical_or,
    "(U[i, j] - V[i, j]) ^ 2": lambda u, v: (u - v) ** 2,
    "where(U[i, j] > 0, U[i, j], V[i, j])": lambda u, v: np.where(u > 0, u, v),
    "exp(U[i, j] - V[i, j])": lambda u, v: np.exp(u - v),
    "U[i, j] + V[j, i]": lambda u, v: u + v.T,
    "U[i, j] * sum(V[i, k])": lambda u, v: u * v.sum(1, keepdims=True),
}


def check(db: se.Database, body: str, labels: str, expected: Any) -> None:  # noqa: ANN401  # an array or a number of numpy
    """Assert numpy's result for all optimizers; delivered entries are those that differ from the fill."""
    expected = np.asarray(expected)
    for optimizer in OPTIMIZERS:
        result = db.run(f"W[{labels}] = {body}", optimizer=optimizer)["W"]
        actual = result.to_numpy()
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        tolerance = 1e-5 if expected.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("fill", "dtype"), [(0, "float64"), (1, "float64"), (-0.5, "float32"), (2, "int64")])
@pytest.mark.parametrize("body", UNARY)
def test_functions_of_one_operand(shared_db: se.Database, body: str, fill: float, dtype: str) -> None:
    if dtype == "int64" and body == "2 ^ U[i, j]":
        pytest.skip("numpy refuses negative powers of whole numbers")
    u = sparse((4, 5), fill, dtype=dtype)
    load(shared_db, "U", u, fill)
    with np.errstate(all="ignore"):
        expected = np.asarray(UNARY[body](u))
    check(shared_db, body, "i, j", expected)
    result = shared_db.run(f"W[i, j] = {body}")["W"]
    assert result.fill == expected[0, 0]
    assert result.rows.num_rows <= np.count_nonzero(u != fill)


@pytest.mark.parametrize(
    ("fills", "dtypes"),
    [
        ((0, 0), ("float64", "float64")),
        ((1, 0), ("float64", "float32")),
        ((-0.5, 2), ("float32", "float64")),
        ((3, 1), ("int64", "int64")),
    ],
)
@pytest.mark.parametrize("body", BINARY)
def test_functions_of_two_operands(
    shared_db: se.Database, body: str, fills: tuple[float, float], dtypes: tuple[str, str]
) -> None:
    u, v = (sparse((5, 5), fill, seed, dtype) for seed, (fill, dtype) in enumerate(zip(fills, dtypes, strict=True)))
    load(shared_db, "U", u, fills[0])
    load(shared_db, "V", v, fills[1])
    with np.errstate(all="ignore"):
        expected = np.asarray(BINARY[body](u, v))
    check(shared_db, body, "i, j", expected)


FOLDS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
    "logsumexp": lambda u, axis: np.log(np.exp(u.astype(float)).sum(axis)),
    "mean": np.mean,
    "var": np.var,
    "norm": lambda u, axis: np.sqrt((np.abs(u) ** 2.0).sum(axis)),
}


@pytest.mark.parametrize("axes", [axes for count in (1, 2, 3) for axes in itertools.combinations(range(3), count)])
@pytest.mark.parametrize(("fill", "dtype"), [(0, "float64"), (1.5, "float64"), (-1, "int64"), (1, "bool")])
@pytest.mark.parametrize("fold", FOLDS)
def test_reductions(shared_db: se.Database, fold: str, fill: float, dtype: str, axes: tuple[int, ...]) -> None:
    u = sparse((3, 4, 2), fill, dtype=dtype)
    load(shared_db, "U", u, fill)
    remaining = ", ".join(label for axis, label in enumerate("ijk") if axis not in axes)
    result = shared_db.run(f"W[{remaining}] = {fold}(U[i, j, k])")["W"].to_numpy()
    expected = np.asarray(FOLDS[fold](u, axis=axes))
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fills", [(0, 0, 0), (1, 0, -2), (0, 3, 0.5)])
def test_where(shared_db: se.Database, fills: tuple[float, float, float]) -> None:
    c, u, v = (sparse((4, 4), fill, seed) for seed, fill in enumerate(fills))
    for name, array, fill in zip("CUV", (c, u, v), fills, strict=True):
        load(shared_db, name, array, fill)
    check(shared_db, "where(C[i, j] > 0, U[i, j], V[i, j])", "i, j", np.where(c > 0, u, v))
    check(shared_db, "where(C[i, j], U[j, i], 0.0)", "i, j", np.where(c, u.T, 0.0))
    check(shared_db, "sum(where(C[i, j] > 0, U[i, j], V[i, j]))", "i", np.where(c > 0, u, v).sum(1))


OF_NEGATIVE_ZERO: dict[str, Callable[[Array], Any]] = {
    "W[i, j] = 1 / A[i, j]": lambda a: 1 / a,
    "W[i, j] = 1 / (A[i, j] * 3)": lambda a: 1 / (a * 3),
    "W[i, j] = 1 / -A[i, j]": lambda a: 1 / -a,
    "W[i] = 1 / max(A[i, j])": lambda a: 1 / a.max(1),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_negative_zero(shared_db: se.Database, optimizer: str) -> None:
    array = np.full((6, 5), -0.0)
    array[2, 3] = -4
    load(shared_db, "A", array, fill=-0.0)
    for program, function in OF_NEGATIVE_ZERO.items():
        with np.errstate(divide="ignore"):
            expected = function(array)
        result = shared_db.run(program, optimizer=optimizer, nonfinite="allow")["W"]
        np.testing.assert_array_equal(result.to_numpy(), expected)


MASKED = "W[i, j] = where(C[i, j] != 0, U[i, j], -inf)"


@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_infinities_in_programs_and_fills(shared_db: se.Database, optimizer: str) -> None:
    """Entries masked by -inf are absent, in softmax too."""
    c, u = sparse((5, 6), 0, 1), np.arange(30.0).reshape(5, 6)
    c[2] = 0
    c[0, 1] = 1
    load(shared_db, "C", c, 0)
    shared_db.tensor("U", u)
    masked = np.where(c != 0, u, -np.inf)
    results = shared_db.run(f"{MASKED}; P[i, j] = softmax[j](W[i, j])", optimizer=optimizer, outputs=["W"])
    np.testing.assert_array_equal(results["W"].to_numpy(), masked)
    assert results["W"].fill == -np.inf
    assert results["W"].rows.num_rows == np.count_nonzero(c)
    with np.errstate(invalid="ignore"):
        powers = np.nan_to_num(np.exp(masked - masked.max(axis=1, keepdims=True)))
    np.testing.assert_allclose(results["P"].to_numpy(), powers / np.maximum(powers.sum(axis=1, keepdims=True), 1e-300))
    load(shared_db, "F", np.where(c != 0, c, np.inf), np.inf)
    results = shared_db.run("D[i, j] = where(index(i) == index(j), 0, F[i, j])", optimizer=optimizer)
    expected = np.where(np.arange(5)[:, None] == np.arange(6), 0, np.where(c != 0, c, np.inf))
    np.testing.assert_array_equal(results["D"].to_numpy(), expected)
    results = shared_db.run("D[i, j] = min(U[i, j], where(index(i) == index(j), 0, inf))", optimizer=optimizer)
    np.testing.assert_array_equal(results["D"].to_numpy(), np.where(np.arange(5)[:, None] == np.arange(6), 0, u))


@pytest.mark.parametrize("text", ["exp(U[i, j] * 1000)", "where(U[i, j] < inf, exp(U[i, j] * 1000), 0)"])
def test_infinities_that_arise_are_detected(shared_db: se.Database, text: str) -> None:
    shared_db.tensor("U", np.arange(30.0).reshape(5, 6))
    with pytest.raises(se.EngineError, match="W turned NaN or infinite"):
        shared_db.run(f"W[i, j] = {text}")


@pytest.mark.parametrize("fills", [(0, 0), (0, 1), (2, -1)])
def test_matrix_products(shared_db: se.Database, fills: tuple[float, float]) -> None:
    u, v = sparse((4, 6), fills[0]), sparse((6, 3), fills[1])
    stack, vector = sparse((2, 6, 3), fills[1]), sparse((6,), fills[1])
    for name, array, fill in (("U", u, 0), ("V", v, 1), ("S", stack, 1), ("X", vector, 1)):
        load(shared_db, name, array, fills[fill])
    check(shared_db, "sum(U[i, j] * V[j, k])", "i, k", u @ v)
    check(shared_db, "sum(U[i, j] * S[b, j, k])", "b, i, k", u @ stack)
    check(shared_db, "sum(U[i, j] * X[j])", "i", u @ vector)
    check(shared_db, "sum(X[j] * X[j])", "", vector @ vector)
    check(shared_db, "X[i] * X[j]", "i, j", np.outer(vector, vector))
    check(shared_db, "sum(V[j, k] * S[b, j, k])", "b", np.tensordot(stack, v, 2))
    check(shared_db, "U[i, j] * V[k, l]", "i, k, j, l", np.kron(u, v).reshape(4, 6, 6, 3))
