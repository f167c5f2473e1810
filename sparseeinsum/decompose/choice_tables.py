"""Decompose: what searches need of the choices of a vertex, computed once for all searches among the same choices."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.factors import Positions, Seconds
from sparseeinsum.decompose.search_tasks import Pricing, State, Vertex

Requirement = tuple[State, int]  # a state in which an operand is read, and how often

_Vertex = TypeVar("_Vertex", bound=Vertex)
_Value = TypeVar("_Value", State, Requirement)


@dataclass(frozen=True, slots=True, eq=False)
class SortedChoices:
    """The choices of a vertex, sorted by the state of its result.

    Attributes:
        choices: The choices.
        states: The distinct states, in order.
        starts: For each state, the position of its first choice.
    """

    choices: tuple[Choice, ...]
    states: list[State]
    starts: Positions


@dataclass(frozen=True, slots=True, eq=False)
class ReadStates:
    """The states in which the choices of a vertex read an operand.

    Attributes:
        distinct: The distinct states, each with how often it is read, in order.
        positions: For each choice, the position of its state.
    """

    distinct: list[Requirement]
    positions: Positions


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTables:
    """Tables that searches with the same costs share; they grow."""

    _sorted: dict[tuple[str, tuple[Choice, ...]], SortedChoices] = field(default_factory=dict)
    _read: dict[tuple[str, int, tuple[Choice, ...]], ReadStates] = field(default_factory=dict)
    _own: dict[tuple[str, tuple[Choice, ...]], Seconds] = field(default_factory=dict)

    def sorted_choices(self, task: Pricing[_Vertex], vertex: _Vertex) -> SortedChoices:
        """The choices that a task has for a vertex, in the order of their states."""
        name = vertex.output.tensor
        choices = tuple(task.choices[name])
        table = self._sorted.get((name, choices))
        if table is None:
            by_state = sorted((task.result_state(vertex, choice), choice) for choice in choices)
            states, positions = _positions([state for state, _ in by_state])
            starts = np.searchsorted(positions, np.arange(len(states)))
            table = SortedChoices(tuple(choice for _, choice in by_state), states, starts)
            self._sorted[name, choices] = table
        return table

    def read_states(
        self, task: Pricing[_Vertex], vertex: _Vertex, index: int, choices: tuple[Choice, ...]
    ) -> ReadStates:
        """The states in which choices read operand `index`."""
        key = vertex.output.tensor, index, choices
        table = self._read.get(key)
        if table is None:
            read = [(task.required_state(vertex, index, choice), task.reads(vertex, choice)) for choice in choices]
            table = self._read[key] = ReadStates(*_positions(read))
        return table

    def own_costs(self, task: Pricing[_Vertex], vertex: _Vertex, choices: tuple[Choice, ...]) -> Seconds:
        """The costs of choices that do not depend on other choices."""
        key = vertex.output.tensor, choices
        table = self._own.get(key)
        if table is None:
            table = self._own[key] = np.array([task.own_cost(vertex, choice) for choice in choices])
        return table


def _positions(values: Sequence[_Value]) -> tuple[list[_Value], Positions]:
    """The distinct values in order, and for each value its position among them."""
    distinct = sorted(set(values))
    position = {value: number for number, value in enumerate(distinct)}
    return distinct, np.array([position[value] for value in values], np.intp)
