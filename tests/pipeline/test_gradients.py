"""Programs with gradients give the same on every engine and in every plan as on dense arrays."""

from typing import Any

import numpy as np
import pytest
from finite_differences import numeric_gradient
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]

GCN = """
    H[i, h] = relu(sum(A[i, j] * sum[f](X[j, f] * W1[f, h])))
    Z[i, c] = sum(A[i, j] * sum[h](H[j, h] * W2[h, c]))
    loss[] = 0 - sum(Y[i, c] * log_softmax[c](Z[i, c])) / bound(Y, 0)
"""
STEP = (
    "state W1, W2\n"
    + GCN
    + "".join(f"next_{name}[i, j] = {name}[i, j] - 0.1 * gradient(loss, {name})[i, j]\n" for name in ("W1", "W2"))
)
PROGRAMS = [
    "loss[] = sum(X[i, j] * exp(X[j + 1, i]))",
    "loss[] = sum(max[j](X[i, j]) * X[i, k])",
    "loss[] = sum(prod[j](X[i, j] + 1) * cumsum[i](X[i, k]))",
    "loss[] = sum[i, j, k](cummax[j](X[i, j]) * X[k, j]) + sum[l](X[l, l] ^ 2)",
    "loss[] = sum(softmax[j](X[i, j]) * last[k](X[i, k]))",
]


def tensors(nodes: int = 12) -> dict[str, Array]:
    rng = np.random.default_rng(4)
    return {
        "A": np.where(rng.random((nodes, nodes)) < 0.3, rng.random((nodes, nodes)), 0),
        "X": np.where(rng.random((nodes, 5)) < 0.5, rng.normal(size=(nodes, 5)), 0),
        "W1": rng.normal(size=(5, 4)),
        "W2": rng.normal(size=(4, 3)),
        "Y": np.eye(3)[rng.integers(0, 3, nodes)],
    }


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_a_step_of_a_network(db: se.Database, optimizer: str) -> None:
    arrays = tensors()
    for name, array in arrays.items():
        db.tensor(name, array)
    results = db.run(STEP, optimizer=optimizer)
    assert set(results) == {"loss", "next_W1", "next_W2"}
    for name in ("W1", "W2"):
        expected = arrays[name] - 0.1 * numeric_gradient(se.program(GCN), "loss", name, arrays)
        np.testing.assert_allclose(results[f"next_{name}"].to_numpy(), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_plans_of_second_derivatives(db: se.Database, text: str, fill: float) -> None:
    array = np.where(np.eye(4, 4) + np.eye(4, k=1) > 0, np.linspace(-1, 2, 16).reshape(4, 4), fill)
    change = np.linspace(1, -1, 16).reshape(4, 4)
    db.tensor("X", array, fill=fill)
    db.tensor("V", change)
    gradient = se.gradient(text, of="loss", by="X")
    program = se.jvp(gradient, of={"d_X": "second"}, by={"X": "V"})
    expected = evaluate_program(program, {"X": array, "V": change})
    for name, result in db.run(program).items():
        np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_printed_programs_compute_the_same(db: se.Database) -> None:
    array = np.linspace(-1, 2, 16).reshape(4, 4)
    for text in PROGRAMS:
        program = se.gradient(text, of="loss", by="X")
        again = evaluate_program(se.program(str(program)), {"X": array})["d_X"]
        np.testing.assert_allclose(again, evaluate_program(program, {"X": array})["d_X"])


def test_what_gradients_read_stays_an_output(db: se.Database) -> None:
    program = se.program(STEP)
    assert program.outputs == ("loss", "next_W1", "next_W2")
    assert se.gradient(GCN, of="loss", by=["W1"]).outputs == ("loss", "d_W1")


def test_float32_stays_float32(db: se.Database) -> None:
    for name, array in tensors().items():
        db.tensor(name, array.astype(np.float32))
    assert {result.to_numpy().dtype for result in db.run(STEP).values()} == {np.dtype("float32")}


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_other_dtypes_are_refused(db: se.Database, dtype: str) -> None:
    db.tensor("X", np.ones(3, dtype))
    with pytest.raises(se.SemanticsError, match=f"X has the dtype {dtype}, which has no derivatives"):
        db.run(se.gradient("loss[] = sum(X[i] * X[i])", of="loss", by="X"))


REFUSED = [
    ("L[i] = X[i] ^ 2\nY[i] = gradient(L, X)[i]", r"line 2, column 8: L\[i\] is no scalar, so it has no gradient"),
    ("Y[i] = gradient(X, X)[i] + X[i]", "X is no result of the program"),
    ("L[] = sum(X[i])\nY[i] = gradient(L, Z)[i]", "L does not depend on Z: the program has no Z; it has X, L"),
    ("L[] = sum(X[i] > 0)\nY[i] = gradient(L, X)[i]", "L does not depend on X, or only through"),
    ("L[] = sum(any[j](X[i, j]) * X[i, k])\nY[i] = gradient(L, X)[i, i]", "the aggregate any has no derivative"),
    ("Y[i] = gradient(L, X)[i]\nL[] = sum(X[i])", "L is read here, but assigned only later"),
    ("L[] = sum(X[i])\nY[i] = gradient(L)[i]", "gradient takes a scalar and a tensor, not 1 arguments"),
    ("L[] = sum(X[i])\nd_L_d_X[i] = gradient(L, X)[i]", None),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_texts(text: str, message: str | None) -> None:
    if message is None:
        assert se.program(text).outputs == ("L", "d_L_d_X")
        return
    with pytest.raises(se.ParseError, match=message):
        se.program(text)


@pytest.mark.engines("duckdb", reason="PostgreSQL has no functions of Python's")
def test_functions_of_users(db: se.Database) -> None:
    @se.function
    def without_derivative(x: float) -> float:
        return x * x

    @se.function(derivatives=["g * v * exp(u)", "g * exp(u)"])
    def scaled_exp(x: float, y: float) -> float:
        return float(np.exp(x) * y)

    with pytest.raises(se.SemanticsError, match="the function without_derivative has no derivative; register it with"):
        se.gradient("loss[] = sum(without_derivative(X[i]))", of="loss", by="X")
    text = "loss[] = sum(scaled_exp(X[i], 2 * X[i]))"
    array = np.array([0.5, -1.0])
    db.tensor("X", array)
    expected = numeric_gradient(se.program(text), "loss", "X", {"X": array})
    np.testing.assert_allclose(db.run(se.gradient(text, of="loss", by="X"))["d_X"].to_numpy(), expected, rtol=1e-6)
    assert se.function(derivatives="g")(of_one_number)(2.0) == 2
    with pytest.raises(se.SemanticsError, match="has 1 parameters, but 2 derivatives"):
        se.function(derivatives=["g", "g"])(of_one_number)
    with pytest.raises(se.ParseError, match="there is no operand w"):
        se.function(derivatives=["g * w"])(of_one_number)


def test_gradients_at_entries(db: se.Database) -> None:
    arrays = tensors(40)
    for name, array in arrays.items():
        db.tensor(name, array)
    everywhere = numeric_gradient(se.program(GCN), "loss", "A", arrays)
    program = se.gradient(GCN, of="loss", by=["A", "W1"], entries=["A"])
    results = db.run(program)
    np.testing.assert_allclose(results["d_A"].to_numpy(), everywhere * (arrays["A"] != 0), rtol=1e-6, atol=1e-9)
    for entries in (["X"], ["H"]):
        with pytest.raises(se.SemanticsError, match="the gradient"):
            se.gradient(GCN, of="loss", by=["A", *entries][: 1 + (entries == ["H"])], entries=entries)


def of_one_number(x: float) -> float:
    return x


def test_refused_names() -> None:
    program = se.gradient("loss[] = sum(X[i] ^ 3)", of="loss", by="X")
    with pytest.raises(se.SemanticsError, match="the program has d_X already; name the derivative"):
        se.gradient(program, of="loss", by="X")
    assert se.gradient(program, of="loss", by={"X": "again"}).outputs == ("loss", "d_X", "again")
