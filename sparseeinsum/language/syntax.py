"""Language: program text in, syntax trees with positions out."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from lark import Lark, Token, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, v_args
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from sparseeinsum.errors import ParseError


@dataclass(frozen=True, slots=True)
class Position:
    """Where something stands in the text; line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    value: float
    at: Position


@dataclass(frozen=True, slots=True)
class TensorReference:
    """NAME[labels], as written."""

    tensor: str
    labels: tuple[str, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """name(arguments), with the labels of name[labels](argument), or None where none are given; operators, too."""

    name: str
    labels: tuple[str, ...] | None
    arguments: tuple["Expression", ...]
    at: Position


Expression = Number | TensorReference | FunctionCall


@dataclass(frozen=True, slots=True)
class Assignment:
    """target = value."""

    target: TensorReference
    value: Expression


@dataclass(frozen=True, slots=True)
class Declaration:
    """tensor NAME[axis: bound, ...] fill F dtype D; None where not given."""

    tensor: str
    axes: tuple[tuple[str, int], ...]
    fill: float | None
    dtype: str | None
    at: Position


Statement = Assignment | Declaration

# Passes over expressions recurse: so deep is far from Python's limit, and deeper than kernels evaluate.
_DEEPEST = 100


def parse(text: str) -> tuple[Statement, ...]:
    """Read program text.

    Raises:
        ParseError: With the line, the column and what was expected there.
    """
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _explain(error, text) from None
    statements = _ToSyntax().transform(tree)
    for statement in statements:
        if isinstance(statement, Assignment):
            _check_depth(statement.value, text)
    return tuple(statements)


def _check_depth(expression: Expression, text: str) -> None:
    waiting = [(expression, 1)]
    while waiting:
        current, depth = waiting.pop()
        if depth > _DEEPEST:
            problem = (
                f"more than {_DEEPEST} functions and operators are nested here; give a part a statement of its own"
            )
            raise ParseError(problem, text, current.at.line, current.at.column)
        if isinstance(current, FunctionCall):
            waiting.extend((argument, depth + 1) for argument in current.arguments)


@cache
def _parser() -> Lark:
    return Lark.open(
        "grammar.lark",
        rel_to=__file__,
        parser="lalr",
        propagate_positions=True,
        maybe_placeholders=True,
        postlex=_JoinLines(),
    )


_ALWAYS_ALLOWED = "_NEWLINE"


class _JoinLines:
    """Drops line ends inside brackets and parentheses, so that a long expression may go on."""

    always_accept = (_ALWAYS_ALLOWED,)

    def process(self, tokens: Iterator[Token]) -> Iterator[Token]:
        """Tokens without the line ends that end no statement."""
        depth = 0
        for token in tokens:
            depth += {"LPAR": 1, "LSQB": 1, "RPAR": -1, "RSQB": -1}.get(token.type, 0)
            if token.type != "_NEWLINE" or depth <= 0:
                yield token


def _position(meta: Meta) -> Position:
    return Position(meta.line, meta.column)


def _call(name: str) -> object:
    @v_args(meta=True)
    def make(self: object, meta: Meta, arguments: list[Expression]) -> FunctionCall:
        return FunctionCall(name, None, tuple(arguments), _position(meta))

    return make


class _ToSyntax(Transformer_NonRecursive[Token, list[Statement]]):
    add, sub, mul, div, pow, neg = (_call(name) for name in ("add", "sub", "mul", "div", "pow", "neg"))

    def start(self, statements: list[Statement]) -> list[Statement]:
        return statements

    def labels(self, names: list[Token]) -> tuple[str, ...]:
        return tuple(str(name) for name in names)

    def number(self, tokens: list[Token]) -> float:
        return float(tokens[0])

    def axis(self, tokens: list[Token]) -> tuple[str, int]:
        return str(tokens[0]), int(tokens[1])

    @v_args(meta=True)
    def unsigned(self, meta: Meta, tokens: list[Token]) -> Number:
        return Number(float(tokens[0]), _position(meta))

    @v_args(meta=True)
    def reference(self, meta: Meta, parts: list[Token | tuple[str, ...] | None]) -> TensorReference:
        name, labels = parts
        return TensorReference(str(name), tuple(labels or ()), _position(meta))

    @v_args(meta=True)
    def call(self, meta: Meta, parts: list[object]) -> FunctionCall:
        name, labels, *arguments = parts
        return FunctionCall(str(name), labels, tuple(arguments), _position(meta))  # type: ignore[arg-type]  # by grammar

    @v_args(meta=True)
    def declaration(self, meta: Meta, parts: list[object]) -> Declaration:
        name, *axes, fill, dtype = parts
        named = tuple(axis for axis in axes if axis is not None)
        kind = None if dtype is None else str(dtype)
        return Declaration(str(name), named, fill, kind, _position(meta))  # type: ignore[arg-type]  # by grammar

    def assignment(self, parts: list[Expression]) -> Assignment:
        target, value = parts
        assert isinstance(target, TensorReference)
        return Assignment(target, value)


_TERMINALS = {
    "LSQB": "'['",
    "RSQB": "']'",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
    "EQUAL": "'='",
    "COLON": "':'",
    "NAME": "a name",
    "INT": "a whole number",
    "FLOAT": "a number",
    "_NEWLINE": "the end of the statement",
    "SEMICOLON": "';'",
    "$END": "the end of the program",
    "PLUS": "an operator",
    "MINUS": "an operator",
    "STAR": "an operator",
    "SLASH": "an operator",
    "_POWER": "an operator",
    "_DOUBLE_STAR": "an operator",
    "SIGNED": "a number",
    "FILL": "'fill'",
    "DTYPE": "'dtype'",
    "TENSOR": "'tensor'",
}


def _explain(error: UnexpectedInput, text: str) -> ParseError:
    line, column = error.line, error.column
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if at_end or isinstance(error, UnexpectedEOF) or line < 1:
        lines = text.split("\n")
        line, column = len(lines), len(lines[-1]) + 1
    return ParseError(_problem(error), text, line, column)


def _problem(error: UnexpectedInput) -> str:
    if isinstance(error, UnexpectedCharacters):
        hint = "; names have letters without accents, digits and _" if error.char.isidentifier() else ""
        allowed = _expected((error.allowed or set()) - {_ALWAYS_ALLOWED})
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
    if "LSQB" in expected and expected <= {"LSQB", "LPAR"}:
        return "; a tensor needs its labels, as in A[i, j], also a scalar, as in eta[]"
    if token.type == "_NEWLINE":
        return "; an expression goes on in the next line only within parentheses"
    return ""


def _expected(terminals: set[str]) -> str:
    names = sorted({_TERMINALS.get(terminal, terminal.lower()) for terminal in terminals})
    return names[0] if len(names) == 1 else " or ".join((", ".join(names[:-1]), names[-1]))
