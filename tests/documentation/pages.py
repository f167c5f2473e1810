"""Runs what a page of the documentation shows, in its order and in a folder of its own.

What each kind of block is checked for, by the language that its fence names:

- `python` runs, in one namespace for the page; a comment behind `print(...)` says what it prints.
- `output` is all that the python block before it printed.
- `console`: after `$ ` a command for the shell, which may go on while a quote is open or after `> `; after
  `sparseeinsum> ` a line that the command reads; everything else is what it prints. If that is `...` alone, the
  command does not fail.
- `sql` runs on DuckDB, `postgresql` in psql; comments right below a statement are what it gives.
- `ein` is a program, and is read.
- `sh` is for other machines: of it, commands of ours exist with these options.

A title on the fence makes the block a file of that name, and nothing else. Where what is shown says `...`, anything may
stand; seconds may differ.
"""

import ast
import contextlib
import doctest
import io
import itertools
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pytest

import sparseeinsum as se
from sparseeinsum.cli import main
from sparseeinsum.cli.arguments import command_parser

_FENCE = re.compile(r"^( *)```(\w+)([^\n]*)\n(.*?)^\1```$", flags=re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r'title="([^"]+)"')
_SECONDS = re.compile(r"\d+(\.\d+)? ?(s|ms|µs|seconds)\b")  # the unit depends on the machine, too
_STATEMENT_ENDS = re.compile(r";\s*(--.*)?$")
_OPERATORS = {"|", ">", ">>", "<", "<<", "&", "&&", "||", ";"}  # shell syntax: commands with these run in a shell
_TYPED = "sparseeinsum> "
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_TERMINAL_WIDTH = 140


class Terminal(io.TextIOWrapper):
    """Standard output of a terminal."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8")

    def isatty(self) -> bool:
        """Return True."""
        return True

    def text(self) -> str:
        """What was printed, without colours."""
        self.flush()
        return _ESCAPES.sub("", self._bytes.getvalue().decode())


@dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    language: str
    title: str | None
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A command line, the lines that it reads, and the output shown below."""

    text: str
    typed: str
    shown: str


@dataclass(frozen=True)
class Page:
    """A page, and the folder to run it in."""

    path: Path
    folder: Path
    psql: Callable[[str], str] | None
    names: dict[str, object] = field(default_factory=dict)
    printed: io.StringIO = field(default_factory=io.StringIO)
    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)

    def run(self) -> None:
        """Run all blocks of the page."""
        runners = {
            "python": self._run_python,
            "output": lambda block: self._compare(block.text, self.printed.getvalue(), block.line),
            "console": self._run_console,
            "sql": self._run_sql,
            "postgresql": self._run_postgresql,
            "ein": lambda block: se.program(block.text),
            "sh": _check_commands,
        }
        for block in blocks_of(self.path):
            if block.title is not None:
                file = self.folder / block.title
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text, encoding="utf-8")
            elif block.language in runners:
                runners[block.language](block)

    def _run_python(self, block: Block) -> None:
        self.printed.seek(0)
        self.printed.truncate()
        tree = ast.increment_lineno(ast.parse(block.text), block.line)
        lines = block.text.splitlines()
        for statement in tree.body:
            before = len(self.printed.getvalue())
            code = compile(ast.Module([statement], []), str(self.path), "exec")
            with contextlib.redirect_stdout(self.printed):
                exec(code, self.names)  # pages are part of the project
            output = _comment_behind_print(statement, lines[(statement.end_lineno or 0) - block.line - 1])
            if output:
                self._compare(output, self.printed.getvalue()[before:], statement.lineno)

    def _run_console(self, block: Block) -> None:
        for command in commands_of(block.text):
            printed, status = self._shell(command)
            self._compare(command.shown, printed, block.line)
            if command.shown.strip() == "..." and status != 0:  # an error would match any text, too
                pytest.fail(f"{self.path}:{block.line} shows {command.text}\nwhich fails: {printed}", pytrace=False)

    def _shell(self, command: Command) -> tuple[str, int]:
        """Output and exit status of a command; commands of this package run in this process, which is faster."""
        words = list(shlex.shlex(command.text, posix=True, punctuation_chars=True))
        if words[0] == "sparseeinsum" and not _OPERATORS & set(words):
            printed, errors = Terminal(), io.StringIO()
            with (
                contextlib.redirect_stdout(printed),
                contextlib.redirect_stderr(errors),
                pytest.MonkeyPatch.context() as patch,
            ):
                patch.setattr(sys, "stdin", io.StringIO(command.typed))
                patch.setenv("COLUMNS", str(_TERMINAL_WIDTH))
                status = main(shlex.split(command.text)[1:])
            return printed.text() + errors.getvalue(), status
        finished = subprocess.run(
            ["bash", "-c", command.text],
            cwd=self.folder,
            input=command.typed,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        return finished.stdout, finished.returncode

    def _run_sql(self, block: Block) -> None:
        for statement, output in statements_of(block.text):
            relation = self.connection.sql(statement)
            self._compare(output, str(relation) if relation is not None and output else "", block.line)

    def _run_postgresql(self, block: Block) -> None:
        lines = [line for line in block.text.splitlines() if not line.startswith("\\")]
        commands = "\n".join(line for line in lines if not line.startswith("--"))
        output = "\n".join(line.removeprefix("--").removeprefix(" ") for line in lines if line.startswith("--"))
        assert self.psql is not None
        printed = re.sub(r"^\(\d+ rows?\)\n+", "", self.psql(commands), flags=re.MULTILINE)
        self._compare(output, printed, block.line)

    def _compare(self, output: str, printed: str, line: int) -> None:
        expected, actual = _plain(output), _plain(printed)
        if not doctest.OutputChecker().check_output(expected, actual, doctest.ELLIPSIS):
            pytest.fail(f"{self.path}:{line} shows\n{expected}\nwhere there is\n{actual}", pytrace=False)


def blocks_of(path: Path) -> Iterator[Block]:
    """The blocks of a page in order."""
    text = path.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        indent, language, options, content = match.groups()
        title = _TITLE.search(options)
        line = text.count("\n", 0, match.start()) + 1
        dedented = textwrap.dedent(content) if indent else content
        yield Block(language, title[1] if title else None, dedented, line)


def commands_of(text: str) -> Iterator[Command]:
    """The commands of a console."""
    lines = text.splitlines()
    while lines:
        first = lines.pop(0)
        assert first.startswith("$ "), f"{first!r} follows no command"
        command, typed, output = first.removeprefix("$ "), "", ""
        while lines and (_is_open(command) or lines[0].startswith("> ")):
            command += "\n" + lines.pop(0).removeprefix("> ")
        while lines and not lines[0].startswith("$ "):
            line = lines.pop(0)
            if line.startswith(_TYPED):
                typed += line.removeprefix(_TYPED) + "\n"
            else:
                output += line + "\n"
        yield Command(command, typed, output)


def statements_of(text: str) -> Iterator[tuple[str, str]]:
    """SQL statements, each with the comments directly below it."""
    lines = text.splitlines()
    while any(line.strip() for line in lines):
        statement, output = "", ""
        while not _STATEMENT_ENDS.search(statement):
            statement += "\n" + lines.pop(0)
        while lines and lines[0].startswith("-- "):
            output += lines.pop(0).removeprefix("-- ") + "\n"
        yield statement, output


def _is_open(command: str) -> bool:
    """Whether a quotation continues on the next line."""
    try:
        shlex.split(command)
    except ValueError:
        return True
    return command.endswith("\\")


def _comment_behind_print(statement: ast.stmt, last_line: str) -> str:
    match statement:
        case ast.Expr(ast.Call(ast.Name("print"))):
            code = last_line.encode()[: statement.end_col_offset]
            return last_line[len(code.decode()) :].strip().removeprefix("#").strip()
        case _:
            return ""


def _check_commands(block: Block) -> None:
    for command in re.findall(r"^(?:\S*/)?sparseeinsum (.*)", block.text, flags=re.MULTILINE):
        words = shlex.split(command, comments=True)
        command_parser().parse_args(list(itertools.takewhile(lambda word: word not in _OPERATORS, words)))


def _plain(text: str) -> str:
    """The text without trailing spaces and empty lines; all durations are replaced by one."""
    lines = [line.rstrip() for line in _SECONDS.sub("0 s", text).splitlines()]
    return "\n".join(lines).strip("\n") + "\n"
