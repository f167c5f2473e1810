"""Macros and generated vectors expand to statements that compute what numpy computes."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import write_einsum
from sparseeinsum.language.generated import GeneratedTensor
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.expressions import AxisBound
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]


def meaning(text: str, **inputs: Array) -> Array:
    """The oracle's value of C; binding gives the same shape and dtype."""
    program = se.program(text)
    result = evaluate_program(program, inputs)["C"]
    tensors = {
        name: Tensor(name, tuple(Axis(f"a{axis}", bound) for axis, bound in enumerate(array.shape)), array.dtype.name)
        for name, array in inputs.items()
    }
    bound = bind(program, tensors).tensors["C"]
    assert (bound.shape, bound.dtype) == (result.shape, result.dtype.name)
    return result


def lines(text: str) -> list[str]:
    return [line for line in str(se.program(text)).split("\n") if not line.startswith("tensor")]


def softmax(x: Array, axis: int | tuple[int, ...]) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


def layer_norm(x: Array, eps: float) -> Array:
    return np.asarray((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps))


X = np.random.default_rng(3).uniform(-3, 3, (3, 4))
MEANT: list[tuple[str, Callable[[Array], Array]]] = [
    ("C[i, j] = softmax[j](X[i, j])", lambda x: softmax(x, 1)),
    ("C[i, j] = softmax[i, j](X[i, j])", lambda x: softmax(x, (0, 1))),
    ("C[j, i] = 2 * softmax[i](X[i, j] / 8) + 1", lambda x: (2 * softmax(x / 8, 0) + 1).T),
    ("C[i] = sum(softmax[j](X[i, j]) * X[i, j])", lambda x: (softmax(x, 1) * x).sum(1)),
    ("C[i, k] = sum(softmax[j](sum(X[i, l] * X[j, l])) * X[j, k])", lambda x: softmax(x @ x.T, 1) @ x),
    ("C[i, j] = log_softmax[j](X[i, j])", lambda x: np.log(softmax(x, 1))),
    ("C[i] = mean(X[i, j])", lambda x: x.mean(1)),
    ("C[] = mean(X[i, j])", lambda x: x.mean()),
    ("C[i] = exp(mean[j](X[i, j] * X[i, j]))", lambda x: np.exp((x * x).mean(1))),
    ("C[i, j] = X[i, j] - mean[k](X[i, k])", lambda x: x - x.mean(1, keepdims=True)),
    ("C[i] = mean[k](X[i, k] + index(k))", lambda x: (x + np.arange(4)).mean(1)),
    ("C[i] = var[j](X[i, j])", lambda x: x.var(1)),
    ("C[] = var(X[i, j])", lambda x: x.var()),
    ("C[j] = norm(X[i, j])", lambda x: np.linalg.norm(x, axis=0)),
    ("C[j] = count(X[i, j]) / 2", lambda x: np.count_nonzero(x, axis=0) / 2),
    ("C[] = sumsq(X[i, j]) / 2", lambda x: np.sum(np.square(x)) / 2),
    ("C[i] = count[j](X[i, j] > 0) / 2 + sumsq[j](X[i, j])", lambda x: (x > 0).sum(1) / 2 + np.square(x).sum(1)),
    ("C[i, j] = layer_norm[j](X[i, j])", lambda x: layer_norm(x, 1e-5)),
    ("C[i, j] = layer_norm[j](X[i, j], 0.5)", lambda x: layer_norm(x, 0.5)),
    ("C[i] = argmax[j](X[i, j]) + 0.5", lambda x: x.argmax(1) + 0.5),
    ("C[j] = argmin(abs(X[i, j])) / 2", lambda x: np.abs(x).argmin(0) / 2),
    ("C[i, j] = X[i, j] / 2 * (argmax[k](X[i, k]) == index(j))", lambda x: x / 2 * np.eye(4)[x.argmax(1)]),
    ("C[i] = sum(X[i, j]) / bound(j) - bound(X, 1)", lambda x: x.sum(1) / 4 - 4),
    ("C[i, j] = X[i, j] / 2 * (index(i) == index(j))", lambda x: x / 2 * np.eye(3, 4)),
    ("C[i, j] = X[i, j] / (2 * bound(j))", lambda x: x / 8),
    ("C[i, k] = sum(X[i, j]) / 4 + 0.5 * index(k: bound(j))", lambda x: x.sum(1)[:, None] / 4 + np.arange(4) / 2),
]


@pytest.mark.parametrize(("text", "expected"), MEANT, ids=[text for text, _ in MEANT])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_macros_mean_what_numpy_computes(text: str, expected: Callable[[Array], Array], dtype: str) -> None:
    x = (X * 2).astype(dtype)
    wanted, actual = np.asarray(expected(x)), meaning(text, X=x)
    assert actual.shape == wanted.shape
    assert actual.dtype == (
        "float32" if dtype == "float32" and not re.search(r"[*+] index|= argm|= count", text) else "float64"
    )
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


# Storage of X: its dtype, the fill of half of it (None: no fill), the promoted axes; and the optimizer.
GIVEN: list[tuple[str, float | None, tuple[str, ...], str]] = [
    ("float64", None, ("dim_0",), "dp"),
    ("float64", 0, ("dim_0", "dim_1"), "relational"),
    ("float64", 1.5, ("dim_0", "dim_1"), "dp"),
    ("float32", 0, ("dim_1",), "dense"),
    ("int64", 2, (), "greedy"),
]


def partly(x: Array, fill: float) -> Array:
    """The array with the fill at half of its positions and in one whole row."""
    spread = np.where(np.random.default_rng(1).random(x.shape) < 0.5, x, fill).astype(x.dtype)
    spread[1] = fill
    return spread


@pytest.mark.parametrize(("dtype", "fill", "promoted", "optimizer"), GIVEN)
@pytest.mark.parametrize(("text", "expected"), MEANT, ids=[text for text, _ in MEANT])
def test_macros_run(
    shared_db: se.Database,
    text: str,
    expected: Callable[[Array], Array],
    dtype: str,
    fill: float | None,
    promoted: tuple[str, ...],
    optimizer: str,
) -> None:
    x = (X * 2).astype(dtype)
    if fill is not None:
        x = partly(x, fill)
    shared_db.tensor("X", x, fill=fill or 0, promoted=promoted)
    result = shared_db.run(text, optimizer=optimizer)["C"].to_numpy()
    wanted, evaluated = np.asarray(expected(x)), meaning(text, X=x)
    assert (result.shape, result.dtype) == (wanted.shape, evaluated.dtype)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
@pytest.mark.parametrize("nonfinite", ["error", "allow"])
def test_softmax_of_rows_that_lack_values(shared_db: se.Database, optimizer: str, nonfinite: str) -> None:
    """With the fill -inf absent entries stay absent: graph attention over the edges of a graph."""
    x = partly(X, -np.inf)
    shared_db.tensor("X", x, fill=-np.inf)
    with np.errstate(all="ignore"):
        expected = np.nan_to_num(softmax(x, 1))
        logarithms = np.log(expected)
    results = shared_db.run(
        "C[i, j] = softmax[j](X[i, j])\nL[i, j] = log_softmax[j](X[i, j])", optimizer=optimizer, nonfinite=nonfinite
    )
    np.testing.assert_allclose(results["C"].to_numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(results["L"].to_numpy(), logarithms, rtol=1e-12)
    assert (results["C"].fill, results["L"].fill) == (0, -np.inf)
    assert results["C"].rows.num_rows == np.count_nonzero(expected)


def test_macros_of_complex_numbers() -> None:
    x = X + 1j * X[::-1]
    np.testing.assert_allclose(meaning("C[i] = var[j](X[i, j])", X=x), x.var(1))
    np.testing.assert_allclose(meaning("C[i] = norm[j](X[i, j])", X=x), np.linalg.norm(x, axis=1))
    np.testing.assert_allclose(meaning("C[i] = mean[j](X[i, j])", X=x), x.mean(1))


def test_softmax_of_minus_infinity_is_0() -> None:
    x = np.array([[-np.inf, 0, 0], [-np.inf, -np.inf, -np.inf], [1e300, -np.inf, -1e300]])
    expected = np.array([[0, 0.5, 0.5], [0, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(meaning("C[i, j] = softmax[j](X[i, j])", X=x), expected)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(meaning("C[i, j] = log_softmax[j](X[i, j])", X=x)[:2], np.log(expected[:2]))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_a_sparse_tensor_is_sparse(name: str) -> None:
    """Rows of -inf alone need no computation."""
    program = se.program(f"C[i, j] = {name}[j](X[i, j])")
    sparse = Tensor("X", (Axis("a", 3), Axis("b", 4)), "float64", -np.inf)
    graph = bind(program, {"X": sparse})
    assert graph.tensors["C"].fill == (0 if name == "softmax" else -np.inf)


def test_expansions() -> None:
    assert lines("Y[i, k] = sum(softmax[j](S[i, j] / 8) * V[j, k])") == [
        "Y_value[i, j] = S[i, j] / 8",
        "Y_max[i] = max(Y_value[i, j])",
        "Y_exp[i, j] = where(Y_value[i, j] == -inf, 0, exp(Y_value[i, j] - Y_max[i]))",
        "Y_sum[i] = sum(Y_exp[i, j])",
        "Y_inverse[i] = where(Y_sum[i] == 0, 0, 1 / Y_sum[i])",
        "Y_softmax[i, j] = where(Y_exp[i, j] == 0, 0, Y_exp[i, j] * Y_inverse[i])",
        "Y[i, k] = sum(Y_softmax[i, j] * V[j, k])",
    ]


def test_common_parts_of_macros_are_computed_once() -> None:
    assert lines("Y[i, j] = layer_norm[j](X[i, j])\nM[i] = mean(X[i, j])\nV[i] = var(X[i, j])\nY_sum[i] = M[i]") == [
        "Y_sum2[i] = sum(X[i, j])",
        "Y_mean[i] = Y_sum2[i] / bound(X, 1)",
        "Y_sum3[i] = sum(abs(X[i, j] - Y_mean[i]) ^ 2)",
        "Y_var[i] = Y_sum3[i] / bound(X, 1)",
        "Y[i, j] = (X[i, j] - Y_mean[i]) / sqrt(Y_var[i] + 1e-05)",
        "M[i] = Y_sum2[i] / bound(X, 1)",
        "V[i] = Y_sum3[i] / bound(X, 1)",
        "Y_sum[i] = M[i]",
    ]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128"])
@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ("U[i]", lambda u: u),
        ("U[i] * U[i]", lambda u: u * u),
        ("sum(X[i, k])", lambda u: X[:2].sum(1)),
        ("where(U[i] == 0, 0.0, U[i])", lambda u: np.where(u == 0, 0.0, u)),
    ],
)
def test_labels_of_a_declared_result_alone(
    shared_db: se.Database, dtype: str, right: str, expected: Callable[[Array], Array]
) -> None:
    u = np.array([2, 0]).astype(dtype)
    actual = meaning(f"tensor C[j: 3, i: 2, k2: 2]\nC[j, i, k2] = {right}", U=u, X=X[:2])
    wanted = expected(u)
    assert actual.dtype == wanted.dtype
    np.testing.assert_array_equal(actual, np.broadcast_to(wanted[:, None], (3, 2, 2)))
    shared_db.tensor("U", u)
    shared_db.tensor("X", X[:2])
    for optimizer in ("dp", "relational", "dense"):
        computed = shared_db.run(f"tensor C[j: 3, i: 2, k2: 2]\nC[j, i, k2] = {right}", optimizer=optimizer)["C"]
        assert computed.to_numpy().dtype == wanted.dtype
        np.testing.assert_allclose(computed.to_numpy(), actual)


def test_spreading_keeps_nan_and_the_fill() -> None:
    text = "tensor C[i: 2, j: 3]\nC[i, j] = U[i]"
    np.testing.assert_array_equal(meaning(text, U=np.array([np.nan, np.inf])), [[np.nan] * 3, [np.inf] * 3])
    graph = bind(se.program(text), {"U": Tensor("U", (Axis("i", 2),), "float32", -np.inf)})
    assert (graph.tensors["C"].dtype, graph.tensors["C"].fill) == ("float32", -np.inf)


RESULTS_OF_NUMBERS: list[tuple[str, Any]] = [
    ("tensor C[i: 2, j: 3]\nC[i, j] = 3", np.full((2, 3), 3)),
    ("tensor C[i: 2]\nC[i] = true", np.array([True, True])),
    ("tensor C[i: 2, j: 3]\nC[i, j] = 10 * index(i) + index(j)", np.array([[0, 1, 2], [10, 11, 12]])),
    ("C[] = sum(index(i: 5))", np.array(10)),
    ("C[i] = sum(ones(i: 3) * index(j: 4))", np.full(3, 6)),
    ("tensor C[i: 2, j: 0]\nC[i, j] = 2.5", np.zeros((2, 0))),
]


@pytest.mark.parametrize(("text", "expected"), RESULTS_OF_NUMBERS, ids=[text for text, _ in RESULTS_OF_NUMBERS])
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_results_of_no_tensor_run(shared_db: se.Database, text: str, expected: Array, optimizer: str) -> None:
    result = shared_db.run(text, optimizer=optimizer)["C"].to_numpy()
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(result, expected)


def test_results_of_numbers_alone() -> None:
    np.testing.assert_array_equal(meaning("tensor C[i: 2, j: 3]\nC[i, j] = 3"), np.full((2, 3), 3))
    np.testing.assert_array_equal(meaning("tensor C[i: 2]\nC[i] = true"), [True, True])
    result = meaning("tensor C[i: 2, j: 3]\nC[i, j] = 10 * index(i) + index(j)")
    np.testing.assert_array_equal(result, [[0, 1, 2], [10, 11, 12]])


def test_one_hot(shared_db: se.Database) -> None:
    x = np.array([2, 0, 5])
    expected = np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(meaning("tensor C[i: 3, k: 3]\nC[i, k] = one_hot[k](X[i])", X=x), expected > 0)
    w = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(meaning("C[i, j] = sum(one_hot[k](X[i]) * W[k, j])", X=x, W=w), expected @ w)
    for promoted in ((), ("dim_0",)):
        shared_db.tensor("X", x, promoted=promoted)
        shared_db.tensor("W", w, promoted=promoted)
        results = shared_db.run(
            "tensor C[i: 3, k: 3]\nC[i, k] = one_hot[k](X[i])\nD[i, j] = sum(one_hot[k](X[i]) * W[k, j])"
        )
        np.testing.assert_array_equal(results["C"].to_numpy(), expected > 0)
        np.testing.assert_array_equal(results["D"].to_numpy(), expected @ w)


def test_generated_tensors() -> None:
    """Programs read generated tensors that nobody stores: they have bounds, no user's name, and are no inputs."""
    program = se.program(
        "tensor C[i: 2, j: 3]\nindex_k[i] = X[i]\nC[i, j] = sum(index_k[i] == index(k)) * W[k]".replace(
            "sum(index_k[i] == index(k)) * W[k]", "sum((index_k[i] == index(k)) * W[k])"
        )
    )
    assert program.generated == (
        GeneratedTensor("index_k2", "index", "k", AxisBound("W", 0)),
        GeneratedTensor("ones_j", "ones", "j", 3),
    )
    assert program.inputs == ("X", "W")
    graph = bind(program, {"X": Tensor("X", (Axis("a", 2),)), "W": Tensor("W", (Axis("b", 7),))})
    assert graph.tensors["index_k2"] == Tensor("index_k2", (Axis("k", 7),), "int64", 0)
    assert graph.tensors["ones_j"] == Tensor("ones_j", (Axis("j", 3),), "bool", False)
    assert write_einsum(graph.einsums[-1], {}) == "C[i, j] = where(ones_j[j], C_value[i], C_value[i])"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("C[i] = X[i, j] / bound(X, 2)", "label j must be aggregated"),
        ("C[i, j] = X[i, j] / bound(X, 2)", r"bound\(X, 2\) asks for axis 2, but tensor X has 2, counted from 0"),
        ("C[i, j] = X[i, j] * index(j: 3)", "label j of C has two bounds: 4 in X, 3 in index_j"),
        (
            "tensor C[i: 3, j: 5]\nC[i, j] = X[i, j]",
            r"declares C with shape \(3, 5\), but computes it with shape \(3, 4\)",
        ),
    ],
)
def test_bounds_that_clash(text: str, problem: str) -> None:
    with pytest.raises((se.ShapeError, se.ParseError), match=problem):
        bind(se.program(text), {"X": Tensor("X", (Axis("a", 3), Axis("b", 4)))})
