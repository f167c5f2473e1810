"""Language: converts errors of the parser to errors that say what is there and what was expected."""

import re

from lark import Token, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from sparseeinsum.errors import ParseError
from sparseeinsum.language.syntax import RULE_OF_NAMES, Position, SourceText

ALWAYS_ALLOWED = "_NEWLINE"  # the lexer always accepts line ends, some of which are then dropped

# How statements begin, each on a line of its own.
_START_OF_STATEMENT = re.compile(
    r"[ \t]*((tensor|param|include|matrix|vector|scalar|state)[ \t]|[A-Za-z_]\w*[ \t]*(\[[^\]=]*\][ \t]*)?=(?!=))"
)
_TEXT_OR_COMMENT = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*")


def blank_out_statement(text: str, line: int) -> str:
    """The text, with empty lines in place of the statement that the line `line` is part of."""
    lines = text.split("\n")
    first, depth = 0, 0
    for number, content in enumerate(lines[:line]):
        if depth <= 0:
            first, depth = number, 0
        code = _TEXT_OR_COMMENT.sub("", content)
        depth += sum(map(code.count, "([")) - sum(map(code.count, ")]"))
    following = (number for number in range(first + 1, len(lines)) if _START_OF_STATEMENT.match(lines[number]))
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
    "PREVIOUS": "a name",
    "_BOUND": "a name",
    "RANGE": "a name",
    "RANDOM": "a name",
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
    "PERCENT": "an operator",
    "_DOUBLE_SLASH": "an operator",
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
    "_STATE": "'state'",
    "_DEFINE": "'def'",
}


def explain_syntax_error(error: UnexpectedInput, source: SourceText) -> ParseError:
    """The parser's error as an error of this package, with its place in the text."""
    line, column = error.line, error.column
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if at_end or isinstance(error, UnexpectedEOF) or line < 1:
        lines = source.text.split("\n")
        line, column = len(lines), len(lines[-1]) + 1
    return Position(line, column).error(_problem(error), source)


def _problem(error: UnexpectedInput) -> str:
    """The message of an error of the parser."""
    if isinstance(error, UnexpectedCharacters):
        hint = f"; {RULE_OF_NAMES}" if error.char.isidentifier() else ""
        allowed = _list_of_terminals(
            (error.allowed or set()) - {ALWAYS_ALLOWED, "DTYPE", "FOR"}
        )  # DTYPE and FOR follow fills and limits, which are rare
        return f"the character {error.char!r} has no meaning here; expected {allowed}{hint}"
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected) - {"FOR"}
        if {"COMMA", "RSQB"} <= expected:  # among indices, in which the parser reads calls and tensors to refuse them
            expected -= {"LPAR", "LSQB"}
        return f"{_describe_token(error.token)}, expected {_list_of_terminals(expected)}{_hint(error.token, expected)}"
    return "the program cannot be read"


def _describe_token(token: Token) -> str:
    match token.type:
        case "$END":
            return "the program ends here"
        case "_NEWLINE":
            return "the line ends here"
        case _:
            return f"found {str(token)!r}"


def _hint(token: Token, expected: set[str]) -> str:
    if expected in ({"LSQB"}, {"LSQB", "EQUAL"}):
        return "; a tensor needs its labels, as in A[i, j], also a scalar, as in eta[]"
    if token.type == "COLON" and "RSQB" in expected:
        return "; a slice needs a label: for A[2:5], write A[j + 2], and `for j < 3` after the statement"
    if token.type == "_NEWLINE":
        return "; an expression goes on in the next line only within parentheses"
    return ""


def _list_of_terminals(terminals: set[str]) -> str:
    names = sorted({_TERMINALS.get(terminal, terminal.lower()) for terminal in terminals})
    return names[0] if len(names) == 1 else " or ".join((", ".join(names[:-1]), names[-1]))
