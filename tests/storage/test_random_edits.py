"""Whatever random edits change tables between and during runs, results are of the tables as they are, or errors."""

from pathlib import Path

import pytest
from edited_tables import run_edits
from hypothesis import given
from hypothesis import strategies as st
from random_runs import random_runs

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")


def test_random_edits(db: se.Database, engine: str, tmp_path: Path) -> None:
    @random_runs(12, engine)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        if engine == "duckdb":
            with se.connect() as empty:
                run_edits(data, empty, engine, str(tmp_path), most=6)
            return
        db.connection.execute("DROP SCHEMA IF EXISTS main, sparseeinsum, sparseeinsum_dictionaries CASCADE")
        db.connection.execute("CREATE SCHEMA main")
        run_edits(data, db, engine, str(tmp_path), most=6)

    run()
