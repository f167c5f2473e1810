"""The robustness tables plan with wrong statistics and constants, and restore the right ones afterwards."""

import statistics
from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest

import sparseeinsum as se
from bench import timing
from bench.paper_tables import (
    CONSTANTS,
    DRAWS,
    FACTORS,
    SHAPES,
    mistaken,
    replanned,
    run,
    run_programs,
    with_noise,
    wrong_constants,
)
from bench.programs import PROGRAMS, small_source
from sparseeinsum.api.examples import citation_graph, gcn_inputs, load
from sparseeinsum.api.graphs import GCN
from sparseeinsum.statistics.estimate import Statistics

GRAPH = citation_graph(1000, 3000, 300, 20_000, seed=1)


@pytest.fixture(scope="module")
def database() -> Iterator[se.Database]:
    with load(se.connect(), gcn_inputs(GRAPH, hidden=16, classes=4)) as database:
        yield database


@pytest.fixture(scope="module")
def plan(database: se.Database) -> se.Plan:
    return database.plan(GCN)


def test_planned_again_with_the_same_model(database: se.Database, plan: se.Plan) -> None:
    again = replanned(database, plan, plan.data.alternatives.model)
    assert again.notation() == plan.notation()
    assert again.cost == pytest.approx(plan.cost)


def test_planned_again_with_wrong_constants(database: se.Database, plan: se.Plan) -> None:
    model = plan.data.alternatives.model
    constants = replace(model.constants, hashing_seconds_per_tuple=1.0)  # the plan hashes, and moves few bytes
    other = replanned(database, plan, replace(model, constants=constants))
    assert other.notation() != plan.notation()
    assert plan.cost < other.cost < 1  # as the right constants have it
    assert database.plan(GCN).notation() == plan.notation()


def test_every_constant_is_changed_by_every_factor(database: se.Database, plan: se.Plan) -> None:
    changes = wrong_constants(database, plan)
    assert len(changes) == len(CONSTANTS) * len(FACTORS) == 28
    every_plan_has = {"fixed_seconds_per_run"}
    assert set(CONSTANTS.values()) == set(asdict(plan.data.alternatives.model.constants)) - every_plan_has


def test_noise_changes_results_alone(plan: se.Plan) -> None:
    model = plan.data.alternatives.model
    noisy = with_noise(model, 1, seed=0)
    results = {einsum.output.tensor for einsum in model.graph.einsums}
    changed = {name for name in model.statistics if noisy.statistics[name].entries != model.statistics[name].entries}
    assert changed
    assert changed <= results
    assert noisy.statistics == with_noise(model, 1, seed=0).statistics
    assert noisy.statistics != with_noise(model, 1, seed=1).statistics


@pytest.mark.parametrize("alpha", SHAPES.values())
def test_noise_is_as_often_up_as_down_in_the_mean(plan: se.Plan, alpha: float) -> None:
    model = plan.data.alternatives.model
    name = model.graph.einsums[0].output.tensor
    huge = replace(model.statistics[name], shape=(10**9, 10**9))
    model = replace(model, statistics={**model.statistics, name: huge})
    factors = [with_noise(model, alpha, seed).statistics[name].entries / huge.entries for seed in range(4000)]
    assert statistics.mean(factors) == pytest.approx(1, abs=0.2)
    assert statistics.pvariance(factors) == pytest.approx(1 / alpha, rel=0.3)


def test_changed_statistics_are_possible() -> None:
    right = Statistics(100.0, (10.0, 50.0), (20, 200), {frozenset({0}): 10.0}, {(1, 0): 10.0})
    assert mistaken(right, 0.2) == Statistics(20.0, (10.0, 20.0), (20, 200))
    assert mistaken(right, 3) == Statistics(300.0, (20.0, 150.0), (20, 200))
    assert mistaken(right, 1000) == Statistics(4000.0, (20.0, 200.0), (20, 200))
    assert not mistaken(right, 1).counted_tuples


def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_PAUSE_SECONDS", 0)
    rows = list(run(GRAPH, [9, 11, 12], repeat=1, width=16))
    cases = {row.case for row in rows}
    assert cases == {"GCN, twin", "attention, twin"}
    assert len(rows) == len(cases) * (2 + 1 + 28 + 1 + len(SHAPES))
    for row in rows:
        unchanged = next(other for other in rows if (other.table, other.case) == (row.table, row.case))
        assert unchanged.change == "none"
        assert unchanged.ratio == 1
        # The unchanged plan is the cheapest that there is.
        assert row.expected >= unchanged.expected * (1 - 1e-9)
        assert row.ratio == pytest.approx(row.seconds / unchanged.seconds)
        assert 1 <= row.plans <= (DRAWS if row.table == 12 and row.change != "none" else 1)
    assert any(row.plans > 1 for row in rows)


def test_rows_of_greedy_search_for_all_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_PAUSE_SECONDS", 0)
    rows = list(run_programs(small_source(0.02), repeat=1))
    assert [(row.case, row.change) for row in rows] == [
        (name, change) for name in PROGRAMS for change in ("none", "greedy")
    ]
    for unchanged, greedy in zip(rows[::2], rows[1::2], strict=True):
        assert greedy.expected >= unchanged.expected * (1 - 1e-9)
