"""Language: statements of linear algebra in, such as `G = (U @ V.T - X) @ V`, the same with labels out.

How many axes a name without labels has is what the program says of it: where it is assigned, or declared; else what a
database says; else as many as it has labels in another statement. Of what nobody says anything it is a matrix.
"""

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from sparseeinsum.errors import ParseError, SemanticsError
from sparseeinsum.language import syntax
from sparseeinsum.language.linear_algebra import (
    FOLDS,
    Extent,
    LinearExpression,
    Many,
    elementwise,
    folded,
    number,
    product,
    tensor,
    trace,
    transposed,
)
from sparseeinsum.language.macros import MACROS
from sparseeinsum.language.parsing import Report
from sparseeinsum.language.syntax import (
    Assignment,
    BoundExpression,
    Declaration,
    Expression,
    FunctionCall,
    Import,
    LabelledStatement,
    MatrixAssignment,
    MatrixDeclaration,
    MatrixName,
    Number,
    Position,
    Source,
    Statement,
    TensorReference,
    references,
    write_expression,
)
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

Shapes: TypeAlias = Callable[[str], Sequence[int | None] | None]
"""(name of a tensor) -> the bounds of its axes, None for those not known yet; None where there is no such tensor."""

_KINDS = {"scalar": 0, "vector": 1, "matrix": 2}
_AXES = {count: kind for kind, count in _KINDS.items()}


def no_shapes(_: str) -> None:
    """What is known where there is no database."""


def with_labels(
    statements: Sequence[Statement], source: Source, shapes: Shapes, report: Report
) -> tuple[LabelledStatement, ...]:
    """Statements, each tensor in them with labels.

    Args:
        statements: In order.
        source: Where errors of what has no place are shown.
        shapes: What a database knows of tensors.
        report: Told of errors; if it does not raise them, statements that have some are left out.

    Raises:
        ParseError: Shapes do not fit, or something in a statement without labels needs some.
    """
    if not any(isinstance(statement, MatrixAssignment | MatrixDeclaration) for statement in statements):
        return tuple(each for each in statements if not isinstance(each, MatrixDeclaration))
    return tuple(_Statements(statements, source, shapes).labelled(report))


class _Statements:
    """The statements of a program, and what they say of tensors."""

    def __init__(self, statements: Sequence[Statement], source: Source, shapes: Shapes) -> None:
        self._statements = statements
        self._source = source
        self._shapes = shapes
        self._declared: dict[str, Sequence[int | None]] = {}
        self._extents: dict[str, tuple[Extent, Extent]] = {}  # of results
        self._ranks: dict[str, int] = {}  # of what has labels
        for statement in statements:
            match statement:
                case Declaration(name, axes) | Import(name, axes):
                    self._declared[name] = [bound for _, bound in axes]
                case Assignment(target, value) if not isinstance(statement, MatrixAssignment):
                    for each in (*references(value), target):
                        self._ranks.setdefault(each.tensor, len(each.labels))

    def labelled(self, report: Report) -> Iterator[LabelledStatement]:
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
                        yield self._assignment(statement)
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
        self._declared[name] = (None,) * _KINDS[statement.kind]

    def _check_ranks(self, statement: Assignment) -> None:
        """Refuse another number of labels than a matrix, vector or scalar has axes."""
        for each in references(statement.value):
            rank = self._rank_without_labels(each.tensor)
            if rank is not None and rank != len(each.labels):
                has = f"{len(each.labels)} label{'s' if len(each.labels) != 1 else ''}"
                raise self._error(f"{each.tensor} is a {_AXES[rank]}, but has {has} here", each.at)

    def _rank_without_labels(self, name: str) -> int | None:
        """How many axes something has that is assigned or declared without labels."""
        if name in self._extents:
            return sum(extent is not None for extent in self._extents[name])
        is_kind = any(isinstance(each, MatrixDeclaration) and each.tensor == name for each in self._statements)
        return len(self._declared[name]) if is_kind and name in self._declared else None

    def _assignment(self, statement: MatrixAssignment) -> Assignment:
        target = statement.target
        linear = self._linear(statement.value)
        self._extents.setdefault(target.tensor, (linear.rows, linear.columns))
        value, labels = linear.labelled()
        return Assignment(TensorReference(target.tensor, labels, at=target.at), value)

    def _linear(self, expression: Expression) -> LinearExpression:
        match expression:
            case MatrixName(name, at):
                return tensor(name, *self._extents_of(name, at), at)
            case Number() | BoundExpression(_, int()):
                return number(expression)
            case TensorReference(name, ()):
                raise self._error(f"{name}[] has no place beside tensors without labels; write {name}", expression.at)
            case FunctionCall(name, None, arguments, at):
                return self._called(name, [self._linear(argument) for argument in arguments], at)
            case _:
                raise self._error(_needs_labels(expression), expression.at)

    def _called(self, name: str, arguments: list[LinearExpression], at: Position) -> LinearExpression:
        try:
            match name, arguments:
                case syntax.TRANSPOSE, [only]:
                    return transposed(only)
                case syntax.MATRIX_PRODUCT, [left, right]:
                    return product(left, right, at)
                case "trace", [only]:
                    return trace(only, at)
                case _, [only] if name in FOLDS:
                    return folded(FOLDS[name], only, at)
                case _ if name in FUNCTIONS:
                    return elementwise(name, arguments, at)
        except SemanticsError as error:
            raise self._error(str(error), at) from None
        raise self._error(_no_function(name), at)

    def _extents_of(self, name: str, at: Position) -> tuple[Extent, Extent]:
        """Rows and columns of a name without labels."""
        if name in self._extents:
            return self._extents[name]
        shape = self._shape_of(name)
        if len(shape) not in _AXES:
            problem = f"{name} has {len(shape)} axes, and linear algebra is of matrices, vectors and scalars"
            raise self._error(f"{problem}; give every tensor in the statement its labels, as in {name}[i, j, k]", at)
        rows, columns = (*(Many(bound) for bound in shape), None, None)[:2]
        return rows, columns

    def _shape_of(self, name: str) -> Sequence[int | None]:
        if name in self._declared:
            return self._declared[name]
        is_result = any(isinstance(each, Assignment) and each.target.tensor == name for each in self._statements)
        known = None if is_result else self._shapes(name)
        return (None,) * self._ranks.get(name, _KINDS["matrix"]) if known is None else known


def _needs_labels(expression: Expression) -> str:
    """What is wrong with an expression that makes sense with labels alone."""
    written = write_expression(expression)
    match expression:
        case BoundExpression():
            return f"{written} is of a label, and this statement has none; name the axis of a tensor, as in bound(A, 0)"
        case FunctionCall(name) if f"row{name}s" in FOLDS:
            problem = f"{written} names labels, and the left side has none"
            return f"{problem}; write row{name}s(...), col{name}s(...) or {name}(...), or give labels to all tensors"
        case _:
            problem = f"{written} has labels, and the left side none"
            return f"{problem}; leave them out everywhere, as in C = A @ B, or write C[i, k] = sum(A[i, j] * B[j, k])"


def _no_function(name: str) -> str:
    """What is wrong with a function that statements without labels do not have."""
    if name in FOLDS or name == "trace":
        return f"{name} takes one matrix"
    if name in MACROS or name in SCANS or name in PICKS or name in USER_AGGREGATES or name == "one_hot":
        return f"{name} needs to know a label; write the statement with labels, as in Y[i, j] = {name}[j](X[i, j])"
    known = [*FOLDS, "trace", *(function for function, found in FUNCTIONS.items() if not found.symbol)]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(dict.fromkeys(known))}"
    return f"there is no function {name!r}; {hint}"
