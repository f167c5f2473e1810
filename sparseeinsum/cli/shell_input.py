"""The shell: lines in, what they ask out: commands, SQL statements, and programs, each whole."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import sqlglot
from sqlglot.errors import TokenError

# (whether something is begun) -> the next line, or None at the end; KeyboardInterrupt gives up what is begun
NextLine = Callable[[bool], str | None]

_PROMPT, _CONTINUED = "sparseeinsum> ", "           -> "
_PROGRAM = re.compile(r"\s*((tensor\s+)?\w+\s*\[|\w+\s*=(?!=)|(param|matrix|vector|scalar)\s+\w|include\s*[\"'])")
_COMMENT = re.compile(r"#.*")
_SEMICOLON = "SEMICOLON"  # a kind of token


class Kind(StrEnum):
    """What can be entered."""

    COMMAND = "command"
    PROGRAM = "program"
    SQL = "sql"


@dataclass(frozen=True, slots=True)
class Entered:
    """Something to do: a command with its argument, SQL without a semicolon, or program text."""

    kind: Kind
    text: str


def prompt_text(is_begun: bool) -> str:
    """What stands before a line that a user types."""
    return _CONTINUED if is_begun else _PROMPT


def read_line(is_begun: bool) -> str | None:
    """The next line on a terminal, without history and completion."""
    try:
        return input(prompt_text(is_begun))
    except EOFError:
        return None


def entered(next_line: NextLine, dialect: str) -> Iterator[Entered]:
    """Everything that lines ask, each as soon as it is complete.

    Commands and programs end with their line, once all brackets are closed; SQL with a semicolon.
    """
    while True:
        try:
            text = _next_text(next_line, dialect)
        except KeyboardInterrupt:
            continue
        if text is None:
            return
        kind = _kind(text)
        if kind is Kind.SQL:
            yield from (Entered(kind, statement) for statement in _statements(text, dialect))
        else:
            yield Entered(kind, text.strip())


def _next_text(next_line: NextLine, dialect: str) -> str | None:
    """The next lines that make something whole, or what the last ones begin; None at the end."""
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


def _kind(text: str) -> Kind:
    if text.lstrip().startswith("\\"):
        return Kind.COMMAND
    return Kind.PROGRAM if _PROGRAM.match(text) else Kind.SQL


def _is_complete(kind: Kind, text: str, dialect: str) -> bool:
    if kind is not Kind.SQL:
        code = _COMMENT.sub("", text)
        return sum(map(code.count, "([")) <= sum(map(code.count, ")]"))
    try:
        tokens = sqlglot.tokenize(text, read=dialect)
    except TokenError:  # a text or a comment is begun
        return False
    return not tokens or tokens[-1].token_type.name == _SEMICOLON


def _statements(text: str, dialect: str) -> Iterator[str]:
    """The statements of SQL, without their semicolons."""
    try:
        tokens = sqlglot.tokenize(text, read=dialect)
    except TokenError:  # the database says what is wrong
        yield text
        return
    start = 0
    for end in [token.start for token in tokens if token.token_type.name == _SEMICOLON] + [len(text)]:
        statement = text[start:end].strip()
        if statement and sqlglot.tokenize(statement, read=dialect):  # not only a comment
            yield statement
        start = end + 1
