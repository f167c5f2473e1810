"""Language: macros, a call such as softmax[j](X[i, j]) in, an expression of values with names of their own out.

softmax, log_softmax and layer_norm keep the labels that they name; mean, var, norm, count, sumsq, argmax and argmin
aggregate them, like sum; one_hot makes a new one. There is no transpose, which is another order of labels:
B[j, i] = A[i, j]; nor a matrix product, which is sum(A[i, j] * B[j, k]).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from sparseeinsum.language.syntax import (
    BoundExpression,
    Expression,
    FunctionCall,
    Number,
    Position,
    RangeExpression,
    TensorReference,
    free_labels,
    lowercase_labels,
)


@dataclass(frozen=True, slots=True)
class MacroCall:
    """A call of a macro.

    Attributes:
        body: What it is of; it has no aggregates.
        labels: The labels that it takes.
        others: The further arguments.
        name_value: (suffix of the name, labels, expression, aggregate or None) -> a reference to the value, which is
            computed once, also for other calls.
    """

    body: Expression
    labels: tuple[str, ...]
    others: tuple[Expression, ...]
    name_value: Callable[[str, tuple[str, ...], Expression, str | None], TensorReference]

    @property
    def all_labels(self) -> tuple[str, ...]:
        """The labels of the body, in order."""
        return tuple(dict.fromkeys(free_labels(self.body)))

    @property
    def kept(self) -> tuple[str, ...]:
        """The labels that it does not take."""
        return tuple(label for label in self.all_labels if label not in self.labels)

    def named(self) -> "MacroCall":
        """The same of a body that has a name, to be read more than once."""
        if isinstance(self.body, TensorReference):
            return self
        return replace(self, body=self.name_value("value", self.all_labels, self.body, None))

    def fold(self, aggregate: str, expression: Expression) -> TensorReference:
        """An aggregate over the labels that the macro takes."""
        return self.name_value(aggregate, self.kept, expression, aggregate)

    def count(self) -> Expression:
        """How many values a fold takes."""
        first, *others = (_bound_of(label, self.body) for label in self.labels)
        for bound in others:
            first = _call("mul", first, bound)
        return first


def _call(name: str, *arguments: Expression | float) -> FunctionCall:
    nodes = (Number(argument) if isinstance(argument, int | float) else argument for argument in arguments)
    return FunctionCall(name, None, tuple(nodes))


def _bound_of(label: str, body: Expression) -> Expression:
    """The bound of a label that the body has."""
    match body:
        case TensorReference(tensor, labels) if label in lowercase_labels(labels):
            return BoundExpression(tensor, lowercase_labels(labels).index(label), label)
        case RangeExpression(_, own, bound) if own.lower() == label and bound is not None:
            return Number(bound) if isinstance(bound, int) else bound
        case FunctionCall(_, _, arguments):
            return _bound_of(label, next(argument for argument in arguments if label in free_labels(argument)))
    raise AssertionError(f"{label} is no label of {body}")


def _softmax(call: MacroCall) -> Expression:
    """exp(x) / sum(exp(x)), shifted by the maximum; -inf gives 0, also where there is nothing else."""
    call = call.named()
    x = call.body
    shifted = _call("sub", x, call.fold("max", x))
    powers = _call("where", _call("eq", x, -math.inf), 0, _call("exp", shifted))
    power = call.name_value("exp", call.all_labels, powers, None)
    return _call("where", _call("eq", power, 0), 0, _call("div", power, call.fold("sum", power)))


def _log_softmax(call: MacroCall) -> Expression:
    """The logarithm of the softmax; -inf stays, also where there is nothing else."""
    call = call.named()
    x = call.body
    return _call("where", _call("eq", x, -math.inf), -math.inf, _call("sub", x, call.fold("logsumexp", x)))


def _mean(call: MacroCall) -> Expression:
    return _call("div", call.fold("sum", call.body), call.count())


def _var(call: MacroCall) -> Expression:
    """The mean of the squared distances from the mean, as numpy.var."""
    call = call.named()
    distance = _call("sub", call.body, call.name_value("mean", call.kept, _mean(call), None))
    return _call("div", call.fold("sum", _call("pow", _call("abs", distance), 2)), call.count())


def _norm(call: MacroCall) -> Expression:
    """The Euclidean norm; squares are of floating point, which whole numbers would leave."""
    size = _call("mul", 1.0, _call("abs", call.body))
    return _call("sqrt", call.fold("sum", _call("pow", size, 2)))


def _count(call: MacroCall) -> Expression:
    """How many values are not 0, as numpy.count_nonzero."""
    return call.fold("sum", _call("ne", call.body, 0))


def _sumsq(call: MacroCall) -> Expression:
    """The sum of squared magnitudes."""
    return call.fold("sum", _call("pow", _call("abs", call.body), 2))


def _layer_norm(call: MacroCall) -> Expression:
    """(x - mean) / sqrt(var + eps); eps is 1e-5 if not given."""
    call = call.named()
    mean = call.name_value("mean", call.kept, _mean(call), None)
    var = call.name_value("var", call.kept, _var(call), None)
    (eps,) = call.others or (Number(1e-5),)
    return _call("div", _call("sub", call.body, mean), _call("sqrt", _call("add", var, eps)))


def _argmax(call: MacroCall) -> Expression:
    return _first_of(call, "max")


def _argmin(call: MacroCall) -> Expression:
    return _first_of(call, "min")


def _first_of(call: MacroCall, aggregate: str) -> Expression:
    """The least index of the extreme value or of NaN, as numpy's argmax; the bound where there is no index."""
    call = call.named()
    x = call.body
    (label,) = call.labels
    bound = _bound_of(label, x)
    assert isinstance(bound, Number | BoundExpression)
    index = RangeExpression("index", label, bound.value if isinstance(bound, Number) else bound)  # type: ignore[arg-type]  # whole
    is_extreme = _call("or", _call("eq", x, call.fold(aggregate, x)), _call("ne", x, x))
    return _call("min", call.fold("min", _call("where", is_extreme, index, bound)), bound)


@dataclass(frozen=True, slots=True)
class Macro:
    """What a macro is.

    Attributes:
        expand: What it means.
        arguments: How many it takes at most; one at least.
        takes_one_label: Whether it is of one label alone.
    """

    expand: Callable[[MacroCall], Expression]
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


def one_hot(label: str, value: Expression, at: Position) -> Expression:
    """Whether the value is the index of a label: one_hot[k](X[i]) is X[i] == index(k)."""
    return FunctionCall("eq", None, (value, RangeExpression("index", label, None, at)), at)
