"""Algebra, relational: Python functions of keys in, expressions of keys out: they are read by calling them once."""

from collections.abc import Callable
from typing import Any

from sparseeinsum.algebra.relational.keys import (
    LOGIC,
    NEGATED,
    Integer,
    KeyExpression,
    KeyMap,
    KeyPart,
    KeyPredicate,
    Operation,
    write_key,
)
from sparseeinsum.errors import AlgebraError


class TracedPart:
    """A part of a key while a Python function of keys is read: it remembers what is done to it."""

    __hash__ = None  # type: ignore[assignment]  # == makes an expression

    def __init__(self, expression: KeyExpression) -> None:
        self.expression = expression

    def _with(self, symbol: str, other: "TracedPart | int", is_right: bool = False) -> "TracedPart":
        known = expression_of(other)
        sides = (known, self.expression) if is_right else (self.expression, known)
        return TracedPart(Operation(symbol, *sides))

    def __add__(self, other: "TracedPart | int") -> "TracedPart":
        return self._with("+", other)

    def __radd__(self, other: int) -> "TracedPart":
        return self._with("+", other, is_right=True)

    def __sub__(self, other: "TracedPart | int") -> "TracedPart":
        return self._with("-", other)

    def __rsub__(self, other: int) -> "TracedPart":
        return self._with("-", other, is_right=True)

    def __mul__(self, other: "TracedPart | int") -> "TracedPart":
        return self._with("*", other)

    def __rmul__(self, other: int) -> "TracedPart":
        return self._with("*", other, is_right=True)

    def __floordiv__(self, other: "TracedPart | int") -> "TracedPart":
        return self._with("//", other)

    def __mod__(self, other: "TracedPart | int") -> "TracedPart":
        return self._with("%", other)

    def __lt__(self, other: "TracedPart | int") -> "TracedPart":
        return self._with("<", other)

    def __le__(self, other: "TracedPart | int") -> "TracedPart":
        return self._with("<=", other)

    def __gt__(self, other: "TracedPart | int") -> "TracedPart":
        return self._with(">", other)

    def __ge__(self, other: "TracedPart | int") -> "TracedPart":
        return self._with(">=", other)

    def __eq__(self, other: object) -> "TracedPart":  # type: ignore[override]
        return self._with("==", _whole(other))

    def __ne__(self, other: object) -> "TracedPart":  # type: ignore[override]
        return self._with("!=", _whole(other))

    def __and__(self, other: "TracedPart") -> "TracedPart":
        return self._with("&", other)

    def __or__(self, other: "TracedPart") -> "TracedPart":
        return self._with("|", other)

    def __invert__(self) -> "TracedPart":
        return TracedPart(negate(self.expression))

    def __bool__(self) -> bool:
        raise AlgebraError("a function of keys is read, not run: write & | ~ instead of and, or, not, and no if")


def _whole(value: object) -> "TracedPart | int":
    if isinstance(value, TracedPart):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise AlgebraError(f"keys are whole numbers, and {value!r} is none")


def expression_of(value: object) -> KeyExpression:
    """The expression of a part of a key, or of a whole number."""
    found = _whole(value)
    return found.expression if isinstance(found, TracedPart) else Integer(found)


def negate(expression: KeyExpression) -> KeyExpression:
    """What is true where a condition is not."""
    if not isinstance(expression, Operation) or expression.symbol not in NEGATED:
        raise AlgebraError(f"~ negates a condition, and {write_key(expression)} is none")
    symbol, left, right = NEGATED[expression.symbol], expression.left, expression.right
    if expression.symbol in LOGIC:
        left, right = negate(left), negate(right)
    return Operation(symbol, left, right)


def trace_key_map(function: Callable[..., Any], arity: int) -> KeyMap:
    """A Python function of the parts of a key that returns those of another, such as `lambda i, j: (i // 2, j)`."""
    found = function(*(TracedPart(KeyPart(index)) for index in range(arity)))
    parts = found if isinstance(found, tuple | list) else (found,)
    return KeyMap(arity, tuple(map(expression_of, parts)))


def trace_predicate(function: Callable[..., Any], arity: int) -> KeyPredicate:
    """A Python function of the parts of a key that returns a condition, such as `lambda i, j: i == j`."""
    return KeyPredicate(arity, expression_of(function(*(TracedPart(KeyPart(index)) for index in range(arity)))))
