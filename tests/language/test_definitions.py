"""Functions that programs define stand for their bodies, whatever labels, names and arguments the calls have."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]

LINEAR = "def linear(X, W)[i, o] = sum(X[i, f] * W[f, o])\n"
SCALED = "def scaled(X, rate = 0.5, shift = 1)[i, j] = X[i, j] * rate + shift\n"
STEP = "def descend(W, G, rate = 0.1) = W - rate * G\n"

RNG = np.random.default_rng(0)
A, X, W = RNG.random((4, 4)), RNG.random((4, 3)), RNG.random((3, 2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LINEAR + "Y[i, o] = linear(X, W)[i, o]", X @ W),
        (LINEAR + "Y[o, i] = linear(X, W)[i, o]", (X @ W).T),
        (LINEAR + "Y[f, j] = linear(X, W)[f, j]", X @ W),
        (LINEAR + "Y[i, f] = 2 * linear(X, W)[i, f]", 2 * X @ W),
        (LINEAR + "Y[i, k] = sum(A[i, f] * linear(X, W)[f, k])", A @ X @ W),
        (LINEAR + "Y[i, k] = linear(A, linear(X, W))[i, k]", A @ X @ W),
        (LINEAR + "Y = linear(A, X) @ W", A @ X @ W),
        (LINEAR + "Y = linear(X @ W, W.T)", X @ W @ W.T),
        (LINEAR + "Y[i] = linear(X, W)[i + 1, 0]", (X @ W)[1:, 0]),
        (LINEAR + "Y[I, o] = linear(X, W)[I, o]", X @ W),
        (LINEAR + "Y[I:2, o] = linear(X, W)[I:2, o]", X @ W),
        (LINEAR + "Y[i] = linear(A, A)[i, i]", np.diag(A @ A)),
        (SCALED + "Y[i, j] = scaled(X)[i, j]", X * 0.5 + 1),
        (SCALED + "param rate = 9\nY[i, j] = scaled(X, 3)[i, j] + rate", X * 3 + 10),
        (SCALED + "param rate = 9\nY[i, j] = scaled(X, rate * 2, -rate)[i, j]", X * 18 - 9),
        (SCALED + "s[] = sum(X[i, j])\nY[i, j] = scaled(X, s, s / 2)[i, j]", X * X.sum() + X.sum() / 2),
        (
            SCALED + LINEAR + "def both(X, W, rate)[a, b] = linear(scaled(X, rate, 0), W)[a, b]\nY = both(X, W, 4)",
            X @ W * 4,
        ),
        (STEP + "Y = descend(X, 2 * X)", 0.8 * X),
        (STEP + "Y[i, j] = descend(X, X, 0.5)[i, j]", 0.5 * X),
        ("def column(X)[i] = X[i, 0] * bound(X, 1) + bound(i)\nY[i] = column(X)[i]", X[:, 0] * 3 + 4),
        ("def total(X)[] = sum(X[i, j])\nY[i, j] = X[i, j] / total(X)[]", X / X.sum()),
        ("def total(X)[] = sum(X[i, j])\nY = X / total(X)", X / X.sum()),
        ("def rows(X)[i] = index(i) + sum[j](X[i, j])\nY[k] = rows(X)[k]", np.arange(4) + X.sum(1)),
        ("def shares(X)[i, j] = softmax[j](X[i, j])\nY[j, i] = shares(X)[j, i]", np.exp(X) / np.exp(X).sum(1)[:, None]),
    ],
    ids=lambda value: value.replace("\n", "; ") if isinstance(value, str) else "",
)
def test_calls(shared_db: se.Database, text: str, expected: Array) -> None:
    for name, array in {"A": A, "X": X, "W": W}.items():
        shared_db.tensor(name, array)
    np.testing.assert_allclose(shared_db.run(text)["Y"].to_numpy(), expected, rtol=1e-12)


def test_axes_have_the_names_of_the_statement(shared_db: se.Database) -> None:
    shared_db.tensor("X", X)
    shared_db.tensor("W", W)
    result = shared_db.run(LINEAR + "Y[node, class] = linear(X, W)[node, class]")["Y"]
    assert [axis.name for axis in result.schema.tensor.axes] == ["node", "class"]


def test_a_declaration_bounds_the_labels_of_a_call(shared_db: se.Database) -> None:
    text = "def noise(seed)[i, j] = uniform(seed, i, j)\ntensor Y[i: 2, j: 3]\nY[i, j] = noise(4)[i, j]"
    expected = shared_db.run("Y[i, j] = uniform(4, i: 2, j: 3)")["Y"].to_numpy()
    np.testing.assert_array_equal(shared_db.run(text)["Y"].to_numpy(), expected)


def test_equal_calls_are_computed_once() -> None:
    program = se.program(LINEAR + "Y[i, o] = linear(X, W)[i, o] + linear(X, W)[i, o] * linear(X, V)[i, o]")
    assert [einsum.output.tensor for einsum in program.einsums] == ["Y_linear", "Y_linear2", "Y"]


def test_names_of_results_are_new() -> None:
    program = se.program(LINEAR + "Y[i, o] = 2 * linear(X, Y_linear)[i, o]")
    assert [einsum.output.tensor for einsum in program.einsums] == ["Y_linear2", "Y"]
    assert program.inputs == ("X", "Y_linear")


def test_included_files_define_functions(tmp_path: Path) -> None:
    (tmp_path / "layers.ein").write_text(LINEAR + LINEAR)
    (tmp_path / "model.ein").write_text('include "layers.ein"\nY[i, k] = linear(X, W)[i, k]')
    program = se.read_program(tmp_path / "model.ein")
    np.testing.assert_allclose(evaluate_program(program, {"X": X, "W": W})["Y"], X @ W)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(X)[i] = X[i] + Z[i]", "the function f reads Z, which is none of its parameters"),
        ("def f(X)[i] = X[i] * rate", "the function f reads rate"),
        ("def f(X, X)[i] = X[i]", "two parameters X"),
        ("def exp(X)[i] = X[i]", "there is a function exp already"),
        ("def softmax(X)[i] = X[i]", "there is a function softmax already"),
        ("def f(X)[i] = X[i]\ndef f(X)[i] = 2 * X[i]", "there is a function f already"),
        ("def f(X)[i + 1] = X[i]", "the result of a function has labels"),
        ("def f(X, n = X)[i] = X[i]", "the default of n is not a number"),
        ("def f(X)[i] = g(X)[i]\nY[i] = f(X)[i]", "no function g is defined before"),
        ("Y[i] = g(X)[i]", "no function g is defined before; write def g"),
        (LINEAR + "Y[i, j] = lineal(X, W)[i, j]", "did you mean linear"),
        (LINEAR + "Y[i, j] = linear(X)[i, j]", "takes 2 arguments, not 1"),
        (SCALED + "Y[i, j] = scaled(X, 1, 2, 3)[i, j]", "takes 1 to 3 arguments, not 4"),
        (LINEAR + "Y[i] = linear(X, W)[i]", "has 1 indices, but its result has 2 axes: i, o"),
        (LINEAR + "Y[i, j] = linear(X, 0.5)[i, j]", "reads an argument as a tensor with labels, but it is 0.5"),
        (LINEAR + "Y[i, j] = linear(X[i, f], W)[i, j]", "is an argument of linear; give it without labels"),
        (LINEAR + "Y[i, j] = sum(linear(X, W))", "linear.* has no labels|without labels"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(se.ParseError, match=message):
        se.program(text)
