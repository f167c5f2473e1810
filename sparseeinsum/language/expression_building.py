"""Language: builds the syntax trees of expressions from parse trees."""

import math
from functools import reduce
from typing import Any

from lark import Token, Tree
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from sparseeinsum.errors import ParseError, SparseEinsumError
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.language.expression_checks import with_limited_depth
from sparseeinsum.language.index_syntax import affine_index
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parse_trees import with_meta
from sparseeinsum.language.random_functions import with_labels_as_keys
from sparseeinsum.language.scalar import complex_number, negated_number
from sparseeinsum.language.syntax import (
    MATRIX_PRODUCT,
    PREVIOUS,
    STEP,
    TRANSPOSE,
    AppliedFunction,
    BoundExpression,
    ExpressionTree,
    FunctionCall,
    IndexedReference,
    MatrixName,
    NumberLiteral,
    Position,
    RangeExpression,
    SourceText,
    TensorReference,
    is_promoted,
)
from sparseeinsum.language.syntax_text import write_expression
from sparseeinsum.operators import dtypes
from sparseeinsum.operators.functions import FUNCTIONS

_COMPARISONS = {FUNCTIONS[name].symbol: name for name in ("lt", "le", "gt", "ge", "eq", "ne")}

_CONSTANTS: dict[str, dtypes.Number] = {
    "true": True,
    "false": False,
    "inf": float("inf"),
    "infj": complex(0, float("inf")),
}

ReferenceIndices = list[tuple[str, int] | AffineIndex]  # labels with their tiles, and other indices


def _call(name: str) -> object:
    @with_meta
    def make(self: "ExpressionBuilder", meta: Meta, arguments: list[ExpressionTree]) -> FunctionCall:
        return FunctionCall(name, None, tuple(arguments), self.position(meta))

    return make


def _sum(name: str, sign: int) -> object:
    @with_meta
    def make(self: "ExpressionBuilder", meta: Meta, arguments: list[ExpressionTree]) -> ExpressionTree:
        match arguments:
            case [NumberLiteral(real), NumberLiteral(imaginary)]:
                value = complex_number(real, sign, imaginary)
                if value is not None:
                    return NumberLiteral(value, self.position(meta))
        return FunctionCall(name, None, tuple(arguments), self.position(meta))

    return make


class ExpressionBuilder(Transformer_NonRecursive[Token, object]):
    """Converts parse trees of expressions to syntax trees: a method for every rule of the grammar, with its name.

    Args:
        source: The text.
        operands: The names of operands without labels; if there are none, names without labels are tensors.
        parameters: The parameters of the program, whose values replace their names.
        hidden: Names that stand for no parameter.
    """

    mul, div, mod, pow = (_call(name) for name in ("mul", "div", "mod", "pow"))
    matmul, transpose = _call(MATRIX_PRODUCT), _call(TRANSPOSE)
    add, sub = _sum("add", 1), _sum("sub", -1)
    or_, and_, not_ = (_call(name) for name in ("or", "and", "not"))

    def __init__(
        self,
        source: SourceText,
        operands: tuple[str, ...] = (),
        parameters: Parameters | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__()
        self._source = source
        self._operands = operands
        self._parameters = Parameters() if parameters is None else parameters
        self._hidden = hidden

    def expression(self, tree: Tree[Token]) -> ExpressionTree:
        """The syntax tree of an expression."""
        expression = self._transformed(tree)
        assert isinstance(expression, ExpressionTree)
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

    def affine(self, children: list[ExpressionTree]) -> AffineIndex:
        return affine_index(with_limited_depth(children[0], self._source), self._source)

    def key(self, tokens: list[Token]) -> AffineIndex:
        return AffineIndex((), 0, str(tokens[0])[1:-1])

    @with_meta
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

    @with_meta
    def size(self, meta: Meta, tokens: list[Token]) -> int:
        if tokens[0].type == "INT":
            return int(tokens[0])
        return self._parameters.whole_number(str(tokens[0]), self.position(meta), self._source)

    @with_meta
    def whole(self, meta: Meta, tokens: list[Token]) -> NumberLiteral:
        return NumberLiteral(int(tokens[0]), self.position(meta))

    @with_meta
    def fraction(self, meta: Meta, tokens: list[Token]) -> NumberLiteral:
        return self._finite_number(float(tokens[0]), meta)

    @with_meta
    def imaginary(self, meta: Meta, tokens: list[Token]) -> NumberLiteral:
        return self._finite_number(complex(0, float(tokens[0][:-1])), meta)

    def _finite_number(self, value: complex, meta: Meta) -> NumberLiteral:
        if math.isinf(abs(value)):
            raise self._error("the number is too large for float64", self.position(meta))
        return NumberLiteral(value, self.position(meta))

    @with_meta
    def constant(self, meta: Meta, tokens: list[Token]) -> NumberLiteral:
        return NumberLiteral(_CONSTANTS[str(tokens[0])], self.position(meta))

    @with_meta
    def neg(self, meta: Meta, arguments: list[ExpressionTree]) -> ExpressionTree:
        match arguments:
            case [NumberLiteral(value)] if (negated := negated_number(value)) is not None:
                return NumberLiteral(negated, self.position(meta))
            case _:
                return FunctionCall("neg", None, tuple(arguments), self.position(meta))

    @with_meta
    def compare(self, meta: Meta, children: list[Any]) -> ExpressionTree:
        """A comparison; a chain of several, such as a < b <= c, is a < b and b <= c."""
        at = self.position(meta)
        terms, symbols = children[::2], children[1::2]
        comparisons: list[ExpressionTree] = [
            FunctionCall(_COMPARISONS[str(symbol)], None, (first, second), at)
            for symbol, first, second in zip(symbols, terms[:-1], terms[1:], strict=True)
        ]
        return reduce(lambda first, second: FunctionCall("and", None, (first, second), at), comparisons)

    @with_meta
    def floor_divide(self, meta: Meta, arguments: list[ExpressionTree]) -> ExpressionTree:
        floor = FunctionCall("floor", None, (FunctionCall("div", None, tuple(arguments)),))
        raise self._error(f"there is no //; write {write_expression(floor)}", self.position(meta))

    @with_meta
    def reference(
        self, meta: Meta, children: tuple[Token, ReferenceIndices | None]
    ) -> TensorReference | IndexedReference:
        return self._referenced(*children, self.position(meta))

    def _referenced(
        self, name: str, indices: ReferenceIndices | None, at: Position
    ) -> TensorReference | IndexedReference:
        written = indices or []
        labels = [index for index in written if not isinstance(index, AffineIndex)]
        tiles = tuple(dict.fromkeys((label.lower(), tile) for label, tile in labels if tile > 1))
        if len(labels) == len(written):
            return TensorReference(str(name), tuple(label for label, _ in labels), tiles, at)
        plain = tuple(index if isinstance(index, AffineIndex) else index[0] for index in written)
        return IndexedReference(str(name), plain, tiles, at)

    @with_meta
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

    @with_meta
    def bound(self, meta: Meta, children: list[Token | None]) -> BoundExpression:
        name, axis = children
        return BoundExpression(str(name), None if axis is None else int(axis), at=self.position(meta))

    @with_meta
    def range(self, meta: Meta, children: list[object]) -> RangeExpression:
        kind, label, bound = children
        assert bound is None or isinstance(bound, int | BoundExpression)
        return RangeExpression(str(kind), str(label), bound, self.position(meta))

    @with_meta
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

    @with_meta
    def applied(self, meta: Meta, children: list[Any]) -> AppliedFunction:
        name, *arguments, indices = children
        reference = self._referenced(name, indices, self.position(meta))
        return AppliedFunction(str(name), tuple(arguments), reference.indices, reference.tiles, reference.at)

    @with_meta
    def random(self, meta: Meta, children: list[Any]) -> FunctionCall:
        name, *arguments = children
        call = FunctionCall(str(name), None, tuple(arguments), self.position(meta))
        return with_labels_as_keys(call, self._hidden | {STEP})

    @with_meta
    def counted(self, meta: Meta, children: list[Any]) -> RangeExpression:
        label, bound = children
        return RangeExpression("index", str(label), bound, self.position(meta))
