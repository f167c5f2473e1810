"""Rewriting: an expression in, the factors that one associative operator joins in any order out.

What may be reordered, and which aggregates may be taken of a part before the rest is joined, is decided here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparseeinsum.language.scalar import evaluate, operands_of
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import ITEM_BYTES, Number, promoted
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS


@dataclass(frozen=True, slots=True)
class Chain:
    """Factors that an operator joins in any order; each has an operand, and no operand alone stands in two.

    Attributes:
        operator: Name of the operator.
        factors: At least two.
        around: What is made of all of them, joined, which is its Operand(0): it has the literals.
    """

    operator: str
    factors: tuple[Scalar, ...]
    around: Scalar

    def distributes(self, aggregate: str | None) -> bool:
        """Whether the aggregate of a part may be taken before the rest is joined, values being finite."""
        return aggregate is not None and self.operator in AGGREGATES[aggregate].distributes_over

    def annihilates(self, fill: Number) -> bool:
        """Whether a factor of this value leaves nothing of the others."""
        return fill in FUNCTIONS[self.operator].annihilators


def chain_of(expression: Scalar, aggregate: str | None, dtypes: Sequence[str], fewest: int = 2) -> Chain | None:
    """The factors of an expression; None where it is no chain of so many or more that any order computes as well.

    Args:
        expression: What is aggregated.
        aggregate: The aggregate, or None.
        dtypes: Dtypes of the operands.
        fewest: Factors that it must have: 1, where one beside constants will do.
    """
    operator = _operator(expression)
    if operator is None:
        return None
    found, around = _flattened(expression, operator)
    if operator in ("and", "or"):
        found = [_truth(factor, dtypes) for factor in found]
    if operator == "add" and _mixes_bools(found, dtypes):
        return None  # true + true is true, but 2 after one of them met a number
    factors = _collected(found, operator)
    kinds = [dtype_of(factor, dtypes) for factor in factors]
    if len(factors) < fewest or not ITEM_BYTES.keys() >= set(kinds):
        return None
    if dtype_of(around, [promoted(kinds)]) != dtype_of(expression, dtypes):
        return None  # a weak literal: 2 * u is int64 for a bool u, and float64 beside a float32 v
    if around == Operand(0) and set(kinds) == {"bool"}:
        operator = _of_bools(operator, aggregate)
    return Chain(operator, tuple(factors), around)


def _truth(factor: Scalar, dtypes: Sequence[str]) -> Scalar:
    return factor if dtype_of(factor, dtypes) == "bool" else Call("ne", (factor, Literal(0)))


def _mixes_bools(terms: Sequence[Scalar], dtypes: Sequence[str]) -> bool:
    plain = [term.arguments[0] if isinstance(term, Call) and term.function == "neg" else term for term in terms]
    return len({dtype_of(term, dtypes) == "bool" for term in plain}) > 1


def _of_bools(operator: str, aggregate: str | None) -> str:
    """An operator that says the same of bools, and over which the aggregate distributes if possible."""
    logical = FUNCTIONS[operator].of_truth or operator
    return "mul" if logical == "and" and aggregate == "sum" else logical


def _operator(expression: Scalar) -> str | None:
    """What joins the factors at the top of an expression."""
    is_negative = False
    while True:
        match expression:
            case Call("neg", (argument,)):
                expression, is_negative = argument, True
            case Call("add" | "sub", _):
                return "add"
            case Call("mul", _):
                return "mul"
            case Call("div", (_, divisor)) if not operands_of(divisor):
                return "mul"
            case Call("and" | "or" | "min" | "max" as operator, _) if not is_negative:
                return operator
            case _:
                return None


def _flattened(expression: Scalar, operator: str) -> tuple[list[Scalar], Scalar]:
    """The factors with operands, each of them no chain of this operator; and what literals make of all of them."""
    found: list[Scalar] = []
    outside: list[tuple[str, tuple[Scalar, ...]]] = []  # functions and their other arguments, the outermost first
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        match operator, current:
            case "mul", Call("neg", (argument,)):
                waiting.append(argument)
                outside.append(("neg", ()))
            case "mul", Call("div", (dividend, divisor)) if _is_finite(divisor) and evaluate(divisor, ()) != 0:
                waiting.append(dividend)
                outside.append(("div", (divisor,)))
            case _ if _is_finite(current):
                outside.append((operator, (current,)))
            case _:
                parts = _parts(current, operator)
                found.extend(parts if len(parts) == 1 else ())
                waiting.extend(reversed(parts) if len(parts) > 1 else ())
    around: Scalar = Operand(0)
    for function, others in reversed(outside):
        around = Call(function, (around, *others))
    return found, around


def _is_finite(expression: Scalar) -> bool:
    """Whether an expression is a finite constant."""
    return not operands_of(expression) and bool(np.isfinite(evaluate(expression, ())))


def _parts(expression: Scalar, operator: str) -> tuple[Scalar, ...]:
    """An expression as what the operator joins at its top; itself alone if that is another."""
    match operator, expression:
        case _, Call(function, arguments) if function == operator:
            return arguments
        case "add", Call("sub", (first, second)):
            return first, _negative(second)
        case "add", Call("neg", (Call("add", (first, second)),)):
            return _negative(first), _negative(second)
        case "add", Call("neg", (Call("sub", (first, second)),)):
            return _negative(first), second
        case _:
            return (expression,)


def _negative(expression: Scalar) -> Scalar:
    match expression:
        case Literal(value):
            return Literal(-value)
        case Call("neg", (argument,)):
            return argument
        case _:
            return Call("neg", (expression,))


def _collected(found: Sequence[Scalar], operator: str) -> list[Scalar]:
    """Factors of the same operands as one, and those of some operands of another factor in that one."""
    groups: dict[frozenset[int], Scalar] = {}
    for factor in found:
        operands = operands_of(factor)
        groups[operands] = Call(operator, (groups[operands], factor)) if operands in groups else factor
    for operands in sorted(groups, key=len):
        larger = next((other for other in groups if operands < other), None)
        if larger is not None:
            groups[larger] = Call(operator, (groups.pop(operands), groups[larger]))
    return list(groups.values())


def dtype_of(expression: Scalar, dtypes: Sequence[str]) -> str:
    """Dtype of an expression of operands of these dtypes."""
    return str(evaluate(expression, [np.empty(0, dtype) for dtype in dtypes]).dtype)


def substituted(expression: Scalar, operands: Mapping[int, Scalar]) -> Scalar:
    """The expression with an expression in the place of each operand."""
    match expression:
        case Operand(index):
            return operands[index]
        case Call(function, arguments):
            return Call(function, tuple(substituted(argument, operands) for argument in arguments))
        case _:
            return expression
