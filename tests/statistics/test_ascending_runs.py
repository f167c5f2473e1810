"""What the order of rows proves holds, and a table that was sorted proves it also after a few changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.statistics import ascending_runs
from sparseeinsum.statistics.ascending_runs import is_distinct_by_order

SHAPE = (12, 9)
PLACES = st.integers(0, SHAPE[0] * SHAPE[1] - 1)


def insert(db: se.Database, places: list[int]) -> None:
    rows = ", ".join(f"({place // SHAPE[1]}, {place % SHAPE[1]}, 1.0)" for place in places)
    if rows:
        db.connection.execute(f"INSERT INTO A VALUES {rows}")


def sorted_table(places: list[int]) -> se.Database:
    db = se.connect()
    db.tensor("A", np.zeros(SHAPE), promoted=["dim_0", "dim_1"])
    db.connection.execute("TRUNCATE A")
    insert(db, places)
    return db


def is_proven(db: se.Database, numbered_rows: int) -> bool:
    return is_distinct_by_order(db.tensors()["A"], db._engine, numbered_rows)


@pytest.mark.parametrize("numbers_rows", [False, True])
def test_what_is_proven_holds(monkeypatch: pytest.MonkeyPatch, numbers_rows: bool) -> None:
    monkeypatch.setattr(ascending_runs, "_MOST_RUNS", 3)
    monkeypatch.setattr(ascending_runs, "_MOST_LATE", 4)

    @random_runs(100)
    @given(st.sets(PLACES), st.lists(PLACES, max_size=8), st.sets(PLACES, max_size=2), st.integers(1, 9))
    def run(loaded: set[int], later: list[int], moved: set[int], last_rows: int) -> None:
        monkeypatch.setattr(ascending_runs, "_LAST_ROWS", last_rows)
        with sorted_table(sorted(loaded)) as db:
            for place in moved:
                row, column = divmod(place, SHAPE[1])
                db.connection.execute(f"UPDATE A SET dim_1 = 8 - dim_1 WHERE dim_0 = {row} AND dim_1 = {column}")
            insert(db, later)
            ((rows, distinct),) = db.connection.execute(
                "SELECT count(*), count(DISTINCT (dim_0, dim_1)) FROM A"
            ).fetchall()
            proven = is_proven(db, rows if numbers_rows else 0)
            assert not proven or rows == distinct
            assert proven or later or moved

    run()


CHANGES = {
    "an update of a value": ("UPDATE A SET val = 7 WHERE dim_0 = 4", True),
    "a row less": ("DELETE FROM A WHERE dim_0 = 3 AND dim_1 = 2", True),
    "no rows": ("TRUNCATE A", True),
    "a row at its place again": ("DELETE FROM A WHERE dim_0 = 3; INSERT INTO A VALUES (3, 1, 2)", True),
    "rows in any order": ("DELETE FROM A WHERE dim_0 < 3; INSERT INTO A VALUES (2, 1, 2), (0, 4, 1), (1, 1, 1)", True),
    "a moved row": ("DELETE FROM A WHERE dim_0 = 5; UPDATE A SET dim_0 = 5 WHERE dim_0 = 2 AND dim_1 = 2", True),
    "a repeated row": ("INSERT INTO A VALUES (3, 1, 2)", False),
    "the last row again": ("INSERT INTO A SELECT * FROM A WHERE dim_0 = 11 AND dim_1 = 8", False),
    "a new row twice": ("DELETE FROM A WHERE dim_0 = 3; INSERT INTO A VALUES (3, 1, 2), (3, 1, 2)", False),
    "a row that was moved to another": ("UPDATE A SET dim_0 = 5 WHERE dim_0 = 2 AND dim_1 = 2", False),
}


@pytest.mark.parametrize("last_rows", [4, 1000])
@pytest.mark.parametrize("change", CHANGES)
def test_a_few_changes(monkeypatch: pytest.MonkeyPatch, change: str, last_rows: int) -> None:
    monkeypatch.setattr(ascending_runs, "_LAST_ROWS", last_rows)
    with sorted_table(list(range(SHAPE[0] * SHAPE[1]))) as db:
        assert is_proven(db, SHAPE[0] * SHAPE[1])
        statements, is_distinct = CHANGES[change]
        db.connection.execute(statements)
        assert is_proven(db, SHAPE[0] * SHAPE[1]) == is_distinct
        assert is_proven(db, 0) == is_distinct


def test_rows_of_the_open_transaction() -> None:
    with sorted_table(list(range(50))) as db:
        db.connection.execute("BEGIN")
        insert(db, [80, 60])
        assert is_proven(db, 52)
        insert(db, [70, 60])
        assert not is_proven(db, 54)


def test_no_order_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ascending_runs, "_MOST_RUNS", 3)
    with sorted_table(sorted(range(108), key=lambda place: place * 29 % 108)) as db:
        assert not is_proven(db, 0)
