"""The search looks at all choices of short programs; of long ones at those that pay for the time to price them."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.search_space import SearchSpace
from sparseeinsum.language.tensors import DEMOTED
from sparseeinsum.pipeline.plan_options import plan_options
from sparseeinsum.pipeline.planning import make_plans

LAYERS = 20
FEW = 4  # nothing promoted, everything, or the labels by which one of two operands is divided
LARGE = "P[a, b] = sum(L[a, c] * R[c, b])"


def layers(count: int) -> str:
    """Statements of three labels, each of which reads the one before."""
    return "\n".join(f"X{layer + 1}[i, k] = sum(W[k, j] * X{layer}[i, j])" for layer in range(count))


@pytest.fixture(scope="module")
def loaded() -> se.Database:
    database = se.connect()
    rng = np.random.default_rng(0)
    database.tensor("W", rng.random((5, 5)) / 5)
    database.tensor("X0", rng.random((6, 5)), axes=["i", "j"], promoted=["i"])
    database.tensor("L", rng.random((3000, 800)))
    database.tensor("R", rng.random((800, 3000)))
    return database


def choices_of(plan: se.Plan, is_limited: bool) -> Mapping[str, tuple[Choice, ...]]:
    alternatives = plan.data.alternatives
    return SearchSpace(alternatives.model, stored=alternatives.stored if is_limited else None).allowed()


def test_all_choices_of_a_short_program_are_looked_at(loaded: se.Database) -> None:
    plan = loaded.plan(layers(8))
    limited = choices_of(plan, is_limited=True)
    assert limited == choices_of(plan, is_limited=False)
    assert {len(choices) for choices in limited.values()} == {2**3}


def test_small_work_of_a_long_program_gets_a_few_choices(loaded: se.Database) -> None:
    plan = loaded.plan(f"{layers(LAYERS)}\n{LARGE}\nQ[a] = max(P[a, b])")
    choices = choices_of(plan, is_limited=True)
    assert len(choices["P"]) == 2**3
    small = {name: of_result for name, of_result in choices.items() if name.startswith("X")}
    assert all(len(of_result) <= FEW for of_result in small.values())
    compared = [set(of_result) for of_result in small.values() if len(of_result) > 1]
    assert len(compared) > 1  # for others, one choice is surely the cheapest
    assert all({(DEMOTED,) * 3, (1,) * 3} <= of_result for of_result in compared)
    assert sum(map(len, choices_of(plan, is_limited=False).values())) == (LAYERS + 1) * 2**3 + 2**2
    # The rows by which X0 is stored stay what they are, in the first statement and in the others.
    assert (1, DEMOTED, DEMOTED) in choices["X1"]


def test_the_least_work_is_done_over_single_arrays(loaded: se.Database) -> None:
    choices = dict(choices_of(loaded.plan(layers(LAYERS)), is_limited=True))
    assert len(choices.pop(f"X{LAYERS}")) > 1  # an output may be delivered in another layout
    assert set(choices.values()) == {((DEMOTED,) * 3,)}


@pytest.mark.parametrize("further", ["", f"{LARGE}\nQ[a] = max(P[a, b])"], ids=["none", "large"])
def test_few_choices_of_small_work_are_as_cheap_as_all(loaded: se.Database, further: str) -> None:
    plan = loaded.plan(f"{layers(LAYERS)}\n{further}")
    (cheapest,) = replace(plan.data.alternatives, searches_all=True).preferred(1)
    assert plan.cost <= 1.05 * cheapest.seconds


def test_large_work_among_small_gets_all_choices(loaded: se.Database) -> None:
    choices = choices_of(loaded.plan(f"{layers(LAYERS)}\n{LARGE}"), is_limited=True)
    assert len(choices["P"]) == 2**3
    assert all(len(of_result) <= FEW for name, of_result in choices.items() if name != "P")


def test_the_explanation_says_where_the_search_stopped(loaded: se.Database) -> None:
    assert "the search looked at" not in loaded.plan(layers(8)).explain()
    explanation = loaded.plan(layers(LAYERS)).explain()
    considered, possible = map(int, re.findall(r"the search looked at (\d+) of (\d+) choices", explanation)[0])
    assert considered <= LAYERS * FEW < possible == LAYERS * 2**3


def test_what_is_pinned_stays_pinned(loaded: se.Database) -> None:
    plan = loaded.plan(layers(LAYERS), pin={"X7": ["k"]})
    step = plan.data.decomposed.step_of("X7")
    assert step is not None
    assert step.promoted == {"k"}


@pytest.mark.parametrize("searches_all", [False, True])
def test_either_search_gives_a_right_plan(loaded: se.Database, searches_all: bool) -> None:
    options = replace(plan_options("dp"), searches_all=searches_all)
    (data,) = make_plans(se.program(layers(LAYERS)), loaded._engine, options)
    result = loaded.run(se.Plan(data, loaded._engine))[f"X{LAYERS}"].to_numpy()
    rng = np.random.default_rng(0)
    weights, expected = rng.random((5, 5)) / 5, rng.random((6, 5))
    for _ in range(LAYERS):
        expected = expected @ weights.T
    np.testing.assert_allclose(result, expected, rtol=1e-9)
    assert data.alternatives.searches_all == searches_all
