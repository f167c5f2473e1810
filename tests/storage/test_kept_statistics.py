"""What loading finds of a tensor is kept in the catalogue: other processes need no scan, unless something changed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from observed_statements import observe_queries
from random_programs import arrays
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.statistics.axis_counts import count_entries
from sparseeinsum.statistics.measure import measure
from sparseeinsum.statistics.scan_cache import RowVersion
from sparseeinsum.storage.kept_statistics import kept_counts, kept_measurements
from sparseeinsum.storage.row_versions import row_versions

PROGRAM = "Y[i] = sum(A[i, j])"

pytestmark = pytest.mark.engines("duckdb", "postgresql")


@contextmanager
def reopened(engine: str, db: se.Database) -> Iterator[se.Database]:
    """Another connection to a database, which knows nothing of the first one."""
    if engine == "duckdb":
        yield se.connect(db.connection.cursor())
        return
    with psycopg.connect(db.connection.info.dsn, autocommit=True) as connection:
        connection.execute("SET search_path = main, public")
        yield se.connect(connection)


def test_what_is_kept_is_what_a_scan_finds(engine: str, db: se.Database) -> None:
    dtypes = ["float64", "int64", "bool", *(["float32"] if engine == "duckdb" else [])]  # PostgreSQL returns it rounded

    @random_runs(20, engine)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
        dtype = data.draw(st.sampled_from(dtypes))
        fill = data.draw(st.sampled_from([0, 1]))
        array = data.draw(arrays(shape, dtype, np.array(fill, dtype)[()]))
        axes = [f"axis_{number}" for number in range(len(shape))]
        promoted = [axis for axis in axes if data.draw(st.booleans())]
        stored = db.tensor("A", array, axes=axes, promoted=promoted, fill=fill)
        version = row_versions({"A": stored}, db._engine)["A"].version
        kept = kept_measurements({"A": RowVersion(stored, version)}, db._engine)["A"]
        measured = measure(stored, db._engine, version)
        assert kept == measured
        counts = kept_counts({"A": RowVersion(stored, version)}, db._engine)["A"]
        for axis, counted in zip(counts, count_entries({"A": stored}, db._engine)["A"], strict=True):
            np.testing.assert_array_equal(axis.entries, counted.entries)
            np.testing.assert_array_equal(axis.present, counted.present)

    run()


def test_another_process_scans_nothing(engine: str, db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.tensor("A", np.eye(4), axes=["i", "j"], promoted=["i", "j"])
    with reopened(engine, db) as later:
        statements = observe_queries(later, monkeypatch)
        later.plan(PROGRAM)
        assert not [text for text in statements if "main.a" in text.lower() and "limit 2048" not in text.lower()]
        np.testing.assert_array_equal(later.run(PROGRAM)["Y"].to_numpy(), 1)


EDITS = [
    "UPDATE sparseeinsum.tensors SET statistics = replace(statistics, '\"tuples\": 4', '\"tuples\": 3')",
    "UPDATE sparseeinsum.tensors SET statistics = replace(statistics, '[1.0, 1.0', '[0.0, 0.0')",
    "UPDATE sparseeinsum.tensors SET statistics = 'no statistics'",
    "UPDATE sparseeinsum.tensors SET statistics = ''",
    "UPDATE sparseeinsum.tensors SET statistics = NULL",
    "UPDATE sparseeinsum.tensors SET statistics = axis_counts, axis_counts = statistics",
    "UPDATE sparseeinsum.tensors SET bounds = ARRAY[5, 5]",
]


@pytest.mark.parametrize("edit", EDITS)
def test_edited_statistics_are_not_used(engine: str, db: se.Database, edit: str) -> None:
    db.tensor("A", np.eye(4), axes=["i", "j"], promoted=["i", "j"])
    with reopened(engine, db) as later:
        later.connection.execute(edit)
        version = row_versions({"A": later.tensors()["A"]}, later._engine)
        assert not kept_measurements(version, later._engine)
        np.testing.assert_array_equal(later.run(PROGRAM)["Y"].to_numpy()[:4], 1)


def test_statistics_of_another_tensor_are_not_used(engine: str, db: se.Database) -> None:
    db.tensor("A", np.eye(4), axes=["i", "j"], promoted=["i", "j"])
    db.tensor("B", np.ones((4, 4)), axes=["i", "j"], promoted=["i", "j"])
    db.connection.execute(
        "UPDATE sparseeinsum.tensors SET statistics = "
        "(SELECT t.statistics FROM sparseeinsum.tensors AS t WHERE t.name = 'A') WHERE name = 'B'"
    )
    with reopened(engine, db) as later:
        versions = row_versions(later.tensors(), later._engine)
        assert list(kept_measurements(versions, later._engine)) == ["A"]
        np.testing.assert_array_equal(later.run("Y[i] = sum(B[i, j])")["Y"].to_numpy(), 4)


@pytest.mark.engines("duckdb", reason="files of a database that can be copied")
def test_a_copied_file_keeps_its_own(tmp_path: Path) -> None:
    """And a plan for one of two copies that have changed apart is none for the other."""
    first, second = tmp_path / "first.duckdb", tmp_path / "second.duckdb"
    with se.connect(first) as db:
        db.tensor("A", np.eye(3), axes=["i", "j"], promoted=["i", "j"])
    shutil.copy(first, second)
    with se.connect(first) as one, se.connect(second) as two:
        for db in (one, two):
            assert "A" in kept_measurements(row_versions(db.tensors(), db._engine), db._engine)
        one.connection.execute("UPDATE A SET j = 0 WHERE i = 2")
        two.connection.execute("INSERT INTO A VALUES (0, 1, 5)")
        versions = [row_versions(db.tensors(), db._engine)["A"].version for db in (one, two)]
        assert versions[0] != versions[1]
        assert not kept_measurements(row_versions(two.tensors(), two._engine), two._engine)
        np.testing.assert_array_equal(two.run(PROGRAM)["Y"].to_numpy(), [6, 1, 1])


@pytest.mark.engines("duckdb", reason="PostgreSQL restores triggers, and tables with other numbers")
def test_an_exported_database_with_edited_rows(tmp_path: Path) -> None:
    exported = tmp_path / "exported"
    with se.connect(tmp_path / "a.duckdb") as db:
        db.tensor("A", np.eye(2), axes=["i", "j"], promoted=["i", "j"])
        db.connection.execute(f"EXPORT DATABASE '{exported}'")
    (exported / "a.csv").write_text("i,j,val\n0,0,1.0\n0,1,5.0\n1,1,1.0\n")
    with se.connect(tmp_path / "b.duckdb") as db:
        db.connection.execute(f"IMPORT DATABASE '{exported}'")
        assert not kept_measurements(row_versions(db.tensors(), db._engine), db._engine)
        np.testing.assert_array_equal(db.run(PROGRAM)["Y"].to_numpy(), [6, 1])


def test_statistics_of_a_table_that_changed_are_not_used(engine: str, db: se.Database) -> None:
    db.tensor("A", np.eye(3), axes=["i", "j"], promoted=["i", "j"])
    db.connection.execute("INSERT INTO A VALUES (0, 1, 5)")
    with reopened(engine, db) as later:
        assert not kept_measurements(row_versions(later.tensors(), later._engine), later._engine)
        np.testing.assert_array_equal(later.run(PROGRAM)["Y"].to_numpy(), [6, 1, 1])
