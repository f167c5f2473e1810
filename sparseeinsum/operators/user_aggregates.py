"""Operators: aggregates that users register; their states have up to four numbers."""

import itertools
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

State: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class UserAggregate:
    """An aggregate that a user registered; kernels compile its functions, and compute in float64.

    A state of one number is that number, other states are tuples.

    Attributes:
        name: Its name in programs.
        fold: (state, value) -> state, or (state, value, another) -> state for an aggregate of pairs.
        identity: The state of no values.
        combine: (state, another) -> state, commutative and associative.
        repeat: (value, times) -> the state of that many equal values, at least one; both are float64.
        arguments: The number of values that `fold` takes.
        derivatives: For every value that `fold` takes, what a small change g of it adds to the result v, as program
            text of g, v and the values, u or u and w; None if it has no derivatives.
        source: A key of the source of the functions when they were registered.
    """

    name: str
    fold: Callable[..., Any]
    identity: State
    combine: Callable[..., Any]
    repeat: Callable[..., Any] | None
    arguments: int
    derivatives: tuple[str, ...] | None = None
    source: Hashable = None

    @property
    def numbers(self) -> int:
        """The number of numbers in a state."""
        return len(self.identity)

    @property
    def operands(self) -> tuple[str, ...]:
        """The names in derivatives: those of the values, and v, the result."""
        return (*("u", "w")[: self.arguments], "v")

    @property
    def pair(self) -> str:
        """The name of the function that stands for both arguments in expressions; no program can write it."""
        return f"{self.name}.pair"

    def fold_all(self, values: Iterable[tuple[float, ...]]) -> State:
        """The state of some values, or pairs of values, in order."""
        state = self._as_argument(self.identity)
        for arguments in values:
            state = self.fold(state, *arguments)
        return self._as_tuple(state)

    def fold_repeated(self, value: float, times: int) -> State:
        """The state of `times` equal values."""
        if times == 0:
            return self.identity
        if self.repeat is not None:
            return self._as_tuple(self.repeat(value, float(times)))
        # By repeated squaring: `power` is the state of 1, 2, 4, ... values.
        power, result = self._as_argument(self.fold_all([(value,)])), self._as_argument(self.identity)
        for bit in itertools.count():
            if times >> bit & 1:
                result = self.combine(result, power)
            if not times >> bit + 1:
                return self._as_tuple(result)
            power = self.combine(power, power)
        raise AssertionError("a number has a highest bit")

    def try_fold_repeated(self, value: float, times: int) -> State | None:
        """The same, or None where Python raises an error, as for 1 / 0, which is infinite or NaN in kernels."""
        try:
            return self.fold_repeated(value, times)
        except (ArithmeticError, ValueError, TypeError):
            return None

    def _as_argument(self, state: State) -> Any:  # noqa: ANN401  # what functions take
        return state[0] if self.numbers == 1 else state

    def _as_tuple(self, state: Any) -> State:  # noqa: ANN401  # what functions return
        return tuple(map(float, (state,) if self.numbers == 1 else state))


USER_AGGREGATES: dict[str, UserAggregate] = {}
