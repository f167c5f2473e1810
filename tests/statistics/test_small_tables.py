"""Small tables are measured as a scan measures them, and those that are not sound are left to others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from observed_statements import observe_queries
from random_programs import arrays
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.statistics import small_tables
from sparseeinsum.statistics.axis_counts import count_entries
from sparseeinsum.statistics.loaded_measurements import LoadedMeasurement
from sparseeinsum.statistics.measure import measure
from sparseeinsum.statistics.order import ascending_axes
from sparseeinsum.statistics.small_tables import measure_small


def measured(db: se.Database) -> LoadedMeasurement | None:
    return measure_small(db.tensors()["A"], db._engine, version=None)


@pytest.mark.engines("duckdb", reason="PostgreSQL scans")
def test_measurements_are_the_same(db: se.Database) -> None:
    dtypes = ["float64", "float32", "int64", "bool"]

    @random_runs(30)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
        dtype = data.draw(st.sampled_from(dtypes))
        fill = data.draw(st.sampled_from([0, 1]))
        array = data.draw(arrays(shape, dtype, np.array(fill, dtype)[()]))
        axes = [f"axis_{number}" for number in range(len(shape))]
        stored = db.tensor("A", array, axes=axes, promoted=axes, fill=fill)
        if data.draw(st.booleans()):
            db.connection.execute(f"DELETE FROM A WHERE axis_0 = {data.draw(st.integers(0, 4))}")
        loaded = measured(db)
        assert loaded is not None
        assert loaded.counts is not None
        assert loaded.measurement == measure(stored, db._engine)
        for axis, counted in zip(loaded.counts, count_entries({"A": stored}, db._engine)["A"], strict=True):
            np.testing.assert_array_equal(axis.entries, counted.entries)
            np.testing.assert_array_equal(axis.present, counted.present)
        if loaded.measurement.tuples > 1:  # an order of fewer rows makes nothing faster
            assert loaded.measurement.ascending == ascending_axes({"A": stored}, db._engine)["A"]

    run()


@pytest.mark.parametrize("row", ["0, 0, 1", "1, 1, 5", "NULL, 1, 1", "4, 0, 1", "3, -1, 1", "3, 4, NULL", "0, 5, 1"])
def test_unsound_tables_are_not_measured(db: se.Database, row: str) -> None:
    db.tensor("A", np.eye(4, 5), axes=["i", "j"], promoted=["i", "j"])
    db.connection.execute("DELETE FROM A WHERE i = 0")
    db.connection.execute("INSERT INTO A VALUES (0, 0, 1)")
    assert measured(db) is not None
    db.connection.execute(f"INSERT INTO A VALUES ({row})")
    assert measured(db) is None


def test_large_tables_are_not_read(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.tensor("A", np.ones((4, 5)), axes=["i", "j"], promoted=["i", "j"])
    monkeypatch.setattr(small_tables, "_MOST_ROWS", 19)
    assert measured(db) is None


@pytest.mark.engines("duckdb", reason="PostgreSQL scans")
def test_a_change_costs_one_query_of_rows(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.tensor("A", np.eye(30), axes=["i", "j"], promoted=["i", "j"])
    db.plan("Y[i] = sum(A[i, j])")
    db.connection.execute("UPDATE A SET val = 3 WHERE i = 5")
    statements = observe_queries(db, monkeypatch)
    plan = db.plan("Y[i] = sum(A[i, j])")
    assert [text for text in statements if "main.A" in text] == ["SELECT COUNT(*) FROM main.A"]
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), np.where(np.arange(30) == 5, 3, 1))
