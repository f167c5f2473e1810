"""The logger `sparseeinsum` says what a run does, how long its stages take, and what a user should know."""

import logging
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.cli import main

TEXT = "T[i] = sum(A[i, j])\nY[i, k] = T[i] * T[k]"


@pytest.fixture
def matrix(db: se.Database) -> se.Database:
    """A database with a tensor A."""
    db.tensor("A", np.arange(6.0).reshape(2, 3))
    return db


def messages(log: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno == level]


@pytest.mark.engines("duckdb", "postgresql")
def test_a_run_in_two_lines(matrix: se.Database, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sparseeinsum"):
        matrix.run(TEXT)
    planned, ran = messages(caplog, logging.INFO)
    assert re.fullmatch(r"planned Y: EinSums: 2, expected to take [\d.e-]+ m?s; planning took [\d.]+ m?s", planned)
    assert re.fullmatch(r"ran Y: statements: \d, [\d.]+ m?s", ran)
    assert {record.name.split(".")[1] for record in caplog.records} == {"pipeline", "results"}
    assert messages(caplog, logging.DEBUG) == []


def test_stages_and_statements(matrix: se.Database, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "sparseeinsum"):
        matrix.run(TEXT, optimizer="relational")
    lines = messages(caplog, logging.DEBUG)
    stages = [line.split(":")[0] for line in lines if re.fullmatch(r"\w+: \d+\.\d ms", line)]
    assert stages == ["parse", "measure", "rewrite", "search", "render"]
    statements = [line for line in lines if line.startswith("statement")]
    assert re.fullmatch(r"statement 1 of \d, \w+: \d rows in [\d.]+ ms", statements[0])
    assert re.fullmatch(r"statement (\d) of \1, Y: 4 rows in [\d.]+ ms", statements[-1])


def test_nothing_is_printed_without_a_handler() -> None:
    """Not even warnings, which Python prints for loggers without any."""
    program = "import logging, sparseeinsum as se\ndb = se.connect()\ndb.tensor('A', [1.0, 2.0])\n"
    program += "db.run('Y[i] = A[i] * 2')\nlogging.getLogger('sparseeinsum.pipeline').warning('unheard')"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert (finished.stdout, finished.stderr) == ("", "")


def test_the_command_line_shows_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "graph.duckdb")
    with se.connect(path) as db:
        db.tensor("A", np.ones((2, 3)))
    run = ["run", "-d", path, "-t", TEXT, "-f", "csv"]
    assert main(run) == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    for words in (["-v", *run], [*run, "-v"]):
        assert main(words) == 0
        shown = capsys.readouterr()
        assert shown.out == quiet.out
        assert [line.split()[1] for line in shown.err.splitlines()] == ["planned", "ran"]
    for words in (["-vv", *run], [*run, "-vv"], ["-v", *run, "-v"]):
        assert main(words) == 0
        assert "sparseeinsum: search: " in capsys.readouterr().err
    assert main(run) == 0
    assert capsys.readouterr().err == ""
