"""Language: program text in, syntax trees with positions out."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, v_args
from lark.tree import Meta

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


def parse(text: str) -> tuple[Statement, ...]:
    """Read program text.

    Raises:
        ParseError: With the line, the column and what was expected there.
    """
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _explain(error, text) from None
    return tuple(_ToSyntax().transform(tree))


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


class _JoinLines:
    """Drops line ends inside brackets and parentheses, so that a long expression may go on."""

    always_accept = ("_NEWLINE",)

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


class _ToSyntax(Transformer[Token, list[Statement]]):
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
        lines = text.splitlines() or [""]
        line, column = len(lines), len(lines[-1]) + 1
    return ParseError(_problem(error), text, line, column)


def _problem(error: UnexpectedInput) -> str:
    if isinstance(error, UnexpectedCharacters):
        return f"the character {error.char!r} has no meaning here; expected {_expected(error.allowed or set())}"
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        found = "the program ends here" if error.token.type == "$END" else f"found {str(error.token)!r}"
        if error.token.type == "_NEWLINE":
            found = "the line ends here"
        hint = ""
        if "LSQB" in expected and error.token.type != "LSQB" and "LPAR" in expected:
            hint = "; a tensor needs its labels, as in A[i, j], also a scalar, as in eta[]"
        return f"{found}, expected {_expected(expected)}{hint}"
    return "the program cannot be read"


def _expected(terminals: set[str]) -> str:
    names = sorted({_TERMINALS.get(terminal, terminal.lower()) for terminal in terminals})
    return names[0] if len(names) == 1 else " or ".join((", ".join(names[:-1]), names[-1]))
