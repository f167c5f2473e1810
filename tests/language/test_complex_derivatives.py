"""Gradients by complex tensors have the partial derivatives by real and imaginary parts, as those of torch."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.operators.functions import built_in
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]
HOLOMORPHIC = [
    function.name
    for function in built_in()
    if function.complex is not None and function.operands == 1 and function.derivatives not in (None, ("0",))
]
PROGRAMS = [
    "loss[] = sum(abs(Z[i]) ^ 2)",
    "loss[] = sum(abs(Z[i] * W[i] - 1) ^ 2 * R[i])",
    "loss[] = sum(abs(exp(Z[i]) * conj(Z[i]) + sqrt(W[i])) ^ 3)",
    "P[i] = R[i] * W[i] + Z[i]\nloss[] = sum(real(P[i] ^ 2) + imag(P[i] * Z[i]) * abs(R[i]))",
    "T[i, j] = Z[i] * conj(W[j])\nloss[] = sum(abs(sum[j](T[i, j] * R[j])) * abs(Z[i]))",
    "loss[] = abs(prod[i](Z[i]) + sum[j](cumsum[j](W[j] * Z[j])))",
    "loss[] = sum(real(sign(Z[i]) * W[i]) * R[i])",
    "loss[] = sum(abs(Z[i] ^ R[i]) + abs(R[i] ^ Z[i]) + real(Z[i] ^ W[i]))",
    "loss[] = sum(where(R[i] > 0.5, abs(Z[i]) / W[i] * conj(1 / W[i]), 0) * R[i]) + 0\nlost[] = abs(loss[])",
    "T[i] = Z[i + 1] * (2 - 1j)\nloss[] = sum(abs(T[i]) * abs(T[i] - 1))",
]


def inputs() -> dict[str, Array]:
    rng = np.random.default_rng(8)
    complexes = {name: rng.uniform(0.3, 1, 4) + 1j * rng.uniform(0.3, 1, 4) for name in ("Z", "W")}
    return {**complexes, "R": rng.uniform(0.2, 1, 4)}


def of_loss(program: se.Program) -> str:
    return "lost" if "lost" in program.outputs else "loss"


def numeric_gradient(program: se.Program, name: str, values: dict[str, Array], result: str) -> Array:
    """Differences of the result of small changes of real parts, and of imaginary parts if the tensor has them."""
    step = 1e-6

    def slope(index: int, direction: complex) -> Array:
        ends = []
        for sign in (1, -1):
            moved = values[name].copy()
            moved[index] += sign * step * direction
            ends.append(evaluate_program(program, {**values, name: moved})[result])
        return (ends[0] - ends[1]) / (2 * step)

    has_parts = np.iscomplexobj(values[name])
    rows = [slope(i, 1.0) + (1j * slope(i, 1j) if has_parts else 0) for i in range(len(values[name]))]
    return np.array(rows)


@pytest.mark.parametrize("by", ["Z", "W", "R"])
@pytest.mark.parametrize("text", PROGRAMS)
def test_programs(text: str, by: str) -> None:
    program = se.program(text)
    if by not in program.inputs:
        return
    values = {name: array for name, array in inputs().items() if name in program.inputs}
    of = of_loss(program)
    gradient = se.gradient(program, of=of, by=by, complex=["Z", "W"])
    expected = numeric_gradient(program, by, values, of)
    actual = evaluate_program(gradient, values)[f"d_{by}"]
    assert actual.dtype == values[by].dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)
    change = np.array([0.3, -0.2, 0.5, 0.1]) * (1 if by == "R" else 1 - 2j)
    tangent = se.jvp(program, of=of, by={by: "V"}, complex=["Z", "W"])
    along = evaluate_program(tangent, {**values, "V": change})[f"d_{of}"]
    np.testing.assert_allclose(along, np.real(np.vdot(actual, change)), rtol=1e-9)
    try:
        second = se.jvp(gradient, of={f"d_{by}": "second"}, by={by: "V"})
    except se.SemanticsError as error:
        assert "does not depend" in str(error)
        return
    moved = [
        evaluate_program(gradient, {**values, by: values[by] + sign * 1e-5 * change})[f"d_{by}"] for sign in (1, -1)
    ]
    curvature = evaluate_program(second, {**values, "V": change})["second"]
    np.testing.assert_allclose(curvature, (moved[0] - moved[1]) / 2e-5, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_functions(name: str) -> None:
    function = {"neg": "-Z[i]"}.get(name, f"{name}(Z[i])")
    program = se.program(f"loss[] = sum(abs({function} * W[i] + 1) ^ 2)")
    values = {key: inputs()[key] for key in ("Z", "W")}
    gradient = evaluate_program(se.gradient(program, of="loss", by="Z", complex=["Z", "W"]), values)["d_Z"]
    expected = numeric_gradient(program, "Z", values, "loss")
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_plans(db: se.Database, optimizer: str) -> None:
    rng = np.random.default_rng(1)
    values = {"Z": rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)), "R": rng.normal(size=4)}
    values["Z"][1] = 0
    for name, array in values.items():
        db.tensor(name, array)
    text = """
        tensor Z[i: 3, j: 4] dtype complex128
        P[i] = sum(Z[i, j] * R[j])
        loss[] = sum[k](abs(P[k]) ^ 2) + sum[i, j](abs(Z[i, j]))
        next_Z[i, j] = Z[i, j] - 0.1 * gradient(loss, Z)[i, j]
        slope[j] = gradient(loss, R)[j]
    """
    results = db.run(text, optimizer=optimizer)
    product = values["Z"] @ values["R"]
    slope = 2 * np.outer(product, values["R"]) + np.sign(values["Z"])
    np.testing.assert_allclose(results["next_Z"].to_numpy(), values["Z"] - 0.1 * slope, rtol=1e-9, atol=1e-12)
    by_real = 2 * (product.conj() @ values["Z"]).real
    np.testing.assert_allclose(results["slope"].to_numpy(), by_real, rtol=1e-9, atol=1e-12)
    assert results["slope"].dtype == "float64"


def test_branches_that_are_not_taken() -> None:
    text = "loss[] = sum(where(abs(Z[i]) > 0, abs(sqrt(Z[i])), 0))"
    gradient = se.gradient(text, of="loss", by="Z", complex=["Z"])
    values = evaluate_program(gradient, {"Z": np.array([0, 4 + 0j])})["d_Z"]
    np.testing.assert_allclose(values, [0, 0.25])


def test_gradients_of_abs_are_as_short_as_they_can_be() -> None:
    gradient = str(se.gradient("loss[] = sum(abs(Z[i]) ^ 2)", of="loss", by="Z", complex=["Z"]))
    assert gradient.split("\n")[1] == "d_Z[i] = 2 * abs(Z[i]) * sign(Z[i])"
    real = str(se.gradient("loss[] = sum(abs(X[i]) ^ 2)", of="loss", by="X"))
    assert real.split("\n")[1] == "d_X[i] = sign(X[i]) * (2 * abs(X[i]))"


def test_refused(db: se.Database) -> None:
    with pytest.raises(se.SemanticsError, match="loss is a complex number, so it has no gradient; take that of abs"):
        se.gradient("loss[] = sum(Z[i] * Z[i])", of="loss", by="Z", complex="Z")
    db.tensor("Z", np.ones(3, complex))
    db.tensor("X", np.ones(3))
    text = "loss[] = sum(abs(Z[i] * X[i]))"
    for by in ("Z", "X"):
        declared = r"tensor Z\[...: 3\] dtype complex128, or name it in complex= of se.gradient"
        with pytest.raises(se.SemanticsError, match=f"Z has the dtype complex128, but .* {declared}"):
            db.run(se.gradient(text, of="loss", by=by))
    with pytest.raises(se.SemanticsError, match="X has the dtype float64, but derivatives of complex numbers"):
        db.run(se.gradient(text, of="loss", by="Z", complex=["X", "Z"]))
