"""Language: matrices, vectors and scalars in Python, which become expressions of labelled tensors.

X, U, V = map(matrix, ("X", "U", "V"))
loss = ((X - U @ V.T) ** 2).sum()
program({"L": loss})
"""

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, Union

import numpy as np

from sparseeinsum.errors import ArgumentError
from sparseeinsum.language import linear_algebra
from sparseeinsum.language.linear_algebra import MATRIX_AGGREGATES, Dimension, LinearExpression
from sparseeinsum.language.numpy_functions import name_of_ufunc
from sparseeinsum.language.python_expressions import LabelledExpression, NamedTensor, TensorExpression, tree_of
from sparseeinsum.operators import dtypes
from sparseeinsum.operators.functions import is_named_function

MatrixOperand: TypeAlias = Union["Matrix", dtypes.Number, "np.number[Any]", np.bool_]


class Matrix:
    """An expression of linear algebra: a matrix, a column vector, a row vector or a scalar.

    `@` multiplies matrices. + - * / ** and comparisons are elementwise and broadcast: numbers, scalars and vectors
    apply to all rows or columns that they lack. numpy's functions of numbers, such as np.exp, take matrices, too.
    """

    __slots__ = ("linear", "tensors")
    __hash__ = None  # type: ignore[assignment]  # == returns an expression
    __array_priority__ = 1000

    def __init__(self, linear: LinearExpression, tensors: tuple[NamedTensor, ...]) -> None:
        self.linear = linear
        self.tensors = tensors

    @property
    def T(self) -> "Matrix":  # noqa: N802  # as in numpy
        """The transpose: rows become columns, and columns become rows."""
        return Matrix(linear_algebra.transposed(self.linear), self.tensors)

    def __matmul__(self, other: "Matrix") -> "Matrix":
        if not isinstance(other, Matrix):
            raise ArgumentError(f"{other!r} is not a matrix; multiply by numbers with *")
        return Matrix(linear_algebra.product(self.linear, other.linear), (*self.tensors, *other.tensors))

    def sum(self) -> "Matrix":
        """The sum of all elements, a scalar."""
        return self._aggregated("sum")

    def rowsums(self) -> "Matrix":
        """The sum of every row, a column vector."""
        return self._aggregated("rowsums")

    def colsums(self) -> "Matrix":
        """The sum of every column, a row vector."""
        return self._aggregated("colsums")

    def max(self) -> "Matrix":
        """The greatest element, a scalar."""
        return self._aggregated("max")

    def rowmaxs(self) -> "Matrix":
        """The greatest element of every row, a column vector."""
        return self._aggregated("rowmaxs")

    def colmaxs(self) -> "Matrix":
        """The greatest element of every column, a row vector."""
        return self._aggregated("colmaxs")

    def min(self) -> "Matrix":
        """The least element, a scalar."""
        return self._aggregated("min")

    def rowmins(self) -> "Matrix":
        """The least element of every row, a column vector."""
        return self._aggregated("rowmins")

    def colmins(self) -> "Matrix":
        """The least element of every column, a row vector."""
        return self._aggregated("colmins")

    def mean(self) -> "Matrix":
        """The mean of all elements, a scalar."""
        return self._aggregated("mean")

    def rowmeans(self) -> "Matrix":
        """The mean of every row, a column vector."""
        return self._aggregated("rowmeans")

    def colmeans(self) -> "Matrix":
        """The mean of every column, a row vector."""
        return self._aggregated("colmeans")

    def norm(self) -> "Matrix":
        """The Euclidean (Frobenius) norm, a scalar."""
        return self._aggregated("norm")

    def trace(self) -> "Matrix":
        """The sum of the diagonal, a scalar."""
        return Matrix(linear_algebra.trace(self.linear), self.tensors)

    def named(self, name: str) -> "Matrix":
        """The expression as a named result, which is computed once for all readers, and shown under `name` in plans."""
        result = NamedTensor(name, None)
        result.definition = self.labelled()
        return Matrix(linear_algebra.tensor(name, self.linear.rows, self.linear.columns), (result,))

    def __getattr__(self, name: str) -> "Callable[..., Matrix]":
        """A scalar function of programs as an elementwise method: `X.sigmoid()`, `X.clip(0, 1)`."""
        if not is_named_function(name):
            raise AttributeError(f"matrices have no {name}")
        return lambda *operands: _elementwise(name, self, *operands)

    def labelled(self) -> LabelledExpression:
        """The expression with the labels i for rows and j for columns, as in programs."""
        tree, labels = self.linear.labelled()
        return LabelledExpression(TensorExpression(tree, self.tensors), labels)

    def __repr__(self) -> str:
        return str(self.linear)

    def __bool__(self) -> NoReturn:
        raise ArgumentError(f"whether {self!r} is true is known once it is computed")

    def __iter__(self) -> NoReturn:
        raise ArgumentError(f"{self!r} has no values yet; compute them with db.run(se.program(...))")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: MatrixOperand, **keywords: object) -> "Matrix":
        if ufunc is np.matmul:
            left, right = operands
            return left @ right  # type: ignore[operator]  # __matmul__ refuses others
        return _elementwise(name_of_ufunc(ufunc, method, keywords), *operands)

    def __add__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("add", self, other)

    def __radd__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("add", other, self)

    def __sub__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("sub", self, other)

    def __rsub__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("sub", other, self)

    def __mul__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("mul", self, other)

    def __rmul__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("mul", other, self)

    def __truediv__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("div", self, other)

    def __rtruediv__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("div", other, self)

    def __pow__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("pow", self, other)

    def __rpow__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("pow", other, self)

    def __neg__(self) -> "Matrix":
        return _elementwise("neg", self)

    def __abs__(self) -> "Matrix":
        return _elementwise("abs", self)

    def __lt__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("lt", self, other)

    def __le__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("le", self, other)

    def __gt__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("gt", self, other)

    def __ge__(self, other: MatrixOperand) -> "Matrix":
        return _elementwise("ge", self, other)

    def __eq__(self, other: MatrixOperand) -> "Matrix":  # type: ignore[override]  # an expression, no bool
        return _elementwise("eq", self, other)

    def __ne__(self, other: MatrixOperand) -> "Matrix":  # type: ignore[override]  # an expression, no bool
        return _elementwise("ne", self, other)

    def _aggregated(self, name: str) -> "Matrix":
        return Matrix(linear_algebra.aggregated(MATRIX_AGGREGATES[name], self.linear), self.tensors)


def matrix(name: str) -> Matrix:
    """A stored matrix for use in programs: a tensor of two axes, rows first.

    Args:
        name: The name of the stored tensor.
    """
    return Matrix(linear_algebra.tensor(name, Dimension(), Dimension()), (NamedTensor(name, None),))


def vector(name: str) -> Matrix:
    """A stored column vector for use in programs: a tensor of one axis; `.T` is a row vector.

    Args:
        name: The name of the stored tensor.
    """
    return Matrix(linear_algebra.tensor(name, Dimension(), None), (NamedTensor(name, None),))


def scalar(name: str) -> Matrix:
    """A stored number for use in programs: a tensor without axes.

    Args:
        name: The name of the stored tensor.
    """
    return Matrix(linear_algebra.tensor(name, None, None), (NamedTensor(name, None),))


def _elementwise(name: str, *operands: MatrixOperand) -> Matrix:
    linear = [
        operand.linear if isinstance(operand, Matrix) else linear_algebra.number(tree_of(operand))
        for operand in operands
    ]
    tensors = [tensor for operand in operands if isinstance(operand, Matrix) for tensor in operand.tensors]
    return Matrix(linear_algebra.elementwise(name, linear), tuple(dict.fromkeys(tensors)))
