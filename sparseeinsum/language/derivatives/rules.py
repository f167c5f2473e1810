"""Derivatives: the rules in the records of operators as expressions, and the derivatives of expressions by them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.derivatives.simplification import simplified
from sparseeinsum.language.parsing import parse_join
from sparseeinsum.language.scalar import functions_of, operands_of
from sparseeinsum.language.syntax import ExpressionTree, FunctionCall, NumberLiteral, TensorReference
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar, joined_in_halves
from sparseeinsum.operators.functions import FUNCTIONS

_ARGUMENTS = ("u", "v", "w")
CHANGE = "g"  # the name of the change of an argument in rules


@lru_cache(maxsize=1024)
def read_rule(text: str, names: tuple[str, ...]) -> Scalar:
    """The expression of a rule; its operands are `names`, in order."""
    return _as_scalar(parse_join(text, names), names)


def _as_scalar(expression: ExpressionTree, names: tuple[str, ...]) -> Scalar:
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


def change_of(expression: Scalar, operand: int, change: Scalar, complexness: Sequence[bool]) -> Scalar | None:
    """What a small change of one operand adds to an expression; None if nothing.

    The rule of a function is applied around the change of its argument. So where a branch of `where` is not taken, its
    derivative does not matter, even if that is infinite.

    Args:
        expression: The expression.
        operand: The position of the operand.
        change: The change, in which the result is linear.
        complexness: Whether each operand, of the expression or of the change, has complex values.

    Raises:
        SemanticsError: A function has no derivative.
    """
    match expression:
        case Operand(index):
            return change if index == operand else None
        case Call(_, arguments):
            changes = [
                _changed_by(expression, position, inner, complexness)
                for position, argument in enumerate(arguments)
                if (inner := change_of(argument, operand, change, complexness)) is not None
            ]
            return _sum([term for term in changes if term is not None])
        case _:
            return None


def cotangent_of(expression: Scalar, operand: int, cotangent: Scalar, complexness: Sequence[bool]) -> Scalar | None:
    """What one operand gets of a cotangent of an expression: the transpose of `change_of`; None if nothing.

    A product with a derivative is its own transpose. So the rules of holomorphic functions, and of real ones, are
    applied as in `change_of`. The others, such as abs of complex numbers, are applied from the outside to the inside.
    """
    calls = list(dict.fromkeys(_calls_by_transpose(expression, operand, complexness)))
    places = [Operand(len(complexness) + index) for index in range(len(calls))]
    outer = _replaced(expression, dict(zip(calls, places, strict=True)))
    wider = [*complexness, *(is_complex_valued(call, complexness) for call in calls)]
    terms = [change_of(outer, operand, cotangent, wider)]
    for place, call in zip(places, calls, strict=True):
        own = change_of(outer, place.index, cotangent, wider)
        for position, argument in enumerate(call.arguments):
            inner = None if own is None else _transposed(call, position, own, wider)
            term = None if inner is None else cotangent_of(argument, operand, inner, wider)
            if term is not None and own is not None and "where" in functions_of(own):  # a branch that was not taken
                is_undefined = Call("and", (Call("eq", (own, Literal(0))), Call("ne", (term, term))))
                term = Call("where", (is_undefined, Literal(0), term))
            terms.append(term)
    total = _sum([term for term in terms if term is not None])
    return None if total is None else _replaced(total, dict(zip(places, calls, strict=True)))


def _calls_by_transpose(expression: Scalar, operand: int, complexness: Sequence[bool]) -> Iterator[Call]:
    """The outermost calls that depend on an operand, and whose rules differ from their transposes."""
    if isinstance(expression, Call) and operand in operands_of(expression):
        if _has_complex_rule(expression, complexness):
            yield expression
        else:
            for argument in expression.arguments:
                yield from _calls_by_transpose(argument, operand, complexness)


def _has_complex_rule(call: Call, complexness: Sequence[bool]) -> bool:
    has_rule = FUNCTIONS[call.function].complex_derivatives is not None
    return has_rule and any(is_complex_valued(argument, complexness) for argument in call.arguments)


def _replaced(expression: Scalar, values: Mapping[Scalar, Scalar]) -> Scalar:
    """The expression with other expressions in place of some."""
    if expression in values:
        return values[expression]
    if not isinstance(expression, Call):
        return expression
    return Call(expression.function, tuple(_replaced(argument, values) for argument in expression.arguments))


def _sum(terms: Sequence[Scalar]) -> Scalar | None:
    return joined_in_halves(terms, lambda a, b: simplified(Call("add", (a, b)))) if terms else None


def _changed_by(call: Call, position: int, change: Scalar, complexness: Sequence[bool]) -> Scalar | None:
    """What a small change of an argument adds to the value of a call; None if nothing."""
    record = FUNCTIONS[call.function]
    if record.complex_derivatives is not None and _has_complex_rule(call, complexness):
        return _by_rule(record.complex_derivatives[position][0], call, change, complexness)
    if record.derivatives is None:
        hint = "register it with derivatives, or write stop_gradient(...) around it"
        raise SemanticsError(f"the function {call.function} has no derivative; {hint}")
    return _by_rule(record.derivatives[position], call, change, complexness)


def _transposed(call: Call, position: int, cotangent: Scalar, complexness: Sequence[bool]) -> Scalar | None:
    """What an argument gets of a cotangent of a call that has a complex rule; None if nothing."""
    rules = FUNCTIONS[call.function].complex_derivatives
    assert rules is not None
    return _by_rule(rules[position][1], call, cotangent, complexness)


def _by_rule(text: str, call: Call, change: Scalar, complexness: Sequence[bool]) -> Scalar | None:
    rule = read_rule(text, (*_ARGUMENTS[: len(call.arguments)], CHANGE))
    if is_zero(rule):
        return None
    values = (*call.arguments, change)
    return substituted(_without_real_parts(rule, [is_complex_valued(value, complexness) for value in values]), values)


def _without_real_parts(expression: Scalar, complexness: Sequence[bool]) -> Scalar:
    """The expression without the functions `real` and `conj` of what is real already."""
    match expression:
        case Call("real" | "conj", (argument,)) if not is_complex_valued(argument, complexness):
            return _without_real_parts(argument, complexness)
        case Call(function, arguments):
            return Call(function, tuple(_without_real_parts(argument, complexness) for argument in arguments))
        case _:
            return expression


def is_complex_valued(expression: Scalar, complexness: Sequence[bool]) -> bool:
    """Whether an expression has complex values; `complexness` says which operands have."""
    match expression:
        case Operand(index):
            return complexness[index]
        case Literal(value):
            return isinstance(value, complex)
        case Call("where", (_, *branches)):
            return any(is_complex_valued(branch, complexness) for branch in branches)
        case Call(function, arguments):
            return not FUNCTIONS[function].returns_real and any(
                is_complex_valued(argument, complexness) for argument in arguments
            )
        case _:
            return False


_CONJUGATED = ("add", "sub", "mul", "div", "neg")  # functions of conjugates that are the conjugates of their values


def conjugate(expression: Scalar, complexness: Sequence[bool]) -> Scalar:
    """The complex conjugate of an expression."""
    match expression:
        case _ if not is_complex_valued(expression, complexness):
            return expression
        case Call("conj", (argument,)):
            return argument
        case Call("where", (condition, *branches)):
            return Call("where", (condition, *(conjugate(branch, complexness) for branch in branches)))
        case Call(function, arguments) if function in _CONJUGATED:
            return Call(function, tuple(conjugate(argument, complexness) for argument in arguments))
        case _:
            return simplified(Call("conj", (expression,)))


def is_zero(expression: Scalar) -> bool:
    """Whether an expression is the number 0."""
    return isinstance(expression, Literal) and expression.value == 0


def matters(expression: Scalar, operand: int, complexness: Sequence[bool]) -> bool:
    """Whether small changes of an operand may change an expression; they do not change a comparison."""
    match expression:
        case Operand(index):
            return index == operand
        case Call(_, arguments):
            return any(
                _matters(expression, at, complexness) and matters(argument, operand, complexness)
                for at, argument in enumerate(arguments)
            )
        case _:
            return False


def _matters(call: Call, position: int, complexness: Sequence[bool]) -> bool:
    """Whether small changes of an argument may change a function; so without a rule."""
    record = FUNCTIONS[call.function]
    if _has_complex_rule(call, complexness):
        return True
    return record.derivatives is None or not is_zero(
        read_rule(record.derivatives[position], (*_ARGUMENTS[: record.operands], CHANGE))
    )
