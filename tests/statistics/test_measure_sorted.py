"""Sorted entries are measured as other tables are, and tables that are not sorted or not sound are left to others."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.statistics import measure_sorted as module
from sparseeinsum.statistics.axis_counts import count_entries
from sparseeinsum.statistics.measure import Measurement, measure
from sparseeinsum.statistics.measure_sorted import measure_sorted

VALUES = st.sampled_from([0.0, 1.0, -2.5, np.inf, np.nan])


def measured_sorted(db: se.Database, name: str) -> Measurement | None:
    engine = db._engine
    return measure_sorted(db.tensors()[name], engine, partial(count_entries, executor=engine), version=None)


@pytest.fixture
def small_tables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEAST_ROWS", 0)


@pytest.mark.usefixtures("small_tables_count")
def test_measurements_are_the_same() -> None:
    @random_runs(20)
    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), VALUES), max_size=12), st.sampled_from([0.0, 1.0]))
    def run(rows: list[tuple[int, int, float]], fill: float) -> None:
        with se.connect() as db:
            db.tensor("A", np.zeros((4, 5)), promoted=["dim_0", "dim_1"], fill=fill)
            db.connection.execute("TRUNCATE A")
            for (i, j), value in sorted({(i, j): value for i, j, value in rows}.items()):
                db.connection.execute("INSERT INTO A VALUES (?, ?, ?)", [i, j, value])
            assert measured_sorted(db, "A") == measure(db.tensors()["A"], db._engine)

    run()


@pytest.mark.usefixtures("small_tables_count")
@pytest.mark.parametrize("row", ["0, 0, 1", "1, 1, 5", "NULL, 1, 1", "4, 0, 1", "3, -1, 1", "3, 4, NULL"])
def test_other_tables_are_not_measured(row: str) -> None:
    with se.connect() as db:
        db.tensor("A", np.eye(4, 5), promoted=["dim_0", "dim_1"])
        assert measured_sorted(db, "A") is not None
        db.connection.execute(f"INSERT INTO A VALUES ({row})")
        assert measured_sorted(db, "A") is None


def test_large_tables_are_planned_without_a_count_of_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    with se.connect() as db:
        db.tensor("A", np.ones((500, 400)), promoted=["dim_0", "dim_1"])
        monkeypatch.setattr("sparseeinsum.storage.measuring.measure", None)
        plan = db.plan("Y[i] = sum(A[i, j])")
        assert plan.data.inputs["A"].statistics.entries == 200_000
        np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), 400)
