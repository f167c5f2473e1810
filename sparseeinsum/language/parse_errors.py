"""Language: what the parser could not go on with in, an error that says what was found and what was expected out."""

import re

from lark import Token, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from sparseeinsum.errors import ParseError
from sparseeinsum.language.syntax import Position, Source

ALWAYS_ALLOWED = "_NEWLINE"  # by the parser, for what drops some line ends

# How statements begin, each on a line of its own.
_BEGINNING = re.compile(
    r"[ \t]*((tensor|param|include|matrix|vector|scalar)[ \t]|[A-Za-z_]\w*[ \t]*(\[[^\]=]*\][ \t]*)?=(?!=))"
)
_TEXT_OR_COMMENT = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*")


def without_statement(text: str, line: int) -> str:
    """The text without the statement that a line is part of, whose lines stay, empty."""
    lines = text.split("\n")
    first, depth = 0, 0
    for number, each in enumerate(lines[:line]):
        if depth <= 0:
            first, depth = number, 0
        code = _TEXT_OR_COMMENT.sub("", each)
        depth += sum(map(code.count, "([")) - sum(map(code.count, ")]"))
    following = (number for number in range(first + 1, len(lines)) if _BEGINNING.match(lines[number]))
    end = next(following, len(lines))
    return "\n".join([*lines[:first], *("" for _ in lines[first:end]), *lines[end:]])


_TERMINALS = {
    "LSQB": "'['",
    "RSQB": "']'",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
    "EQUAL": "'='",
    "COLON": "':'",
    "NAME": "a name",
    "_BOUND": "a name",
    "RANGE": "a name",
    "INT": "a whole number",
    "FLOAT": "a number",
    "IMAGINARY": "a number",
    "CONSTANT": "a number",
    "_NEWLINE": "the end of the statement",
    "SEMICOLON": "';'",
    "$END": "the end of the program",
    "PLUS": "an operator",
    "MINUS": "an operator",
    "STAR": "an operator",
    "SLASH": "an operator",
    "AT": "an operator",
    "_TRANSPOSE": "an operator",
    "_POWER": "an operator",
    "_DOUBLE_STAR": "an operator",
    "COMPARISON": "an operator",
    "_OR": "an operator",
    "_AND": "an operator",
    "_NOT": "an operator",
    "FILL": "'fill'",
    "DTYPE": "'dtype'",
    "TENSOR": "'tensor'",
    "KIND": "'matrix'",
    "FROM": "'from'",
    "INDEX": "'index'",
    "VALUE": "'value'",
    "TEXT": "a text in quotes",
    "_PARAMETER": "'param'",
    "_INCLUDE": "'include'",
}


def explain(error: UnexpectedInput, source: Source) -> ParseError:
    """What is wrong, where the text ceases to be a program."""
    line, column = error.line, error.column
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if at_end or isinstance(error, UnexpectedEOF) or line < 1:
        lines = source.text.split("\n")
        line, column = len(lines), len(lines[-1]) + 1
    return Position(line, column).error(_problem(error), source)


def _problem(error: UnexpectedInput) -> str:
    if isinstance(error, UnexpectedCharacters):
        hint = "; names have letters without accents, digits and _" if error.char.isidentifier() else ""
        allowed = _expected((error.allowed or set()) - {ALWAYS_ALLOWED, "DTYPE"})  # ends fills, which few write
        return f"the character {error.char!r} has no meaning here; expected {allowed}{hint}"
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        return f"{_found(error.token)}, expected {_expected(expected)}{_hint(error.token, expected)}"
    return "the program cannot be read"


def _found(token: Token) -> str:
    match token.type:
        case "$END":
            return "the program ends here"
        case "_NEWLINE":
            return "the line ends here"
        case _:
            return f"found {str(token)!r}"


def _hint(token: Token, expected: set[str]) -> str:
    if token.type == "COMPARISON" and "PLUS" in expected:
        return "; comparisons do not chain: write A[i] < B[i] and B[i] < C[i]"
    if expected in ({"LSQB"}, {"LSQB", "EQUAL"}):
        return "; a tensor needs its labels, as in A[i, j], also a scalar, as in eta[]"
    if token.type == "_NEWLINE":
        return "; an expression goes on in the next line only within parentheses"
    return ""


def _expected(terminals: set[str]) -> str:
    names = sorted({_TERMINALS.get(terminal, terminal.lower()) for terminal in terminals})
    return names[0] if len(names) == 1 else " or ".join((", ".join(names[:-1]), names[-1]))
