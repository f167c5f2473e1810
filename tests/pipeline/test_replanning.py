"""Runs that measure intermediate results and replan give the same results and drop their temporary tables."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from program_cases import check
from random_programs import FAMILIES, cases
from random_runs import random_runs
from reading import assert_usable, contents

import sparseeinsum as se
from bench import replanning as bench
from sparseeinsum.api.examples import attention_inputs, attention_program, citation_graph, gcn_inputs, load
from sparseeinsum.api.graphs import GCN
from sparseeinsum.decompose import replanning_points as replanning_points_module
from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.replanning_points import possible_times, replanning_points
from sparseeinsum.decompose.staging import TableCost
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.pipeline import replanning
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.pipeline.running import run_plan
from sparseeinsum.plans import plan_statements
from sparseeinsum.results.execution import Execution

MASKED = """
M[i, j] = A[i, j] * B[i, j]
Y[i, k] = sum(M[i, j] * C[j, k])
Z[i, f] = sum(Y[i, k] * D[k, f])
"""


def masked(db: se.Database, size: int, share: float) -> dict[str, sp.coo_array]:
    """Two matrices with entries at the same indices, which counts by row and by column do not show."""
    rng = np.random.default_rng(0)
    first = sp.random_array((size, size), density=share, rng=rng).tocoo()
    second = first.copy()
    second.data = rng.normal(size=first.nnz)
    db.tensor("A", first)
    db.tensor("B", second)
    third = sp.random_array((size, size), density=0.02, rng=rng).tocoo()
    db.tensor("C", third)
    db.tensor("D", rng.normal(size=(size, 16)))
    return {"A": first, "B": second, "C": third}


@pytest.fixture(autouse=True)
def quick_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning is said to take a millisecond on any machine, as its measured time affects replanning."""
    monkeypatch.setattr(replanning, "_expected_planning_seconds", lambda *_: 1e-3)


def executed(db: se.Database, plan: se.Plan, replans: bool = True) -> Execution:
    return run_plan(plan.data, db._engine, {}, RunOptions(replans=replans))


def be_eager(patch: pytest.MonkeyPatch) -> None:
    """Replan at every result, and take the last plan found for the rest, whatever it costs."""
    patch.setattr(
        plan_statements, "replanning_points", lambda plan, *_: tuple(step.einsum.output.tensor for step in plan.steps)
    )
    patch.setattr(replanning, "_DEVIATION", 1.0)
    patch.setattr(replanning, "_LEAST_GAIN", -1e9)
    patch.setattr(replanning, "_expected_planning_seconds", lambda *_: -1.0)
    patch.setattr(replanning, "_fastest", lambda candidates: candidates[-1])


@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_numpys_however_often_a_run_replans(shared_db: se.Database, engine: str, family: str) -> None:
    @random_runs(10, engine)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check(shared_db, data.draw(cases(family, "dp")))

    with pytest.MonkeyPatch.context() as patch:
        be_eager(patch)
        run()


def test_replanning_counts_the_tensors_that_the_rest_reads(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest does not read A, once the sign of A and whether any entry is true are computed."""
    be_eager(monkeypatch)
    db.tensor("A", ([[1, 3]], [2.0, 3.0]), shape=(5,), fill=1.0)
    text = "S[j] = sign(A[j]) * any[k](A[k])\nM[j] = max[k](S[k]) * S[j]"
    plan = db.plan(text, estimator="exact", nonfinite="allow", rewrite=False)
    np.testing.assert_array_equal(executed(db, plan).results["M"].to_numpy(), np.ones(5))


def test_results_of_one_key_are_joined_in_the_rest(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of T is no vector that is generated from its keys."""
    be_eager(monkeypatch)
    array = np.random.default_rng(0).normal(size=(3, 1, 3))
    db.tensor("A", array, promoted={"dim_1": 2})
    db.tensor("b", np.array(1.5))
    results = db.run(
        "T[j] = last[i](A[i, j, i] + b[])\nY[i, k, j] = cummin[i](exp(A[i, j, k] - T[j]))", outputs=["T", "Y"]
    )
    expected = array[2, :, 2] + 1.5
    np.testing.assert_allclose(results["T"].to_numpy(), expected)
    smallest = np.minimum.accumulate(np.exp(array - expected[:, np.newaxis]), axis=0)
    np.testing.assert_allclose(results["Y"].to_numpy(), smallest.transpose(0, 2, 1))


def test_larger_results_than_expected_cause_replanning(db: se.Database) -> None:
    inputs = masked(db, 900, 0.1)
    plan = db.plan(MASKED, rewrite=False, indexes=False)
    (event,) = executed(db, plan).replannings
    assert (event.name, event.tuples) == ("M", inputs["A"].nnz)
    assert event.expected < event.tuples / 5
    assert event.is_better
    assert event.seconds < 0.9 * event.kept_seconds
    product = (inputs["A"] * inputs["B"]).toarray()
    expected = product @ inputs["C"].toarray() @ db.run("W[i, f] = D[i, f]")["W"].to_numpy()
    for replan in (True, False):
        np.testing.assert_allclose(db.run(plan, replan=replan)["Z"].to_numpy(), expected, rtol=1e-9, atol=1e-9)


def test_replanning_gives_the_plan_for_the_actual_sizes(db: se.Database) -> None:
    masked(db, 900, 0.1)
    statements = [run.statement for run in executed(db, db.plan(MASKED, rewrite=False, indexes=False)).runs]
    exact_plan = db.plan(MASKED, estimator="exact", rewrite=False, indexes=False)
    rest = exact_plan.notation()[1:]
    assert [line in str(statements[-1].query.sql("duckdb")) for line in rest] == [True, True]
    assert executed(db, exact_plan).replannings == ()


def test_runs_without_replanning_have_no_checkpoints(db: se.Database) -> None:
    masked(db, 900, 0.1)
    plan = db.plan(MASKED, rewrite=False, indexes=False)
    assert [statement.name for statement in plan.data.statements.for_run_with_checkpoints] == ["M", "Z"]
    execution = executed(db, plan, replans=False)
    assert [run.statement.name for run in execution.runs] == ["Z"]
    assert execution.replannings == ()


def test_explain_reports_replanning(db: se.Database) -> None:
    inputs = masked(db, 900, 0.1)
    before = contents(db)
    text = db.plan(MASKED, rewrite=False, indexes=False).explain(analyze=True)
    assert f"M: {inputs['A'].nnz:,} tuples instead of" in text
    assert "the rest was planned anew in" in text
    assert contents(db) == before


def test_results_beyond_memory_are_computed_in_passes(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    first = sp.random_array((900, 900), density=0.1, rng=rng).tocoo()
    db.tensor("A", first)
    db.tensor("B", first)
    factor = rng.random((3, 50))
    db.tensor("E", factor)
    text = "M[i, j] = A[i, j] * B[i, j]\nY[i, j, k] = max[l](M[i, j] * E[l, k])"
    plan = db.plan(text, pin={"Y": {"i": 1, "j": 1, "l": 1}}, memory_limit="200MB", layout="any")
    assert "passes" not in plan.notation()[1]
    execution = executed(db, plan)
    assert [
        "because it would have taken too much memory" in replanning.summary for replanning in execution.replannings
    ] == [True]
    assert [(run.statement.name, len(run.statement.passes) > 0) for run in execution.runs] == [
        ("M", False),
        ("Y", True),
        ("Y", False),
    ]
    expected = (first.toarray() ** 2)[:, :, None, None] * factor
    np.testing.assert_allclose(execution.results["Y"].to_numpy(), expected.max(axis=2))


def test_products_are_contracted_in_another_order(db: se.Database) -> None:
    """A product of three masks is far larger than expected, so the sparse matrices are not multiplied by it last."""
    masked(db, 1000, 0.1)
    rng = np.random.default_rng(1)
    for name in "EFG":
        db.tensor(name, sp.random_array((1000, 1000), density=0.002, rng=rng))
    text = "Y[i, l] = sum(A[i, j] * B[i, j] * E[j, k] * F[k, l])"
    with pytest.MonkeyPatch.context() as patch:
        be_eager(patch)
        results = db.run(text)
        execution = executed(db, db.plan(text))
    assert any(event.is_better for event in execution.replannings)
    expected = db.run(text, replan=False)["Y"].to_numpy()
    np.testing.assert_allclose(results["Y"].to_numpy(), expected, rtol=1e-9, atol=1e-12)


def test_outputs_computed_before_replanning_are_delivered_in_order(db: se.Database) -> None:
    inputs = masked(db, 900, 0.1)
    plan = db.plan(MASKED, outputs=["M", "Y"], indexes=False)  # plans by index are good for any number of entries
    results = db.run(plan)
    assert list(results) == ["M", "Y", "Z"]
    product = (inputs["A"] * inputs["B"]).toarray()
    np.testing.assert_allclose(results["M"].to_numpy(), product)
    np.testing.assert_allclose(results["Y"].to_numpy(), product @ inputs["C"].toarray(), rtol=1e-9, atol=1e-9)
    assert any(event.is_better for event in executed(db, plan).replannings)


def test_results_go_into_tables(db: se.Database) -> None:
    masked(db, 900, 0.1)
    assert db.run(MASKED, outputs=["M"], into={"Z": "scores", "M": "masked"}) == {}
    ((scores, products),) = db.connection.execute(
        "SELECT (SELECT COUNT(*) FROM scores), (SELECT COUNT(*) FROM masked)"
    ).fetchall()
    assert (scores, products) == (900 * 16, 81_000)


def test_a_plan_runs_again_after_replanning(db: se.Database) -> None:
    masked(db, 900, 0.1)
    plan = db.plan(MASKED, rewrite=False, indexes=False)
    notation = plan.notation()
    first, second = db.run(plan), db.run(plan)
    np.testing.assert_allclose(first["Z"].to_numpy(), second["Z"].to_numpy(), rtol=1e-9, atol=1e-9)
    assert plan.notation() == notation


def test_a_run_that_fails_after_replanning_leaves_nothing(db: se.Database) -> None:
    masked(db, 900, 0.1)
    before = contents(db)
    with pytest.raises(EngineError, match=r"Z\w* turned NaN or infinite"):
        db.run(MASKED.replace("Y[i, k] * D", "exp(1000000 * Y[i, k]) * D"), into={"Z": "scores"})
    assert contents(db) == before
    assert_usable(db)


def test_a_run_that_is_interrupted_while_it_replans_leaves_nothing(
    db: se.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked(db, 900, 0.1)
    before = contents(db)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(replanning, "_fastest", stopped)
    with pytest.raises(KeyboardInterrupt):
        db.run(db.plan(MASKED, rewrite=False, indexes=False), into={"Z": "scores"})
    assert contents(db) == before
    assert_usable(db)


def test_a_plan_continues_if_no_other_fits_into_memory(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choices that fit with the expected sizes may not fit with the actual ones."""
    masked(db, 900, 0.1)
    plan = db.plan(MASKED, rewrite=False, indexes=False)

    def none_fits(*_: object) -> None:
        raise PlanError("needs a memory_limit of more")

    monkeypatch.setattr(Alternatives, "best", none_fits)
    (replanning_,) = executed(db, plan).replannings
    assert not replanning_.is_better
    assert replanning_.seconds == replanning_.kept_seconds


def test_bench_compares_both_plans() -> None:
    comparison = bench.run("masked", bench.MASKED_PRODUCT, bench.masked(300, 0.1, 0.05), repeat=1)
    assert comparison.error == pytest.approx(10, rel=0.2)  # of M, which has ten times as many entries
    assert min(comparison.kept, comparison.replanned) > 0
    assert comparison.ratio == pytest.approx(comparison.kept / comparison.replanned)


@pytest.mark.parametrize("name", ["GCN", "attention"])
def test_networks_have_no_checkpoints(db: se.Database, name: str) -> None:
    """Sizes of products with dense operands and with diagonal ones follow from statistics of the inputs."""
    graph = citation_graph(300, 1500, 60, 2000, seed=1)
    text = GCN if name == "GCN" else attention_program(32)
    load(db, gcn_inputs(graph, hidden=16) if name == "GCN" else attention_inputs(graph, 32))
    plan = db.plan(text)
    assert plan.data.statements.for_run_with_checkpoints == plan.data.statements.for_run


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("Y[i, j] = A[i, j] * 2", {}),
        ("Y[i] = sum(A[i, j])", {}),
        ("Y[i, f] = sum(A[i, j] * D[j, f])", {}),
        ("Y[i, j] = A[i, j] + B[i, j]", {}),
        ("Y[i, j] = A[i, j] * B[i, j]", {"Y": 10.0}),  # at most as many as A has
        ("Y[i, f] = sum(C[i, j] * A[j, f])", {"Y": 1.33}),  # if no two pairs have the same cell
        ("T[i, j] = A[i, j] * B[i, j]\nY[i, f] = sum(T[i, j] * D[j, f])", {"T": 10.0, "Y": 1.05}),
    ],
)
def test_possible_factors_of_estimates(db: se.Database, text: str, times: dict[str, float]) -> None:
    masked(db, 300, 0.1)
    times_more = possible_times(db.plan(text, estimator="uniform").data.alternatives.model)
    assert times_more == pytest.approx(times, rel=0.03)


def test_checkpoints_are_set_where_they_may_pay(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    masked(db, 300, 0.1)
    plan = db.plan("T[i, j] = A[i, j] * B[i, j]\nY[i] = sum(T[i, j])", rewrite=False)
    model = plan.data.alternatives.model
    assert set(possible_times(model)) == {"T", "Y"}
    for seconds, points in ((0.0, ("T",)), (10 * plan.cost, ())):
        monkeypatch.setattr(replanning_points_module, "_TABLE_COST", TableCost(seconds, 0.0))
        assert replanning_points(plan.data.decomposed, model, ()) == points
    monkeypatch.setattr(replanning_points_module, "_TABLE_COST", TableCost(0.0, 0.0))
    assert replanning_points(plan.data.decomposed, model, ("T",)) == ()
