"""Derivatives of programs are those of finite differences; at kinks they are torch's."""

import re
from typing import Any

import numpy as np
import pytest
from finite_differences import numeric_gradient, numeric_tangent
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from program_cases import Case
from random_programs import cases

import sparseeinsum as se
from sparseeinsum.language.scalar import write
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Operand
from sparseeinsum.operators.functions import built_in
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.records import ScalarFunction
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]
FUNCTIONS = {function.name: function for function in built_in()}
CONSTANT = [name for name, function in FUNCTIONS.items() if function.derivatives == ("0",) * function.operands]


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(0.2, 0.9, shape)


def gradient_of(text: str, by: str, **inputs: Array) -> Array:
    """The gradient of loss by a tensor, on dense arrays."""
    return evaluate_program(se.gradient(text, of="loss", by=by), inputs)[f"d_{by}"]


def check(text: str, by: str, inputs: dict[str, Array], tolerance: float = 1e-6) -> None:
    """Compare the gradient, a tangent, and the product of the Hessian and a vector with finite differences."""
    program = se.program(text)
    gradient = se.gradient(program, of="loss", by=by)
    expected = numeric_gradient(program, "loss", by, inputs)
    np.testing.assert_allclose(evaluate_program(gradient, inputs)[f"d_{by}"], expected, rtol=tolerance, atol=tolerance)
    change = np.random.default_rng(5).uniform(-1, 1, inputs[by].shape)
    tangent = se.jvp(program, of="loss", by={by: "change_of_it"})
    given = {**inputs, "change_of_it": change}
    np.testing.assert_allclose(
        evaluate_program(tangent, given)["d_loss"], (expected * change).sum(), rtol=tolerance, atol=tolerance
    )
    try:
        second = se.jvp(gradient, of={f"d_{by}": "second"}, by={by: "change_of_it"})
    except se.SemanticsError as error:
        assert "does not depend" in str(error)
        np.testing.assert_allclose(numeric_tangent(gradient, f"d_{by}", {by: change}, inputs), 0, atol=1e-4)
        return
    curvature = numeric_tangent(gradient, f"d_{by}", {by: change}, inputs)
    np.testing.assert_allclose(evaluate_program(second, given)["second"], curvature, rtol=1e-4, atol=1e-4)


def call_of(function: ScalarFunction) -> str:
    operands = tuple(map(Operand, range(function.operands)))
    return write(Call(function.name, operands), ["X[i]", "Y[i]", "Z[i]"])


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in CONSTANT])
def test_functions(name: str) -> None:
    function = FUNCTIONS[name]
    rng = np.random.default_rng(3)
    inputs = {tensor: rng.uniform(0.1, 0.9, 40) for tensor in "XYZ"[: function.operands]}
    text = f"loss[] = sum(index(i) * {call_of(function)})"
    for by, rule in zip(inputs, function.derivatives or (), strict=True):
        if rule == "0":
            with pytest.raises(se.SemanticsError, match="does not depend"):
                se.gradient(text, of="loss", by=by)
        else:
            check(text, by, inputs)


@pytest.mark.parametrize("name", CONSTANT)
def test_functions_that_do_not_change(name: str) -> None:
    inputs = {"X": np.array([0.5, -1.0]), "Y": np.array([2.0, -2.0])}
    text = f"S[i] = {call_of(FUNCTIONS[name])}\nloss[] = sum(S[i] * X[i] ^ 2)"
    values = evaluate_program(se.program(text), inputs)["S"]
    np.testing.assert_allclose(gradient_of(text, "X", **inputs), values * 2 * inputs["X"])


@pytest.mark.parametrize("name", [*AGGREGATES, *SCANS, *PICKS])
def test_aggregates(name: str) -> None:
    is_scan = name in SCANS
    text = f"T[i{', j' if is_scan else ''}] = {name}[j](X[i, j])\nloss[] = sum(T[i{', j' if is_scan else ''}] ^ 2"
    text += " * Y[i, j])" if is_scan else " * exp(T[i]))"
    if name in AGGREGATES and not AGGREGATES[name].derivative:
        with pytest.raises(se.SemanticsError, match=rf"the aggregate {name} has no derivative; .* stands in T\[i\] = "):
            se.gradient(text, of="loss", by="X")
        return
    for sign in (1, -1):
        check(text, "X", {"X": sign * random(3, 4), "Y": random(4, 3).T})


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize("aggregate", ["prod", "cumprod"])
def test_products_with_zeros(aggregate: str, zeros: int) -> None:
    factors = np.array([2.0, -3.0, 0.5, 1.5])
    factors[[3, 1, 0][:zeros]] = 0
    check(f"loss[] = sum({aggregate}[j](X[j]) * Y[k])", "X", {"X": factors, "Y": np.array([1.0, 2.0])})


KINKS = [
    ("loss[] = sum(relu(X[i]))", [-1.0, 0.0, 2.0], [0, 0, 1]),
    ("loss[] = sum(abs(X[i]))", [-1.0, 0.0, 2.0], [-1, 0, 1]),
    ("loss[] = sum(max(X[i], 1))", [0.0, 1.0, 2.0], [0, 0.5, 1]),
    ("loss[] = sum(min(X[i], 1))", [0.0, 1.0, 2.0], [1, 0.5, 0]),
    ("loss[] = sum(clip(X[i], 0, 1))", [-1.0, 0.0, 1.0], [0, 1, 1]),
    ("loss[] = max(X[i])", [1.0, 3.0, 3.0], [0, 0.5, 0.5]),
    ("loss[] = min(X[i])", [1.0, 1.0, 1.0], [1 / 3, 1 / 3, 1 / 3]),
    ("loss[] = sum(sqrt(X[i]))", [0.0, 1.0, 4.0], [np.inf, 0.5, 0.25]),
    ("loss[] = sum(X[i] ^ 0 + X[i] ^ 1)", [0.0, 1.0, 2.0], [1, 1, 1]),
    ("loss[] = sum(where(X[i] > 0, sqrt(X[i]), 0))", [0.0, 1.0, 4.0], [0, 0.5, 0.25]),
    ("S[i] = sqrt(X[i])\nloss[] = sum(where(X[i] > 0, S[i], 0))", [0.0, 1.0, 4.0], [0, 0.5, 0.25]),
    ("loss[] = sum(X[i] * stop_gradient(X[i]))", [1.0, 2.0, 3.0], [1, 2, 3]),
    ("loss[] = logsumexp(X[i])", [-np.inf, 0.0, 0.0], [0, 0.5, 0.5]),
    ("loss[] = norm(X[i])", [3.0, 0.0, 4.0], [0.6, 0, 0.8]),
]


@pytest.mark.parametrize(("text", "at", "expected"), KINKS, ids=[text for text, _, _ in KINKS])
def test_kinks(text: str, at: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(gradient_of(text, "X", X=np.array(at)), expected)


PROGRAMS = [
    "loss[] = sum(X[i, i] ^ 3)",
    "loss[] = sum(X[i, i] * X[i, j])",
    "T[i] = X[i, 0] * X[i, -1]\nloss[] = sum(exp(T[i]))",
    "T[i, j] = X[i + 1, j] * X[i, j]\nloss[] = sum(T[i, j] ^ 2)",
    "T[i, j] = X[2*i, -1 - j]\nloss[] = sum(T[i, j] ^ 2)",
    "T[i, r] = X[i + r, 0] * X[r, i] for r < 2\nloss[] = sum(T[i, r] ^ 2)",
    "T[j, i] = sum(X[i, k] * X[k, j])\nloss[] = sum(T[i, j] * X[i, j])",
    "T[i, j, k] = X[i, j] + X[j, k]\nloss[] = sum(T[i, j, k] ^ 2)",
    "loss[] = sum(X[i, j] + Y[j, k])",
    "loss[] = sum[i, j](mean[k](X[i, k]) * Y[i, j])",
    "loss[] = sum(softmax[j](X[i, j]) * Y[i, j])",
    "loss[] = 0 - sum(log_softmax[j](X[i, j]) * Y[i, j]) / bound(X, 0)",
    "loss[] = sum(layer_norm[j](X[i, j]) * Y[i, j])",
    "loss[] = sum(var[j](X[i, j]) * norm[k](X[i, k]))",
    "loss[] = sqrt(sum[i, j](X[i, j] ^ 2)) * logsumexp[k, l](X[k, l])",
    "N[i] = count[j](X[i, j] > 0.5)\nloss[] = sum(N[i] * X[i, j])",
    "tensor T[i: 3, k: 2]\nT[i, k] = sum[j](X[i, j])\nloss[] = sum(T[i, k] ^ 2)",
    "loss = sum((X @ Y.T) @ X * X) + trace(X @ X) + sum(rowsums(X) * colmaxs(X).T)",
    "T[i, j] = cumsum[j](X[i, j]) / cumsum[i](X[j, i])\nloss[] = sum(T[i, j] * first[k](X[i, k]))",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_programs(text: str) -> None:
    check(text, "X", {"X": random(3, 3), "Y": random(4, 4)[:3, :3]})


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(cases("float64", "dp"), st.integers(0, 2**31))
def test_modes_agree(case: Case, seed: int) -> None:
    """The gradient of a random program times a vector is its tangent along the vector, also at kinks."""
    inputs = {name: np.where(np.isfinite(array), array, 0.7) for name, array in case.inputs.items()}
    program = se.program(case.text)
    values = evaluate_program(program, inputs)
    last = program.einsums[-1].output
    assume(values[last.tensor].dtype == np.float64 and np.isfinite(values[last.tensor]).all())
    rng = np.random.default_rng(seed)
    inputs |= {"Weights": rng.uniform(-1, 1, values[last.tensor].shape), "V": rng.uniform(-1, 1, inputs["A"].shape)}
    product = f"{last.tensor}[{', '.join(last.labels)}] * Weights[{', '.join(last.labels)}]"
    loss = f"{case.text}\nloss[] = {f'sum({product})' if last.labels else product}"
    try:
        gradient = evaluate_program(se.gradient(loss, of="loss", by="A"), inputs)["d_A"]
        tangent = evaluate_program(se.jvp(loss, of="loss", by={"A": "V"}), inputs)["d_loss"]
    except se.SemanticsError as error:
        assert re.search("no derivative|does not depend", str(error))
        return
    assume(np.isfinite(gradient).all() and np.abs(gradient).max(initial=0) < 1e6)
    np.testing.assert_allclose((gradient * inputs["V"]).sum(), tangent, rtol=1e-7, atol=1e-7)


def test_gradients_of_gradients() -> None:
    text = """
        loss[] = sum(exp(X[i] * Y[i]) * X[j])
        slope[] = sum(gradient(loss, X)[i] ^ 2)
        G[i] = gradient(slope, X)[i]
    """
    inputs = {"X": random(4), "Y": random(5)[:4]}
    program = se.program(text)
    expected = numeric_gradient(program, "slope", "X", inputs)
    np.testing.assert_allclose(evaluate_program(program, inputs)["G"], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("factor", "has_guard"),
    [("(Y[i] < 0.5) / 0.5", False), ("(1 / Y[i] < 0.5)", False), ("1 / Y[i]", True), ("(Y[i] < 0.5) / (2 - 2)", True)],
)
def test_zeros_are_kept_only_where_something_may_be_infinite(factor: str, has_guard: bool) -> None:
    text = f"P[i] = X[i] * {factor}\nloss[] = sum(where(P[i] > 0, P[i], 0))"
    gradient = str(se.gradient(text, of="loss", by="X")).split("d_X[i] = ")[1]
    assert ("!=" in gradient) == has_guard, gradient


def test_third_derivatives_of_products_are_refused() -> None:
    second = "loss[] = prod(X[i])\nfirst[] = sum(gradient(loss, X)[i])\nsecond[] = sum(gradient(first, X)[i])\n"
    value = evaluate_program(se.program(second), {"X": np.array([0.0, 0.0, 3.0, 2.0])})["second"]
    assert value == 2 * 3 * 2  # of both factors that are 0, in both orders
    with pytest.raises(se.ParseError, match="the aggregate prod has no more than 2 derivatives, in the statement"):
        se.program(f"{second}G[i] = gradient(second, X)[i]")
