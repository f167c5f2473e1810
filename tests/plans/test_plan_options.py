"""Users can pin promoted labels, limit memory and ask for several plans."""

import itertools

import numpy as np
import pytest
from planned_memory import limit_for
from planning_problems import drawn, promoted

import sparseeinsum as se
from sparseeinsum.errors import PlanError
from sparseeinsum.language.tensors import DEMOTED, Decomposition

CHAIN = "T[i, k] = sum(A[i, j] * B[j, k])\nY[i, l] = relu(sum(T[i, k] * C[k, l]))"


@pytest.fixture
def chain(db: se.Database) -> se.Database:
    rng = np.random.default_rng(0)
    db.tensor("A", rng.random((30, 20)) * (rng.random((30, 20)) < 0.1), promoted=["dim_0", "dim_1"])
    db.tensor("B", rng.random((20, 10)))
    db.tensor("C", rng.random((10, 5)))
    return db


@pytest.mark.parametrize("labels", ["", "i", "j", "ik", "ijk"])
@pytest.mark.parametrize("optimizer", ["dp", "greedy"])
def test_pinned_labels_are_promoted(chain: se.Database, labels: str, optimizer: str) -> None:
    plan = chain.plan(CHAIN, pin={"T": labels.upper()}, optimizer=optimizer)
    assert promoted(plan, "T") == frozenset(labels)


def test_unpinned_labels_are_optimized() -> None:
    for problem in drawn(is_tree=True, count=15):
        einsum = problem.model.graph.einsums[-1]
        pinned = frozenset(einsum.labels[::2])
        costs = [
            problem.price(choices)
            for choices in problem.all_plans()
            if choices[einsum.output.tensor] == tuple(int(label in pinned) for label in einsum.labels)
        ]
        (plan,) = problem.optimise(pinned={einsum.output.tensor: dict.fromkeys(pinned, 1)})
        assert plan.seconds == pytest.approx(min(costs), rel=1e-9)


def test_unknown_names_and_labels_are_refused(chain: se.Database) -> None:
    with pytest.raises(PlanError, match="T has no label z to promote; it has i, k, j"):
        chain.plan(CHAIN, pin={"T": "iz"})
    with pytest.raises(PlanError, match="the program computes no A; it computes T"):
        chain.plan(CHAIN, pin={"A": "i"})


def test_pins_against_the_optimizer_are_refused(chain: se.Database) -> None:
    for optimizer, labels in (("dense", "i"), ("relational", "i")):
        with pytest.raises(PlanError, match="no decomposition of T satisfies both the labels promoted by hand"):
            chain.plan(CHAIN, pin={"T": labels}, optimizer=optimizer)


@pytest.mark.parametrize("text", ["T[I, k] = sum(A[I, j] * B[j, k])", "T[i, k] = sum(A[i, J] * B[J, k])"])
def test_labels_in_upper_case_stay_promoted(chain: se.Database, text: str) -> None:
    by_hand = {label.lower() for label in "IJ" if label in text}
    plans = chain.plan(text, top=20)
    assert {frozenset(promoted(plan, "T")) for plan in plans} == {
        frozenset(labels) | by_hand
        for size in range(3)
        for labels in itertools.combinations(sorted({*"ijk"} - by_hand), size)
    }
    assert all(plan.notation()[0].startswith(text[:4]) or "J" in text for plan in plans)


def test_labels_in_upper_case_give_the_layout(chain: se.Database) -> None:
    plan = chain.plan("T[I, k] = sum(A[I, j] * B[j, k])")
    assert plan.data.decomposed.layouts["T"] == Decomposition((1, DEMOTED))
    entries = chain.plan("T[i, k] = sum(A[i, j] * B[j, k])")
    assert entries.data.decomposed.layouts["T"] == Decomposition((1, 1))


def test_memory_limit_is_respected(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    db.tensor("A", rng.random((64, 64)))
    db.tensor("B", rng.random((64, 64)))
    text = "C[i, k] = sum(A[i, j] * B[j, k])"
    for planned in (600_000, 800_000, 2_000_000, 10_000_000):
        for plan in db.plan(text, memory_limit=limit_for(db, planned), top=8):
            model = plan.data.alternatives.model
            (step,) = plan.data.decomposed.steps
            assert model.needed_bytes(step.einsum, step.choice) <= model.memory.limit_bytes
            assert model.memory.limit_bytes == pytest.approx(planned, abs=1)
            assert all(
                move.needed_bytes <= model.memory.limit_bytes for move in plan.data.decomposed.repartitions.values()
            )
    with pytest.raises(PlanError, match="raise memory_limit or promote more labels"):
        db.plan(text, memory_limit=limit_for(db, 200_000), optimizer="dense")
    with pytest.raises(PlanError, match="raise memory_limit or promote more labels"):
        db.plan(text, memory_limit=10)


def test_several_plans_come_best_first(chain: se.Database) -> None:
    plans = chain.plan(CHAIN, top=30)
    assert len(plans) == 30
    assert [plan.cost for plan in plans] == sorted(plan.cost for plan in plans)
    assert len({tuple(plan.notation()) for plan in plans}) == 30
    assert plans[0].notation() == chain.plan(CHAIN).notation()
    with pytest.raises(PlanError, match="ask for at least one"):
        chain.plan(CHAIN, top=0)
