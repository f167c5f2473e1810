"""A run shows its progress on terminals and in notebooks, within long statements, and nowhere else unless asked."""

import io
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

import sparseeinsum as se

TEXT = "T[i] = sum(A[i, j])\nU[i] = max(A[i, j])\nY[i, k] = T[i] * T[k] + U[i] * T[k]"


@pytest.fixture
def matrix(db: se.Database) -> se.Database:
    """A database with a tensor A."""
    db.tensor("A", np.arange(6.0).reshape(2, 3))
    return db


def make_terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Make standard error a terminal. No fixture can, because pytest replaces standard error when a test begins."""
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    monkeypatch.setenv("COLUMNS", "100")
    return written


def run_long(db: se.Database) -> None:
    """Run a statement that takes longer than progress takes to be shown, a quarter of a second, on any machine."""
    db.connection.execute("CREATE TABLE a AS SELECT i, i * 7 % 1000 AS j, 1.0 * i AS w FROM range(12000000) AS t(i)")
    db.tensor_from_table("A", "a", ["i", "j"], "w")
    db.run("T[j] = sum(sin(A[i, j]) * cos(A[i, j]))", optimizer="relational")


@pytest.mark.engines("duckdb", reason="PostgreSQL tells nothing within a statement")
def test_a_terminal_shows_the_share_of_a_statement(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = make_terminal(monkeypatch)
    run_long(db)
    shown = r"computing T, statement 1 of 1, (\d+)% of about 12,000,000 rows"
    shares = [int(share) for share in re.findall(shown, terminal.getvalue())]
    assert shares
    assert shares == sorted(shares)
    assert shares[-1] <= 100


@pytest.mark.engines("duckdb", "postgresql")
def test_a_terminal_shows_statements(matrix: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = make_terminal(monkeypatch)
    matrix.run(TEXT)
    assert "planning" in terminal.getvalue()
    terminal.truncate(0)
    monkeypatch.setenv("LC_ALL", "C")
    matrix.run(TEXT)
    assert "statement 1 of" in terminal.getvalue()
    assert terminal.getvalue().isascii()
    with matrix.stream(TEXT) as results:
        assert results["Y"].read_all().num_rows == 4


@pytest.mark.engines("duckdb", "postgresql")
def test_nothing_is_shown_elsewhere_unless_asked(matrix: se.Database, capsys: pytest.CaptureFixture[str]) -> None:
    matrix.run(TEXT)
    assert capsys.readouterr() == ("", "")
    result = matrix.run(TEXT, progress=True, optimizer="relational")["Y"].to_numpy()
    assert result[1, 1] == 12 * 12 + 5 * 12
    *statements, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"computing \w+, statement 1 of \d+(, \d+% of about 6 rows)?, 0 s", statements[0])
    assert re.fullmatch(r"done, \d+ s", last)
    matrix.run(TEXT, progress=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.engines("duckdb", reason="PostgreSQL tells nothing within a statement")
def test_notebooks_update_a_line(db: se.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))

    class ZMQInteractiveShell(InteractiveShell):
        """Has the name of the shell of notebooks."""

    publisher = CapturingDisplayPublisher()  # type: ignore[no-untyped-call]
    shell = ZMQInteractiveShell.instance()
    monkeypatch.setattr(shell, "display_pub", publisher)
    try:
        run_long(db)
    finally:
        ZMQInteractiveShell.clear_instance()
    first, *updates = [output["data"]["text/plain"] for output in publisher.outputs]
    assert first.startswith("planning")
    assert any("computing T, statement 1 of 1" in line for line in updates)
    assert updates[-1] == ""
    assert "sparseeinsum-progress" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.engines("duckdb", reason="PostgreSQL tells nothing within a statement")
def test_settings_of_the_connection_are_left(matrix: se.Database) -> None:
    def settings() -> list[object]:
        query = "SELECT current_setting('enable_progress_bar'), current_setting('enable_progress_bar_print')"
        return list(matrix.connection.execute(query).fetchall())

    before = settings()
    matrix.run(TEXT, progress=True)
    with pytest.raises(se.SparseEinsumError):
        matrix.run("Y[i] = 1 / (A[i, j] - A[i, j])", progress=True)
    assert settings() == before
    matrix.connection.execute("SET lock_configuration = true")
    assert matrix.run(TEXT, progress=True)["Y"].shape == (2, 2)
