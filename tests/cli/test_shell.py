"""The shell runs scripts from standard input on both engines, and offers a prompt on a terminal."""

import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.cli import main
from sparseeinsum.cli.shell_input import InputKind, ShellInput, inputs

# Seconds to wait for the terminal's output; on a busy machine the start takes half a minute.
MOST_SECONDS = 120
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")  # control sequences of a terminal, which may split a word
EDGES = """
CREATE TABLE edges (src INTEGER, dst INTEGER, w DOUBLE PRECISION);
INSERT INTO edges VALUES (0, 1, 2.0), (1, 2, 3.0),
  (2, 0, 0.5);
"""


class Shell:
    """Runs scripts on one database, each in a new shell."""

    def __init__(self, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.target, self.monkeypatch, self.capsys = target, monkeypatch, capsys
        self.error = ""

    def run(self, script: str, status: int = 0) -> str:
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(script))
        assert main(["shell", self.target]) == status
        printed = self.capsys.readouterr()
        self.error = printed.err
        return printed.out


@pytest.fixture
def shell(
    engine: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Shell:
    if engine == "duckdb":
        path = str(tmp_path / "graph.duckdb")
        duckdb.connect(path).close()
        return Shell(path, monkeypatch, capsys)
    return Shell(request.getfixturevalue("postgres_url"), monkeypatch, capsys)


def cells(printed: str) -> list[list[str]]:
    """The cells of all lines, which two spaces or more separate."""
    return [re.split(" {2,}", line.strip()) for line in printed.splitlines()]


@pytest.mark.engines("duckdb", "postgresql")
def test_sql_and_programs(shell: Shell) -> None:
    printed = shell.run(
        EDGES + "\\rows 2\ny[i] = sum(edges[i, j]) # out\nSELECT SUM(w) AS total FROM edges; SELECT 'a;b' AS t;"
    )
    assert "<y[I] i: 3 float64, 3 rows>" in printed
    expected = [["i", "val"], ["0", "2"], ["1", "3"], ["2 of 3 rows"], ["total"], ["5.5"], ["t"], ["a;b"]]
    assert cells(printed)[-8:] == expected
    assert "2 of 3 rows" in printed


@pytest.mark.engines("duckdb", "postgresql")
def test_programs_read_earlier_ones(shell: Shell) -> None:
    script = (
        EDGES
        + """
        d[i] = sum(edges[i, j])
        n[i, j] = edges[i, j] /
            (d[i] + 1)
    """.replace("edges[i, j] /\n            (d[i] + 1)", "(edges[i, j]\n / (d[i] + 1))")
    )
    printed = shell.run(script + "s[] = sum(n[i, j])\nt[i] = 2 * d[i]; u[] = sum(t[i])\n\\d\n")
    assert "2.75" not in printed
    assert [f"{2 / 3 + 3 / 4 + 1 / 3:.6g}"] in cells(printed)
    assert ["11"] in cells(printed)
    assert "d[i] = sum(edges[i, j])\nn[i, j] = (edges[i, j]" in printed


def test_parameters_tables_and_files(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program uses the parameters that were set when it was entered."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "degrees.ein").write_text("param power = 2\nd[i] = sum(E[i, j]) ^ power\n")
    printed = shell.run(
        EDGES
        + "param eta = 10\ntensor E[src: 3, dst: 3] from edges value w\ninclude 'degrees.ein'\n"
        + "s[] = eta * sum(d[i])\nparam eta = 20\nt[] = eta + s[]\nu[] = power + eta\n",
        status=1,
    )
    assert "declared; programs that read E check the declaration" in printed
    rows = [row for row in cells(printed) if row[-1].replace(".", "").isdigit()]
    assert rows == [["0", "4"], ["1", "9"], ["2", "0.25"], ["132.5"], ["152.5"]]
    assert "the right side has no tensor" in shell.error
    assert shell.run("param eta = 0.5\n\\d") == "param eta = 0.5\n"
    shell.run("y[i] = eta * edges[i, j]", status=1)
    assert "line 1, column 8: eta has no labels" in shell.error


@pytest.mark.engines("duckdb", "postgresql")
def test_commands(shell: Shell) -> None:
    printed = shell.run(
        EDGES + "\\plan y[i] = sum(edges[i, j])\n\\sql y[i] = sum(\nedges[i, j])\n\\h tensor_slice\n\\h\n"
    )
    assert "EinSums (labels in upper case are handled by the database)" in printed
    assert "FROM main.edges AS u" in printed or "FROM public.edges AS u" in printed
    assert "tensor_slice(u TENSOR, axis INTEGER, position INTEGER, extents INTEGERS) -> TENSOR" in printed
    assert "\\timing" in printed
    assert "Time: " in shell.run("\\timing\nSELECT 1 AS one;\n\\q\nSELECT nonsense;")


@pytest.mark.engines("duckdb", reason="relations have their schema, whose name is another one elsewhere")
def test_tensors(shell: Shell) -> None:
    with se.connect(shell.target) as database:
        database.tensor("A", np.eye(4), promoted={"dim_0": 2})
        database.connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    printed = shell.run("\\d\n\\d A\n")
    assert cells(printed)[1] == ["A", "dim_0: 4 x dim_1: 4", "float64", "0.0", "A[DIM_0:2, dim_1]", "main.A"]
    assert "4 entries that are not the fill, 0.25 of all indices" in printed
    assert "dim_0: 4 of 4 indices have entries" in printed
    assert Shell.run(shell, "\\drop A\n\\d\n") == "A is dropped, with its table main.A\nno tensors\n"
    assert "no tensors" in Shell.run(shell, "DROP SCHEMA sparseeinsum CASCADE;\n\\d\n")


def test_in_memory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT val FROM einsum('s[] = sum(ones(k: 4) * index(k: 4))');"))
    assert main(["shell"]) == 0
    assert capsys.readouterr().out.split() == ["val", "6"]


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("SELECT nonsense;", "nonsense"),
        ("SELECT 'open", "'open"),
        ("y[i] = sum(A[i, j]))", "line 1, column 20"),
        ("y[i] = sum(absent[i, j])", "there is no tensor absent"),
        ("\\nothing", "there is no command \\nothing; \\h lists the commands"),
        ("\\d absent", "there is no tensor absent"),
        ("\\drop absent", "there is no tensor absent"),
        ("\\rows many", "give a whole number"),
        ("\\h nothing", "there is no array function nothing"),
    ],
)
def test_the_first_error_ends_a_script(shell: Shell, line: str, message: str) -> None:
    printed = shell.run(f"SELECT 41 AS before;\n{line}\n;SELECT 42 AS after;\n", status=1)
    assert "41" in printed
    assert "42" not in printed
    assert shell.error.startswith("sparseeinsum: ")
    assert message in shell.error
    assert "in the statement" not in shell.error


def test_a_mistyped_file_is_not_created(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shell", str(tmp_path / "absent.duckdb")]) == 1
    assert "there is no database file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def read(text: str) -> list[ShellInput]:
    lines = text.split("\n")
    return list(inputs(lambda _: lines.pop(0) if lines else None, "duckdb"))


def test_input_is_split_into_statements() -> None:
    entered = read(
        "SELECT 1; SELECT ';' -- ;\n;\n\n# nothing\nA[i] = (B[i]\n + 1) # (\n\\d A\ntensor A[i: 4]\nSELECT $$ ; $$"
    )
    assert entered == [
        ShellInput(InputKind.SQL, "SELECT 1"),
        ShellInput(InputKind.SQL, "SELECT ';' -- ;"),
        ShellInput(InputKind.PROGRAM, "A[i] = (B[i]\n + 1) # ("),
        ShellInput(InputKind.COMMAND, "\\d A"),
        ShellInput(InputKind.PROGRAM, "tensor A[i: 4]"),
        ShellInput(InputKind.SQL, "SELECT $$ ; $$"),
    ]


def test_interrupts_discard_the_current_input() -> None:
    lines = iter(["SELECT 1", None, "SELECT 2;"])

    def next_line(_: bool) -> str | None:
        line = next(lines, "end")
        if line is None:
            raise KeyboardInterrupt
        return None if line == "end" else line

    assert list(inputs(next_line, "duckdb")) == [ShellInput(InputKind.SQL, "SELECT 2")]


def test_prompt(tmp_path: Path) -> None:
    """On a terminal: completion, an error that does not end the session, continued lines, history, end of input."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    program = "from sparseeinsum.cli import main; raise SystemExit(main(['shell']))"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=follower, stdout=follower, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        for keys, awaited in [
            ("", "sparseeinsum>"),
            ("SELECT nonsense;\r", "BinderException"),
            ("SELECT 20 +\r", "->"),
            ("1 AS sum;\r", "21"),
            ("\\h tensor_sli\t", "tensor_slice"),
            ("\r", "The slice of an array"),
            ("y[i] = index(i: 3) * 2\r", "3 rows"),
            ("\\q\r", "\\q"),
        ]:
            os.write(leader, keys.encode())
            _read_until(leader, awaited.encode(), process)
        assert process.wait(MOST_SECONDS) == 0
    os.close(leader)
    assert "+SELECT 20 +" in (tmp_path / "sparseeinsum" / "history").read_text()


def _read_until(terminal: int, awaited: bytes, process: "subprocess.Popen[bytes]") -> None:
    printed = b""
    end = time.monotonic() + MOST_SECONDS
    while awaited not in ESCAPES.sub(b"", printed):
        if time.monotonic() > end:
            process.kill()
            raise AssertionError(f"{awaited!r} did not come: {printed!r}")
        if select.select([terminal], [], [], 1)[0]:
            printed += os.read(terminal, 4096)
