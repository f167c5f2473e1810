"""Several processes read a DuckDB file; who cannot open it learns which process has it and what to do."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.cli import main

TEXT = "Y[i] = 2 * A[i]"
READING = [
    ["run", "-t", TEXT],
    ["run", "-t", TEXT, "-m", "1GB"],
    ["explain", "-t", TEXT, "--analyze"],
    ["compile", "-t", TEXT],
    ["stats"],
]


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = str(tmp_path / "graph.duckdb")
    with se.connect(path) as db:
        db.tensor("A", np.ones(3))
    return path


@contextmanager
def opened_elsewhere(database: str, read_only: bool) -> Iterator[int]:
    """Another process has the file open within; yields its id."""
    program = (
        f"import duckdb\nconnection = duckdb.connect({database!r}, {read_only})\nprint('open', flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process.pid
        process.communicate("\n")


def test_commands_read_beside_a_reader(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    with opened_elsewhere(database, read_only=True) as process:
        for command, *options in READING:
            assert main([command, "-d", database, *options]) == 0
        capsys.readouterr()
        assert main(["run", "-d", database, "-t", TEXT, "--into", "Y=y"]) == 1
        error = capsys.readouterr().err
    assert error.startswith(f"sparseeinsum: cannot open {database}: ")
    assert f"(PID {process}) reads it; open it with read_only=True" in error


def test_nobody_reads_beside_a_writer(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    with opened_elsewhere(database, read_only=False) as process:
        assert main(["stats", "-d", database]) == 1
        assert main(["drop", "-d", database, "A"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(
        f"(PID {process}) may write to it; end that process, or let it open the file with read_only=True"
    )
    assert f"(PID {process}) may write to it; end that process, as one process alone" in second


def test_commands_that_read_need_no_right_to_write(database: str, tmp_path: Path) -> None:
    """A reader leaves no trace, and a file of DuckDB's without any tensor can be read, too."""
    Path(database).chmod(0o444)
    before = Path(database).read_bytes()
    for command, *options in READING:
        assert main([command, "-d", database, *options]) == 0
    assert Path(database).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [Path(database).name]
    other = str(tmp_path / "other.duckdb")
    duckdb.connect(other).close()
    assert main(["stats", "-d", other]) == 0
    assert main(["run", "-d", other, "-t", "Y[i] = index(i: 3)"]) == 0
