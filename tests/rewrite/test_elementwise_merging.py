"""EinSums that compute elementwise what only they read give the same results, and detect the same infinities."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from elementwise_programs import elementwise_inputs, elementwise_program

import sparseeinsum as se
from sparseeinsum.errors import EngineError
from sparseeinsum.language.scalar import evaluate
from sparseeinsum.operators.expressions import Call, Literal, Operand
from sparseeinsum.operators.functions import built_in
from sparseeinsum.operators.random_numbers import RANDOM_NUMBERS
from sparseeinsum.operators.records import ScalarFunction
from sparseeinsum.semantics.dense import evaluate_program
from sparseeinsum.semantics.nonfinite_values import stays_nonfinite


@pytest.fixture(scope="module")
def loaded(shared_db: se.Database) -> se.Database:
    for name, array in elementwise_inputs().items():
        shared_db.tensor(name, array, fill=2.5 if name == "F" else 0)
    shared_db.tensor("Q", np.arange(16.0).reshape(4, 4))
    shared_db.tensor("K", np.arange(20).reshape(4, 5))
    return shared_db


def computed(db: se.Database, text: str, **options: Any) -> set[str]:  # noqa: ANN401  # those of plan
    """The results that a plan computes on their own."""
    return {step.einsum.output.tensor for step in db.plan(text, **options).data.decomposed.steps}


@pytest.mark.parametrize(
    "text",
    [
        "T[i, j] = 2 * A[i, j]\nY[i, j] = T[i, j] + B[i, j]",
        "T[i, j] = relu(A[i, j])\nY[i, j] = exp(T[i, j] - D[i, j])",
        "T[i, j] = A[i, j] * D[i, j]\nU[i, j] = T[i, j] - A[i, j]\nY[j, i] = sqrt(U[i, j] ^ 2 + D[i, j] + 3)",
        "T[j, i] = sqrt(abs(A[i, j]))\nY[i, j] = T[j, i] / 3",
    ],
)
def test_merged(loaded: se.Database, text: str) -> None:
    assert computed(loaded, text) == {"Y"}
    expected = evaluate_program(se.program(text), elementwise_inputs())["Y"]
    np.testing.assert_allclose(loaded.run(text, progress=False)["Y"].to_numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("T[i, j] = 2 * A[i, j]\nY[i, j] = T[i, j] + B[i, j]", {"outputs": ["T", "Y"]}),
        ("T[i, j] = 2 * A[i, j]\nY[i, j] = T[i, j] + B[i, j]", {"rewrite": False}),
        ("T[i, j] = 2 * A[i, j]\nY[i, j] = T[i, j] + B[i, j]", {"pin": {"T": "i"}}),
        ("T[i, j] = A[i, j] + B[i, j]\nY[i, j] = T[i, j] * D[i, j]", {}),
        ("T[i, j] = exp(A[i, j])\nY[i, j] = T[i, j] * max(T[i, j], 1)", {}),
        ("T[i] = exp(c[i])\nY[i, j] = T[i] + A[i, j]", {}),
        ("T[i, j] = K[i, j] * K[i, j]\nY[i, j] = T[i, j] + 0.5", {}),
        ("T[i, j] = A[i, j] > 0\nY[i, j] = where(T[i, j], B[i, j], 1)", {}),
        ("T[i, j] = Q[i, j] + 1\nY[i] = T[i, i] * 2", {}),
        ("T[i, j] = 1 / (D[i, j] + 3)\nY[i, j] = 1 / T[i, j]", {}),
        ("T[i, j] = exp(D[i, j])\nY[i, j] = tanh(T[i, j])", {}),
    ],
)
def test_not_merged(loaded: se.Database, text: str, options: dict[str, Any]) -> None:
    assert "T" in computed(loaded, text, **options)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(loaded: se.Database, seed: int) -> None:
    rng = np.random.default_rng(seed + 100)
    for _ in range(8):
        text = elementwise_program(rng)
        expected = evaluate_program(se.program(text), elementwise_inputs())
        for name, result in loaded.run(text, progress=False).items():
            np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=1e-12, atol=1e-12, err_msg=text)


def test_overflow_after_planning_ends_the_run() -> None:
    text = "T[i, j] = 2 * A[i, j]\nY[i, j] = T[i, j] - 1"
    with se.connect() as db:
        db.tensor("A", np.ones((3, 3)))
        prepared = db.prepare(text, ["A"])
        np.testing.assert_allclose(prepared.run(A=np.ones((3, 3)))["Y"].to_numpy(), np.ones((3, 3)))
        with pytest.raises(EngineError, match=r"\b[TY]\b"):
            prepared.run(A=np.full((3, 3), 1e308))


KINDS = (math.nan, math.inf, -math.inf)
REAL = [record for record in built_in() if record.real is not None and record not in RANDOM_NUMBERS]


SAMPLES = [*KINDS, *np.random.default_rng(0).normal(size=12), 0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 1e-300, 1e308, -1e308]


@pytest.mark.parametrize("record", REAL, ids=lambda record: record.name)
def test_functions_stay_nonfinite(record: ScalarFunction) -> None:
    """Exactly what is not finite for any values of the other arguments, infinite ones included."""
    call = Call(record.name, tuple(map(Operand, range(record.operands))))
    for position, kind in itertools.product(range(record.operands), KINDS):
        columns = [[kind] if index == position else SAMPLES for index in range(record.operands)]
        arguments = [np.array(column) for column in zip(*itertools.product(*columns), strict=True)]
        with np.errstate(all="ignore"):
            results = np.asarray(evaluate(call, arguments), np.float64)
        assert stays_nonfinite(call, position, [kind]) == (not np.isfinite(results).any()), (position, kind)


def test_sums_and_products_stay_nonfinite() -> None:
    for name in ("add", "sub", "mul"):
        assert stays_nonfinite(Call(name, (Operand(0), Operand(1))), 0, KINDS)
    assert not stays_nonfinite(Call("exp", (Operand(0),)), 0, KINDS)
    assert stays_nonfinite(Call("exp", (Operand(0),)), 0, [math.inf])
    difference = Call("sub", (Operand(0), Call("mul", (Operand(1), Operand(1)))))
    assert stays_nonfinite(Call("exp", (difference,)), 0, [math.inf])
    assert not stays_nonfinite(Call("exp", (difference,)), 0, [-math.inf])
    assert not stays_nonfinite(Call("gt", (difference, Literal(0.0))), 0, [math.inf])
