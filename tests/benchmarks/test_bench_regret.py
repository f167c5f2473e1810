"""The regret benchmark runs, stops and ranks plans, and reports every plan that it ran."""

import math

import pytest

import sparseeinsum as se
from bench.programs import PROGRAMS, small_source
from bench.regret import rank_correlation, run
from bench.stopping import seconds_within

SLOW = "Y[] = sum(exp(A[I] * B[J]))"


@pytest.fixture
def database() -> se.Database:
    database = se.connect()
    database.tensor("A", [1e-9] * 20_000)
    database.tensor("B", [1e-9] * 20_000)
    return database


def test_all_plans_of_a_small_program() -> None:
    regret = run(PROGRAMS["distances"](small_source(0.02)), plans=20, repeat=1)
    assert (
        regret.plans == len(regret.costs) == len(regret.seconds) == 9
    )  # every way to promote three labels, and one more
    assert regret.costs[regret.chosen_plan] == min(regret.costs.values())
    assert regret.fastest <= regret.chosen
    assert regret.fastest_plan in regret.costs
    assert regret.ratio == regret.chosen / regret.fastest >= 1
    assert regret.stopped == sum(seconds is None for seconds in regret.seconds.values())


def test_rank_correlation() -> None:
    assert rank_correlation([1, 2, 3, 4], [0.1, 0.3, 0.2, math.inf]) == pytest.approx(0.8)
    assert rank_correlation([1, 2, 3], [30, 20, 10]) == pytest.approx(-1)
    assert math.isnan(rank_correlation([1, 1], [1, 2]))


def test_a_slow_plan_is_stopped_and_the_next_is_not(database: se.Database) -> None:
    slow = database.plan(SLOW)
    assert math.isinf(seconds_within(database, slow, 0.02))
    quick = database.plan("Y[i] = A[i] * B[i]")
    assert 0 < seconds_within(database, quick, math.inf) < math.inf
    ((limit,),) = database.connection.execute("SELECT current_setting('max_execution_time')").fetchall()
    assert limit == 0


def test_a_plan_that_fails_is_not_taken_for_slow(database: se.Database) -> None:
    plan = database.plan("Y[i] = A[i] * B[i]")
    database.connection.execute("DROP TABLE A")
    with pytest.raises(se.SparseEinsumError, match="A"):
        seconds_within(database, plan, 10)
