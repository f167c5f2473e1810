"""Shells complete commands, options, choices and files by scripts that start no Python."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sparseeinsum.cli import main
from sparseeinsum.decompose.optimizers import OPTIMIZERS


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 0
    return capsys.readouterr().out


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers for the last word."""
    program = (
        f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_sparseeinsum; echo "${{COMPREPLY[@]}}"'
    )
    command = [shutil.which("bash") or "", "--norc", "-c", program, "bash", "sparseeinsum", *words]
    finished = subprocess.run(
        command, cwd=script.parent, env={"PATH": ""}, capture_output=True, text=True, timeout=300, check=True
    )
    return set(finished.stdout.split())


def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/usr/bin/bash")
    script = tmp_path / "bash-completion" / "completions" / "sparseeinsum"
    assert printed(["--install-completion"], capsys).startswith(f"{script}: ")
    assert script.read_text() == printed(["--show-completion", "bash"], capsys).rstrip("\n")
    (script.parent / "graph.duckdb").touch()
    assert completed(script, "ex") == {"explain"}
    assert completed(script, "run", "--de") == {"--deterministic"}
    assert completed(script, "run", "--optimizer", "") == set(OPTIMIZERS)
    assert completed(script, "run", "--format", "pa") == {"parquet"}
    assert completed(script, "compile", "--dialect", "s") == {"spark", "sqlite", "snowflake"}
    assert completed(script, "run", "--database", "gr") == {"graph.duckdb"}


@pytest.mark.parametrize(
    ("shell", "variable", "path"),
    [
        ("zsh", "XDG_DATA_HOME", "zsh/site-functions/_sparseeinsum"),
        ("fish", "XDG_CONFIG_HOME", "fish/completions/sparseeinsum.fish"),
    ],
)
def test_other_shells(
    shell: str,
    variable: str,
    path: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    assert printed(["--install-completion", shell], capsys).startswith(f"{tmp_path / path}: ")
    script = (tmp_path / path).read_text()
    assert "compile-kernels" in script
    assert "deterministic" in script


def test_an_unknown_shell_is_asked_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/dash")
    with pytest.raises(SystemExit) as stopped:
        main(["--show-completion"])
    assert stopped.value.code == 2
    assert "--show-completion needs the name of your shell: bash, zsh, fish" in capsys.readouterr().err
