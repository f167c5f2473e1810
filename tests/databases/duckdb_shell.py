"""Hosts without this package that load the extension file: the `duckdb` command line, and Python's duckdb alone."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

# The same as the shell, by Python's DuckDB: statements in, rows out as JSON, errors as lines that begin as DuckDB's.
_PYTHON = """
import json, sys, duckdb
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for statement in json.load(sys.stdin):
    try:
        print(json.dumps(connection.execute(statement).fetchall()))
    except duckdb.Error as error:
        print(error, file=sys.stderr)
assert "sparseeinsum" not in sys.modules and "numba" not in sys.modules
"""


@dataclass(frozen=True)
class Shell:
    """DuckDB's command line, which loads an extension file first.

    Attributes:
        extension: The file.
        program: The command that starts it; maybe one that runs programs of another system.
    """

    extension: Path
    program: tuple[str, ...] = (sys.executable, "-m", "duckdb_cli")

    def run(self, *arguments: str, database: str = ":memory:", script: str = "") -> subprocess.CompletedProcess[str]:
        """Run the shell with arguments of the command line and statements on standard input."""
        command = [*self.program, "-unsigned", database, "-cmd", f"LOAD '{self.extension}'"]
        return subprocess.run([*command, *arguments], input=script, capture_output=True, text=True, timeout=300)

    def rows(self, statements: Iterable[str], database: str = ":memory:") -> list[list[dict[str, Any]]]:
        """The rows of each statement; every statement must succeed."""
        finished = self.run("-json", database=database, script=";\n".join((*statements, "")))
        assert (finished.returncode, finished.stderr) == (0, "")
        decoder, text, results = json.JSONDecoder(), finished.stdout.strip(), []
        while text:
            rows, end = decoder.raw_decode(text)
            results.append(rows)
            text = text[end:].lstrip()
        return results

    def errors(self, statements: Iterable[str]) -> list[str]:
        """The error message of each statement; every statement must fail without ending the shell."""
        finished = self.run("-csv", "-noheader", script=";\n".join((*statements, "SELECT 'goes on'", "")))
        assert finished.stdout == "goes on\n"
        return re.split(r"^Invalid Input Error: ", finished.stderr, flags=re.MULTILINE)[1:]


def new_database(path: Path) -> duckdb.DuckDBPyConnection:
    """A file that shells before version 2 can read."""
    return duckdb.connect(str(path), config={"storage_compatibility_version": "v1.5.0"})


def shell_of_another_system(command: str, extension: Path) -> Shell:
    """A shell whose command runs programs of another system, as `wine duckdb.exe` does."""
    return Shell(extension.absolute(), tuple(shlex.split(command)))


def rows_in_python(extension: Path, statements: Iterable[str]) -> list[list[list[Any]]]:
    """The rows of each statement in a Python that has DuckDB without this package."""
    input_lines = json.dumps([f"LOAD '{extension}'", *statements])
    command = [sys.executable, "-c", _PYTHON]
    finished = subprocess.run(
        command, input=input_lines, capture_output=True, text=True, timeout=300, cwd=extension.parent
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return [json.loads(line) for line in finished.stdout.splitlines()[1:]]
