"""On PostgreSQL, where no triggers record changes, rows are read only if a transaction may have changed them since."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import OutdatedPlanError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.fingerprints import fingerprints
from sparseeinsum.storage import row_versions

PROGRAM = "Y[i] = sum(A[i, j])"
MATRIX = np.array([[0, 2.0], [1, 3]])

pytestmark = pytest.mark.engines("postgresql", reason="DuckDB has no such state")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the number of tensors whose rows are read for a fingerprint."""
    counts: list[int] = []

    def observed(sources: Sequence[StoredTensor], engine: Engine) -> object:
        counts.append(len(sources))
        return fingerprints(sources, engine)

    monkeypatch.setattr(row_versions, "fingerprints", observed)
    return counts


@pytest.fixture
def other(db: se.Database) -> Iterator[psycopg.Connection]:
    """Another session."""
    with psycopg.connect(db.connection.info.dsn) as connection:
        connection.execute("SET search_path = main, public")
        connection.commit()
        yield connection


def result(db: se.Database, program: str | se.Plan) -> np.ndarray:
    array: np.ndarray = db.run(program)["Y"].to_numpy()
    return array


def test_runs_without_writes_read_no_rows(db: se.Database, read: list[int]) -> None:
    db.tensor("A", MATRIX, axes=["i", "j"])
    db.connection.execute("DROP TRIGGER sparseeinsum_change ON a")
    plan = db.plan(PROGRAM)
    for _ in range(3):
        np.testing.assert_array_equal(result(db, plan), [2, 4])
    assert len(read) == 1
    db.connection.execute("SELECT count(*) FROM a")
    result(db, plan)
    assert len(read) == 1
    db.connection.execute("CREATE TABLE t (i INT)")
    result(db, plan)
    assert len(read) == 2


CHANGES: dict[str, Callable[[str], str]] = {
    "update": lambda value: f"UPDATE a SET val = array_fill({value}::float8, ARRAY[2])",
    "delete": lambda value: "DELETE FROM a WHERE i = 0",
    "truncate": lambda value: "TRUNCATE a",
    "insert": lambda value: (
        f"INSERT INTO a SELECT i, array_fill({value}::float8, ARRAY[2]) FROM generate_series(0, 1) i "
        "WHERE NOT EXISTS (SELECT FROM a)"
    ),
    "rewrite": lambda value: f"ALTER TABLE a ALTER val TYPE float8[] USING array_fill({value}::float8, ARRAY[2])",
    "nothing": lambda value: "SELECT 1",
}


def test_random_changes_of_others(db: se.Database, other: psycopg.Connection) -> None:
    """Transactions of another session that begin, go on and end between runs."""

    @random_runs(100, "postgresql")
    @given(st.lists(st.tuples(st.sampled_from([*CHANGES, "commit", "rollback"]), st.integers(1, 5)), max_size=12))
    def run(steps: list[tuple[str, int]]) -> None:
        other.rollback()
        db.tensor("A", MATRIX, axes=["i", "j"], promoted=["i"])
        db.connection.execute("DROP TRIGGER sparseeinsum_change ON a")
        plan = db.plan(PROGRAM)
        for kind, value in steps:
            if kind == "commit":
                other.commit()
            elif kind == "rollback":
                other.rollback()
            else:
                other.execute(CHANGES[kind](str(value)))
            if kind in ("rewrite", "truncate"):  # nobody reads the table before the end of the transaction
                other.commit()
            expected = np.zeros(2)
            for i, values in db.connection.execute("SELECT i, val FROM a").fetchall():
                expected[i] = sum(values)
            with suppress(OutdatedPlanError):
                np.testing.assert_array_equal(result(db, plan), expected)
            np.testing.assert_array_equal(result(db, PROGRAM), expected)
        other.rollback()

    run()
