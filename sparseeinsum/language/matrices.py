"""Language: linear algebra in, expressions of labelled tensors out (the rules R_LR of SPORES, figure 2).

    X, U, V = map(matrix, ("X", "U", "V"))
    loss = ((X - U @ V.T) ** 2).sum()
    program({"L": loss})

A matrix has rows and columns, a column vector the one, a row vector the other, a scalar neither. Rows become a label,
columns another, and every product of matrices sums over one of its own.
"""

import operator
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NoReturn, TypeAlias, Union

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language import dtypes
from sparseeinsum.language.expressions import LabelledExpression, NamedTensor, Operand, TensorExpression

MatrixOperand: TypeAlias = Union["Matrix", dtypes.Number, "np.number[Any]", np.bool_]

ROWS, COLUMNS = "i", "j"
"""Labels that results have."""

_Build: TypeAlias = Callable[[str, str, Iterator[str]], TensorExpression]


class Matrix:
    """An expression of linear algebra: a matrix, a column vector, a row vector or a scalar.

    `@` multiplies matrices; + - * / ** and comparisons go element by element, numbers, scalars and vectors being spread
    over the rows or columns that they lack; numpy's functions of numbers, such as np.exp, take matrices, too.
    """

    __slots__ = ("_build", "has_columns", "has_rows")
    __hash__ = None  # type: ignore[assignment]  # == makes an expression
    __array_priority__ = 1000

    def __init__(self, build: _Build, has_rows: bool, has_columns: bool) -> None:
        self._build = build
        self.has_rows = has_rows
        self.has_columns = has_columns

    @property
    def T(self) -> "Matrix":  # noqa: N802  # as numpy has it
        """The transpose."""
        return Matrix(lambda row, column, fresh: self._build(column, row, fresh), self.has_columns, self.has_rows)

    def __matmul__(self, other: "Matrix") -> "Matrix":
        if not isinstance(other, Matrix):
            raise TypeError(f"{other!r} is no matrix; multiply by numbers with *")
        if self.has_columns != other.has_rows:
            raise SemanticsError(
                f"{self!r} @ {other!r} does not fit: the first has {_many(self.has_columns, 'column')}, the second "
                f"{_many(other.has_rows, 'row')}; transpose one with .T, or multiply element by element with *"
            )
        return Matrix(lambda *place: _product(self, other, *place), self.has_rows, other.has_columns)

    def sum(self) -> "Matrix":
        """The sum of all elements, a scalar."""
        return self._summed(self.has_rows, self.has_columns)

    def rowsums(self) -> "Matrix":
        """The sum of every row, a column vector."""
        return self._summed(False, self.has_columns)

    def colsums(self) -> "Matrix":
        """The sum of every column, a row vector."""
        return self._summed(self.has_rows, False)

    def trace(self) -> "Matrix":
        """The sum of the diagonal, a scalar."""
        if not (self.has_rows and self.has_columns):
            raise SemanticsError(f"{self!r} is no matrix with rows and columns, and has no trace")

        def build(_: str, __: str, fresh: Iterator[str]) -> TensorExpression:
            both = next(fresh)
            return self._build(both, both, fresh).sum(both)

        return Matrix(build, False, False)

    def named(self, name: str) -> "Matrix":
        """The same as a result of its own, computed once for all that read it, and of that name in explanations."""
        result = NamedTensor(name, None)
        result[self._labels()] = self._expression()
        return _of(result, self.has_rows, self.has_columns)

    def relu(self) -> "Matrix":
        """The values, or 0 where they are negative."""
        return _elementwise(TensorExpression.relu, self)

    def sigmoid(self) -> "Matrix":
        """1 / (1 + exp(-value)) of all values."""
        return _elementwise(TensorExpression.sigmoid, self)

    def labelled(self) -> LabelledExpression:
        """The expression under the labels i for rows and j for columns, as programs have it."""
        return LabelledExpression(self._expression(), self._labels())

    def __repr__(self) -> str:
        return repr(self._expression())

    def __bool__(self) -> NoReturn:
        raise TypeError(f"whether {self!r} is true is known once it is computed")

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self!r} has no values yet; compute them with db.run(se.program(...))")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: MatrixOperand, **keywords: object) -> "Matrix":
        if ufunc is np.matmul:
            left, right = operands
            return left @ right  # type: ignore[operator]  # which says what is wrong
        if method != "__call__" or keywords:
            raise TypeError(f"np.{ufunc.__name__} of matrices takes no arguments by keyword, and has no methods here")
        return _elementwise(ufunc, *operands)

    def __add__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.add, self, other)

    def __radd__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.add, other, self)

    def __sub__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.sub, self, other)

    def __rsub__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.sub, other, self)

    def __mul__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.mul, self, other)

    def __rmul__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.mul, other, self)

    def __truediv__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.truediv, self, other)

    def __rtruediv__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.truediv, other, self)

    def __pow__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.pow, self, other)

    def __rpow__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.pow, other, self)

    def __neg__(self) -> "Matrix":
        return _elementwise(operator.neg, self)

    def __abs__(self) -> "Matrix":
        return _elementwise(operator.abs, self)

    def __lt__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.lt, self, other)

    def __le__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.le, self, other)

    def __gt__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.gt, self, other)

    def __ge__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise(operator.ge, self, other)

    def __eq__(self, other: MatrixOperand) -> "Matrix":  # type: ignore[override]  # an expression, no bool
        return _elementwise(operator.eq, self, other)

    def __ne__(self, other: MatrixOperand) -> "Matrix":  # type: ignore[override]  # an expression, no bool
        return _elementwise(operator.ne, self, other)

    def _summed(self, over_rows: bool, over_columns: bool) -> "Matrix":
        if not (over_rows or over_columns):
            return self

        def build(row: str, column: str, fresh: Iterator[str]) -> TensorExpression:
            row, column = next(fresh) if over_rows else row, next(fresh) if over_columns else column
            taken = [label for label, over in ((row, over_rows), (column, over_columns)) if over]
            return self._build(row, column, fresh).sum(*taken)

        return Matrix(build, self.has_rows and not over_rows, self.has_columns and not over_columns)

    def _expression(self) -> TensorExpression:
        return self._build(ROWS, COLUMNS, _fresh_labels())

    def _labels(self) -> tuple[str, ...]:
        return tuple(label for label, has in ((ROWS, self.has_rows), (COLUMNS, self.has_columns)) if has)


def matrix(name: str) -> Matrix:
    """A matrix of a program, which a database has: a tensor of two axes, its rows first."""
    return _of(NamedTensor(name, None), True, True)


def vector(name: str) -> Matrix:
    """A column vector of a program, which a database has: a tensor of one axis; `.T` is a row vector."""
    return _of(NamedTensor(name, None), True, False)


def scalar(name: str) -> Matrix:
    """A number of a program, which a database has: a tensor without axes."""
    return _of(NamedTensor(name, None), False, False)


def _of(tensor: NamedTensor, has_rows: bool, has_columns: bool) -> Matrix:
    def build(row: str, column: str, _: Iterator[str]) -> TensorExpression:
        return tensor[tuple(label for label, has in ((row, has_rows), (column, has_columns)) if has)]

    return Matrix(build, has_rows, has_columns)


def _product(left: Matrix, right: Matrix, row: str, column: str, fresh: Iterator[str]) -> TensorExpression:
    if not left.has_columns:
        return left._build(row, column, fresh) * right._build(row, column, fresh)
    inner = next(fresh)
    return (left._build(row, inner, fresh) * right._build(inner, column, fresh)).sum(inner)


def _elementwise(function: Callable[..., TensorExpression], *operands: MatrixOperand) -> Matrix:
    matrices = [operand for operand in operands if isinstance(operand, Matrix)]

    def build(row: str, column: str, fresh: Iterator[str]) -> TensorExpression:
        built: list[Operand] = [
            operand._build(row, column, fresh) if isinstance(operand, Matrix) else operand for operand in operands
        ]
        return function(*built)

    has_rows, has_columns = (any(getattr(each, has) for each in matrices) for has in ("has_rows", "has_columns"))
    return Matrix(build, has_rows, has_columns)


def _fresh_labels() -> Iterator[str]:
    """Labels of sums: k, l, ... z, then k1 and so on; none is taken twice."""
    letters = "klmnopqrstuvwxyz"
    for number in count():
        yield letters[number % len(letters)] + (str(number // len(letters)) if number >= len(letters) else "")


def _many(has: bool, what: str) -> str:
    return f"many {what}s" if has else f"one {what}"
