"""Language: program text in, syntax trees with positions out."""

import math
from collections.abc import Iterator
from functools import cache

from lark import Lark, Token, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from sparseeinsum.errors import ParseError
from sparseeinsum.language import dtypes
from sparseeinsum.language.scalar import FUNCTIONS, complex_number, negated_number
from sparseeinsum.language.syntax import (
    Assignment,
    BoundOf,
    Declaration,
    Expression,
    FunctionCall,
    Number,
    Position,
    RangeOf,
    Statement,
    TensorReference,
    is_promoted,
)

# Passes over expressions recurse: so deep is far from Python's limit, and deeper than kernels evaluate.
_DEEPEST = 100

_COMPARISONS = {FUNCTIONS[name].symbol: name for name in ("lt", "le", "gt", "ge", "eq", "ne")}


def parse(text: str) -> tuple[Statement, ...]:
    """Read program text.

    Raises:
        ParseError: With the line, the column and what was expected there.
    """
    statements = _read(text, "start", ())
    assert isinstance(statements, list)
    for statement in statements:
        if isinstance(statement, Assignment):
            check_depth(statement.value, text)
    return tuple(statements)


def parse_join(text: str, operands: tuple[str, ...]) -> Expression:
    """Read a scalar expression of operands, which have names and no labels.

    Raises:
        ParseError: With the line, the column and what was expected there.
    """
    expression = _read(text, "expression", operands)
    assert not isinstance(expression, list)
    check_depth(expression, text)
    return expression


def _read(text: str, start: str, operands: tuple[str, ...]) -> list[Statement] | Expression:
    try:
        return _ToSyntax(text, operands).transform(_parser().parse(text, start=start))
    except UnexpectedInput as error:
        raise _explain(error, text) from None
    except VisitError as error:
        if isinstance(error.orig_exc, ParseError):
            raise error.orig_exc from None
        raise


def check_depth(expression: Expression, text: str) -> None:
    """Refuse what is nested too deep for passes that recurse.

    Raises:
        ParseError: It is.
    """
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
        start=["start", "expression"],
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


def _sum(name: str, sign: int) -> object:
    @v_args(meta=True)
    def make(self: object, meta: Meta, arguments: list[Expression]) -> Expression:
        match arguments:
            case [Number(real), Number(imaginary)] if (value := complex_number(real, sign, imaginary)) is not None:
                return Number(value, _position(meta))
            case _:
                return FunctionCall(name, None, tuple(arguments), _position(meta))

    return make


_CONSTANTS: dict[str, dtypes.Number] = {
    "true": True,
    "false": False,
    "inf": float("inf"),
    "infj": complex(0, float("inf")),
}


class _ToSyntax(Transformer_NonRecursive[Token, list[Statement] | Expression]):
    mul, div, pow = (_call(name) for name in ("mul", "div", "pow"))
    add, sub = _sum("add", 1), _sum("sub", -1)
    or_, and_, not_ = (_call(name) for name in ("or", "and", "not"))

    def __init__(self, text: str, operands: tuple[str, ...]) -> None:
        super().__init__()
        self.text = text
        self.operands = operands

    def _error(self, problem: str, at: Position) -> ParseError:
        return ParseError(problem, self.text, at.line, at.column)

    def start(self, statements: list[Statement]) -> list[Statement]:
        return statements

    def labels(self, labels: list[tuple[str, int]]) -> list[tuple[str, int]]:
        return labels

    @v_args(meta=True)
    def label(self, meta: Meta, parts: list[Token | None]) -> tuple[str, int]:
        name, tile = str(parts[0]), parts[1]
        if tile is None:
            return name, 1
        if not is_promoted(name):
            problem = f"{name}:{tile} gives a tile to a label that is not promoted; write it in upper case"
            raise self._error(problem, _position(meta))
        if int(tile) < 1:
            raise self._error(f"{name}:{tile} is a tile of no index; it takes 1 or more", _position(meta))
        return name, int(tile)

    def axis(self, tokens: list[Token]) -> tuple[str, int]:
        return str(tokens[0]), int(tokens[1])

    @v_args(meta=True)
    def whole(self, meta: Meta, tokens: list[Token]) -> Number:
        return Number(int(tokens[0]), _position(meta))

    @v_args(meta=True)
    def fraction(self, meta: Meta, tokens: list[Token]) -> Number:
        return self._finite(float(tokens[0]), meta)

    @v_args(meta=True)
    def imaginary(self, meta: Meta, tokens: list[Token]) -> Number:
        return self._finite(complex(0, float(tokens[0][:-1])), meta)

    def _finite(self, value: complex, meta: Meta) -> Number:
        if math.isinf(abs(value)):
            raise self._error("the number is beyond what float64 holds", _position(meta))
        return Number(value, _position(meta))

    @v_args(meta=True)
    def constant(self, meta: Meta, tokens: list[Token]) -> Number:
        return Number(_CONSTANTS[str(tokens[0])], _position(meta))

    @v_args(meta=True)
    def neg(self, meta: Meta, arguments: list[Expression]) -> Expression:
        match arguments:
            case [Number(value)] if (negated := negated_number(value)) is not None:
                return Number(negated, _position(meta))
            case _:
                return FunctionCall("neg", None, tuple(arguments), _position(meta))

    @v_args(meta=True)
    def compare(self, meta: Meta, parts: list[object]) -> FunctionCall:
        first, symbol, second = parts
        return FunctionCall(_COMPARISONS[str(symbol)], None, (first, second), _position(meta))  # type: ignore[arg-type]  # by grammar

    @v_args(meta=True)
    def reference(self, meta: Meta, parts: tuple[Token, list[tuple[str, int]] | None]) -> TensorReference:
        name, found = parts
        labels = found or []
        tiles = tuple(dict.fromkeys((label.lower(), tile) for label, tile in labels if tile > 1))
        return TensorReference(str(name), tuple(label for label, _ in labels), tiles, _position(meta))

    @v_args(meta=True)
    def bare(self, meta: Meta, names: list[Token]) -> TensorReference:
        if self.operands and names[0] not in self.operands:
            raise self._error(f"there is no operand {names[0]}; there are {', '.join(self.operands)}", _position(meta))
        if not self.operands:
            problem = f"{names[0]} has no labels; a tensor needs its labels, as in A[i, j], also a scalar, as in eta[]"
            raise self._error(problem, _position(meta))
        return TensorReference(str(names[0]), (), at=_position(meta))

    @v_args(meta=True)
    def bound(self, meta: Meta, parts: list[Token | None]) -> BoundOf:
        name, axis = parts
        return BoundOf(str(name), None if axis is None else int(axis), at=_position(meta))

    @v_args(meta=True)
    def range(self, meta: Meta, parts: list[Token | BoundOf | None]) -> RangeOf:
        kind, label, bound = parts
        number = int(bound) if isinstance(bound, Token) else bound
        return RangeOf(str(kind), str(label), number, _position(meta))

    @v_args(meta=True)
    def call(self, meta: Meta, parts: list[object]) -> FunctionCall:
        name, labels, *arguments = parts
        assert labels is None or isinstance(labels, list)
        named = None if labels is None else tuple(label for label, _ in labels)
        for label, tile in labels or ():
            if tile > 1:
                raise self._error(f"{name}[{label}:{tile}] names a label; only references have tiles", _position(meta))
        return FunctionCall(str(name), named, tuple(arguments), _position(meta))  # type: ignore[arg-type]  # by grammar

    @v_args(meta=True)
    def declaration(self, meta: Meta, parts: list[object]) -> Declaration:
        name, *axes, fill, dtype = parts
        if not (fill is None or isinstance(fill, Number)):
            raise self._error(f"the fill of {name} is no number", _position(meta))
        named = tuple(axis for axis in axes if axis is not None)
        kind = None if dtype is None else str(dtype)
        value = None if fill is None else fill.value
        return Declaration(str(name), named, value, kind, _position(meta))  # type: ignore[arg-type]  # by grammar

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
    "_POWER": "an operator",
    "_DOUBLE_STAR": "an operator",
    "COMPARISON": "an operator",
    "_OR": "an operator",
    "_AND": "an operator",
    "_NOT": "an operator",
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
        allowed = _expected((error.allowed or set()) - {_ALWAYS_ALLOWED, "DTYPE"})  # ends fills, which few write
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
    if expected == {"LSQB"}:
        return "; a tensor needs its labels, as in A[i, j], also a scalar, as in eta[]"
    if token.type == "_NEWLINE":
        return "; an expression goes on in the next line only within parentheses"
    return ""


def _expected(terminals: set[str]) -> str:
    names = sorted({_TERMINALS.get(terminal, terminal.lower()) for terminal in terminals})
    return names[0] if len(names) == 1 else " or ".join((", ".join(names[:-1]), names[-1]))
