"""Language: linear algebra in, expressions of tensors under labels out (the rules R_LR of SPORES, figure 2).

A matrix has rows and columns, a column vector the one, a row vector the other, a scalar neither. Rows become a label,
columns another, and every product of matrices sums over one of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from typing import TypeAlias

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.syntax import (
    NOWHERE,
    Expression,
    FunctionCall,
    Position,
    TensorReference,
    write_expression,
)
from sparseeinsum.operators.aggregates import AGGREGATES

ROWS, COLUMNS = "i", "j"
"""Labels that results have."""


@dataclass(frozen=True, slots=True)
class Many:
    """Rows, or columns: as many as an axis has indices; None where that is not known yet."""

    bound: int | None = None


Extent: TypeAlias = Many | None
"""None is the one row of a row vector, the one column of a column vector, and both of a scalar."""

_Build: TypeAlias = Callable[[str, str, Iterator[str]], Expression]  # of labels of rows, of columns, and of sums


@dataclass(frozen=True, slots=True)
class LinearExpression:
    """An expression of linear algebra.

    Attributes:
        build: The expression under a label for rows, one for columns, and further ones for sums.
        rows: How many rows it has.
        columns: How many columns.
    """

    build: _Build
    rows: Extent = None
    columns: Extent = None

    def labelled(self) -> tuple[Expression, tuple[str, ...]]:
        """The expression under the labels i for rows and j for columns, and those of the two that it has."""
        labels = _labels(ROWS, self.rows, COLUMNS, self.columns)
        return self.build(ROWS, COLUMNS, _fresh_labels()), labels

    def __str__(self) -> str:
        return write_expression(self.labelled()[0])


@dataclass(frozen=True, slots=True)
class Fold:
    """A function such as rowsums, that aggregates rows or columns or both.

    Attributes:
        aggregate: Its name in programs with labels.
        over_rows: Whether it takes all rows together.
        over_columns: Whether it takes all columns together.
    """

    aggregate: str
    over_rows: bool = True
    over_columns: bool = True


FOLDS = (
    {name: Fold(name) for name in (*AGGREGATES, "mean", "var", "norm", "count", "sumsq")}
    | {f"row{name}s": Fold(name, over_rows=False) for name in ("sum", "max", "min", "mean")}
    | {f"col{name}s": Fold(name, over_columns=False) for name in ("sum", "max", "min", "mean")}
)
"""Functions of one matrix that aggregate it, by name; rowsums are a column vector, colsums a row vector."""


def tensor(name: str, rows: Extent, columns: Extent, at: Position = NOWHERE) -> LinearExpression:
    """A tensor of so many axes: its rows first."""

    def build(row: str, column: str, _: Iterator[str]) -> Expression:
        return TensorReference(name, _labels(row, rows, column, columns), at=at)

    return LinearExpression(build, rows, columns)


def number(value: Expression) -> LinearExpression:
    """A scalar that is known without a tensor."""
    return LinearExpression(lambda *_: value)


def transposed(matrix: LinearExpression) -> LinearExpression:
    """The transpose."""
    return LinearExpression(lambda row, column, fresh: matrix.build(column, row, fresh), matrix.columns, matrix.rows)


def product(left: LinearExpression, right: LinearExpression, at: Position = NOWHERE) -> LinearExpression:
    """The product of matrices.

    Raises:
        SemanticsError: The first has not as many columns as the second has rows.
    """
    if _differ(left.columns, right.rows):
        raise SemanticsError(
            f"{left} @ {right} does not fit: the first has {_many(left.columns, 'column')}, the second "
            f"{_many(right.rows, 'row')}; transpose one with .T, or multiply element by element with *"
        )

    def build(row: str, column: str, fresh: Iterator[str]) -> Expression:
        inner = next(fresh) if left.columns is not None else ""
        factors = left.build(row, inner, fresh), right.build(inner, column, fresh)
        multiplied = FunctionCall("mul", None, factors, at)
        return FunctionCall("sum", (inner,), (multiplied,), at) if inner else multiplied

    return LinearExpression(build, left.rows, right.columns)


def elementwise(name: str, operands: Sequence[LinearExpression], at: Position = NOWHERE) -> LinearExpression:
    """A function of the elements of all operands, which are spread over rows and columns that they lack.

    Raises:
        SemanticsError: Two have another number of rows or columns.
    """

    def build(row: str, column: str, fresh: Iterator[str]) -> Expression:
        return FunctionCall(name, None, tuple(operand.build(row, column, fresh) for operand in operands), at)

    rows = reduce(_common, [(operand.rows, operand, "row") for operand in operands])[0]
    columns = reduce(_common, [(operand.columns, operand, "column") for operand in operands])[0]
    return LinearExpression(build, rows, columns)


def folded(fold: Fold, matrix: LinearExpression, at: Position = NOWHERE) -> LinearExpression:
    """An aggregate of rows, of columns, or of all elements; of what has one element only, that."""
    over_rows = fold.over_rows and matrix.rows is not None
    over_columns = fold.over_columns and matrix.columns is not None
    if not (over_rows or over_columns):
        return matrix

    def build(row: str, column: str, fresh: Iterator[str]) -> Expression:
        row, column = next(fresh) if over_rows else row, next(fresh) if over_columns else column
        taken = tuple(label for label, over in ((row, over_rows), (column, over_columns)) if over)
        return FunctionCall(fold.aggregate, taken, (matrix.build(row, column, fresh),), at)

    return LinearExpression(build, None if over_rows else matrix.rows, None if over_columns else matrix.columns)


def trace(matrix: LinearExpression, at: Position = NOWHERE) -> LinearExpression:
    """The sum of the diagonal, a scalar.

    Raises:
        SemanticsError: It is no square matrix.
    """
    if matrix.rows is None or matrix.columns is None or _differ(matrix.rows, matrix.columns):
        many = f"{_many(matrix.rows, 'row')} and {_many(matrix.columns, 'column')}"
        raise SemanticsError(f"{matrix} has no trace, because it has {many}")

    def build(_: str, __: str, fresh: Iterator[str]) -> Expression:
        both = next(fresh)
        return FunctionCall("sum", (both,), (matrix.build(both, both, fresh),), at)

    return LinearExpression(build)


_Sized: TypeAlias = tuple[Extent, LinearExpression, str]  # how many, of which expression, of what


def _common(first: _Sized, second: _Sized) -> _Sized:
    """The one of two extents that tells more."""
    (extent, left, what), (other, right, _) = first, second
    if extent is None or other is None:
        return first if other is None else second
    if _differ(extent, other):
        problem = f"{left} has {_many(extent, what)}, but {right} beside it {_many(other, what)}"
        raise SemanticsError(f"{problem}; element by element, both need as many, or one only")
    return first if extent.bound is not None else second


def _differ(extent: Extent, other: Extent) -> bool:
    if extent is None or other is None:
        return extent is not other
    return extent.bound is not None and other.bound is not None and extent.bound != other.bound


def _many(extent: Extent, what: str) -> str:
    if extent is None:
        return f"one {what}"
    return f"many {what}s" if extent.bound is None else f"{extent.bound:,} {what}{'s' if extent.bound != 1 else ''}"


def _labels(row: str, rows: Extent, column: str, columns: Extent) -> tuple[str, ...]:
    return tuple(label for label, extent in ((row, rows), (column, columns)) if extent is not None)


def _fresh_labels() -> Iterator[str]:
    """Labels of sums: k, l, ... z, then k1 and so on; none is taken twice."""
    letters = "klmnopqrstuvwxyz"
    for number in count():
        yield letters[number % len(letters)] + (str(number // len(letters)) if number >= len(letters) else "")
