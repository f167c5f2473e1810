"""What the README shows works as it stands there."""

import io
import re
import sys
from pathlib import Path

import pytest

import sparseeinsum as se
from sparseeinsum.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_python_runs() -> None:
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)  # the README is ours
    result = names["result"]
    assert isinstance(result, se.TensorResult)
    assert list(result.df().columns) == ["i", "n", "val"]


def test_language_is_read() -> None:
    (block,) = [block for block in blocks("text") if "tensor W" in block]
    program = se.program(block)
    assert {"T", "S", "L", "P"} <= {einsum.output.tensor for einsum in program.einsums}
    for inner in ("1 / sum(exp(S[i, j]))",):
        assert se.program(f"R[] = {inner}").inputs == ("S",)


def test_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^sparseeinsum (\w+)", "\n".join(blocks("sh")), flags=re.MULTILINE)
    assert {"run", "explain", "stats", "calibrate"} <= set(commands)
    for command in commands:
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0


@pytest.mark.engines("duckdb", reason="all engines have the same functions")
def test_functions_are_listed(db: se.Database) -> None:
    (query,) = re.findall(r"`(SELECT name, arguments.*?)`", README)
    listed = {name for name, *_ in db.connection.execute(query).fetchall()}
    assert {"tensor_einsum", "tensor_matmul", "tensor_sum", "tensor_stack"} <= listed


@pytest.mark.engines("duckdb", reason="shown is the SQL of DuckDB")
def test_sql_gives_what_is_shown(db: se.Database) -> None:
    (block,) = [block for block in blocks("sql") if "FROM einsum(" in block]
    for statement in block.split(";")[:-1]:
        rows = db.connection.execute(statement).fetchall()
    shown = re.findall(r"^-- │ +(\d+) │ +([\d.]+) │$", block, flags=re.MULTILINE)
    assert [(str(i), str(val)) for i, val in rows] == shown
    assert len(shown) == 2


def test_shell_gives_what_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = [block for block in blocks("text") if block.startswith("sparseeinsum> ")]
    lines = block.splitlines()
    typed = [line.removeprefix("sparseeinsum> ") for line in lines if line.startswith("sparseeinsum> ")]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(typed)))
    assert main(["shell"]) == 0
    assert [line for line in lines if not line.startswith("sparseeinsum> ")] == capsys.readouterr().out.splitlines()
