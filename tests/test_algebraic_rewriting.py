"""Formulas are replaced by equal ones that are much cheaper, and give what numpy gives."""

import os
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_algebra import SHAPES, expressions, total_of

import sparseeinsum as se
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.saturation.building import build
from sparseeinsum.rewrite.saturation.choices import terms_of
from sparseeinsum.rewrite.saturation.egraph import Limits, saturate
from sparseeinsum.rewrite.saturation.extraction import Extractor
from sparseeinsum.rewrite.saturation.reading import read
from sparseeinsum.rewrite.saturation.sizes import sizes_of
from sparseeinsum.rewrite.saturation.terms import Number
from sparseeinsum.semantics.dense import evaluate_program

EXAMPLES = int(os.environ.get("EXAMPLES", "40"))

ROWS, COLUMNS, RANK = 6000, 3000, 8
LOSS = "L[] = sum((X[i, j] - sum[k](U[i, k] * V[j, k]))^2)"
GRADIENT = "G[i, l] = sum[j]((sum[k](U[i, k] * V[j, k]) - X[i, j]) * V[j, l])"


@pytest.fixture(scope="module")
def arrays() -> dict[str, Any]:
    random = np.random.default_rng(5)
    return {
        "X": sp.random_array((ROWS, COLUMNS), density=0.001, rng=random).tocsr(),
        "U": random.normal(size=(ROWS, RANK)),
        "V": random.normal(size=(COLUMNS, RANK)),
    }


@pytest.fixture
def factors(db: se.Database, arrays: dict[str, Any]) -> se.Database:
    for name, array in arrays.items():
        db.tensor(name, array)
    return db


def difference(arrays: dict[str, Any]) -> NDArray[np.float64]:
    dense: NDArray[np.float64] = arrays["X"].toarray() - arrays["U"] @ arrays["V"].T
    return dense


def largest_result(plan: se.Plan) -> int:
    return max(plan.decomposed.graph.tensors[step.einsum.output.tensor].size for step in plan.decomposed.steps)


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_a_squared_distance_needs_no_dense_product(factors: se.Database, arrays: dict[str, Any]) -> None:
    plan = factors.plan(LOSS)
    assert largest_result(plan) < ROWS * COLUMNS
    assert plan.rewriting.shares["L"] < 0.5
    assert "L: computed by an equal formula" in plan.explain()
    np.testing.assert_allclose(factors.run(plan)["L"].to_numpy(), (difference(arrays) ** 2).sum(), rtol=1e-9)


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_a_product_is_distributed(factors: se.Database, arrays: dict[str, Any]) -> None:
    plan = factors.plan(GRADIENT)
    assert largest_result(plan) < ROWS * COLUMNS
    wanted = -difference(arrays) @ arrays["V"]
    np.testing.assert_allclose(factors.run(plan)["G"].to_numpy(), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_what_somebody_asks_for_is_computed_as_written(factors: se.Database) -> None:
    named = LOSS.replace("sum[k](U[i, k] * V[j, k])", "P[i, j]")
    text = f"P[i, j] = sum(U[i, k] * V[j, k])\n{named}"
    assert largest_result(factors.plan(LOSS, rewrite=False)) == ROWS * COLUMNS
    assert factors.plan(LOSS, nonfinite="allow").rewriting.shares == {}
    assert factors.plan(text, outputs=["P"]).rewriting.shares == {}
    assert factors.plan(text, pin={"P": "i"}).rewriting.shares == {}
    assert factors.plan(text).rewriting.shares.keys() == {"L"}


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_what_is_not_finite_is_computed_as_written(factors: se.Database, arrays: dict[str, Any]) -> None:
    array = arrays["U"].copy()
    array[3, 4] = np.inf
    factors.tensor("U", array)
    assert factors.plan(LOSS).rewriting.shares == {}


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_saved_plans_keep_the_formula(factors: se.Database, arrays: dict[str, Any]) -> None:
    plan = factors.load_plan(factors.plan(LOSS).to_json())
    assert largest_result(plan) < ROWS * COLUMNS
    np.testing.assert_allclose(factors.run(plan)["L"].to_numpy(), (difference(arrays) ** 2).sum(), rtol=1e-9)


def rewritten(text: str, is_shared: bool, density: float, values: dict[str, Any]) -> tuple[Any, Any]:
    """The one result of a program, by the formula that saturation makes of it, and as it is written."""
    program = se.program(text)
    tensors = {
        name: Tensor(name, tuple(Axis(f"a{axis}", bound) for axis, bound in enumerate(shape)))
        for name, shape in SHAPES.items()
    }
    graph = bind(program, tensors)
    reading = read(graph.einsums, graph)
    classes = saturate([reading.term], reading.bounds, reading.same, Limits(seconds=0.1, nodes=3000))
    sizes = sizes_of(classes, reading.bounds, dict.fromkeys(classes.leaves, density))
    extractor = Extractor.of(classes, sizes)
    choice = (extractor.shared if is_shared else extractor.greedy)(classes.roots)
    term = terms_of(choice, classes)[0]
    einsums = build(term, graph.einsums[-1].output, reading.bounds, Names(graph.tensors))
    wanted = evaluate_program(program, values)["S"]
    if einsums is None:
        assert isinstance(term, Number)
        return wanted, wanted
    return evaluate_program(EinGraph(graph.tensors, tuple(einsums), ("S",)), values)["S"], wanted


@settings(max_examples=EXAMPLES, deadline=None)
@given(expressions(), st.booleans(), st.floats(0.01, 1), st.integers(0, 2**32 - 1))
@example(("+", "X[i, j]", ("+", "2", ("+", "X[i, j]", "X[i, j]"))), False, 0.03, 0)  # 3 is the bound of i, too
def test_random_expressions_stay_what_they_are(tree: Any, is_shared: bool, density: float, seed: int) -> None:  # noqa: ANN401
    random = np.random.default_rng(seed)
    values = {name: random.normal(size=shape) for name, shape in SHAPES.items()}
    found, wanted = rewritten(total_of(tree), is_shared, density, values)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("aggregate", ["max", "min", "prod", "logsumexp", "sum"])
def test_aggregates_of_what_cancels(aggregate: str) -> None:
    random = np.random.default_rng(2)
    values = {name: random.normal(size=shape) for name, shape in SHAPES.items()}
    for text in (f"S[j] = {aggregate}[i](X[i, j] - X[i, j] + v[j])", f"S[] = {aggregate}[i](u[i] - u[i] + sum(v[j]))"):
        found, wanted = rewritten(text, False, 1.0, values)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
