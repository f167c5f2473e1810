"""The table function iterate of both engines, and the command of that name."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from postgres_server import PostgresServer

import sparseeinsum as se
from sparseeinsum import cli

PROGRAM = "state x\nnext_x[i] = x[i] / 2\nloss[] = sum(next_x[i])"
START = np.array([8.0, 16.0])


def test_duckdb() -> None:
    connection = duckdb.connect()
    db = se.connect(connection)
    db.tensor("x", START, axes=["i"])
    arguments = "history := ['loss'], until := 'loss < 4'"
    query = f"FROM iterate('{PROGRAM}', steps := $1, resume := $2, {arguments})"
    assert connection.execute(query, [2, False]).fetchall() == [(2, "steps", "main.x_history")]
    assert connection.execute(query, [9, True]).fetchall() == [(3, "condition", "main.x_history")]
    assert connection.execute("SELECT loss FROM x_history ORDER BY step").fetchall() == [(12,), (6,), (3,)]
    into = "FROM iterate('y[i] = x[i] + 1', state := MAP {'x': 'y'}, into_tensors := MAP {'x': 'z'}, steps := 3)"
    connection.execute(into)
    assert connection.execute("FROM z").fetchall() == [([4, 5],)]
    assert connection.execute("FROM x").fetchall() == [([1, 2],)]
    with pytest.raises(duckdb.Error, match="the loop has no state"):
        connection.execute("FROM iterate('y[i] = x[i]')")
    with pytest.raises(duckdb.Error, match="the program is NULL"):
        connection.execute("FROM iterate(NULL)")


def test_explain_runs_no_steps() -> None:
    connection = duckdb.connect()
    se.connect(connection).tensor("x", START, axes=["i"])
    connection.execute(f"EXPLAIN FROM iterate('{PROGRAM}')")
    assert connection.execute("FROM x").fetchall() == [([8, 16],)]


def test_postgresql(postgres_python: PostgresServer) -> None:
    with postgres_python.connect() as maintenance:
        maintenance.execute("CREATE DATABASE loops")
    try:
        with postgres_python.connect("loops") as connection:
            connection.execute("CREATE EXTENSION sparseeinsum_python CASCADE")
            connection.execute("CREATE TABLE start AS SELECT 0 AS i, CAST(8 AS float8) AS val")
            query = """SELECT * FROM sparseeinsum.iterate(%s, steps => 9, until => 'loss < 2', history => '{loss}',
                state => '{"start": "next_x"}', into_tensors => '{"start": "x"}')"""
            program = "next_x[i] = start[i] / 2\nloss[] = sum(next_x[i])"
            assert connection.execute(
                "SELECT sparseeinsum.tensor_from_table('start', 'start', '{i}', 'val')"
            ).fetchall()
            assert connection.execute(query, [program]).fetchall() == [(3, "condition", "x_history")]
            assert connection.execute("SELECT loss FROM x_history ORDER BY step").fetchall() == [(4,), (2,), (1,)]
            assert connection.execute("SELECT val FROM x").fetchall() == [(1,)]
    finally:
        with postgres_python.connect() as maintenance:
            maintenance.execute("DROP DATABASE loops (FORCE)")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "numbers.duckdb")
    with se.connect(path) as db:
        db.tensor("x", START, axes=["i"])
    base = ["iterate", "--database", path, "--text", PROGRAM]
    assert cli.main([*base, "--steps", "2", "--history", "loss"]) == 0
    output = capsys.readouterr()
    assert "12" in output.out
    assert "all steps were done" in output.err
    assert cli.main([*base, "--until", "loss < 4", "--history", "loss", "--resume", "--rows", "1"]) == 0
    output = capsys.readouterr()
    assert "12" not in output.out
    assert "3 steps in" in output.err
    assert cli.main([*base, "--state", "x=next_x", "--into", "x=z", "--steps", "1"]) == 0
    with se.connect(path) as db:
        assert db.run("a[i] = x[i]\nb[i] = z[i]")["b"].to_numpy().tolist() == [0.5, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", PROGRAM, "--state", "x"], "--state 'x' is not NAME=NAME"),
        (["--text", PROGRAM, "--rows", "0"], "--rows 0 shows nothing"),
        (["--plan", "plan.json"], "in place of --plan"),
        (["--text", PROGRAM, "--until", "los < 4"], "there is no operand los"),
    ],
)
def test_command_errors(options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "numbers.duckdb")
    with se.connect(path) as db:
        db.tensor("x", START, axes=["i"])
    assert cli.main(["iterate", "--database", path, *options]) != 0
    assert message in capsys.readouterr().err
