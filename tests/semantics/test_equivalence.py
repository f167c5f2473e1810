"""Equal programs are proven equal by normal forms, and unequal ones are refuted by numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_algebra import SHAPES, expressions, total_of
from random_runs import examples

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

PRODUCT = "A[k, l] = sum(U[i, k] * U[i, l])\nB[k, l] = sum(V[j, k] * V[j, l])\n"

EQUAL = {
    "squared distance": (
        "L[] = sum((X[i, j] - sum[k](U[i, k] * V[j, k]))^2)",
        PRODUCT
        + "L[] = sum[i, j](X[i, j]^2) - 2 * sum[i, j, k](X[i, j] * U[i, k] * V[j, k]) + sum[k, l](A[k, l] * B[k, l])",
    ),
    "the paper's example": (
        "Q[i] = sum[j](x[i, j] * sum[k](y[j, k] * x[i, j])) + sum[m, n](x[i, m]^2 * y[m, n])",
        "Q[i] = 2 * sum(x[i, j]^2 * y[j, k])",
    ),
    "factoring out": ("Y[i, j] = P[i] * X[i, j] - P[i] * P[i] * X[i, j]", "Y[i, j] = P[i] * (1 - P[i]) * X[i, j]"),
    "a label in no factor": ("Y[i] = sum[j](X[i] + 0 * A[i, j])", "Y[i] = bound(A, 1) * X[i]"),
    "a function": ("Y[i] = sigmoid(X[i]) * (1 - sigmoid(X[i]))", "Y[i] = sigmoid(X[i]) - sigmoid(X[i])^2"),
    "exp of a sum": ("Z[i] = exp(x[i] + y[i]) / exp(y[i])", "Z[i] = exp(x[i])"),
    "quotients": ("R[i] = x[i] / (2 * y[i] * z[i])", "R[i] = 0.5 / z[i] * (x[i] / y[i])"),
    "signs": ("Y[i] = 1 * (X[i] > 0) - (X[i] < 0)", "Y[i] = sign(X[i])"),
    "other names": ("T[a] = sum(A[a, b] * x[b])\nZ[c] = T[c] * 2", "Y[i] = sum(x[j] * (A[i, j] + A[i, j]))"),
    "an axis of one index": ("tensor X[i: 1, j: 1]\nS[] = sum(X[i, j])", "tensor X[i: 1, j: 1]\nS[] = max(X[i, j])"),
    "a declared bound": ("tensor x[i: 3]\nS[] = sum[i](x[i] - x[i] + 2)", "tensor x[i: 3]\nS[] = 6 + 0 * sum(x[i])"),
    "other aggregates": ("Y[i] = max(A[i, j] * 2 - A[i, j])", "Y[k] = max(A[k, l])"),
    "a diagonal": ("T[i, j] = A[i, j] - A[j, i]\nY[i] = T[i, i]", "Y[i] = 0 * A[i, i]"),
    "logsumexp": ("Y[i] = logsumexp(A[i, j] + 0)", "Y[i] = log(sum(exp(A[i, j])))"),
    "many labels alike": ("T[] = sum(A[i, j] * A[i, k] * A[i, l] * A[i, m])", "T[] = sum[i](sum[j](A[i, j])^4)"),
    "a cycle": ("T[] = sum(A[i, j] * A[j, k] * A[k, l] * A[l, i])", "T[] = sum(A[j, k] * A[l, i] * A[i, j] * A[k, l])"),
}

DIFFERENT = {
    "transposed": ("S[] = sum(x[i, j] * y[i, j])", "S[] = sum(x[i, j] * y[j, i])"),
    "a power": ("S[] = sum(x[i]^2)", "S[] = sum[i](x[i])^2"),
    "a coefficient": ("Y[i] = 2 * x[i]", "Y[i] = 2.5 * x[i]"),
    "a function of a sum": ("Z[i] = sigmoid(x[i] + y[i])", "Z[i] = sigmoid(x[i]) + sigmoid(y[i])"),
    "cycles of other lengths": ("T[] = sum(A[i, j] * A[j, k] * A[k, i])", "T[] = sum(A[i, j] * A[i, k] * A[k, j])"),
    "another aggregate": ("Y[i] = max(A[i, j])", "Y[i] = min(A[i, j])"),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_programs_are_proven_equal(name: str) -> None:
    verdict = se.equivalent(*EQUAL[name])
    assert verdict
    assert verdict.counter_example is None
    assert str(verdict).startswith("equal: ")


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_programs_are_refuted_by_numbers(name: str) -> None:
    programs = DIFFERENT[name]
    verdict = se.equivalent(*programs)
    assert not verdict
    assert verdict.counter_example is not None
    results = [
        next(iter(reversed(evaluate_program(se.program(text), verdict.counter_example.tensors).values())))
        for text in programs
    ]
    assert not np.allclose(results[0], results[1])
    np.testing.assert_array_equal(results, verdict.counter_example.results)
    assert "different:" in str(verdict)


def test_undecided_pairs_are_reported_as_undecided() -> None:
    verdict = se.equivalent("Y[i] = sqrt(a[i])^2", "Y[i] = a[i]")
    assert not verdict
    assert verdict.counter_example is None
    assert str(verdict).startswith("not proven equal, but no numbers were found")


def test_normal_forms_are_readable() -> None:
    verdict = se.equivalent(*EQUAL["squared distance"])
    first = (
        "sum[a, b, c, d](U[a, b] * U[a, c] * V[d, b] * V[d, c]) - 2 * sum[a, b, c](U[a, b] * V[c, b] * X[a, c])"
        " + sum[a, b](X[a, b]^2)"
    )
    assert verdict.normal_forms[0] == first


def test_python_expressions_are_compared() -> None:
    x, u, v = map(se.matrix, ("X", "U", "result"))  # the last name might also be an expression's
    loss = ((x - u @ v.T) ** 2).sum()
    multiplied = (x**2).sum() - 2 * (x * (u @ v.T)).sum() + ((u.T @ u) * (v.T @ v)).sum()
    assert se.equivalent(loss, multiplied)
    assert se.equivalent(loss.named("inside"), se.program({"L": multiplied}))
    assert se.equivalent("L[] = sum((X[i, j] - sum[k](U[i, k] * result[j, k]))^2)", loss)
    assert not se.equivalent(loss, (x**2).sum())
    a, b = map(se.tensor, ("A", "b"))
    assert se.equivalent((a["i", "j"] * b["j"]).sum("j")["i"], se.matrix("A") @ se.vector("b"))


def test_bad_input_is_refused() -> None:
    with pytest.raises(TypeError, match=r"A\[i, j\] is neither a program"):
        se.equivalent(se.tensor("A")["i", "j"], "B[i, j] = A[i, j]")  # type: ignore[arg-type]
    with pytest.raises(se.SemanticsError, match="A, B cannot be compared as a whole"):
        se.equivalent("A[i] = x[i]\nB[i] = x[i]", "A[i] = x[i]")
    with pytest.raises(se.SemanticsError, match="A has 1 axes and B has 0"):
        se.equivalent("A[i] = x[i]", "B[] = sum(x[i])")
    with pytest.raises(se.SemanticsError, match="more than 4,096 products"):
        se.equivalent("S[] = sum[i](x[i] + y[i] + 1)^9", "S[] = 0 * sum(x[i])")
    with pytest.raises(se.ShapeError, match="declared with the bound 3"):
        se.equivalent("tensor x[i: 2]\nA[i] = x[i]", "tensor x[i: 3]\nA[i] = x[i]")


def rewritten(tree: Any, choose: Callable[[], bool]) -> Any:  # noqa: ANN401
    """An equal tree: operands exchanged, products distributed, differences as sums, sums reassociated."""
    if isinstance(tree, str):
        return tree
    operator, left, right = tree
    left, right = rewritten(left, choose), rewritten(right, choose)
    if not choose():
        return operator, left, right
    if operator == "-":
        return "+", left, ("*", right, "(-1)")
    if operator == "*" and isinstance(left, tuple) and left[0] in "+-":
        return left[0], ("*", left[1], right), ("*", right, left[2])
    if isinstance(right, tuple) and right[0] == operator:
        return operator, (operator, right[2], left), right[1]
    return operator, right, left


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_rewritten_expressions_are_proven_equal(data: st.DataObject) -> None:
    tree = data.draw(expressions())
    assert se.equivalent(total_of(tree), total_of(rewritten(tree, lambda: data.draw(st.booleans()))))


@settings(max_examples=examples(60), deadline=None)
@given(expressions(), expressions(), st.integers(0, 2**32 - 1))
def test_verdicts_agree_with_numbers(first: Any, second: Any, seed: int) -> None:  # noqa: ANN401
    texts = [total_of(tree) for tree in (first, second)]
    random = np.random.default_rng(seed)
    tensors = {name: random.normal(size=shape) for name, shape in SHAPES.items()}
    results = [evaluate_program(se.program(text), tensors)["S"] for text in texts]
    assert bool(se.equivalent(*texts)) == np.allclose(results[0], results[1], rtol=1e-9, atol=1e-9)
