"""Language: adds labels to statements of linear algebra, such as `G = (U @ V.T - X) @ V`.

The number of axes of a name without labels follows from its assignment or declaration in the program; or else from the
tensor of that name in the database; or else from the labels that it has in another statement. The default is a matrix.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from sparseeinsum.errors import ParseError, SemanticsError
from sparseeinsum.language import syntax
from sparseeinsum.language.linear_algebra import (
    MATRIX_AGGREGATES,
    Dimension,
    LinearExpression,
    aggregated,
    elementwise,
    number,
    product,
    tensor,
    trace,
    transposed,
)
from sparseeinsum.language.macros import MACROS
from sparseeinsum.language.parse_trees import ParseErrorReport
from sparseeinsum.language.random_functions import RANDOM_FUNCTIONS
from sparseeinsum.language.syntax import (
    Assignment,
    BoundExpression,
    ComputingStatement,
    Declaration,
    Differentiation,
    ExpressionTree,
    FunctionCall,
    Import,
    LabelledStatement,
    MatrixAssignment,
    MatrixDeclaration,
    MatrixName,
    NumberLiteral,
    Position,
    SourceText,
    TensorReference,
    references,
)
from sparseeinsum.language.syntax_text import write_expression
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
from sparseeinsum.presentation.spelling import did_you_mean

Shapes: TypeAlias = Callable[[str], Sequence[int | None] | None]
"""(name of a tensor) -> the bounds of its axes, None for those not known yet; None if there is no such tensor."""

_RANKS = {"scalar": 0, "vector": 1, "matrix": 2}
_NAME_OF_RANK = {rank: kind for kind, rank in _RANKS.items()}


def no_shapes(_: str) -> None:
    """The `Shapes` without a database: no tensor is known."""


def with_labels(
    statements: Sequence[ComputingStatement], source: SourceText, shapes: Shapes, report: ParseErrorReport
) -> tuple[LabelledStatement | Differentiation, ...]:
    """The statements, with labels for every tensor.

    Args:
        statements: The statements in order.
        source: The text that errors show if a statement is from no text.
        shapes: Looks up the shapes of stored tensors.
        report: Called with every error; if it does not raise, statements with errors are left out.

    Raises:
        ParseError: Shapes do not match, or a function in a statement without labels needs some.
    """
    if not any(isinstance(statement, MatrixAssignment | MatrixDeclaration) for statement in statements):
        return tuple(statement for statement in statements if not isinstance(statement, MatrixDeclaration))
    return tuple(_Labelling(statements, source, shapes).labelled(report))


class _Labelling:
    """Adds labels to the statements of a program, whose declarations and assignments determine the axes of tensors."""

    def __init__(self, statements: Sequence[ComputingStatement], source: SourceText, shapes: Shapes) -> None:
        self._statements = statements
        self._source = source
        self._shapes = shapes
        self._declared: dict[str, Sequence[int | None]] = {}
        self._dimensions: dict[str, tuple[Dimension | None, Dimension | None]] = {}  # of results of linear algebra
        self._ranks: dict[str, int] = {}  # of tensors that have labels in some statement
        self._gradients: dict[str, str] = {}  # the tensors that they are by
        for statement in statements:
            match statement:
                case Differentiation(name, _, by):
                    self._gradients[name] = by
                case Declaration(name, axes) | Import(name, axes):
                    self._declared[name] = [bound for _, bound in axes]
                case Assignment(target, value) if not isinstance(statement, MatrixAssignment):
                    for reference in (*references(value), target):
                        self._ranks.setdefault(reference.tensor, reference.rank)

    def labelled(self, report: ParseErrorReport) -> Iterator[LabelledStatement | Differentiation]:
        """The statements with labels; statements with errors are reported and left out."""
        for statement in self._statements:
            if isinstance(statement, MatrixDeclaration):
                try:
                    self._declare(statement)
                except ParseError as error:
                    report(error)
        for statement in self._statements:
            try:
                match statement:
                    case MatrixDeclaration():
                        pass
                    case MatrixAssignment():
                        yield self._add_labels(statement)
                    case Assignment():
                        self._check_ranks(statement)
                        yield statement
                    case _:
                        yield statement
            except ParseError as error:
                report(error)

    def _error(self, problem: str, at: Position) -> ParseError:
        return at.error(problem, self._source)

    def _declare(self, statement: MatrixDeclaration) -> None:
        name = statement.tensor
        if name in self._declared:
            raise self._error(f"{name} is declared twice; declare a tensor once", statement.at)
        self._declared[name] = (None,) * _RANKS[statement.kind]

    def _check_ranks(self, statement: Assignment) -> None:
        """Refuse references with more or fewer labels than a matrix, vector or scalar has axes."""
        for reference in references(statement.value):
            rank, count = self._rank_without_labels(reference.tensor), reference.rank
            if rank is not None and rank != count:
                labels = f"{count} label{'s' if count != 1 else ''}"
                raise self._error(f"{reference.tensor} is a {_NAME_OF_RANK[rank]}, but has {labels} here", reference.at)

    def _rank_without_labels(self, name: str) -> int | None:
        """The number of axes of a tensor that is assigned or declared without labels; None for other tensors."""
        if name in self._dimensions:
            return sum(dimension is not None for dimension in self._dimensions[name])
        is_declared = any(
            isinstance(statement, MatrixDeclaration) and statement.tensor == name for statement in self._statements
        )
        return len(self._declared[name]) if is_declared and name in self._declared else None

    def _add_labels(self, statement: MatrixAssignment) -> Assignment:
        target = statement.target
        linear = self._lower(statement.value)
        self._dimensions.setdefault(target.tensor, (linear.rows, linear.columns))
        value, labels = linear.labelled()
        return Assignment(TensorReference(target.tensor, labels, at=target.at), value)

    def _lower(self, expression: ExpressionTree) -> LinearExpression:
        """An expression of linear algebra, from the syntax tree of a statement without labels."""
        match expression:
            case MatrixName(name, at):
                return tensor(name, *self._dimensions_of(name, at), at)
            case NumberLiteral() | BoundExpression(_, int()):
                return number(expression)
            case TensorReference(name, ()):
                raise self._error(f"{name}[] cannot be used among tensors without labels; write {name}", expression.at)
            case FunctionCall(name, None, arguments, at):
                return self._lower_call(name, [self._lower(argument) for argument in arguments], at)
            case _:
                raise self._error(_needs_labels(expression), expression.at)

    def _lower_call(self, name: str, arguments: list[LinearExpression], at: Position) -> LinearExpression:
        """An operator, an aggregate of a matrix or an elementwise function of `arguments`."""
        try:
            match name, arguments:
                case syntax.TRANSPOSE, [only]:
                    return transposed(only)
                case syntax.MATRIX_PRODUCT, [left, right]:
                    return product(left, right, at)
                case "trace", [only]:
                    return trace(only, at)
                case _, [only] if name in MATRIX_AGGREGATES:
                    return aggregated(MATRIX_AGGREGATES[name], only, at)
                case _ if name in FUNCTIONS:
                    return elementwise(name, arguments, at)
        except SemanticsError as error:
            raise self._error(str(error), at) from None
        raise self._error(_unknown_function(name), at)

    def _dimensions_of(self, name: str, at: Position) -> tuple[Dimension | None, Dimension | None]:
        """The rows and the columns of a tensor without labels."""
        if name in self._dimensions:
            return self._dimensions[name]
        if name in self._gradients:
            return self._dimensions_of(self._gradients[name], at)
        shape = self._shape_of(name)
        if len(shape) not in _NAME_OF_RANK:
            problem = f"{name} has {len(shape)} axes, but linear algebra is for matrices, vectors and scalars"
            raise self._error(f"{problem}; give every tensor in the statement its labels, as in {name}[i, j, k]", at)
        rows, columns = (*(Dimension(bound) for bound in shape), None, None)[:2]
        return rows, columns

    def _shape_of(self, name: str) -> Sequence[int | None]:
        """The bounds of the axes of a tensor: declared, stored, or unknown ones."""
        if name in self._declared:
            return self._declared[name]
        is_result = any(
            isinstance(statement, Assignment) and statement.target.tensor == name for statement in self._statements
        )
        stored_shape = None if is_result else self._shapes(name)
        return (None,) * self._ranks.get(name, _RANKS["matrix"]) if stored_shape is None else stored_shape


def _needs_labels(expression: ExpressionTree) -> str:
    """The error for an expression that is only possible in statements with labels."""
    written = write_expression(expression)
    match expression:
        case BoundExpression():
            return f"{written} needs a label, and this statement has none; name the axis of a tensor, as in bound(A, 0)"
        case FunctionCall(name) if f"row{name}s" in MATRIX_AGGREGATES:
            problem = f"{written} names labels, and the left side has none"
            return f"{problem}; write row{name}s(...), col{name}s(...) or {name}(...), or give labels to all tensors"
        case _:
            problem = f"{written} has labels, and the left side none"
            return f"{problem}; leave them out everywhere, as in C = A @ B, or write C[i, k] = sum(A[i, j] * B[j, k])"


def _unknown_function(name: str) -> str:
    """The error for a function that statements without labels do not have."""
    if name in MATRIX_AGGREGATES or name == "trace":
        return f"{name} takes one matrix"
    if name in MACROS or name in SCANS or name in PICKS or name in USER_AGGREGATES or name == "one_hot":
        return f"{name} needs to know a label; write the statement with labels, as in Y[i, j] = {name}[j](X[i, j])"
    if name in RANDOM_FUNCTIONS:
        return f"{name} needs labels; write the statement with them, as in Y[i, j] = {RANDOM_FUNCTIONS[name].example}"
    names = [*MATRIX_AGGREGATES, "trace", *(function for function, record in FUNCTIONS.items() if not record.symbol)]
    return f"there is no function {name!r}; {did_you_mean(name, names)}"
