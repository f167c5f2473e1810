"""Derivatives: simplifies expressions: computes with numbers, and leaves out products with 1 and sums with 0.

It assumes that values are of floating point, as derivatives are.
"""

from collections.abc import Callable

from sparseeinsum.language.scalar import evaluate
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.expressions import Call, Literal, Scalar
from sparseeinsum.operators.functions import FUNCTIONS


def simplified(call: Call) -> Scalar:
    """An equal expression of the same arguments, which are simplified already."""
    numbers = [argument.value for argument in call.arguments if isinstance(argument, Literal)]
    if len(numbers) == len(call.arguments):
        return _evaluated(call)
    simplify = _RULES.get(call.function)
    return simplify(call.arguments, call) if simplify is not None and numbers else call


def _evaluated(call: Call) -> Scalar:
    """The value of an expression of numbers; the expression itself if that is no number."""
    try:
        number: Number = evaluate(call, ()).item()
    except ValueError:  # an integer to a negative power
        return call
    return Literal(number) if number == number else call


def _is(expression: Scalar, number: int) -> bool:
    """Whether an expression is a number; true and false are not."""
    return isinstance(expression, Literal) and expression.value == number and not isinstance(expression.value, bool)


_Arguments = tuple[Scalar, ...]


def _without_one(arguments: _Arguments, call: Call) -> Scalar:
    """A product without the factor 1, and with one number only."""
    first, second = arguments
    if _is(first, 1) or _is(second, 1):
        return second if _is(first, 1) else first
    number, other = (first, second) if isinstance(first, Literal) else (second, first)
    match other:
        case Call("mul", (Literal() as inner, rest)):
            return simplified(Call("mul", (simplified(Call("mul", (number, inner))), rest)))
        case Call("neg", (rest,)):
            return simplified(Call("mul", (simplified(Call("neg", (number,))), rest)))
        case _:
            return Call("mul", (number, other))


def _without_zero(arguments: _Arguments, call: Call) -> Scalar:
    first, second = arguments
    return second if _is(first, 0) else first if _is(second, 0) else call


def _selected(arguments: _Arguments, call: Call) -> Scalar:
    condition, taken, other = arguments
    if isinstance(condition, Literal):
        return taken if condition.value else other
    return taken if taken == other else call


def _first_if(number: int) -> Callable[[_Arguments, Call], Scalar]:
    """A rule for functions that return their first argument if the second is a number."""
    return lambda arguments, call: arguments[0] if _is(arguments[1], number) else call


_RULES: dict[str, Callable[[_Arguments, Call], Scalar]] = {
    "mul": _without_one,
    "add": _without_zero,
    "sub": _first_if(0),
    "div": _first_if(1),
    "pow": _first_if(1),
    "where": _selected,
}
assert _RULES.keys() <= FUNCTIONS.keys()
