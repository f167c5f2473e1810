"""Algebra, relational: functions of keys, as expressions of integers that can be evaluated, composed and printed.

They take the place of the paper's keyFunc, keyMapFunc and boolFunc (sections 3.1 and 4).
"""

import operator
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import AlgebraError

Key: TypeAlias = tuple[int, ...]

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
LOGIC: dict[str, Callable[[Any, Any], Any]] = {"&": operator.and_, "|": operator.or_}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_OPERATIONS = {**_ARITHMETIC, **_COMPARISONS, **LOGIC}
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "&": "|", "|": "&"}
_PRECEDENCE = {"|": 1, "&": 2, **dict.fromkeys(_COMPARISONS, 3), "+": 4, "-": 4, "*": 5, "//": 5, "%": 5}
MAX_GRID_KEYS = 1 << 18  # more keys are not examined one by one


@dataclass(frozen=True, slots=True)
class KeyPart:
    """The part of the key at a position."""

    index: int


@dataclass(frozen=True, slots=True)
class Integer:
    """A constant integer in an expression."""

    value: int


@dataclass(frozen=True, slots=True)
class CopyNumber:
    """The number of the copy, where a function makes several keys of one."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on two expressions: arithmetic, a comparison, or `&` and `|` of conditions."""

    symbol: str
    left: "KeyExpression"
    right: "KeyExpression"

    def __post_init__(self) -> None:
        if self.symbol in ("//", "%") and not (isinstance(self.right, Integer) and self.right.value > 0):
            raise AlgebraError(f"keys are divided by whole numbers above 0 alone, not by {write_key(self.right)}")
        for side in (self.left, self.right):
            if self.symbol in LOGIC and not is_condition(side):
                raise AlgebraError(f"{self.symbol} joins comparisons, and {write_key(side)} is none")
            if self.symbol in _ARITHMETIC and is_condition(side):
                raise AlgebraError(f"{write_key(side)} is true or false; {self.symbol} takes numbers")


KeyExpression = KeyPart | Integer | CopyNumber | Operation


def is_condition(expression: KeyExpression) -> bool:
    """Whether the value of an expression is true or false."""
    return isinstance(expression, Operation) and expression.symbol not in _ARITHMETIC


def evaluate_key(expression: KeyExpression, key: Any, copy: int = 0) -> Any:  # noqa: ANN401  # numbers or arrays
    """The value of an expression for one key, or for many keys whose parts are arrays.

    Args:
        expression: The expression.
        key: The parts of the key, as integers or as arrays of integers.
        copy: The number of the copy.
    """
    match expression:
        case KeyPart(index):
            return key[index]
        case Integer(value):
            return value
        case CopyNumber():
            return copy
        case Operation(symbol, left, right):
            return _OPERATIONS[symbol](evaluate_key(left, key, copy), evaluate_key(right, key, copy))


def positions_in(expression: KeyExpression) -> frozenset[int]:
    """The positions of the parts of the key that an expression reads."""
    match expression:
        case KeyPart(index):
            return frozenset((index,))
        case Operation(_, left, right):
            return positions_in(left) | positions_in(right)
        case _:
            return frozenset()


def substitute(expression: KeyExpression, parts: Sequence[KeyExpression]) -> KeyExpression:
    """The expression with every part of the key replaced by the expression at its position in `parts`."""
    match expression:
        case KeyPart(index):
            return parts[index]
        case Operation(symbol, left, right):
            return Operation(symbol, substitute(left, parts), substitute(right, parts))
        case _:
            return expression


def write_key(expression: KeyExpression, binding: int = 0) -> str:
    """The text of an expression, where k0, k1, ... are the parts of the key, and c is the number of the copy.

    Args:
        expression: The expression.
        binding: The precedence of the operator around it; parentheses are added where it is higher.

    >>> write_key(Operation("*", Operation("+", KeyPart(0), Integer(1)), Integer(2)))
    '(k0 + 1) * 2'
    """
    match expression:
        case KeyPart(index):
            return f"k{index}"
        case Integer(value):
            return str(value)
        case CopyNumber():
            return "c"
        case Operation(symbol, left, right):
            precedence = _PRECEDENCE[symbol]
            first = write_key(left, precedence + (symbol in _COMPARISONS))
            text = f"{first} {symbol} {write_key(right, precedence + 1)}"
            return f"({text})" if precedence < binding else text


def key_grid(frontier: Sequence[int]) -> NDArray[np.int64] | None:
    """All keys below a frontier, as columns: (arity, count); None if there are more than `MAX_GRID_KEYS`."""
    count = int(np.prod(np.asarray(frontier, dtype=object))) if frontier else 1
    if count > MAX_GRID_KEYS:
        return None
    return np.indices(tuple(frontier), np.int64).reshape(len(frontier), count)


def all_keys(frontier: Sequence[int]) -> list[Key]:
    """All keys below a frontier, as tuples.

    Raises:
        AlgebraError: There are too many.
    """
    columns = key_grid(frontier)
    if columns is None:
        raise AlgebraError(f"there are too many keys below {tuple(frontier)} to look at one by one")
    return [tuple(key) for key in columns.T.tolist()]


@dataclass(frozen=True, slots=True)
class KeyMap:
    """A function of keys.

    Attributes:
        arity: The number of parts of the keys that it takes.
        parts: The expressions of the parts of the keys that it returns.
        copies: How many keys it makes of one; the expressions may contain the number of the copy.
    """

    arity: int
    parts: tuple[KeyExpression, ...]
    copies: int = 1

    def __post_init__(self) -> None:
        for part in self.parts:
            _check_positions(part, self.arity)
            if is_condition(part):
                raise AlgebraError(f"a part of a key is a number, and {write_key(part)} is true or false")
        if self.copies < 1:
            raise AlgebraError(f"a key becomes 1 key or more, not {self.copies}")

    @property
    def is_identity(self) -> bool:
        """Whether every key stays as it is."""
        return self.copies == 1 and self.parts == tuple(map(KeyPart, range(self.arity)))

    def apply(self, key: Key, copy: int = 0) -> Key:
        """The key that it makes of a key, or the copy of that number."""
        return tuple(int(evaluate_key(part, key, copy)) for part in self.parts)

    def apply_to_columns(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """The keys that it makes of many keys, as columns; those of each copy come after those of the copy before."""
        count = columns.shape[1]
        copies = [
            np.stack([np.broadcast_to(evaluate_key(part, columns, copy), count) for part in self.parts])
            if self.parts
            else np.zeros((0, count), np.int64)
            for copy in range(self.copies)
        ]
        return np.concatenate(copies, axis=1)

    def after(self, first: "KeyMap") -> "KeyMap":
        """The composition of this function after another one; at most one of them makes copies."""
        assert self.copies == 1 or first.copies == 1
        parts = tuple(substitute(part, first.parts) for part in self.parts)
        return KeyMap(first.arity, parts, self.copies * first.copies)

    def output_positions(self, positions: Collection[int]) -> list[int]:
        """The positions in the result of some parts of the key that are unchanged."""
        return [at for at, part in enumerate(self.parts) if isinstance(part, KeyPart) and part.index in positions]

    def __str__(self) -> str:
        inputs = ", ".join(f"k{index}" for index in range(self.arity))
        outputs = ", ".join(map(write_key, self.parts))
        return f"<{inputs}> -> <{outputs}>" + (f" for c < {self.copies}" if self.copies > 1 else "")


def identity_map(arity: int) -> KeyMap:
    """The function that leaves keys as they are."""
    return KeyMap(arity, tuple(map(KeyPart, range(arity))))


def projection(arity: int, positions: Sequence[int]) -> KeyMap:
    """The function that keeps the parts at some positions, in this order."""
    return KeyMap(arity, tuple(map(KeyPart, positions)))


def with_copy_number(arity: int, copies: int) -> KeyMap:
    """The function that makes copies of a key and appends the number of the copy: the paper's keyTileOp."""
    return KeyMap(arity, (*map(KeyPart, range(arity)), CopyNumber()), copies)


def pair_position(position: int, left_arity: int, left_keys: Sequence[int], right_keys: Sequence[int]) -> int:
    """The position of a part of the right key in a joined pair's key: the left key, then what is not joined.

    Args:
        position: A position in the right key.
        left_arity: How many parts the left key has.
        left_keys: Joined positions of the left key.
        right_keys: The positions of the right key that are equal to those.
    """
    if position in right_keys:
        return left_keys[right_keys.index(position)]
    return left_arity + sum(1 for before in range(position) if before not in right_keys)


@dataclass(frozen=True, slots=True)
class KeyPredicate:
    """A condition on keys.

    Attributes:
        arity: The number of parts of the keys.
        condition: The expression of the condition.
    """

    arity: int
    condition: KeyExpression

    def __post_init__(self) -> None:
        _check_positions(self.condition, self.arity)
        if not is_condition(self.condition):
            raise AlgebraError(f"a filter needs a condition, such as k0 == k1, and {write_key(self.condition)} is none")

    @property
    def positions(self) -> frozenset[int]:
        """The positions of the parts of the key that it reads."""
        return positions_in(self.condition)

    def holds(self, key: Key) -> bool:
        """Whether it is true of a key."""
        return bool(evaluate_key(self.condition, key))

    def holds_in_columns(self, columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each of many keys, as columns, whether it is true of the key."""
        return np.broadcast_to(np.asarray(evaluate_key(self.condition, columns), np.bool_), columns.shape[1])

    def conjunction(self, other: "KeyPredicate") -> "KeyPredicate":
        """The predicate that holds where this one and `other` hold."""
        return KeyPredicate(self.arity, Operation("&", self.condition, other.condition))

    def substituted(self, arity: int, parts: Sequence[KeyExpression]) -> "KeyPredicate":
        """The predicate on keys of another arity: `parts` are the expressions of the parts that this one reads."""
        return KeyPredicate(arity, substitute(self.condition, parts))

    def __str__(self) -> str:
        return write_key(self.condition)


def _check_positions(expression: KeyExpression, arity: int) -> None:
    beyond = [index for index in positions_in(expression) if index >= arity]
    if beyond:
        raise AlgebraError(f"{write_key(expression)} reads k{min(beyond)}, and the keys have {arity} parts")
