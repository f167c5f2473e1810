"""A program on equal data in another database keeps its plan; other data get plans of their own."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.pipeline import planning

PROGRAM = "T[i, m] = sum(A[i, j] * H[j, m])\nY[i, m] = 1 / T[i, m]"
MATRIX = np.array([[0, 2.0, 0], [1, 0, 0], [0, 0, 3]])
DENSE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The outputs of the programs whose plans were searched."""
    searched: list[str] = []
    original = planning._searched_plans

    def observed(program: se.Program, *arguments: object) -> object:
        searched.extend(program.outputs)
        return original(program, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(planning, "_searched_plans", observed)
    yield searched


def database(matrix: np.ndarray) -> se.Database:
    db = se.connect()
    db.tensor("A", matrix, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("H", DENSE)
    return db


def test_equal_data_are_searched_once(searches: list[str]) -> None:
    for _ in range(3):
        with database(MATRIX) as db:
            plan = db.plan(PROGRAM)
            for _ in range(2):
                np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), 1 / (MATRIX @ DENSE))
            assert set(plan.data.planning_seconds) == {"scans", "statistics", "optimizer"}
    assert searches == ["Y"]


def test_databases_that_are_open_at_once_share_no_rows(searches: list[str]) -> None:
    shifted = np.roll(MATRIX, 1, axis=0)  # with as many entries at every index, in other places
    with database(MATRIX) as first, database(shifted) as second:
        for _ in range(2):
            for db, matrix in ((first, MATRIX), (second, shifted)):
                np.testing.assert_allclose(db.run(PROGRAM)["Y"].to_numpy(), 1 / (matrix @ DENSE))
    assert searches == ["Y"]


@pytest.mark.parametrize(
    "matrix",
    [2 * MATRIX, np.triu(np.ones((3, 3))), np.where(MATRIX == 2, -2, MATRIX)],
    ids=["other values", "other entries", "a negative value"],
)
def test_other_data_are_searched(searches: list[str], matrix: np.ndarray) -> None:
    for values in (MATRIX, matrix):
        with database(values) as db:
            np.testing.assert_allclose(db.run(PROGRAM)["Y"].to_numpy(), 1 / (values @ DENSE))
    assert searches == ["Y"] * 2


def test_options_and_what_may_not_be_compared_are_searched(searches: list[str]) -> None:
    for _ in range(2):
        with database(MATRIX) as db:
            db.plan(PROGRAM, optimizer="relational")
            db.plan(PROGRAM, estimator="exact")
    assert len(searches) == 3


def test_an_engine_of_another_dialect_gets_a_plan_of_its_own(searches: list[str]) -> None:
    for changes in ({}, {"nests_queries": True}):
        with database(MATRIX) as db:
            db._engine.dialect = replace(db._engine.dialect, **changes)  # type: ignore[misc,arg-type]
            assert db.plan(PROGRAM).data.dialect == db._engine.dialect
    assert searches == ["Y"] * 2
