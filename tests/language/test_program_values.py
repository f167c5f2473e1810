"""Operators, functions and aggregates of programs compute numpy's values."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

Array = NDArray[Any]

OPERATORS: list[tuple[str, Callable[[Array, Array], Array]]] = [
    ("A[i] + B[i] * 2", lambda a, b: a + b * 2),
    ("(A[i] + B[i]) * 2", lambda a, b: (a + b) * 2),
    ("A[i] - B[i] - 1", lambda a, b: a - b - 1),
    ("A[i] - (B[i] - 1)", lambda a, b: a - (b - 1)),
    ("A[i] / B[i] / 2", lambda a, b: a / b / 2),
    ("A[i] / (B[i] / 2)", lambda a, b: a / (b / 2)),
    ("A[i] / B[i] * 2", lambda a, b: a / b * 2),
    ("-A[i] ^ 2", lambda a, b: -(a**2)),
    ("(-A[i]) ^ 2", lambda a, b: (-a) ** 2),
    ("A[i] ** 2", lambda a, b: a**2),
    ("2 ^ 3 ^ A[i]", lambda a, b: 2.0 ** (3.0**a)),
    ("2 ^ -A[i]", lambda a, b: 2.0**-a),
    ("2 ^ -A[i] * B[i]", lambda a, b: 2.0**-a * b),
    ("-A[i] * B[i]", lambda a, b: -a * b),
    ("A[i] * -B[i]", lambda a, b: a * -b),
    ("A[i] - -B[i]", lambda a, b: a - -b),
    ("--A[i]", lambda a, b: a),
    ("-A[i] - B[i]", lambda a, b: -a - b),
    ("-(A[i] - B[i])", lambda a, b: -(a - b)),
    ("A[i] ^ 0", lambda a, b: np.ones_like(a)),
    ("B[i] ^ .5", lambda a, b: b**0.5),
    ("1e-3 * A[i]", lambda a, b: 0.001 * a),
    ("A[i] + .5 + 2. + 1E+2 + 007", lambda a, b: a + 109.5),
    ("A[i] * 0", lambda a, b: 0 * a),
    ("exp(1) * A[i]", lambda a, b: np.e * a),
    ("A[i] * 123456789.123456789", lambda a, b: a * 123456789.123456789),
    ("A[i] * 1e-300 * 1e300", lambda a, b: a * 1e-300 * 1e300),
    ("abs(A[i]) + sign(A[i])", lambda a, b: np.abs(a) + np.sign(a)),
    ("exp(A[i]) - log(B[i])", lambda a, b: np.exp(a) - np.log(b)),
    ("sqrt(B[i]) * relu(A[i])", lambda a, b: np.sqrt(b) * np.maximum(a, 0)),
    ("sigmoid(A[i]) / tanh(B[i])", lambda a, b: 1 / (1 + np.exp(-a)) / np.tanh(b)),
    ("min(A[i], B[i]) + max(A[i], 1)", lambda a, b: np.minimum(a, b) + np.maximum(a, 1)),
    ("A[i] % B[i] * 2", lambda a, b: np.mod(a, b) * 2),
    ("-7 % B[i] - A[i]", lambda a, b: np.mod(-7, b) - a),
    ("-1 < A[i] <= B[i]", lambda a, b: (a > -1) & (a <= b)),
    ("2 * (A[i] < B[i] + 1 < 3 > A[i])", lambda a, b: 2 * ((a < b + 1) & (b < 2) & (a < 3))),
    ("relu(relu(A[i]) - B[i])", lambda a, b: np.maximum(np.maximum(a, 0) - b, 0)),
]


@pytest.mark.parametrize(("expression", "expected"), OPERATORS, ids=[text for text, _ in OPERATORS])
def test_operators_bind_as_numpys(
    shared_db: se.Database, expression: str, expected: Callable[[Array, Array], Array]
) -> None:
    a, b = np.array([-2.0, 0.5, 3.0, 0.0]), np.array([0.25, 3.0, 2.0, 1.0])
    shared_db.tensor("A", a)
    shared_db.tensor("B", b)
    result = shared_db.run(f"C[i] = {expression}")["C"].to_numpy()
    np.testing.assert_allclose(result, expected(a, b), rtol=1e-14, atol=1e-300)


AGGREGATES: dict[str, Callable[..., Array]] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates(shared_db: se.Database, name: str) -> None:
    array = np.random.default_rng(5).uniform(-2, 2, (3, 4, 2))
    shared_db.tensor("A", array)
    fold = AGGREGATES[name]
    for left, axes in [("", (0, 1, 2)), ("i", (1, 2)), ("j", (0, 2)), ("k, i", 1)]:
        result = shared_db.run(f"C[{left}] = {name}(A[i, j, k])")["C"].to_numpy()
        expected = fold(array, axis=axes)
        np.testing.assert_allclose(result, expected.T if left == "k, i" else expected, rtol=1e-14)


def test_nested_aggregates_give_numpys_values(shared_db: se.Database) -> None:
    array = np.random.default_rng(6).uniform(-2, 2, (3, 4))
    shared_db.tensor("A", array)
    results = shared_db.run("""
        S[i, j] = exp(A[i, j]) / sum[k](exp(A[i, k]))
        L[] = max[i](sum[j](A[i, j])) - min[i](max[j](A[i, j]))
        M[i] = sum[j](A[i, j]) * prod[j](A[i, j])
    """)
    softmax = np.exp(array) / np.exp(array).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(results["S"].to_numpy(), softmax, rtol=1e-14)
    np.testing.assert_allclose(results["L"].to_numpy(), array.sum(1).max() - array.max(1).min(), rtol=1e-14)
    np.testing.assert_allclose(results["M"].to_numpy(), array.sum(1) * array.prod(1), rtol=1e-14)


def test_upper_case_label_on_the_left_is_a_key_column(shared_db: se.Database) -> None:
    array = np.arange(6.0).reshape(2, 3)
    shared_db.tensor("A", array)
    result = shared_db.run("C[J, i] = A[i, J] + 1")["C"]
    np.testing.assert_array_equal(result.to_numpy(), array.T + 1)
    assert "[J, i]" in repr(result)


def test_a_sum_over_no_indices(db: se.Database) -> None:
    db.tensor("A", np.ones((3, 0)))
    np.testing.assert_array_equal(db.run("C[i] = sum(A[i, j])")["C"].to_numpy(), np.zeros(3))
