"""`compile --dialect` prints SQL that another engine runs, and refuses what it cannot print."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import sparseeinsum as se
from sparseeinsum.cli import main

PROGRAM = "C[i, k] = sum(A[i, j] * B[j, k])"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A file with two tables, as tensors."""
    path = str(tmp_path / "graph.duckdb")
    with se.connect(path) as db:
        for name in "AB":
            rows = "SELECT i AS row, i * i % 5 AS col, i / 2 AS w FROM range(5) AS t(i)"
            db.connection.execute(f"CREATE TABLE t{name} AS {rows}")
            db.tensor_from_table(name, f"t{name}", index=["row", "col"], value="w", shape=(5, 5))
    return path


def test_the_sql_runs_in_sqlite(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "-d", database, "-t", PROGRAM, "--dialect", "SQLite"]) == 0
    printed = capsys.readouterr().out
    with se.connect(database) as db, closing(sqlite3.connect(":memory:")) as other:
        for name in ("tA", "tB"):
            other.execute(f"CREATE TABLE {name} (row INTEGER, col INTEGER, w REAL)")
            other.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", db.connection.execute(f"FROM {name}").fetchall())
        expected = db.run(PROGRAM)["C"].arrow().to_pylist()
        rows = other.execute(printed).fetchall()
    assert sorted(rows) == sorted(tuple(row.values()) for row in expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dialect", "sparc"], "did you mean 'spark'?"),
        (["--dialect", "spark", "--optimizer", "dense"], "plan with optimizer='relational' (--optimizer relational)"),
        (["--dialect", "spark", "--style", "staged"], "leave out style='staged'"),
    ],
)
def test_mistakes(database: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "-d", database, "-t", PROGRAM, *options]) == 1
    assert message in capsys.readouterr().err
