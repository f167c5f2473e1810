"""Language: parses program text to syntax trees with positions."""

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, Protocol

from lark import Token, Tree, v_args
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from sparseeinsum.errors import ParseError, SparseEinsumError
from sparseeinsum.language.affine_indices import AffineIndex, Limit
from sparseeinsum.language.expression_checks import with_limited_depth, with_step
from sparseeinsum.language.index_syntax import affine_index, limit
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parse_trees import Report, expression_tree, parse_tree
from sparseeinsum.language.random_functions import with_labels_as_keys
from sparseeinsum.language.scalar import complex_number, negated_number
from sparseeinsum.language.syntax import (
    MATRIX_PRODUCT,
    STEP,
    TRANSPOSE,
    AppliedFunction,
    Assignment,
    BoundExpression,
    Declaration,
    Definition,
    Expression,
    FunctionCall,
    Import,
    IndexedReference,
    MatrixAssignment,
    MatrixDeclaration,
    MatrixName,
    NumberLiteral,
    Position,
    RangeExpression,
    SourceText,
    StateDeclaration,
    Statement,
    TensorReference,
    is_promoted,
    write_expression,
)
from sparseeinsum.operators import dtypes
from sparseeinsum.operators.functions import FUNCTIONS

PREVIOUS = "previous."  # before the name of a number, in the condition of a loop: its value in the step before

_COMPARISONS = {FUNCTIONS[name].symbol: name for name in ("lt", "le", "gt", "ge", "eq", "ne")}


class FileAccess(Protocol):
    """Finds the files that program text names."""

    def include(self, name: str, at: Position) -> Sequence[Statement]:
        """The statements of the file `name`."""

    def locate(self, relation: str) -> str:
        """The name of a table, or the absolute path of a data file."""


def parse(source: SourceText, parameters: Parameters, files: FileAccess, report: Report) -> Iterator[Statement]:
    """Parse program text; the syntax trees have the values of parameters in place of their names.

    Args:
        source: The text.
        parameters: Receives the parameters that are declared.
        files: Finds the files that the text names.
        report: Called with every error; if it does not raise, the statements without errors are parsed.

    Raises:
        ParseError: The text has a syntax error; the message has the line, the column and what was expected there.
    """
    builder = _SyntaxBuilder(source, (), parameters, files)
    for tree in parse_tree(source, report).children:
        try:
            assert isinstance(tree, Tree)
            yield from builder.statements(tree)
        except ParseError as error:
            report(error)


def parse_join(text: str, operands: tuple[str, ...]) -> Expression:
    """Parse a scalar expression; `operands` are the names of its operands, which have no labels.

    Raises:
        ParseError: The text has a syntax error; the message has the line, the column and what was expected there.
    """
    source = SourceText(text)
    expression = _SyntaxBuilder(source, operands).expression(expression_tree(source))
    return with_limited_depth(expression, source)


def parse_index(text: str) -> AffineIndex:
    """Parse an index such as 2*i + 1.

    Raises:
        ParseError: The text is no index.
    """
    source = SourceText(text)
    return affine_index(_SyntaxBuilder(source, ()).expression(expression_tree(source)), source)


def _call(name: str) -> object:
    @v_args(meta=True)
    def make(self: "_SyntaxBuilder", meta: Meta, arguments: list[Expression]) -> FunctionCall:
        return FunctionCall(name, None, tuple(arguments), self.position(meta))

    return make


def _sum(name: str, sign: int) -> object:
    @v_args(meta=True)
    def make(self: "_SyntaxBuilder", meta: Meta, arguments: list[Expression]) -> Expression:
        match arguments:
            case [NumberLiteral(real), NumberLiteral(imaginary)]:
                value = complex_number(real, sign, imaginary)
                if value is not None:
                    return NumberLiteral(value, self.position(meta))
        return FunctionCall(name, None, tuple(arguments), self.position(meta))

    return make


_CONSTANTS: dict[str, dtypes.Number] = {
    "true": True,
    "false": False,
    "inf": float("inf"),
    "infj": complex(0, float("inf")),
}


_Indices = list[tuple[str, int] | AffineIndex]  # labels with their tiles, and other indices
_Axes = tuple[tuple[str, int | None], ...]
_Origin = tuple[str, tuple[str, ...] | None, str | None]  # relation, columns of the indices, column of the values
_Properties = tuple[dtypes.Number | None, str | None, Position]  # fill, dtype, place of the statement


class _SyntaxBuilder(Transformer_NonRecursive[Token, object]):
    """Converts parse trees to syntax trees: a method for every rule of the grammar, with the name of the rule."""

    mul, div, mod, pow = (_call(name) for name in ("mul", "div", "mod", "pow"))
    matmul, transpose = _call(MATRIX_PRODUCT), _call(TRANSPOSE)
    add, sub = _sum("add", 1), _sum("sub", -1)
    or_, and_, not_ = (_call(name) for name in ("or", "and", "not"))

    def __init__(
        self,
        source: SourceText,
        operands: tuple[str, ...],
        parameters: Parameters | None = None,
        files: FileAccess | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__()
        self._hidden = hidden
        self._source = source
        self._operands = operands
        self._parameters = Parameters() if parameters is None else parameters
        self._files = files

    def statements(self, tree: Tree[Token]) -> Sequence[Statement]:
        """The syntax trees of a statement: none for a parameter, several for an include."""
        builder = self
        if tree.data == "definition":  # the parameters of a function hide those of the program
            hidden = frozenset(str(formal.children[0]) for formal in tree.find_data("formal"))
            builder = _SyntaxBuilder(self._source, (), self._parameters, self._files, hidden)
        statements = builder._transformed(tree)
        assert isinstance(statements, tuple | list)
        return statements

    def expression(self, tree: Tree[Token]) -> Expression:
        """The syntax tree of an expression."""
        expression = self._transformed(tree)
        assert isinstance(expression, Expression)
        return expression

    def _transformed(self, tree: Tree[Token]) -> object:
        try:
            return self.transform(tree)
        except VisitError as error:
            if isinstance(error.orig_exc, SparseEinsumError):
                raise error.orig_exc from None
            raise

    def position(self, meta: Meta) -> Position:
        """The place of a node of the parse tree."""
        return Position(meta.line, meta.column, self._source)

    def _error(self, problem: str, at: Position) -> ParseError:
        return at.error(problem, self._source)

    def indices(self, indices: list[tuple[str, int] | AffineIndex]) -> list[tuple[str, int] | AffineIndex]:
        return indices

    def affine(self, children: list[Expression]) -> AffineIndex:
        return affine_index(with_limited_depth(children[0], self._source), self._source)

    @v_args(meta=True)
    def label(self, meta: Meta, children: list[object]) -> tuple[str, int]:
        name, tile = str(children[0]), children[1]
        if not isinstance(tile, int):
            return name, 1
        if not is_promoted(name):
            problem = f"{name}:{tile} gives a tile to a label that is not promoted; write it in upper case"
            raise self._error(problem, self.position(meta))
        if tile < 1:
            raise self._error(
                f"{name}:{tile} is a tile without an index; its size must be 1 or more", self.position(meta)
            )
        return name, tile

    @v_args(meta=True)
    def size(self, meta: Meta, tokens: list[Token]) -> int:
        if tokens[0].type == "INT":
            return int(tokens[0])
        return self._parameters.whole_number(str(tokens[0]), self.position(meta), self._source)

    def axis(self, children: list[object]) -> tuple[str, object]:
        return str(children[0]), children[1]

    def axes(self, axes: list[object]) -> list[object]:
        return [axis for axis in axes if axis is not None]

    @v_args(meta=True)
    def whole(self, meta: Meta, tokens: list[Token]) -> NumberLiteral:
        return NumberLiteral(int(tokens[0]), self.position(meta))

    @v_args(meta=True)
    def fraction(self, meta: Meta, tokens: list[Token]) -> NumberLiteral:
        return self._finite_number(float(tokens[0]), meta)

    @v_args(meta=True)
    def imaginary(self, meta: Meta, tokens: list[Token]) -> NumberLiteral:
        return self._finite_number(complex(0, float(tokens[0][:-1])), meta)

    def _finite_number(self, value: complex, meta: Meta) -> NumberLiteral:
        if math.isinf(abs(value)):
            raise self._error("the number is too large for float64", self.position(meta))
        return NumberLiteral(value, self.position(meta))

    @v_args(meta=True)
    def constant(self, meta: Meta, tokens: list[Token]) -> NumberLiteral:
        return NumberLiteral(_CONSTANTS[str(tokens[0])], self.position(meta))

    @v_args(meta=True)
    def neg(self, meta: Meta, arguments: list[Expression]) -> Expression:
        match arguments:
            case [NumberLiteral(value)] if (negated := negated_number(value)) is not None:
                return NumberLiteral(negated, self.position(meta))
            case _:
                return FunctionCall("neg", None, tuple(arguments), self.position(meta))

    @v_args(meta=True)
    def compare(self, meta: Meta, children: list[Any]) -> Expression:
        """A comparison; a chain of several, such as a < b <= c, is a < b and b <= c."""
        at = self.position(meta)
        terms, symbols = children[::2], children[1::2]
        comparisons: list[Expression] = [
            FunctionCall(_COMPARISONS[str(symbol)], None, (first, second), at)
            for symbol, first, second in zip(symbols, terms[:-1], terms[1:], strict=True)
        ]
        return reduce(lambda first, second: FunctionCall("and", None, (first, second), at), comparisons)

    @v_args(meta=True)
    def floor_divide(self, meta: Meta, arguments: list[Expression]) -> Expression:
        floor = FunctionCall("floor", None, (FunctionCall("div", None, tuple(arguments)),))
        raise self._error(f"there is no //; write {write_expression(floor)}", self.position(meta))

    @v_args(meta=True)
    def reference(self, meta: Meta, children: tuple[Token, _Indices | None]) -> TensorReference | IndexedReference:
        return self._reference(*children, self.position(meta))

    def _reference(self, name: str, indices: _Indices | None, at: Position) -> TensorReference | IndexedReference:
        written = indices or []
        labels = [index for index in written if not isinstance(index, AffineIndex)]
        tiles = tuple(dict.fromkeys((label.lower(), tile) for label, tile in labels if tile > 1))
        if len(labels) == len(written):
            return TensorReference(str(name), tuple(label for label, _ in labels), tiles, at)
        plain = tuple(index if isinstance(index, AffineIndex) else index[0] for index in written)
        return IndexedReference(str(name), plain, tiles, at)

    @v_args(meta=True)
    def target(self, meta: Meta, children: tuple[Token, _Indices | None]) -> TensorReference:
        reference = self._reference(*children, self.position(meta))
        if isinstance(reference, IndexedReference):
            problem = f"{write_expression(reference)} is on the left side, whose indices are labels"
            raise self._error(f"{problem}; shift the indices on the right side, as in Y[i] = A[i + 1]", reference.at)
        return reference

    @v_args(meta=True)
    def bare(self, meta: Meta, names: list[Token]) -> TensorReference | MatrixName | NumberLiteral:
        name, at = str(names[0]), self.position(meta)
        if self._operands:
            if name not in self._operands:
                known = [operand for operand in self._operands if not operand.startswith(PREVIOUS)]
                raise self._error(f"there is no operand {name}; there are {', '.join(known)}", at)
            return TensorReference(name, (), at=at)
        if names[0].type == "PREVIOUS":
            raise self._error(f"{name} is a value of the step before, which only the condition of a loop knows", at)
        value = None if name in self._hidden else self._parameters.value(name)
        return MatrixName(name, at) if value is None else NumberLiteral(value, at)

    @v_args(meta=True)
    def bound(self, meta: Meta, children: list[Token | None]) -> BoundExpression:
        name, axis = children
        return BoundExpression(str(name), None if axis is None else int(axis), at=self.position(meta))

    @v_args(meta=True)
    def range(self, meta: Meta, children: list[object]) -> RangeExpression:
        kind, label, bound = children
        assert bound is None or isinstance(bound, int | BoundExpression)
        return RangeExpression(str(kind), str(label), bound, self.position(meta))

    @v_args(meta=True)
    def call(self, meta: Meta, children: list[object]) -> FunctionCall:
        name, labels, *arguments = children
        assert labels is None or isinstance(labels, list)
        for label in labels or ():
            if isinstance(label, AffineIndex):
                raise self._error(f"{label} is no label; {name}[j](...) names labels", self.position(meta))
            if label[1] > 1:
                problem = f"{name}[{label[0]}:{label[1]}] names a label; only references have tiles"
                raise self._error(problem, self.position(meta))
        named = None if labels is None else tuple(label for label, _ in labels)
        return FunctionCall(str(name), named, tuple(arguments), self.position(meta))  # type: ignore[arg-type]  # by grammar

    @v_args(meta=True)
    def applied(self, meta: Meta, children: list[Any]) -> AppliedFunction:
        name, *arguments, indices = children
        reference = self._reference(name, indices, self.position(meta))
        return AppliedFunction(str(name), tuple(arguments), reference.indices, reference.tiles, reference.at)

    @v_args(meta=True)
    def random(self, meta: Meta, children: list[Any]) -> FunctionCall:
        name, *arguments = children
        call = FunctionCall(str(name), None, tuple(arguments), self.position(meta))
        return with_labels_as_keys(call, self._hidden | {STEP})

    @v_args(meta=True)
    def counted(self, meta: Meta, children: list[Any]) -> RangeExpression:
        label, bound = children
        return RangeExpression("index", str(label), bound, self.position(meta))

    @v_args(meta=True)
    def name(self, meta: Meta, tokens: list[Token]) -> str:
        name = _unquoted(tokens[0])
        if not name:
            raise self._error("a name must have one character or more", self.position(meta))
        return name

    def index(self, columns: list[str]) -> tuple[str, ...]:
        return tuple(columns)

    def origin(self, children: list[object]) -> tuple[object, ...]:
        return tuple(children)

    @v_args(meta=True)
    def declaration(self, meta: Meta, children: list[Any]) -> tuple[Statement]:
        name, axes, origin, fill, dtype = children
        at = self.position(meta)
        if not (fill is None or isinstance(fill, NumberLiteral)):
            raise self._error(f"the fill of {name} is not a number", at)
        properties = (None if fill is None else fill.value, None if dtype is None else str(dtype), at)
        if origin is not None:
            return (self._imported(str(name), tuple(axes), origin, properties),)
        for axis, bound in axes:
            if bound is None:
                problem = f"the axis {axis} of {name} has no bound; write one, as in {axis}: 10"
                raise self._error(f'{problem} (only tables need none, as in tensor {name}[...] from "edges")', at)
        return (Declaration(str(name), tuple(axes), *properties),)

    def _imported(self, name: str, axes: _Axes, origin: _Origin, properties: _Properties) -> Import:
        relation, index, value = origin
        if index is not None and len(index) != len(axes):
            problem = f"{name} has {len(axes)} axes, but {len(index)} index columns; name one for every axis, in order"
            raise self._error(problem, properties[2])
        assert self._files is not None
        columns = tuple(axis for axis, _ in axes) if index is None else index
        return Import(name, axes, self._files.locate(relation), columns, value, *properties)

    @v_args(meta=True)
    def parameter(self, meta: Meta, children: list[Any]) -> tuple[Statement, ...]:
        name, value = children
        at = self.position(meta)
        if not (value is None or isinstance(value, NumberLiteral)):
            raise self._error(f"the value of the parameter {name} is not a number", at)
        self._parameters.declare(str(name), None if value is None else value.value, at, self._source)
        return ()

    @v_args(meta=True)
    def include(self, meta: Meta, tokens: list[Token]) -> Sequence[Statement]:
        assert self._files is not None
        return self._files.include(_unquoted(tokens[0]), self.position(meta))

    def assignment(self, children: list[Any]) -> tuple[Statement]:
        target, value, limits = children
        assert isinstance(target, TensorReference)
        return (Assignment(target, with_step(with_limited_depth(value, self._source)), limits or ()),)

    def limits(self, limits: list[Limit]) -> tuple[Limit, ...]:
        return tuple(limits)

    def limit(self, children: list[Any]) -> Limit:
        index, symbol, bound = children
        return limit(index, str(symbol), bound, self._source)

    @v_args(meta=True)
    def matrix_assignment(self, meta: Meta, children: list[Any]) -> tuple[Statement]:
        name, value = children
        value = with_limited_depth(value, self._source)
        return (MatrixAssignment(TensorReference(str(name), (), at=self.position(meta)), value),)

    @v_args(meta=True)
    def definition(self, meta: Meta, children: list[Any]) -> tuple[Statement]:
        name, parameters, labels, body = children
        body = with_limited_depth(body, self._source)
        return (Definition(str(name), tuple(parameters), labels, body, self.position(meta)),)

    def formals(self, formals: list[Any]) -> list[Any]:
        return formals

    @v_args(meta=True)
    def formal(self, meta: Meta, children: list[Any]) -> tuple[str, dtypes.Number | None]:
        name, default = children
        if not (default is None or isinstance(default, NumberLiteral)):
            raise self._error(f"the default of {name} is not a number", self.position(meta))
        return str(name), None if default is None else default.value

    @v_args(meta=True)
    def labels(self, meta: Meta, children: list[Any]) -> tuple[str, ...]:
        reference = self._reference("", children[0], self.position(meta))
        if isinstance(reference, IndexedReference) or reference.tiles:
            raise self._error("the result of a function has labels, without tiles", reference.at)
        return reference.labels

    @v_args(meta=True)
    def kinds(self, meta: Meta, tokens: list[Token]) -> tuple[Statement, ...]:
        kind, *names = map(str, tokens)
        return tuple(MatrixDeclaration(name, kind, self.position(meta)) for name in names)

    @v_args(meta=True)
    def state(self, meta: Meta, tokens: list[Token]) -> tuple[Statement, ...]:
        return tuple(StateDeclaration(str(name), self.position(meta)) for name in tokens)


def _unquoted(token: Token) -> str:
    return str(token[1:-1]) if token.type == "TEXT" else str(token)
