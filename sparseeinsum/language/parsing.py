"""Language: program text in, syntax trees with positions out."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Protocol

from lark import Lark, Token, Tree, UnexpectedInput, v_args
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from sparseeinsum.errors import ParseError, SparseEinsumError
from sparseeinsum.language.expression_checks import check_depth, check_labelled
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parse_errors import ALWAYS_ALLOWED, explain, without_statement
from sparseeinsum.language.scalar import complex_number, negated_number
from sparseeinsum.language.syntax import (
    MATRIX_PRODUCT,
    TRANSPOSE,
    Assignment,
    BoundExpression,
    Declaration,
    Expression,
    FunctionCall,
    Import,
    MatrixAssignment,
    MatrixDeclaration,
    MatrixName,
    Number,
    Position,
    RangeExpression,
    Source,
    Statement,
    TensorReference,
    is_promoted,
)
from sparseeinsum.operators import dtypes
from sparseeinsum.operators.functions import FUNCTIONS

_COMPARISONS = {FUNCTIONS[name].symbol: name for name in ("lt", "le", "gt", "ge", "eq", "ne")}


Report = Callable[[ParseError], None]


def fail(error: ParseError) -> None:
    """The report of those who stop at the first error."""
    raise error


class Surroundings(Protocol):
    """What program text names outside it."""

    def include(self, name: str, at: Position) -> Sequence[Statement]:
        """The statements of another file."""

    def locate(self, relation: str) -> str:
        """A table or data file, by a name that does not depend on where the text is."""


def parse(source: Source, parameters: Parameters, around: Surroundings, report: Report) -> Iterator[Statement]:
    """Read program text; values stand in the place of parameters.

    Args:
        source: The text.
        parameters: Takes up those that are declared.
        around: The files that the text names.
        report: Told of errors; if it does not raise them, the statements without errors are read.

    Raises:
        ParseError: With the line, the column and what was expected there.
    """
    to_syntax = _ToSyntax(source, (), parameters, around)
    for tree in _tree(source, report).children:
        try:
            assert isinstance(tree, Tree)
            yield from to_syntax.statements(tree)
        except ParseError as error:
            report(error)


def parse_join(text: str, operands: tuple[str, ...]) -> Expression:
    """Read a scalar expression of operands, which have names and no labels.

    Raises:
        ParseError: With the line, the column and what was expected there.
    """
    source = Source(text)
    try:
        expression = _ToSyntax(source, operands).expression(_parser().parse(text, start="expression"))
    except UnexpectedInput as error:
        raise explain(error, source) from None
    check_depth(expression, source)
    return expression


def _tree(source: Source, report: Report) -> Tree[Token]:
    """The statements of a text that can be read."""
    text = source.text
    while True:
        try:
            return _parser().parse(text, start="start")
        except UnexpectedInput as unexpected:
            error = explain(unexpected, source)
            report(error)
            rest = without_statement(text, error.line)
            if rest == text:
                return Tree("start", [])
            text = rest


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


class _JoinLines:
    """Drops line ends inside brackets and parentheses, so that a long expression may go on."""

    always_accept = (ALWAYS_ALLOWED,)

    def process(self, tokens: Iterator[Token]) -> Iterator[Token]:
        """Tokens without the line ends that end no statement."""
        depth = 0
        for token in tokens:
            depth += {"LPAR": 1, "LSQB": 1, "RPAR": -1, "RSQB": -1}.get(token.type, 0)
            if token.type != "_NEWLINE" or depth <= 0:
                yield token


def _call(name: str) -> object:
    @v_args(meta=True)
    def make(self: "_ToSyntax", meta: Meta, arguments: list[Expression]) -> FunctionCall:
        return FunctionCall(name, None, tuple(arguments), self.position(meta))

    return make


def _sum(name: str, sign: int) -> object:
    @v_args(meta=True)
    def make(self: "_ToSyntax", meta: Meta, arguments: list[Expression]) -> Expression:
        match arguments:
            case [Number(real), Number(imaginary)] if (value := complex_number(real, sign, imaginary)) is not None:
                return Number(value, self.position(meta))
            case _:
                return FunctionCall(name, None, tuple(arguments), self.position(meta))

    return make


_CONSTANTS: dict[str, dtypes.Number] = {
    "true": True,
    "false": False,
    "inf": float("inf"),
    "infj": complex(0, float("inf")),
}


_Axes = tuple[tuple[str, int | None], ...]
_Origin = tuple[str, tuple[str, ...] | None, str | None]  # relation, columns of indices and of values
_Known = tuple[dtypes.Number | None, str | None, Position]  # fill, dtype, where


class _ToSyntax(Transformer_NonRecursive[Token, object]):
    mul, div, pow = (_call(name) for name in ("mul", "div", "pow"))
    matmul, transpose = _call(MATRIX_PRODUCT), _call(TRANSPOSE)
    add, sub = _sum("add", 1), _sum("sub", -1)
    or_, and_, not_ = (_call(name) for name in ("or", "and", "not"))

    def __init__(
        self,
        source: Source,
        operands: tuple[str, ...],
        parameters: Parameters | None = None,
        around: Surroundings | None = None,
    ) -> None:
        super().__init__()
        self._source = source
        self._operands = operands
        self._parameters = Parameters() if parameters is None else parameters
        self._around = around

    def statements(self, tree: Tree[Token]) -> Sequence[Statement]:
        """What a statement stands for."""
        found = self._transformed(tree)
        assert isinstance(found, tuple | list)
        return found

    def expression(self, tree: Tree[Token]) -> Expression:
        """An expression."""
        found = self._transformed(tree)
        assert isinstance(found, Expression)
        return found

    def _transformed(self, tree: Tree[Token]) -> object:
        try:
            return self.transform(tree)
        except VisitError as error:
            if isinstance(error.orig_exc, SparseEinsumError):
                raise error.orig_exc from None
            raise

    def position(self, meta: Meta) -> Position:
        """Where something stands."""
        return Position(meta.line, meta.column, self._source)

    def _error(self, problem: str, at: Position) -> ParseError:
        return at.error(problem, self._source)

    def labels(self, labels: list[tuple[str, int]]) -> list[tuple[str, int]]:
        return labels

    @v_args(meta=True)
    def label(self, meta: Meta, parts: list[object]) -> tuple[str, int]:
        name, tile = str(parts[0]), parts[1]
        if not isinstance(tile, int):
            return name, 1
        if not is_promoted(name):
            problem = f"{name}:{tile} gives a tile to a label that is not promoted; write it in upper case"
            raise self._error(problem, self.position(meta))
        if tile < 1:
            raise self._error(f"{name}:{tile} is a tile of no index; it takes 1 or more", self.position(meta))
        return name, tile

    @v_args(meta=True)
    def size(self, meta: Meta, tokens: list[Token]) -> int:
        if tokens[0].type == "INT":
            return int(tokens[0])
        return self._parameters.whole_number(str(tokens[0]), self.position(meta), self._source)

    def axis(self, parts: list[object]) -> tuple[str, object]:
        return str(parts[0]), parts[1]

    def axes(self, axes: list[object]) -> list[object]:
        return [axis for axis in axes if axis is not None]

    @v_args(meta=True)
    def whole(self, meta: Meta, tokens: list[Token]) -> Number:
        return Number(int(tokens[0]), self.position(meta))

    @v_args(meta=True)
    def fraction(self, meta: Meta, tokens: list[Token]) -> Number:
        return self._finite(float(tokens[0]), meta)

    @v_args(meta=True)
    def imaginary(self, meta: Meta, tokens: list[Token]) -> Number:
        return self._finite(complex(0, float(tokens[0][:-1])), meta)

    def _finite(self, value: complex, meta: Meta) -> Number:
        if math.isinf(abs(value)):
            raise self._error("the number is beyond what float64 holds", self.position(meta))
        return Number(value, self.position(meta))

    @v_args(meta=True)
    def constant(self, meta: Meta, tokens: list[Token]) -> Number:
        return Number(_CONSTANTS[str(tokens[0])], self.position(meta))

    @v_args(meta=True)
    def neg(self, meta: Meta, arguments: list[Expression]) -> Expression:
        match arguments:
            case [Number(value)] if (negated := negated_number(value)) is not None:
                return Number(negated, self.position(meta))
            case _:
                return FunctionCall("neg", None, tuple(arguments), self.position(meta))

    @v_args(meta=True)
    def compare(self, meta: Meta, parts: list[object]) -> FunctionCall:
        first, symbol, second = parts
        return FunctionCall(_COMPARISONS[str(symbol)], None, (first, second), self.position(meta))  # type: ignore[arg-type]  # by grammar

    @v_args(meta=True)
    def reference(self, meta: Meta, parts: tuple[Token, list[tuple[str, int]] | None]) -> TensorReference:
        name, found = parts
        labels = found or []
        tiles = tuple(dict.fromkeys((label.lower(), tile) for label, tile in labels if tile > 1))
        return TensorReference(str(name), tuple(label for label, _ in labels), tiles, self.position(meta))

    @v_args(meta=True)
    def bare(self, meta: Meta, names: list[Token]) -> TensorReference | MatrixName | Number:
        name, at = str(names[0]), self.position(meta)
        if self._operands:
            if name not in self._operands:
                raise self._error(f"there is no operand {name}; there are {', '.join(self._operands)}", at)
            return TensorReference(name, (), at=at)
        value = self._parameters.value(name)
        return MatrixName(name, at) if value is None else Number(value, at)

    @v_args(meta=True)
    def bound(self, meta: Meta, parts: list[Token | None]) -> BoundExpression:
        name, axis = parts
        return BoundExpression(str(name), None if axis is None else int(axis), at=self.position(meta))

    @v_args(meta=True)
    def range(self, meta: Meta, parts: list[object]) -> RangeExpression:
        kind, label, bound = parts
        assert bound is None or isinstance(bound, int | BoundExpression)
        return RangeExpression(str(kind), str(label), bound, self.position(meta))

    @v_args(meta=True)
    def call(self, meta: Meta, parts: list[object]) -> FunctionCall:
        name, labels, *arguments = parts
        assert labels is None or isinstance(labels, list)
        named = None if labels is None else tuple(label for label, _ in labels)
        for label, tile in labels or ():
            if tile > 1:
                problem = f"{name}[{label}:{tile}] names a label; only references have tiles"
                raise self._error(problem, self.position(meta))
        return FunctionCall(str(name), named, tuple(arguments), self.position(meta))  # type: ignore[arg-type]  # by grammar

    @v_args(meta=True)
    def name(self, meta: Meta, tokens: list[Token]) -> str:
        name = _unquoted(tokens[0])
        if not name:
            raise self._error("a name has one character or more", self.position(meta))
        return name

    def index(self, columns: list[str]) -> tuple[str, ...]:
        return tuple(columns)

    def origin(self, parts: list[object]) -> tuple[object, ...]:
        return tuple(parts)

    @v_args(meta=True)
    def declaration(self, meta: Meta, parts: list[Any]) -> tuple[Statement]:
        name, axes, origin, fill, dtype = parts
        at = self.position(meta)
        if not (fill is None or isinstance(fill, Number)):
            raise self._error(f"the fill of {name} is no number", at)
        known = (None if fill is None else fill.value, None if dtype is None else str(dtype), at)
        if origin is not None:
            return (self._imported(str(name), tuple(axes), origin, known),)
        for axis, bound in axes:
            if bound is None:
                problem = f"the axis {axis} of {name} has no bound, as in {axis}: 10; only those of tables need none"
                raise self._error(f'{problem}, as in tensor {name}[...] from "edges"', at)
        return (Declaration(str(name), tuple(axes), *known),)

    def _imported(self, name: str, axes: _Axes, origin: _Origin, known: _Known) -> Import:
        relation, index, value = origin
        if index is not None and len(index) != len(axes):
            problem = f"{name} has {len(axes)} axes, but {len(index)} index columns; give every axis one, in its order"
            raise self._error(problem, known[2])
        assert self._around is not None
        columns = tuple(axis for axis, _ in axes) if index is None else index
        return Import(name, axes, self._around.locate(relation), columns, value, *known)

    @v_args(meta=True)
    def parameter(self, meta: Meta, parts: list[Any]) -> tuple[Statement, ...]:
        name, value = parts
        at = self.position(meta)
        if not (value is None or isinstance(value, Number)):
            raise self._error(f"the value of the parameter {name} is no number", at)
        self._parameters.declare(str(name), None if value is None else value.value, at, self._source)
        return ()

    @v_args(meta=True)
    def include(self, meta: Meta, tokens: list[Token]) -> Sequence[Statement]:
        assert self._around is not None
        return self._around.include(_unquoted(tokens[0]), self.position(meta))

    def assignment(self, parts: list[Expression]) -> tuple[Statement]:
        target, value = parts
        assert isinstance(target, TensorReference)
        check_depth(value, self._source)
        check_labelled(value, self._source)
        return (Assignment(target, value),)

    @v_args(meta=True)
    def matrix_assignment(self, meta: Meta, parts: list[Any]) -> tuple[Statement]:
        name, value = parts
        check_depth(value, self._source)
        return (MatrixAssignment(TensorReference(str(name), (), at=self.position(meta)), value),)

    @v_args(meta=True)
    def kinds(self, meta: Meta, tokens: list[Token]) -> tuple[Statement, ...]:
        kind, *names = map(str, tokens)
        return tuple(MatrixDeclaration(name, kind, self.position(meta)) for name in names)


def _unquoted(token: Token) -> str:
    return str(token[1:-1]) if token.type == "TEXT" else str(token)
