"""Language: Python expressions of labelled tensors in, syntax trees out, those that the same text would give."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeAlias, Union

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.numpy_functions import name_of_ufunc
from sparseeinsum.language.syntax import (
    BoundExpression,
    Declaration,
    Expression,
    FunctionCall,
    Number,
    RangeExpression,
    TensorReference,
    free_labels,
    is_aggregate,
    write_expression,
)
from sparseeinsum.operators import dtypes
from sparseeinsum.operators.functions import is_named_function
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

Labels: TypeAlias = str | tuple[str, ...]
Operand: TypeAlias = Union["TensorExpression", dtypes.Number, np.number[Any], np.bool_]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class TensorExpression:
    """An expression of tensors under labels, numbers, operators and functions, as in program text.

    Operators are Python's: + - * / ** and comparisons, and & | ~ for and, or, not; they bind as Python has it, so
    that comparisons beside & and | need parentheses. `@` multiplies and sums over the labels that both sides have.
    numpy's functions of numbers, such as np.exp and np.maximum, and np.where take expressions, too. Labels in
    brackets say in which order a result has them: `(A["i", "j"] + 1)["j", "i"]`.
    """

    __slots__ = ("tensors", "tree")
    __hash__ = None  # type: ignore[assignment]  # == makes an expression

    def __init__(self, tree: Expression, tensors: Iterable["NamedTensor"] = ()) -> None:
        self.tree = tree
        self.tensors = tuple(dict.fromkeys(tensors))

    def __getitem__(self, labels: Labels) -> "LabelledExpression":
        return LabelledExpression(self, check_labels(labels))

    def __repr__(self) -> str:
        return write_expression(self.tree)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"whether {self} is true is known once it is computed; write & | ~ for and, or, not, and (a < b) & (b < c) "
            "for a < b < c"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self} has no values yet; compute them with db.run(se.program(...))")

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *operands: Operand, **keywords: object
    ) -> "TensorExpression":
        return call(name_of_ufunc(ufunc, method, keywords), *operands)

    def __array_function__(
        self, function: Callable[..., object], types: object, operands: tuple[Any, ...], keywords: object
    ) -> "TensorExpression":
        if function is np.where and len(operands) == 3:
            return call("where", *operands)
        raise TypeError(
            f"np.{function.__name__} knows no labels; aggregate with methods, as in {self}.sum('i'), or see "
            "se.TensorExpression for what else there is"
        )

    def __add__(self, other: Operand) -> "TensorExpression":
        return call("add", self, other)

    def __radd__(self, other: Operand) -> "TensorExpression":
        return call("add", other, self)

    def __sub__(self, other: Operand) -> "TensorExpression":
        return call("sub", self, other)

    def __rsub__(self, other: Operand) -> "TensorExpression":
        return call("sub", other, self)

    def __mul__(self, other: Operand) -> "TensorExpression":
        return call("mul", self, other)

    def __rmul__(self, other: Operand) -> "TensorExpression":
        return call("mul", other, self)

    def __truediv__(self, other: Operand) -> "TensorExpression":
        return call("div", self, other)

    def __rtruediv__(self, other: Operand) -> "TensorExpression":
        return call("div", other, self)

    def __pow__(self, other: Operand) -> "TensorExpression":
        return call("pow", self, other)

    def __rpow__(self, other: Operand) -> "TensorExpression":
        return call("pow", other, self)

    def __neg__(self) -> "TensorExpression":
        return call("neg", self)

    def __abs__(self) -> "TensorExpression":
        return call("abs", self)

    def __lt__(self, other: Operand) -> "TensorExpression":
        return call("lt", self, other)

    def __le__(self, other: Operand) -> "TensorExpression":
        return call("le", self, other)

    def __gt__(self, other: Operand) -> "TensorExpression":
        return call("gt", self, other)

    def __ge__(self, other: Operand) -> "TensorExpression":
        return call("ge", self, other)

    def __eq__(self, other: Operand) -> "TensorExpression":  # type: ignore[override]  # an expression, no bool
        return call("eq", self, other)

    def __ne__(self, other: Operand) -> "TensorExpression":  # type: ignore[override]  # an expression, no bool
        return call("ne", self, other)

    def __and__(self, other: Operand) -> "TensorExpression":
        return call("and", self, other)

    def __rand__(self, other: Operand) -> "TensorExpression":
        return call("and", other, self)

    def __or__(self, other: Operand) -> "TensorExpression":
        return call("or", self, other)

    def __ror__(self, other: Operand) -> "TensorExpression":
        return call("or", other, self)

    def __invert__(self) -> "TensorExpression":
        return call("not", self)

    def __matmul__(self, other: "TensorExpression") -> "TensorExpression":
        product = call("mul", self, other)
        assert isinstance(product.tree, FunctionCall)
        left, right = product.tree.arguments
        for each in (left, right):
            _check_named(each)
        on_the_right = frozenset(free_labels(right))
        shared = tuple(label for label in dict.fromkeys(free_labels(left)) if label in on_the_right)
        if not shared:
            raise SemanticsError(f"{self} and {other} share no label to sum over; multiply them with *")
        spelled = {label.lower(): label for label in _spelled(product.tree)}
        return product.sum(*(spelled[label] for label in shared))

    def sum(self, *labels: str) -> "TensorExpression":
        """The sum over labels; without any, over those that appear inside alone, as in text."""
        return call("sum", self, labels=labels)

    def prod(self, *labels: str) -> "TensorExpression":
        """The product over labels, as `sum`."""
        return call("prod", self, labels=labels)

    def max(self, *labels: str) -> "TensorExpression":
        """The greatest over labels, as `sum`; np.maximum is that of two expressions."""
        return call("max", self, labels=labels)

    def min(self, *labels: str) -> "TensorExpression":
        """The least over labels, as `sum`; np.minimum is that of two expressions."""
        return call("min", self, labels=labels)

    def any(self, *labels: str) -> "TensorExpression":
        """Whether any value over labels is not 0, as `sum`."""
        return call("any", self, labels=labels)

    def all(self, *labels: str) -> "TensorExpression":
        """Whether no value over labels is 0, as `sum`."""
        return call("all", self, labels=labels)

    def logsumexp(self, *labels: str) -> "TensorExpression":
        """The logarithm of the sum of powers of e over labels, as `sum`."""
        return call("logsumexp", self, labels=labels)

    def mean(self, *labels: str) -> "TensorExpression":
        """The mean over labels, as `sum`."""
        return call("mean", self, labels=labels)

    def var(self, *labels: str) -> "TensorExpression":
        """The variance over labels, as `sum`."""
        return call("var", self, labels=labels)

    def norm(self, *labels: str) -> "TensorExpression":
        """The Euclidean norm over labels, as `sum`."""
        return call("norm", self, labels=labels)

    def count(self, *labels: str) -> "TensorExpression":
        """How many values over labels are not 0, as `sum`."""
        return call("count", self, labels=labels)

    def sumsq(self, *labels: str) -> "TensorExpression":
        """The sum of squared magnitudes over labels, as `sum`."""
        return call("sumsq", self, labels=labels)

    def argmax(self, *labels: str) -> "TensorExpression":
        """The least index of a label at which the greatest value is, or NaN; one label, as `sum`."""
        return call("argmax", self, labels=labels)

    def argmin(self, *labels: str) -> "TensorExpression":
        """The least index of a label at which the least value is, or NaN; one label, as `sum`."""
        return call("argmin", self, labels=labels)

    def softmax(self, *labels: str) -> "TensorExpression":
        """The softmax along labels."""
        return call("softmax", self, labels=labels)

    def log_softmax(self, *labels: str) -> "TensorExpression":
        """The logarithm of the softmax along labels."""
        return call("log_softmax", self, labels=labels)

    def layer_norm(self, *labels: str, eps: Operand = 1e-5) -> "TensorExpression":
        """The values along labels, shifted and scaled to mean 0 and variance 1."""
        return call("layer_norm", self, eps, labels=labels)

    def one_hot(self, label: str) -> "TensorExpression":
        """Whether the value is the index of a new label."""
        return call("one_hot", self, labels=(label,))

    def __getattr__(self, name: str) -> "Callable[..., TensorExpression]":
        """A function of programs as a method, which takes its further operands: `x.relu()`, `x.clip(0, 1)`.

        A scan takes its label, `x.cumsum("j")`; a user's aggregate its other argument, if it has one, and labels:
        `x.least(se.index("j"), "j", "n")`.
        """
        if name in SCANS or name in PICKS or name in USER_AGGREGATES:
            return lambda *others: _folded(name, self, others)
        if not is_named_function(name):
            raise AttributeError(f"expressions of tensors have no {name}")
        return lambda *others: call(name, self, *others)


class LabelledExpression:
    """What a result is computed as, and its labels in order: `expression["i", "k"]`."""

    __slots__ = ("expression", "labels")

    def __init__(self, expression: TensorExpression, labels: tuple[str, ...]) -> None:
        self.expression = expression
        self.labels = labels

    def __repr__(self) -> str:
        return f"({self.expression!r})[{', '.join(map(repr, self.labels))}]"


class NamedTensor:
    """A tensor of a program by its name; made by `tensor`.

    `A["i", "j"]` reads it, `A[()]` where it has no axes; `T["i", "k"] = expression` says how it is computed, once.
    """

    def __init__(self, name: str, declaration: Declaration | None) -> None:
        self.name = name
        self.declaration = declaration
        self.definition: LabelledExpression | None = None

    def __getitem__(self, labels: Labels) -> TensorExpression:
        return TensorExpression(TensorReference(self.name, check_labels(labels)), (self,))

    def __setitem__(self, labels: Labels, value: TensorExpression) -> None:
        if not isinstance(value, TensorExpression):
            raise TypeError(f"{self.name} is to be {value!r}, which is no expression of tensors under labels")
        if self.definition is not None:
            raise SemanticsError(f"{self.name} is assigned twice; give each result a name of its own")
        self.definition = LabelledExpression(value, check_labels(labels))

    def __repr__(self) -> str:
        return f"tensor({self.name!r})"


def call(name: str, *operands: Operand, labels: tuple[str, ...] = ()) -> TensorExpression:
    """A function of expressions and numbers, with the labels that it names, if any."""
    tree = FunctionCall(name, check_labels(labels) or None, tuple(tree_of(operand) for operand in operands))
    tensors = (tensor for each in operands if isinstance(each, TensorExpression) for tensor in each.tensors)
    return TensorExpression(tree, tensors)


def _folded(name: str, operand: TensorExpression, others: tuple[Operand | str, ...]) -> TensorExpression:
    labels = tuple(each for each in others if isinstance(each, str))
    return call(name, operand, *(each for each in others if not isinstance(each, str)), labels=labels)


def where(condition: Operand, if_true: Operand, if_false: Operand) -> TensorExpression:
    """One value where a condition holds, another one elsewhere: `where(c, a, b)` of program text."""
    return call("where", condition, if_true, if_false)


def bound(name: str, axis: int | None = None) -> TensorExpression:
    """The bound of a label, `bound("j")`, or of an axis of a tensor, `bound("A", 1)`."""
    return TensorExpression(BoundExpression(check_labels(name)[0], axis))


def index(label: str, bound: int | None = None) -> TensorExpression:
    """The index of a label itself: 0, 1, ...; its bound is that which the label has, if not given."""
    return TensorExpression(RangeExpression("index", check_labels(label)[0], bound))


def ones(label: str, bound: int | None = None) -> TensorExpression:
    """True for every index of a label; its bound is that which the label has, if not given."""
    return TensorExpression(RangeExpression("ones", check_labels(label)[0], bound))


def check_labels(labels: Labels) -> tuple[str, ...]:
    """Labels as a tuple.

    Raises:
        TypeError: One is no text.
        SemanticsError: One is no name.
    """
    given = labels if isinstance(labels, tuple) else (labels,)
    for label in given:
        if not isinstance(label, str):
            raise TypeError(f"{label!r} is no label; labels are text, as in A['i', 'j']")
        if not _NAME.fullmatch(label):
            raise SemanticsError(f"{label!r} is no name; names have letters without accents, digits and _")
    return given


def tree_of(value: object) -> Expression:
    """What an operand is in a syntax tree.

    Raises:
        TypeError: It is no expression and no number.
        SemanticsError: It is NaN.
    """
    if isinstance(value, TensorExpression):
        return value.tree
    if isinstance(value, LabelledExpression):
        raise TypeError(f"{value} is a whole result; give it a name to read it: T = se.tensor('T'); T['i'] = ...")
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:  # numpy makes arrays of its numbers
        return tree_of(value.item())
    if not isinstance(value, bool | int | float | complex):
        raise TypeError(
            f"{type(value).__name__} {value!r} is no tensor under labels and no number; load arrays with db.tensor, "
            "and write se.tensor('A')['i', 'j']"
        )
    if value != value:
        raise SemanticsError("NaN cannot be written in a program; compute it, as in 0 / A['i']")
    return Number(value)


def _check_named(expression: Expression) -> None:
    """Refuse aggregates that name no labels, because what they leave over is known with the whole statement only."""
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case FunctionCall(name, labels, arguments) as found:
                if is_aggregate(found) and not labels:
                    raise SemanticsError(f"{name}() beside @ must say its labels, as in .{name}('j')")
                waiting.extend(arguments)


def _spelled(expression: Expression) -> Iterator[str]:
    """Labels as they are written."""
    match expression:
        case TensorReference(_, labels):
            yield from labels
        case RangeExpression(_, label):
            yield label
        case FunctionCall(_, _, arguments):
            for argument in arguments:
                yield from _spelled(argument)
