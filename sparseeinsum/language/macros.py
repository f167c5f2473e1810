"""Language: expands macros: a call such as softmax[j](X[i, j]) becomes an expression of other functions and aggregates.

softmax, log_softmax and layer_norm keep the labels in their brackets; mean, var, norm, count, sumsq, argmax and argmin
aggregate them, like sum; one_hot adds a new one. There is no macro for a transpose, because B[j, i] = A[i, j] is one,
nor for a matrix product, which is sum(A[i, j] * B[j, k]).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce

from sparseeinsum.language.syntax import (
    BoundExpression,
    ExpressionTree,
    FunctionCall,
    NumberLiteral,
    Position,
    RangeExpression,
    TensorReference,
    call_of,
    free_labels,
    lowercase_labels,
)


@dataclass(frozen=True, slots=True)
class MacroCall:
    """A call of a macro.

    Attributes:
        body: The first argument; it has no aggregates.
        labels: The labels that the macro aggregates or normalises over.
        options: The further arguments.
        name_value: (suffix of the name, labels, expression, aggregate or None) -> a reference to an intermediate,
            which is computed once, even for several calls.
    """

    body: ExpressionTree
    labels: tuple[str, ...]
    options: tuple[ExpressionTree, ...]
    name_value: Callable[[str, tuple[str, ...], ExpressionTree, str | None], TensorReference]

    @property
    def all_labels(self) -> tuple[str, ...]:
        """All labels of the body, in order."""
        return tuple(dict.fromkeys(free_labels(self.body)))

    @property
    def remaining_labels(self) -> tuple[str, ...]:
        """The labels of the body that are not in `labels`."""
        return tuple(label for label in self.all_labels if label not in self.labels)

    def named(self) -> "MacroCall":
        """The call with its body as a named intermediate, so that the body can be read several times."""
        if isinstance(self.body, TensorReference):
            return self
        return replace(self, body=self.name_value("value", self.all_labels, self.body, None))

    def aggregate(self, aggregate: str, expression: ExpressionTree) -> TensorReference:
        """A reference to the aggregate of an expression over `labels`."""
        return self.name_value(aggregate, self.remaining_labels, expression, aggregate)

    def count(self) -> ExpressionTree:
        """The number of values that an aggregate over `labels` has: the product of their bounds."""
        return reduce(partial(call_of, "mul"), (_bound_of(label, self.body) for label in self.labels))


def _bound_of(label: str, body: ExpressionTree) -> ExpressionTree:
    """An expression of the bound of a label that the body has."""
    match body:
        case TensorReference(tensor, labels) if label in lowercase_labels(labels):
            return BoundExpression(tensor, lowercase_labels(labels).index(label), label)
        case RangeExpression(_, own, bound) if own.lower() == label and bound is not None:
            return NumberLiteral(bound) if isinstance(bound, int) else bound
        case FunctionCall(_, _, arguments):
            return _bound_of(label, next(argument for argument in arguments if label in free_labels(argument)))
    raise AssertionError(f"{label} is no label of {body}")


def _softmax(call: MacroCall) -> ExpressionTree:
    """exp(x) / sum(exp(x)), shifted by the maximum; -inf gives 0, even if all values are -inf.

    A product with the inverse of the sum, in place of a quotient, may be computed in another order with what reads it.
    """
    call = call.named()
    x = call.body
    shifted = call_of("sub", x, call.aggregate("max", x))
    powers = call_of("where", call_of("eq", x, -math.inf), 0, call_of("exp", shifted))
    power = call.name_value("exp", call.all_labels, powers, None)
    total = call.aggregate("sum", power)
    inverse = call_of("where", call_of("eq", total, 0), 0, call_of("div", 1, total))
    share = call_of("mul", power, call.name_value("inverse", call.remaining_labels, inverse, None))
    return call_of("where", call_of("eq", power, 0), 0, share)


def _log_softmax(call: MacroCall) -> ExpressionTree:
    """The logarithm of the softmax; -inf gives -inf, even if all values are -inf."""
    call = call.named()
    x = call.body
    return call_of("where", call_of("eq", x, -math.inf), -math.inf, call_of("sub", x, call.aggregate("logsumexp", x)))


def _mean(call: MacroCall) -> ExpressionTree:
    return call_of("div", call.aggregate("sum", call.body), call.count())


def _var(call: MacroCall) -> ExpressionTree:
    """The mean of the squared distances from the mean, like numpy.var."""
    call = call.named()
    distance = call_of("sub", call.body, call.name_value("mean", call.remaining_labels, _mean(call), None))
    return call_of("div", call.aggregate("sum", call_of("pow", call_of("abs", distance), 2)), call.count())


def _norm(call: MacroCall) -> ExpressionTree:
    """The Euclidean norm; values become float64 first, because squares of whole numbers could overflow."""
    size = call_of("mul", 1.0, call_of("abs", call.body))
    return call_of("sqrt", call.aggregate("sum", call_of("pow", size, 2)))


def _count(call: MacroCall) -> ExpressionTree:
    """How many values are not 0, like numpy.count_nonzero."""
    return call.aggregate("sum", call_of("ne", call.body, 0))


def _sumsq(call: MacroCall) -> ExpressionTree:
    """The sum of squared magnitudes."""
    return call.aggregate("sum", call_of("pow", call_of("abs", call.body), 2))


def _layer_norm(call: MacroCall) -> ExpressionTree:
    """(x - mean) / sqrt(var + eps); eps is 1e-5 by default."""
    call = call.named()
    mean = call.name_value("mean", call.remaining_labels, _mean(call), None)
    var = call.name_value("var", call.remaining_labels, _var(call), None)
    (eps,) = call.options or (NumberLiteral(1e-5),)
    return call_of("div", call_of("sub", call.body, mean), call_of("sqrt", call_of("add", var, eps)))


def _argmax(call: MacroCall) -> ExpressionTree:
    return _first_index(call, "max")


def _argmin(call: MacroCall) -> ExpressionTree:
    return _first_index(call, "min")


def _first_index(call: MacroCall, aggregate: str) -> ExpressionTree:
    """The first index of the extreme value or of NaN, like numpy's argmax; the bound if there is no index."""
    call = call.named()
    x = call.body
    (label,) = call.labels
    bound = _bound_of(label, x)
    assert isinstance(bound, NumberLiteral | BoundExpression)
    index = RangeExpression("index", label, bound.value if isinstance(bound, NumberLiteral) else bound)  # type: ignore[arg-type]  # bounds are whole numbers
    is_extreme = call_of("or", call_of("eq", x, call.aggregate(aggregate, x)), call_of("ne", x, x))
    return call_of("min", call.aggregate("min", call_of("where", is_extreme, index, bound)), bound)


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro.

    Attributes:
        expand: The expression that a call stands for.
        arguments: The greatest number of arguments; the least is 1.
        takes_one_label: Whether it takes exactly one label.
    """

    expand: Callable[[MacroCall], ExpressionTree]
    arguments: int = 1
    takes_one_label: bool = False


MACROS = {
    "softmax": Macro(_softmax),
    "log_softmax": Macro(_log_softmax),
    "mean": Macro(_mean),
    "var": Macro(_var),
    "norm": Macro(_norm),
    "count": Macro(_count),
    "sumsq": Macro(_sumsq),
    "layer_norm": Macro(_layer_norm, 2),
    "argmax": Macro(_argmax, takes_one_label=True),
    "argmin": Macro(_argmin, takes_one_label=True),
}


def one_hot(label: str, value: ExpressionTree, at: Position) -> ExpressionTree:
    """The expression of one_hot[label](value): one_hot[k](X[i]) is X[i] == index(k)."""
    return FunctionCall("eq", None, (value, RangeExpression("index", label, None, at)), at)
