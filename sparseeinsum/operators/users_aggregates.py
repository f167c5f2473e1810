"""Operators: aggregates that users register, of a state of up to four numbers."""

import itertools
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

State: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class UsersAggregate:
    """What a user says of an aggregate; kernels compile the functions, and compute in float64.

    States of one number are that number, others are tuples.

    Attributes:
        name: Its name in programs.
        fold: (state, value) -> state, or (state, value, another) -> state of an aggregate of pairs.
        identity: The state of nothing.
        combine: (state, another) -> state, commutative and associative.
        repeat: (value, times) -> the state of that value so many times, at least once; both float64.
        arguments: How many values `fold` takes.
        source: What the functions did when it was registered.
    """

    name: str
    fold: Callable[..., Any]
    identity: State
    combine: Callable[..., Any]
    repeat: Callable[..., Any] | None
    arguments: int
    source: Hashable = None

    @property
    def numbers(self) -> int:
        """Of a state."""
        return len(self.identity)

    @property
    def pair(self) -> str:
        """The name, which no program can write, of the function that stands for both arguments in expressions."""
        return f"{self.name}.pair"

    def folded(self, values: Iterable[tuple[float, ...]]) -> State:
        """The state of some values, or pairs of them, in order."""
        state = self._given(self.identity)
        for each in values:
            state = self.fold(state, *each)
        return self._state(state)

    def repeated(self, value: float, times: int) -> State:
        """The state of one value so many times."""
        if times == 0:
            return self.identity
        if self.repeat is not None:
            return self._state(self.repeat(value, float(times)))
        power, found = self._given(self.folded([(value,)])), self._given(self.identity)
        for bit in itertools.count():
            if times >> bit & 1:
                found = self.combine(found, power)
            if not times >> bit + 1:
                return self._state(found)
            power = self.combine(power, power)
        raise AssertionError("a number has a highest bit")

    def known(self, value: float, times: int) -> State | None:
        """The same; None where Python raises an error, as for 1 / 0, for which kernels have infinity or NaN."""
        try:
            return self.repeated(value, times)
        except (ArithmeticError, ValueError, TypeError):
            return None

    def _given(self, state: State) -> Any:  # noqa: ANN401  # as functions take it
        return state[0] if self.numbers == 1 else state

    def _state(self, state: Any) -> State:  # noqa: ANN401  # as functions return it
        return tuple(map(float, (state,) if self.numbers == 1 else state))


USERS_AGGREGATES: dict[str, UsersAggregate] = {}
