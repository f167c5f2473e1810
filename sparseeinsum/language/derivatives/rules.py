"""Derivatives: the rules in the records of operators as expressions, and the derivatives of expressions by them."""

from collections.abc import Sequence
from functools import lru_cache

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.derivatives.simplification import simplified
from sparseeinsum.language.parsing import parse_join
from sparseeinsum.language.syntax import Expression, FunctionCall, NumberLiteral, TensorReference
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar, joined_in_halves
from sparseeinsum.operators.functions import FUNCTIONS

_ARGUMENTS = ("u", "v", "w")
CHANGE = "g"  # the name of the change of an argument in rules


@lru_cache(maxsize=1024)
def read_rule(text: str, names: tuple[str, ...]) -> Scalar:
    """The expression of a rule; its operands are `names`, in order."""
    return _as_scalar(parse_join(text, names), names)


def _as_scalar(expression: Expression, names: tuple[str, ...]) -> Scalar:
    match expression:
        case NumberLiteral(value):
            return Literal(value)
        case TensorReference(name):
            return Operand(names.index(name))
        case FunctionCall(function, _, arguments):
            return Call(function, tuple(_as_scalar(argument, names) for argument in arguments))
        case _:
            raise AssertionError(f"{expression} is in no rule")


def substituted(expression: Scalar, values: Sequence[Scalar]) -> Scalar:
    """The expression with `values` in place of its operands, simplified."""
    match expression:
        case Operand(index):
            return values[index]
        case Call(function, arguments):
            return simplified(Call(function, tuple(substituted(argument, values) for argument in arguments)))
        case _:
            return expression


def change_of(expression: Scalar, operand: int, change: Scalar) -> Scalar | None:
    """What a small change of one operand adds to an expression; None if nothing.

    The rule of a function is applied around the change of its argument. So where a branch of `where` is not taken, its
    derivative does not matter, even if that is infinite.

    Args:
        expression: The expression.
        operand: The position of the operand.
        change: The change, in which the result is linear.

    Raises:
        SemanticsError: A function has no derivative.
    """
    match expression:
        case Operand(index):
            return change if index == operand else None
        case Call(_, arguments):
            changes = [
                _changed_by(expression, position, inner)
                for position, argument in enumerate(arguments)
                if (inner := change_of(argument, operand, change)) is not None
            ]
            terms = [term for term in changes if term is not None]
            return joined_in_halves(terms, lambda a, b: simplified(Call("add", (a, b)))) if terms else None
        case _:
            return None


def _changed_by(call: Call, position: int, change: Scalar) -> Scalar | None:
    """What a small change of an argument adds to the value of a call; None if nothing."""
    record = FUNCTIONS[call.function]
    if record.derivatives is None:
        hint = "register it with derivatives, or write stop_gradient(...) around it"
        raise SemanticsError(f"the function {call.function} has no derivative; {hint}")
    names = (*_ARGUMENTS[: record.operands], CHANGE)
    rule = read_rule(record.derivatives[position], names)
    return None if is_zero(rule) else substituted(rule, (*call.arguments, change))


def is_zero(expression: Scalar) -> bool:
    """Whether an expression is the number 0."""
    return isinstance(expression, Literal) and expression.value == 0


def matters(expression: Scalar, operand: int) -> bool:
    """Whether small changes of an operand may change an expression; they do not change a comparison."""
    match expression:
        case Operand(index):
            return index == operand
        case Call(function, arguments):
            return any(_matters(function, at) and matters(argument, operand) for at, argument in enumerate(arguments))
        case _:
            return False


def _matters(function: str, position: int) -> bool:
    """Whether small changes of an argument may change a function; so without a rule."""
    record = FUNCTIONS[function]
    return record.derivatives is None or not is_zero(
        read_rule(record.derivatives[position], (*_ARGUMENTS[: record.operands], CHANGE))
    )
