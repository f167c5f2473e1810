"""Formulas are replaced by equal and much cheaper ones, with numpy's results."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_algebra import SHAPES, expressions, programs, total_of
from random_runs import examples

import sparseeinsum as se
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import EinGraph, Reference
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.saturation.eclass_sizes import sizes_of
from sparseeinsum.rewrite.saturation.egraph import SaturationLimits, saturate
from sparseeinsum.rewrite.saturation.einsum_building import build_einsums
from sparseeinsum.rewrite.saturation.extraction import terms_of
from sparseeinsum.rewrite.saturation.extractor import Extractor
from sparseeinsum.rewrite.saturation.term_reading import read_terms
from sparseeinsum.rewrite.saturation.terms import Add, Leaf, Mul, NumberTerm, Sum, free_labels
from sparseeinsum.rewrite.unique_names import UniqueNames
from sparseeinsum.semantics.dense import evaluate_program

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
    return max(
        plan.data.decomposed.graph.tensors[step.einsum.output.tensor].size for step in plan.data.decomposed.steps
    )


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_a_squared_distance_needs_no_dense_product(factors: se.Database, arrays: dict[str, Any]) -> None:
    factors.connection.execute("SET threads = 2")  # with many, the dense product is as fast
    plan = factors.plan(LOSS)
    assert largest_result(plan) < ROWS * COLUMNS
    assert plan.data.rewriting.shares["L"] < 0.5
    assert "L: computed by an equal formula" in plan.explain()
    np.testing.assert_allclose(factors.run(plan)["L"].to_numpy(), (difference(arrays) ** 2).sum(), rtol=1e-9)


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_a_product_is_distributed(factors: se.Database, arrays: dict[str, Any]) -> None:
    plan = factors.plan(GRADIENT)
    assert largest_result(plan) < ROWS * COLUMNS
    expected = -difference(arrays) @ arrays["V"]
    np.testing.assert_allclose(factors.run(plan)["G"].to_numpy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_requested_results_are_computed_as_written(factors: se.Database) -> None:
    named = LOSS.replace("sum[k](U[i, k] * V[j, k])", "P[i, j]")
    text = f"P[i, j] = sum(U[i, k] * V[j, k])\n{named}"
    assert largest_result(factors.plan(LOSS, rewrite=False)) == ROWS * COLUMNS
    assert factors.plan(LOSS, nonfinite="allow").data.rewriting.shares == {}
    assert factors.plan(text, outputs=["P"]).data.rewriting.shares.keys() <= {"L"}
    assert factors.plan(text, pin={"P": "i"}).data.rewriting.shares == {}
    assert factors.plan(text).data.rewriting.shares.keys() == {"L"}


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_nonfinite_values_are_computed_as_written(factors: se.Database, arrays: dict[str, Any]) -> None:
    array = arrays["U"].copy()
    array[3, 4] = np.inf
    factors.tensor("U", array)
    assert factors.plan(LOSS).data.rewriting.shares == {}


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_saved_plans_keep_the_formula(factors: se.Database, arrays: dict[str, Any]) -> None:
    plan = factors.load_plan(factors.plan(LOSS).to_json())
    assert largest_result(plan) < ROWS * COLUMNS
    np.testing.assert_allclose(factors.run(plan)["L"].to_numpy(), (difference(arrays) ** 2).sum(), rtol=1e-9)


def rewritten(
    text: str, roots: Sequence[str], is_shared: bool, density: float, values: dict[str, Any]
) -> list[tuple[Any, Any]]:
    """Results of a program by the formulas that saturation derives, and as written."""
    program = se.program(text)
    tensors = {
        name: Tensor(name, tuple(Axis(f"a{axis}", bound) for axis, bound in enumerate(shape)))
        for name, shape in SHAPES.items()
    }
    graph = bind(program, tensors)
    reading = read_terms(graph.einsums, [einsum for einsum in graph.einsums if einsum.output.tensor in roots], graph)
    classes = saturate(reading.terms, reading.bounds, reading.equal_pairs, SaturationLimits(seconds=0.1, nodes=3000))
    sizes = sizes_of(classes, reading.bounds, dict.fromkeys(classes.leaves, density))
    extractor = Extractor.with_tree_costs(classes, sizes)
    choice = (extractor.with_sharing if is_shared else extractor.greedy)(classes.roots)
    terms = terms_of(choice, classes)
    einsums = build_einsums(terms, reading.roots, reading.bounds, UniqueNames(graph.tensors), keeps_shared=is_shared)
    if einsums is None:
        pairs = zip(terms, reading.roots, strict=True)
        assert any(isinstance(term, NumberTerm) or free_labels(term) != frozenset(root.labels) for term, root in pairs)
        return []
    results = evaluate_program(EinGraph(graph.tensors, tuple(einsums), tuple(roots)), values)
    expected = evaluate_program(EinGraph(graph.tensors, graph.einsums, tuple(roots)), values)
    return [(results[name], expected[name]) for name in roots]


def some_values(seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: random.normal(size=shape) for name, shape in SHAPES.items()}


@settings(max_examples=examples(40), deadline=None)
@given(expressions(), st.booleans(), st.floats(0.01, 1), st.integers(0, 2**32 - 1))
@example(("+", "X[i, j]", ("+", "2", ("+", "X[i, j]", "X[i, j]"))), False, 0.03, 0)  # 3 is the bound of i, too
def test_random_expressions_keep_their_values(tree: Any, is_shared: bool, density: float, seed: int) -> None:  # noqa: ANN401
    for result, expected in rewritten(total_of(tree), ["S"], is_shared, density, some_values(seed)):
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-8)


@settings(max_examples=examples(40), deadline=None)
@given(programs(), st.sets(st.sampled_from("TRS"), min_size=1), st.booleans(), st.integers(0, 2**32 - 1))
def test_random_programs_keep_their_results(text: str, roots: set[str], is_shared: bool, seed: int) -> None:
    for result, expected in rewritten(text, sorted(roots), is_shared, 0.1, some_values(seed)):
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("aggregate", ["max", "min", "prod", "logsumexp", "sum"])
def test_aggregates_of_cancelling_terms(aggregate: str) -> None:
    for text in (f"S[j] = {aggregate}[i](X[i, j] - X[i, j] + v[j])", f"S[] = {aggregate}[i](u[i] - u[i] + sum(v[j]))"):
        ((result, expected),) = rewritten(text, ["S"], False, 1.0, some_values(2))
        np.testing.assert_allclose(result, expected, rtol=1e-12)


SEVERAL = """
E[i, j] = X[i, j] - sum[k](U[i, k] * V[j, k])
L[] = sum(E[i, j]^2)
G[row, m] = sum(E[row, j] * V[j, m])
H[column, m] = sum(E[i, column] * U[i, m])
"""


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_results_that_share_parts_are_rewritten_together(factors: se.Database, arrays: dict[str, Any]) -> None:
    plan = factors.plan(SEVERAL)
    assert plan.data.rewriting.shares.keys() == {"L", "G", "H"}
    assert largest_result(plan) < ROWS * COLUMNS
    reads = [sorted(operand.tensor for operand in step.einsum.operands) for step in plan.data.decomposed.steps]
    assert sum(names == ["U", "X"] for names in reads) == 1  # X' U, of L and of H
    results, error = factors.run(plan), difference(arrays)
    assert [list(results[name].df())[:-1] for name in "LGH"] == [[], ["row", "m"], ["column", "m"]]
    expected = {"L": (error**2).sum(), "G": error @ arrays["V"], "H": error.T @ arrays["U"]}
    for name, array in expected.items():
        np.testing.assert_allclose(results[name].to_numpy(), array, rtol=1e-8, atol=1e-8)


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_only_results_that_gain_are_rewritten(factors: se.Database, arrays: dict[str, Any]) -> None:
    text = "P[i, j] = sum(U[i, k] * V[j, k])\nL[] = sum((X[i, j] - P[i, j])^2)\nM[i, j] = P[i, j] * 2 + X[i, j]"
    plan = factors.plan(text)
    assert plan.data.rewriting.shares.keys() == {"L"}
    results = factors.run(plan)
    product = arrays["U"] @ arrays["V"].T
    np.testing.assert_allclose(results["L"].to_numpy(), (difference(arrays) ** 2).sum(), rtol=1e-9)
    np.testing.assert_allclose(results["M"].to_numpy(), 2 * product + arrays["X"].toarray(), rtol=1e-9, atol=1e-12)


@pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")
def test_explanations_show_both_formulas_and_the_laws(factors: se.Database) -> None:
    plan = factors.plan(GRADIENT)
    derivation = plan.data.rewriting.derivations["G"]
    written, computed = (f"R[i, l] = {formula}" for formula in derivation.formulas)
    assert se.equivalent(written, GRADIENT.replace("G", "R"))
    assert se.equivalent(written, computed)
    assert derivation.seconds < derivation.seconds_written / 2
    assert "sum[i](a * b) = a * sum[i](b) where a lacks i" in derivation.laws
    assert "functions have equal forms" not in derivation.laws
    explained = plan.explain()
    for line in ("G: written as sum[j]((sum[k](", "G: computed as ", "G: which is equal by "):
        assert line in explained


def test_laws_that_are_needed() -> None:
    a, b, c = (Leaf(Reference(name, ("i",))) for name in "abc")
    distributed = Add(Mul(a, b), Mul(a, c))
    derivation = Derivation(Sum("i", Mul(a, Add(b, c))), Sum("i", distributed), {"i": 3}, (), 2.0, 1.0)
    assert derivation.laws == ["a * (b + c) = a * b + a * c"]
    assert derivation.share == 0.5
    wrong = Derivation(Sum("i", Mul(a, Add(b, c))), Sum("i", Add(Mul(a, b), c)), {"i": 3}, (), 2.0, 1.0)
    assert wrong.laws == []
