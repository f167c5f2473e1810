"""Output is drawn on terminals and plain elsewhere, in every locale; readers may go away; errors have statuses."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import sparseeinsum as se
from sparseeinsum.cli import main

PROGRAM = [sys.executable, "-m", "sparseeinsum"]
TEXT = "Y[i, j] = K[i, j] * 2"
LONG = "Y[first_axis, second_axis] = K[first_axis, second_axis] * 2"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A file with a tensor whose natural keys have characters beyond ASCII."""
    path = str(tmp_path / "graph.duckdb")
    with se.connect(path) as db:
        edges = {"who": ["Zoë", "x" * 100], "whom": ["x" * 100, "Zoë"], "weight": [1.0, 2.0]}
        db.tensor("K", pd.DataFrame(edges), keys={"who": "person", "whom": "person"})
    return path


@pytest.fixture
def commands(database: str) -> list[list[str]]:
    """All commands that print tables, apart from those that take long."""
    return [["run", "-d", database, "-t", TEXT], ["explain", "-d", database, "-t", TEXT], ["stats", "-d", database]]


def test_pipes_get_plain_tables(commands: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands:
        assert main(command) == 0
        printed = capsys.readouterr().out
        assert printed.replace("ë", "e").isascii()
        assert "\x1b" not in printed
        assert all(line == line.rstrip() for line in printed.splitlines())
    assert main(commands[0]) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "<Y[I, J] i: 2 x j: 2 float64, 2 rows, density 0.5>"
    assert [line.split() for line in lines] == [["i", "j", "val"], ["Zoë", "x" * 100, "2"], ["x" * 100, "Zoë", "4"]]


@pytest.mark.parametrize(
    ("name", "value", "is_drawn"), [("LC_ALL", "en_US.UTF-8", True), ("LC_ALL", "C", False), ("NO_COLOR", "1", True)]
)
def test_terminals(
    commands: list[list[str]],
    name: str,
    value: str,
    is_drawn: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    for variable, setting in {"TERM": "xterm-256color", "COLUMNS": "70", name: value}.items():
        monkeypatch.setenv(variable, setting)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for command in commands:
        assert main(command) == 0
        printed = capsys.readouterr().out
        assert ("┏" in printed) == is_drawn
        assert ("\x1b[1m" in printed) == is_drawn  # headings are bold
        assert not re.search(r"\x1b\[[349]\d", printed)  # and nothing is coloured


def test_an_encoding_without_a_character(commands: list[list[str]]) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    finished = subprocess.run([*PROGRAM, *commands[0]], env=environment, capture_output=True, timeout=300, check=True)
    assert "Zo\\xeb" in finished.stdout.decode("ascii")


@pytest.mark.parametrize("options", [["-f", "json"], ["--rows", "5000"]])
def test_readers_may_stop(database: str, options: list[str]) -> None:
    command = [*PROGRAM, "run", "-d", database, "-t", "Y[i] = 0.1 * index(i: 20000)", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_version_and_exit_statuses(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert (stopped.value.code, capsys.readouterr().out) == (0, f"sparseeinsum {se.__version__}\n")
    with pytest.raises(SystemExit) as stopped:
        main(["run", "-d", "graph.duckdb", "--optimizer", "best"])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("sparseeinsum: argument -o/--optimizer: invalid choice: 'best'")
    assert error.endswith("; see sparseeinsum run --help\n")
    assert main(["stats", "-d", "absent.duckdb"]) == 1
    assert capsys.readouterr() == ("", "sparseeinsum: there is no database file absent.duckdb\n")


def test_help_keeps_names(capsys: pytest.CaptureFixture[str]) -> None:
    for command, text in {
        "grant": "Let a PostgreSQL role",
        "compile": "Print the SQL",
        "shell": "Start a prompt for SQL",
    }.items():
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert text in " ".join(capsys.readouterr().out.split())


def test_help_imports_little() -> None:
    """It is printed at once, because commands are imported when they run."""
    heavy = ["numpy", "pyarrow", "rich", "sqlglot", "sparseeinsum.cli.commands"]
    program = "import sys\nfrom sparseeinsum.cli import main\ntry:\n    main(['run', '--help'])\nfinally:\n"
    program += f"    print([name for name in {heavy} if name in sys.modules])"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert finished.stdout.splitlines()[-1] == "[]"
