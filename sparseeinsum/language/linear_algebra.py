"""Language: translates linear algebra to expressions of labelled tensors (the rules R_LR of SPORES, figure 2).

A matrix has rows and columns, a column vector has rows only, a row vector columns only, and a scalar neither. The rows
become one label, the columns another, and every matrix product sums over a label of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from typing import TypeAlias

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.syntax import NOWHERE, ExpressionTree, FunctionCall, Position, TensorReference
from sparseeinsum.language.syntax_text import write_expression
from sparseeinsum.operators.aggregates import AGGREGATES

ROWS, COLUMNS = "i", "j"
"""The labels that a program in matrix notation gives to the rows and columns of its results."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """The rows or the columns of an expression: their number, or None if that is not known yet."""

    bound: int | None = None


_Build: TypeAlias = Callable[[str, str, Iterator[str]], ExpressionTree]  # (row label, column label, labels for sums)


@dataclass(frozen=True, slots=True)
class LinearExpression:
    """An expression of linear algebra.

    Attributes:
        build: (label of the rows, label of the columns, fresh labels for sums) -> the labelled expression.
        rows: Its rows; None if there is only one, as in a row vector and a scalar.
        columns: Its columns; None if there is only one, as in a column vector and a scalar.
    """

    build: _Build
    rows: Dimension | None = None
    columns: Dimension | None = None

    def labelled(self) -> tuple[ExpressionTree, tuple[str, ...]]:
        """The expression with the labels i for rows and j for columns, and those of the two labels that it has."""
        labels = _labels(ROWS, self.rows, COLUMNS, self.columns)
        return self.build(ROWS, COLUMNS, _fresh_labels()), labels

    def __str__(self) -> str:
        return write_expression(self.labelled()[0])


@dataclass(frozen=True, slots=True)
class MatrixAggregate:
    """A function such as rowsums, which aggregates the elements of every row, of every column, or all elements.

    Attributes:
        aggregate: The name of the aggregate in statements with labels.
        over_rows: Whether it aggregates over the rows.
        over_columns: Whether it aggregates over the columns.
    """

    aggregate: str
    over_rows: bool = True
    over_columns: bool = True


MATRIX_AGGREGATES = (
    {name: MatrixAggregate(name) for name in (*AGGREGATES, "mean", "var", "norm", "count", "sumsq")}
    | {f"row{name}s": MatrixAggregate(name, over_rows=False) for name in ("sum", "max", "min", "mean")}
    | {f"col{name}s": MatrixAggregate(name, over_columns=False) for name in ("sum", "max", "min", "mean")}
)
"""The aggregates of matrices by name; rowsums is a column vector, colsums a row vector."""


def tensor(name: str, rows: Dimension | None, columns: Dimension | None, at: Position = NOWHERE) -> LinearExpression:
    """The tensor `name` as a matrix, a vector or a scalar; its axes are its rows and its columns, where it has them."""

    def build(row: str, column: str, _: Iterator[str]) -> ExpressionTree:
        return TensorReference(name, _labels(row, rows, column, columns), at=at)

    return LinearExpression(build, rows, columns)


def number(value: ExpressionTree) -> LinearExpression:
    """A scalar of numbers and bounds, without tensors."""
    return LinearExpression(lambda *_: value)


def transposed(matrix: LinearExpression) -> LinearExpression:
    """The transpose of a matrix."""
    return LinearExpression(lambda row, column, fresh: matrix.build(column, row, fresh), matrix.columns, matrix.rows)


def product(left: LinearExpression, right: LinearExpression, at: Position = NOWHERE) -> LinearExpression:
    """The matrix product of two expressions.

    Raises:
        SemanticsError: The number of columns of the first differs from the number of rows of the second.
    """
    if _differ(left.columns, right.rows):
        raise SemanticsError(
            f"{left} @ {right} does not fit: the first has {_describe(left.columns, 'column')}, the second "
            f"{_describe(right.rows, 'row')}; transpose one with .T, or multiply element by element with *"
        )

    def build(row: str, column: str, fresh: Iterator[str]) -> ExpressionTree:
        inner = next(fresh) if left.columns is not None else ""
        factors = left.build(row, inner, fresh), right.build(inner, column, fresh)
        multiplied = FunctionCall("mul", None, factors, at)
        return FunctionCall("sum", (inner,), (multiplied,), at) if inner else multiplied

    return LinearExpression(build, left.rows, right.columns)


def elementwise(name: str, operands: Sequence[LinearExpression], at: Position = NOWHERE) -> LinearExpression:
    """An elementwise function of operands, which broadcast over the rows and columns that they lack.

    Raises:
        SemanticsError: Two operands differ in their numbers of rows or columns.
    """

    def build(row: str, column: str, fresh: Iterator[str]) -> ExpressionTree:
        return FunctionCall(name, None, tuple(operand.build(row, column, fresh) for operand in operands), at)

    rows = reduce(_broadcast, [(operand.rows, operand, "row") for operand in operands])[0]
    columns = reduce(_broadcast, [(operand.columns, operand, "column") for operand in operands])[0]
    return LinearExpression(build, rows, columns)


def aggregated(aggregate: MatrixAggregate, matrix: LinearExpression, at: Position = NOWHERE) -> LinearExpression:
    """The aggregate of a matrix; the matrix itself if there is only one element to aggregate."""
    over_rows = aggregate.over_rows and matrix.rows is not None
    over_columns = aggregate.over_columns and matrix.columns is not None
    if not (over_rows or over_columns):
        return matrix

    def build(row: str, column: str, fresh: Iterator[str]) -> ExpressionTree:
        row, column = next(fresh) if over_rows else row, next(fresh) if over_columns else column
        labels = tuple(label for label, is_over in ((row, over_rows), (column, over_columns)) if is_over)
        return FunctionCall(aggregate.aggregate, labels, (matrix.build(row, column, fresh),), at)

    return LinearExpression(build, None if over_rows else matrix.rows, None if over_columns else matrix.columns)


def trace(matrix: LinearExpression, at: Position = NOWHERE) -> LinearExpression:
    """The sum of the diagonal, a scalar.

    Raises:
        SemanticsError: The matrix is not square.
    """
    if matrix.rows is None or matrix.columns is None or _differ(matrix.rows, matrix.columns):
        size = f"{_describe(matrix.rows, 'row')} and {_describe(matrix.columns, 'column')}"
        raise SemanticsError(f"{matrix} has no trace, because it has {size}")

    def build(_: str, __: str, fresh: Iterator[str]) -> ExpressionTree:
        label = next(fresh)
        return FunctionCall("sum", (label,), (matrix.build(label, label, fresh),), at)

    return LinearExpression(build)


_Sized: TypeAlias = tuple[Dimension | None, LinearExpression, str]  # dimension, of which expression, "row" or "column"


def _broadcast(first: _Sized, second: _Sized) -> _Sized:
    """The dimension to which two dimensions broadcast; the one whose bound is known if they agree."""
    (dimension, left, dimension_name), (other, right, _) = first, second
    if dimension is None or other is None:
        return first if other is None else second
    if _differ(dimension, other):
        problem = (
            f"{left} has {_describe(dimension, dimension_name)}, but {right} has {_describe(other, dimension_name)}"
        )
        raise SemanticsError(f"{problem}; elementwise functions need equal numbers, or one {dimension_name}")
    return first if dimension.bound is not None else second


def _differ(dimension: Dimension | None, other: Dimension | None) -> bool:
    if dimension is None or other is None:
        return dimension is not other
    return dimension.bound is not None and other.bound is not None and dimension.bound != other.bound


def _describe(dimension: Dimension | None, dimension_name: str) -> str:
    if dimension is None:
        return f"one {dimension_name}"
    bound = dimension.bound
    return f"many {dimension_name}s" if bound is None else f"{bound:,} {dimension_name}{'s' if bound != 1 else ''}"


def _labels(row: str, rows: Dimension | None, column: str, columns: Dimension | None) -> tuple[str, ...]:
    return tuple(label for label, dimension in ((row, rows), (column, columns)) if dimension is not None)


def _fresh_labels() -> Iterator[str]:
    """Distinct labels for sums: k, l, ... z, then k1 and so on."""
    letters = "klmnopqrstuvwxyz"
    for number in count():
        yield letters[number % len(letters)] + (str(number // len(letters)) if number >= len(letters) else "")
