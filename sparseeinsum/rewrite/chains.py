"""Rewriting: finds the factors of an expression that one associative operator joins in any order.

This module decides what may be reordered, and which aggregates may be taken of some factors before the rest is joined.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sparseeinsum.language.scalar import evaluate, evaluated_dtype, key_of, operands_of
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import ITEM_BYTES, Number, result_dtype
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar, joined_in_halves
from sparseeinsum.operators.functions import FUNCTIONS

# Sums and products of numbers of these dtypes differ by rounding only in another order. Of int64, some orders overflow.
INEXACT_DTYPES = frozenset(("float64", "float32", "complex128", "complex64"))


@dataclass(frozen=True, slots=True)
class Chain:
    """Factors that an associative operator joins in any order.

    Every factor has an operand, and the operands of no factor are all among those of another one.

    Attributes:
        operator: Name of the operator.
        factors: The factors; `as_chain` says how many there are at least.
        enclosing: An expression of the joined factors, which are its Operand(0); it holds the literals.
    """

    operator: str
    factors: tuple[Scalar, ...]
    enclosing: Scalar

    def distributes(self, aggregate: str | None) -> bool:
        """Whether, for finite values, the aggregate of some factors may be taken before the rest is joined."""
        return aggregate is not None and self.operator in AGGREGATES[aggregate].distributes_over

    def annihilates(self, fill: Number) -> bool:
        """Whether a factor with the value `fill` decides the result, whatever the other factors are."""
        return fill in FUNCTIONS[self.operator].annihilators


def as_chain(expression: Scalar, aggregate: str | None, dtypes: Sequence[str], least_factors: int = 2) -> Chain | None:
    """An expression as a chain; None where it is none, or where another order may compute something else.

    Args:
        expression: What is aggregated.
        aggregate: The aggregate, or None.
        dtypes: Dtypes of the operands.
        least_factors: The number of factors that it must have; 1 accepts a single factor with constants.
    """
    return _as_chain(expression, aggregate, tuple(dtypes), least_factors, key_of(expression))


@lru_cache(maxsize=1024)  # the stages ask for the same expressions, and most EinSums are products of two tensors
def _as_chain(
    expression: Scalar,
    aggregate: str | None,
    dtypes: tuple[str, ...],
    least_factors: int,
    key: tuple[object, ...],
) -> Chain | None:
    """As `as_chain`; `key` is the `key_of` the expression."""
    del key
    operator = _operator(expression)
    if operator is None:
        return None
    factors, enclosing = _flattened(expression, operator)
    if operator in ("and", "or"):
        factors = [_as_bool(factor, dtypes) for factor in factors]
    if operator == "add" and _mixes_bools(factors, dtypes):
        return None  # true + true is true, but 2 after one of them met a number
    merged = _merged_factors(factors, operator)
    kinds = [evaluated_dtype(factor, dtypes) for factor in merged]
    if len(merged) < least_factors or not ITEM_BYTES.keys() >= set(kinds):
        return None
    if evaluated_dtype(enclosing, [result_dtype(kinds)]) != evaluated_dtype(expression, dtypes):
        return None  # a weak literal: 2 * u is int64 for a bool u, and float64 if there is a float32 v
    if enclosing == Operand(0) and set(kinds) == {"bool"}:
        operator = _bool_operator(operator, aggregate)
    return Chain(operator, tuple(merged), enclosing)


def _as_bool(factor: Scalar, dtypes: Sequence[str]) -> Scalar:
    return factor if evaluated_dtype(factor, dtypes) == "bool" else Call("ne", (factor, Literal(0)))


def _mixes_bools(terms: Sequence[Scalar], dtypes: Sequence[str]) -> bool:
    plain = [term.arguments[0] if isinstance(term, Call) and term.function == "neg" else term for term in terms]
    return len({evaluated_dtype(term, dtypes) == "bool" for term in plain}) > 1


def _bool_operator(operator: str, aggregate: str | None) -> str:
    """An operator that computes the same for bools, over which the aggregate distributes if possible."""
    logical = FUNCTIONS[operator].bool_equivalent or operator
    return "mul" if logical == "and" and aggregate == "sum" else logical


def _operator(expression: Scalar) -> str | None:
    """The associative operator at the top of an expression; None where there is none."""
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
    """The factors that have operands, none of them a chain of `operator`; and the expression that encloses them."""
    factors: list[Scalar] = []
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
                arguments = _split_at_top(current, operator)
                factors.extend(arguments if len(arguments) == 1 else ())
                waiting.extend(reversed(arguments) if len(arguments) > 1 else ())
    enclosing: Scalar = Operand(0)
    for function, others in reversed(outside):
        enclosing = Call(function, (enclosing, *others))
    return factors, enclosing


def _is_finite(expression: Scalar) -> bool:
    """Whether an expression is a finite constant."""
    return not operands_of(expression) and bool(np.isfinite(evaluate(expression, ())))


def _split_at_top(expression: Scalar, operator: str) -> tuple[Scalar, ...]:
    """The arguments of `operator` at the top of an expression; the expression alone if it has another function."""
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


def _merged_factors(factors: Sequence[Scalar], operator: str) -> list[Scalar]:
    """Factors of the same operands become one; a factor joins another one that has all its operands and more."""
    alike: dict[frozenset[int], list[Scalar]] = {}
    for factor in factors:
        alike.setdefault(operands_of(factor), []).append(factor)
    groups = {
        operands: joined_in_halves(group, lambda first, second: Call(operator, (first, second)))
        for operands, group in alike.items()
    }
    most = max(map(len, groups), default=0)
    for operands in sorted((operands for operands in groups if len(operands) < most), key=len):
        larger = next((other for other in groups if operands < other), None)
        if larger is not None:
            groups[larger] = Call(operator, (groups.pop(operands), groups[larger]))
    return list(groups.values())


def substitute(expression: Scalar, operands: Mapping[int, Scalar]) -> Scalar:
    """The expression in which operand `index` is replaced by `operands[index]`."""
    match expression:
        case Operand(index):
            return operands[index]
        case Call(function, arguments):
            return Call(function, tuple(substitute(argument, operands) for argument in arguments))
        case _:
            return expression
