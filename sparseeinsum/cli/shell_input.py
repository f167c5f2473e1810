"""The shell: divides input lines into commands, SQL statements and programs."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import sqlglot
from sqlglot.errors import TokenError

# (whether an input is incomplete so far) -> the next line, or None at the end; KeyboardInterrupt discards that input
NextLine = Callable[[bool], str | None]

_PROMPT, _CONTINUED = "sparseeinsum> ", "           -> "
_PROGRAM = re.compile(r"\s*((tensor\s+)?\w+\s*\[|\w+\s*=(?!=)|(param|matrix|vector|scalar)\s+\w|include\s*[\"'])")
_COMMENT = re.compile(r"#.*")
_SEMICOLON = "SEMICOLON"  # a kind of token


class InputKind(StrEnum):
    """What the shell does with an input: run a command, run a program, or send SQL to the database."""

    COMMAND = "command"
    PROGRAM = "program"
    SQL = "sql"


@dataclass(frozen=True, slots=True)
class ShellInput:
    """One input: a command with its argument, a SQL statement without its semicolon, or program text."""

    kind: InputKind
    text: str


def prompt_text(is_begun: bool) -> str:
    """The prompt of a line; another one if an input is incomplete so far."""
    return _CONTINUED if is_begun else _PROMPT


def read_line(is_begun: bool) -> str | None:
    """The next line of a terminal without history and completion; None at the end."""
    try:
        return input(prompt_text(is_begun))
    except EOFError:
        return None


def inputs(next_line: NextLine, dialect: str) -> Iterator[ShellInput]:
    """The inputs in lines, each as soon as it is complete.

    Commands and programs end at the end of the line, if all brackets are closed; SQL ends with a semicolon.

    Args:
        next_line: Reads a line.
        dialect: The SQL dialect, in which statements are separated.
    """
    while True:
        try:
            text = _next_text(next_line, dialect)
        except KeyboardInterrupt:
            continue
        if text is None:
            return
        kind = _kind(text)
        if kind is InputKind.SQL:
            yield from (ShellInput(kind, statement) for statement in _statements(text, dialect))
        else:
            yield ShellInput(kind, text.strip())


def _next_text(next_line: NextLine, dialect: str) -> str | None:
    """The next lines that form complete inputs, or an incomplete last one; None at the end."""
    text = next_line(False)
    while text is not None and not _COMMENT.sub("", text).strip():
        text = next_line(False)
    if text is None:
        return None
    while not _is_complete(_kind(text), text, dialect):
        more = next_line(True)
        if more is None:
            break
        text = f"{text}\n{more}"
    return text


def _kind(text: str) -> InputKind:
    if text.lstrip().startswith("\\"):
        return InputKind.COMMAND
    return InputKind.PROGRAM if _PROGRAM.match(text) else InputKind.SQL


def _is_complete(kind: InputKind, text: str, dialect: str) -> bool:
    if kind is not InputKind.SQL:
        code = _COMMENT.sub("", text)
        return sum(map(code.count, "([")) <= sum(map(code.count, ")]"))
    try:
        tokens = sqlglot.tokenize(text, read=dialect)
    except TokenError:  # a text or a comment is not closed
        return False
    return not tokens or tokens[-1].token_type.name == _SEMICOLON


def _statements(text: str, dialect: str) -> Iterator[str]:
    """The SQL statements of a text, without their semicolons."""
    try:
        tokens = sqlglot.tokenize(text, read=dialect)
    except TokenError:  # the database reports what is wrong
        yield text
        return
    start = 0
    for end in [token.start for token in tokens if token.token_type.name == _SEMICOLON] + [len(text)]:
        statement = text[start:end].strip()
        if statement and sqlglot.tokenize(statement, read=dialect):  # not only a comment
            yield statement
        start = end + 1
