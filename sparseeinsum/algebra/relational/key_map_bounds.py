"""Algebra, relational: bounds of the keys that a function makes, and whether they are all different."""

from collections.abc import Sequence

from sparseeinsum.algebra.relational.keys import (
    CopyNumber,
    Integer,
    KeyExpression,
    KeyMap,
    KeyPart,
    Operation,
    evaluate_key,
)
from sparseeinsum.errors import AlgebraError


def is_injective(mapping: KeyMap, frontier: Sequence[int]) -> bool:
    """Whether all parts of a key, and the number of the copy, can be computed from the mapped key, and none is below 0.

    That holds if each of them is a part of the mapped key, or a digit of one: k0 * 4 + k1 where k1 is less than 4.
    """
    recovered: set[KeyExpression] = set()
    for part in mapping.parts:
        match part:
            case KeyPart() | CopyNumber():
                recovered.add(part)
            case Operation(
                "+", Operation("*", KeyPart() as high, Integer(base)), (KeyPart() | CopyNumber()) as low
            ) if upper_bound(low, frontier, mapping.copies) < base:
                recovered |= {high, low}
            case _:
                pass
    required = {*map(KeyPart, range(mapping.arity))} | ({CopyNumber()} if mapping.copies > 1 else set())
    negative = any(isinstance(part, Operation | Integer) and lower_bound(part) < 0 for part in mapping.parts)
    return required <= recovered and not negative


def upper_bound(part: KeyExpression, frontier: Sequence[int], copies: int) -> int:
    """An upper bound of an expression, for keys below a frontier; it is exact if nothing is subtracted."""
    match part:
        case KeyPart(index):
            return frontier[index] - 1
        case CopyNumber():
            return copies - 1
        case Integer(value):
            return value
        case Operation("-", left, right):
            return upper_bound(left, frontier, copies) - lower_bound(right)
        case Operation("%", left, Integer(base)):
            return min(base - 1, upper_bound(left, frontier, copies)) if lower_bound(left) >= 0 else base - 1
        case Operation("*", left, right) if lower_bound(left) < 0 or lower_bound(right) < 0:
            raise AlgebraError("keys are multiplied by numbers of 0 or more")
        case Operation(symbol, left, right):
            values = (upper_bound(left, frontier, copies), upper_bound(right, frontier, copies))
            return int(evaluate_key(Operation(symbol, Integer(values[0]), Integer(values[1])), ()))


def lower_bound(part: KeyExpression) -> int:
    """A lower bound of an expression of keys."""
    match part:
        case Integer(value):
            return value
        case Operation("+" | "*", left, right):
            sides = (lower_bound(left), lower_bound(right))
            return sides[0] + sides[1] if part.symbol == "+" else min(0, *sides)
        case Operation("-", left, Integer(value)):
            return lower_bound(left) - value
        case Operation("-", _, _):
            return -(1 << 62)
        case Operation("//", left, Integer(base)):
            return lower_bound(left) // base
        case _:
            return 0
