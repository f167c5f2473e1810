"""Algebra, relational: expressions of keys, traced from Python functions by calling them once."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from sparseeinsum.algebra.relational.keys import (
    LOGIC,
    NEGATED,
    CopyNumber,
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
    """A part of a key while a Python function of keys is traced: operators on it build an expression."""

    __hash__ = None  # type: ignore[assignment]  # == makes an expression

    def __init__(self, expression: KeyExpression) -> None:
        self.expression = expression

    def _operation(self, symbol: str, other: "TracedPart | int", is_right: bool = False) -> "TracedPart":
        other_expression = expression_of(other)
        sides = (other_expression, self.expression) if is_right else (self.expression, other_expression)
        return TracedPart(Operation(symbol, *sides))

    def __add__(self, other: "TracedPart | int") -> "TracedPart":
        return self._operation("+", other)

    def __radd__(self, other: int) -> "TracedPart":
        return self._operation("+", other, is_right=True)

    def __sub__(self, other: "TracedPart | int") -> "TracedPart":
        return self._operation("-", other)

    def __rsub__(self, other: int) -> "TracedPart":
        return self._operation("-", other, is_right=True)

    def __mul__(self, other: "TracedPart | int") -> "TracedPart":
        return self._operation("*", other)

    def __rmul__(self, other: int) -> "TracedPart":
        return self._operation("*", other, is_right=True)

    def __floordiv__(self, other: "TracedPart | int") -> "TracedPart":
        return self._operation("//", other)

    def __mod__(self, other: "TracedPart | int") -> "TracedPart":
        return self._operation("%", other)

    def __lt__(self, other: "TracedPart | int") -> "TracedPart":
        return self._operation("<", other)

    def __le__(self, other: "TracedPart | int") -> "TracedPart":
        return self._operation("<=", other)

    def __gt__(self, other: "TracedPart | int") -> "TracedPart":
        return self._operation(">", other)

    def __ge__(self, other: "TracedPart | int") -> "TracedPart":
        return self._operation(">=", other)

    def __eq__(self, other: object) -> "TracedPart":  # type: ignore[override]
        return self._operation("==", _checked(other))

    def __ne__(self, other: object) -> "TracedPart":  # type: ignore[override]
        return self._operation("!=", _checked(other))

    def __and__(self, other: "TracedPart") -> "TracedPart":
        return self._operation("&", other)

    def __or__(self, other: "TracedPart") -> "TracedPart":
        return self._operation("|", other)

    def __invert__(self) -> "TracedPart":
        return TracedPart(negate(self.expression))

    def __bool__(self) -> bool:
        raise AlgebraError("a function of keys is read, not run: write & | ~ instead of and, or, not, and no if")


def _checked(value: object) -> "TracedPart | int":
    if isinstance(value, TracedPart):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise AlgebraError(f"keys are whole numbers, and {value!r} is none")


def expression_of(value: object) -> KeyExpression:
    """The expression of a traced part of a key, or of an integer.

    Raises:
        AlgebraError: `value` is neither.
    """
    part = _checked(value)
    return part.expression if isinstance(part, TracedPart) else Integer(part)


def negate(expression: KeyExpression) -> KeyExpression:
    """The condition that is true where `expression` is false.

    Raises:
        AlgebraError: `expression` is not a condition.
    """
    if not isinstance(expression, Operation) or expression.symbol not in NEGATED:
        raise AlgebraError(f"~ negates a condition, and {write_key(expression)} is none")
    symbol, left, right = NEGATED[expression.symbol], expression.left, expression.right
    if expression.symbol in LOGIC:
        left, right = negate(left), negate(right)
    return Operation(symbol, left, right)


def trace_key_map(function: Callable[..., Any], arity: int, copies: int | None = None) -> KeyMap:
    """The key map of a Python function from the parts of a key to those of another: `lambda i, j: (i // 2, j)`.

    Args:
        function: The function.
        arity: The number of parts of the key.
        copies: How many keys it makes of one; the function takes the number of the copy last. None for one key.
    """
    number = [] if copies is None else [Integer(0) if copies == 1 else CopyNumber()]
    result = _traced(function, [*map(KeyPart, range(arity)), *number])
    parts = result if isinstance(result, tuple | list) else (result,)
    return KeyMap(arity, tuple(map(expression_of, parts)), 1 if copies is None else copies)


def trace_predicate(function: Callable[..., Any], arity: int) -> KeyPredicate:
    """The predicate of a Python function from the parts of a key to a condition, such as `lambda i, j: i == j`."""
    return KeyPredicate(arity, expression_of(_traced(function, [*map(KeyPart, range(arity))])))


def _traced(function: Callable[..., Any], values: Sequence[KeyExpression]) -> Any:  # noqa: ANN401  # what it returns
    """What a function returns of traced values: the parts of a key, and the number of a copy.

    Raises:
        AlgebraError: It is no function of so many parts, or uses something else than the operators of keys.
    """
    if not callable(function):
        raise AlgebraError(f"{function!r} is no function of keys; write one, as in lambda i, j: (j, i // 2)")
    parts = [*map(TracedPart, values)]
    try:
        signature(function).bind(*parts)
    except TypeError:
        arity = sum(isinstance(value, KeyPart) for value in values)
        copy = " and the number of the copy" if len(values) > arity else ""
        raise AlgebraError(
            f"keys have {arity} parts; write a function of {arity}{copy}, not of {signature(function)}"
        ) from None
    try:
        return function(*parts)
    except (TypeError, AttributeError) as error:
        raise AlgebraError(
            f"a function of keys has + - * // % and comparisons with whole numbers, & | ~, and nothing else: {error}"
        ) from error
