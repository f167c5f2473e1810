"""Language: Python expressions of labelled tensors, which build the syntax trees of the same program text."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeAlias, Union

import numpy as np

from sparseeinsum.errors import ArgumentError, SemanticsError
from sparseeinsum.language.numpy_functions import name_of_ufunc
from sparseeinsum.language.python_labels import IndexArguments, Labels, check_labels, read_reference
from sparseeinsum.language.syntax import (
    BoundExpression,
    Declaration,
    ExpressionTree,
    FunctionCall,
    IndexedReference,
    NumberLiteral,
    RangeExpression,
    TensorReference,
    free_labels,
    is_aggregate,
)
from sparseeinsum.language.syntax_text import write_expression
from sparseeinsum.operators import dtypes
from sparseeinsum.operators.functions import is_named_function
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

ExpressionOperand: TypeAlias = Union["TensorExpression", dtypes.Number, np.number[Any], np.bool_]


class TensorExpression:
    """An expression of labelled tensors, numbers, operators and functions, as in program text.

    The operators are + - * / % ** and comparisons, and & | ~ for and, or, not. They have the precedence of Python, so
    comparisons next to & and | need parentheses. `@` multiplies and sums over the labels that both sides have.
    numpy's functions of numbers, such as np.exp and np.maximum, and np.where take expressions, too. Labels in
    brackets give the order of the axes of a result: `(A["i", "j"] + 1)["j", "i"]`.
    """

    __slots__ = ("tensors", "tree")
    __hash__ = None  # type: ignore[assignment]  # == returns an expression

    def __init__(self, tree: ExpressionTree, tensors: Iterable["NamedTensor"] = ()) -> None:
        self.tree = tree
        self.tensors = tuple(dict.fromkeys(tensors))

    def __getitem__(self, labels: Labels) -> "LabelledExpression":
        return LabelledExpression(self, check_labels(labels))

    def __repr__(self) -> str:
        return write_expression(self.tree)

    def __bool__(self) -> NoReturn:
        raise ArgumentError(
            f"whether {self} is true is known only after it is computed; write & | ~ for and, or, not, and "
            "(a < b) & (b < c) for a < b < c"
        )

    def __iter__(self) -> NoReturn:
        raise ArgumentError(f"{self} has no values yet; compute them with db.run(se.program(...))")

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *operands: ExpressionOperand, **keywords: object
    ) -> "TensorExpression":
        return call(name_of_ufunc(ufunc, method, keywords), *operands)

    def __array_function__(
        self, function: Callable[..., object], types: object, operands: tuple[Any, ...], keywords: object
    ) -> "TensorExpression":
        if function is np.where and len(operands) == 3:
            return call("where", *operands)
        raise ArgumentError(
            f"np.{function.__name__} does not support labels; aggregate with methods, as in {self}.sum('i'), or see "
            "se.TensorExpression for the others"
        )

    def __add__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("add", self, other)

    def __radd__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("add", other, self)

    def __sub__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("sub", self, other)

    def __rsub__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("sub", other, self)

    def __mul__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("mul", self, other)

    def __rmul__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("mul", other, self)

    def __truediv__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("div", self, other)

    def __rtruediv__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("div", other, self)

    def __mod__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("mod", self, other)

    def __rmod__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("mod", other, self)

    def __floordiv__(self, other: ExpressionOperand) -> NoReturn:
        raise ArgumentError(f"expressions have no //; write np.floor(a / b), here with {self} as a")

    def __rfloordiv__(self, other: ExpressionOperand) -> NoReturn:
        raise ArgumentError(f"expressions have no //; write np.floor(a / b), here with {self} as b")

    def __pow__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("pow", self, other)

    def __rpow__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("pow", other, self)

    def __neg__(self) -> "TensorExpression":
        return call("neg", self)

    def __abs__(self) -> "TensorExpression":
        return call("abs", self)

    def __lt__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("lt", self, other)

    def __le__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("le", self, other)

    def __gt__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("gt", self, other)

    def __ge__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("ge", self, other)

    def __eq__(self, other: ExpressionOperand) -> "TensorExpression":  # type: ignore[override]  # an expression, no bool
        return call("eq", self, other)

    def __ne__(self, other: ExpressionOperand) -> "TensorExpression":  # type: ignore[override]  # an expression, no bool
        return call("ne", self, other)

    def __and__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("and", self, other)

    def __rand__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("and", other, self)

    def __or__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("or", self, other)

    def __ror__(self, other: ExpressionOperand) -> "TensorExpression":
        return call("or", other, self)

    def __invert__(self) -> "TensorExpression":
        return call("not", self)

    def __matmul__(self, other: "TensorExpression") -> "TensorExpression":
        product = call("mul", self, other)
        assert isinstance(product.tree, FunctionCall)
        left, right = product.tree.arguments
        _check_aggregates_have_labels(left)
        _check_aggregates_have_labels(right)
        right_labels = frozenset(free_labels(right))
        shared = tuple(label for label in dict.fromkeys(free_labels(left)) if label in right_labels)
        if not shared:
            raise SemanticsError(f"{self} and {other} share no label to sum over; multiply them with *")
        spellings = {label.lower(): label for label in _labels_as_written(product.tree)}
        return product.sum(*(spellings[label] for label in shared))

    def sum(self, *labels: str) -> "TensorExpression":
        """The sum over labels; by default over those that occur inside it only, as in text."""
        return call("sum", self, labels=labels)

    def prod(self, *labels: str) -> "TensorExpression":
        """The product over labels; by default as for `sum`."""
        return call("prod", self, labels=labels)

    def max(self, *labels: str) -> "TensorExpression":
        """The maximum over labels; by default as for `sum`. np.maximum is that of two expressions."""
        return call("max", self, labels=labels)

    def min(self, *labels: str) -> "TensorExpression":
        """The minimum over labels; by default as for `sum`. np.minimum is that of two expressions."""
        return call("min", self, labels=labels)

    def any(self, *labels: str) -> "TensorExpression":
        """Whether any value over labels is not 0; by default as for `sum`."""
        return call("any", self, labels=labels)

    def all(self, *labels: str) -> "TensorExpression":
        """Whether no value over labels is 0; by default as for `sum`."""
        return call("all", self, labels=labels)

    def logsumexp(self, *labels: str) -> "TensorExpression":
        """The logarithm of the sum of powers of e over labels; by default as for `sum`."""
        return call("logsumexp", self, labels=labels)

    def mean(self, *labels: str) -> "TensorExpression":
        """The mean over labels; by default as for `sum`."""
        return call("mean", self, labels=labels)

    def var(self, *labels: str) -> "TensorExpression":
        """The variance over labels; by default as for `sum`."""
        return call("var", self, labels=labels)

    def norm(self, *labels: str) -> "TensorExpression":
        """The Euclidean norm over labels; by default as for `sum`."""
        return call("norm", self, labels=labels)

    def count(self, *labels: str) -> "TensorExpression":
        """The number of values over labels that are not 0; by default as for `sum`."""
        return call("count", self, labels=labels)

    def sumsq(self, *labels: str) -> "TensorExpression":
        """The sum of squared magnitudes over labels; by default as for `sum`."""
        return call("sumsq", self, labels=labels)

    def argmax(self, *labels: str) -> "TensorExpression":
        """The first index of the one label in `labels` at which the maximum or NaN is; by default as for `sum`."""
        return call("argmax", self, labels=labels)

    def argmin(self, *labels: str) -> "TensorExpression":
        """The first index of the one label in `labels` at which the minimum or NaN is; by default as for `sum`."""
        return call("argmin", self, labels=labels)

    def softmax(self, *labels: str) -> "TensorExpression":
        """The softmax along labels, which the result keeps."""
        return call("softmax", self, labels=labels)

    def log_softmax(self, *labels: str) -> "TensorExpression":
        """The logarithm of the softmax along labels."""
        return call("log_softmax", self, labels=labels)

    def layer_norm(self, *labels: str, eps: ExpressionOperand = 1e-5) -> "TensorExpression":
        """The values along labels, shifted and scaled to mean 0 and variance 1.

        Args:
            labels: The labels, which the result keeps.
            eps: A number that is added to the variance before its root is taken.
        """
        return call("layer_norm", self, eps, labels=labels)

    def one_hot(self, label: str) -> "TensorExpression":
        """Whether the value equals the index of the new label `label`."""
        return call("one_hot", self, labels=(label,))

    def __getattr__(self, name: str) -> "Callable[..., TensorExpression]":
        """A function of programs as a method, with its further operands as arguments: `x.relu()`, `x.clip(0, 1)`.

        A scan takes its label, as in `x.cumsum("j")`. A user's aggregate takes its second argument, if it has two, and
        labels, as in `x.least(se.index("j"), "j", "n")`.
        """
        if name in SCANS or name in PICKS or name in USER_AGGREGATES:
            return lambda *arguments: _aggregate(name, self, arguments)
        if not is_named_function(name):
            raise AttributeError(f"expressions of tensors have no {name}")
        return lambda *operands: call(name, self, *operands)


class LabelledExpression:
    """An expression with the labels of its result in order: `expression["i", "k"]`."""

    __slots__ = ("expression", "labels")

    def __init__(self, expression: TensorExpression, labels: tuple[str, ...]) -> None:
        self.expression = expression
        self.labels = labels

    def __repr__(self) -> str:
        return f"({self.expression!r})[{', '.join(map(repr, self.labels))}]"


class NamedTensor:
    """A tensor of a program, created by `tensor`.

    `A["i", "j"]` reads it, or `A[()]` if it has no axes, or `A["i + 1", 0]` at shifted and fixed indices, as in program
    text; `T["i", "k"] = expression` assigns it, which is possible once.
    """

    def __init__(self, name: str, declaration: Declaration | None) -> None:
        self.name = name
        self.declaration = declaration
        self.definition: LabelledExpression | None = None

    def __getitem__(self, indices: IndexArguments) -> TensorExpression:
        return TensorExpression(read_reference(self.name, indices), (self,))

    def __setitem__(self, labels: Labels, value: TensorExpression) -> None:
        if not isinstance(value, TensorExpression):
            raise ArgumentError(f"{self.name} cannot be {value!r}, which is not an expression of labelled tensors")
        if self.definition is not None:
            raise SemanticsError(f"{self.name} is assigned twice; give each result a name of its own")
        self.definition = LabelledExpression(value, check_labels(labels))

    def __repr__(self) -> str:
        return f"tensor({self.name!r})"


def call(name: str, *operands: ExpressionOperand, labels: tuple[str, ...] = ()) -> TensorExpression:
    """A call of the function `name` on expressions and numbers, with `labels` in brackets if there are any."""
    tree = FunctionCall(name, check_labels(labels) or None, tuple(tree_of(operand) for operand in operands))
    expressions = (operand for operand in operands if isinstance(operand, TensorExpression))
    return TensorExpression(tree, (tensor for expression in expressions for tensor in expression.tensors))


def _aggregate(
    name: str, operand: TensorExpression, arguments: tuple[ExpressionOperand | str, ...]
) -> TensorExpression:
    """A call of an aggregate or a scan; texts among the arguments are labels, others are operands."""
    labels = tuple(argument for argument in arguments if isinstance(argument, str))
    operands = (argument for argument in arguments if not isinstance(argument, str))
    return call(name, operand, *operands, labels=labels)


def where(condition: ExpressionOperand, if_true: ExpressionOperand, if_false: ExpressionOperand) -> TensorExpression:
    """`if_true` where a condition holds, and `if_false` elsewhere: `where(c, a, b)` of program text."""
    return call("where", condition, if_true, if_false)


def bound(name: str, axis: int | None = None) -> TensorExpression:
    """The bound of a label, as in `bound("j")`, or of an axis of a tensor, as in `bound("A", 1)`.

    Args:
        name: A label, or a tensor if there is an axis.
        axis: The position of an axis of the tensor, counted from 0.
    """
    return TensorExpression(BoundExpression(check_labels(name)[0], axis))


def index(label: str, bound: int | None = None) -> TensorExpression:
    """The index of a label itself: 0, 1, ...; by default with the bound that the label has elsewhere.

    Args:
        label: The label.
        bound: How many indices it has.
    """
    return TensorExpression(RangeExpression("index", check_labels(label)[0], bound))


def ones(label: str, bound: int | None = None) -> TensorExpression:
    """True at every index of a label; by default with the bound that the label has elsewhere.

    Args:
        label: The label.
        bound: How many indices it has.
    """
    return TensorExpression(RangeExpression("ones", check_labels(label)[0], bound))


def tree_of(value: object) -> ExpressionTree:
    """The syntax tree of an operand.

    Raises:
        ArgumentError: The value is neither an expression nor a number.
        SemanticsError: The value is NaN.
    """
    if isinstance(value, TensorExpression):
        return value.tree
    if isinstance(value, LabelledExpression):
        raise ArgumentError(f"{value} is a result with labels; to read it, name it: T = se.tensor('T'); T['i'] = ...")
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:  # numpy sometimes converts its numbers to arrays
        return tree_of(value.item())
    if not isinstance(value, bool | int | float | complex):
        raise ArgumentError(
            f"{type(value).__name__} {value!r} is neither a labelled tensor nor a number; load arrays with db.tensor, "
            "and write se.tensor('A')['i', 'j']"
        )
    if value != value:
        raise SemanticsError("NaN cannot be written in a program; compute it, as in 0 / A['i']")
    return NumberLiteral(value)


def _check_aggregates_have_labels(expression: ExpressionTree) -> None:
    """Refuse aggregates without labels in brackets: the labels that they keep depend on the rest of the statement."""
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case FunctionCall(name, labels, arguments) as call_tree:
                if is_aggregate(call_tree) and not labels:
                    raise SemanticsError(f"{name}() in an operand of @ must name its labels, as in .{name}('j')")
                waiting.extend(arguments)


def _labels_as_written(expression: ExpressionTree) -> Iterator[str]:
    """The labels of an expression as they are written, in upper or lower case."""
    match expression:
        case TensorReference() | IndexedReference():
            yield from expression.labels
        case RangeExpression(_, label):
            yield label
        case FunctionCall(_, _, arguments):
            for argument in arguments:
                yield from _labels_as_written(argument)
