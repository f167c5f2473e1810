"""Decompose: the k cheapest plans of EinSums that read each other's results in any way, shared results included.

For every EinSum there are two variables: its choice, and the state (such as tiles) of its result. On trees, eliminating
them is algorithm 1 of SparseEinSum (section 8.1), because no table depends on more than one result.
"""

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.choice_tables import ChoiceTables, Requirement
from sparseeinsum.decompose.factors import (
    CostAxis,
    Elimination,
    Factor,
    Scope,
    Seconds,
    Variable,
    eliminate,
    elimination_order,
    make_factor,
    make_scope,
    ungrouped_variable,
)
from sparseeinsum.decompose.search_tasks import Candidate, Pricing, State, Vertex, candidate_of, reading_cost

_Vertex = TypeVar("_Vertex", bound=Vertex)


def cheapest_plans(
    task: Pricing[_Vertex],
    einsums: Sequence[_Vertex],
    input_states: Mapping[str, State],
    k: int,
    limit: float = math.inf,
    tables: ChoiceTables | None = None,
) -> list[Candidate] | None:
    """The k cheapest plans for some EinSums, best first; None if the tables of the elimination exceed a limit.

    Args:
        task: The choices and their costs.
        einsums: The EinSums, in topological order.
        input_states: States of the results that these EinSums read and others compute.
        k: The number of plans.
        limit: The most numbers that all tables together may have.
        tables: What other searches with the same costs have computed of the same choices.
    """
    costs = _CostFactors(task, einsums, input_states, ChoiceTables() if tables is None else tables)
    if sum(change.size for change in costs.changes) > limit:
        return None
    order = elimination_order(costs.variables, costs.scopes(), limit)
    if order is None:
        return None
    eliminations = eliminate(costs.variables, costs.factors(), order)
    assignments = itertools.islice(_best_first(costs.variables, eliminations), k)
    return sorted(costs.candidate(values) for values in assignments)


@dataclass(frozen=True, slots=True, eq=False)
class _StateChange:
    """A tensor from the states in which it is computed to those in which an EinSum reads it.

    Attributes:
        tensor: The tensor.
        required: The states in which it is read, each with how often.
        axes: Its state, and the reader's choice, with the positions of its requirements in `required`.
    """

    tensor: str
    required: list[Requirement]
    axes: tuple[CostAxis, CostAxis]

    @property
    def size(self) -> int:
        """The number of the changes."""
        state, reader = self.axes
        return state.size * reader.size


class _CostFactors(Generic[_Vertex]):
    """The variables of some EinSums and the costs that depend on them.

    Attributes:
        variables: For each EinSum in turn, its choice, with choices sorted by the result's state, and that state.
        changes: The repartitions between two EinSums.
    """

    def __init__(
        self,
        task: Pricing[_Vertex],
        einsums: Sequence[_Vertex],
        input_states: Mapping[str, State],
        tables: ChoiceTables,
    ) -> None:
        self._task = task
        self._tables = tables
        self._einsums = einsums
        self._given = input_states
        self._choices: list[tuple[Choice, ...]] = []
        self._numbers = {einsum.output.tensor: 2 * number for number, einsum in enumerate(einsums)}
        self._states: dict[str, list[State]] = {}
        self.variables: list[Variable] = []
        self.changes: list[_StateChange] = []
        for einsum in einsums:
            self._add(einsum)

    def _add(self, einsum: _Vertex) -> None:
        """Add the variables of an EinSum, its own costs, and those of repartitions of its operands."""
        name = einsum.output.tensor
        number = self._numbers[name]
        by_state = self._tables.sorted_choices(self._task, einsum)
        choices, states = by_state.choices, by_state.states
        self._choices.append(choices)
        for index, operand in enumerate(einsum.operands):
            if operand.tensor in self._states:
                self.changes.append(self._change(einsum, index, choices))
        self._states[name] = states
        self.variables += [Variable(len(choices), by_state.starts, number + 1), ungrouped_variable(len(states))]

    def scopes(self) -> list[Scope]:
        """What the factors depend on."""
        choices = (self._choice_axis(number) for number in range(len(self._einsums)))
        return [*(make_scope([axis]) for axis in choices), *(make_scope(change.axes) for change in self.changes)]

    def factors(self) -> list[Factor]:
        """Costs of single EinSums, and of repartitions between two."""
        factors = []
        for number, einsum in enumerate(self._einsums):
            factors.append(make_factor([self._choice_axis(number)], self._own_costs(einsum, self._choices[number])))
        for change in self.changes:
            costs = self._task.repartition_costs(change.tensor, self._states[change.tensor], change.required)
            factors.append(make_factor(change.axes, costs))
        return factors

    def _choice_axis(self, number: int) -> CostAxis:
        return _identity(2 * number, len(self._choices[number]))

    def _own_costs(self, einsum: _Vertex, choices: tuple[Choice, ...]) -> Seconds:
        """Costs of single choices, and to read what others compute."""
        own = self._tables.own_costs(self._task, einsum, choices)
        if not self._given.keys() & {operand.tensor for operand in einsum.operands}:
            return own
        read = [reading_cost(self._task, einsum, choice, self._given) for choice in choices]
        return np.asarray(own + np.array(read))

    def _change(self, einsum: _Vertex, index: int, choices: tuple[Choice, ...]) -> _StateChange:
        """An operand from the states in which it is computed to those that the choices require."""
        name = einsum.operands[index].tensor
        read = self._tables.read_states(self._task, einsum, index, choices)
        reader = CostAxis(self._numbers[einsum.output.tensor], read.positions, len(read.distinct))
        return _StateChange(name, read.distinct, (_identity(self._numbers[name] + 1, len(self._states[name])), reader))

    def candidate(self, values: Mapping[int, int]) -> Candidate:
        """The plan in which the variables have these values."""
        choices = {
            einsum.output.tensor: self._choices[number][values[2 * number]]
            for number, einsum in enumerate(self._einsums)
        }
        return candidate_of(self._task, self._einsums, choices, self._given)


def _identity(variable: int, size: int) -> CostAxis:
    return CostAxis(variable, np.arange(size), size)


def _best_first(variables: Sequence[Variable], eliminations: Sequence[Elimination]) -> Iterator[dict[int, int]]:
    """Assignments of values to all variables, those of least cost first.

    Variables get values in the reverse order of their elimination. The tables tell how much more a value costs than the
    best one after the values before it, so that partial assignments are ordered by the cost of their best completion.
    """
    options_of = _Options(variables, eliminations)
    heap: list[tuple[float, int, tuple[int, ...], float, int]] = [(0.0, 0, (), 0.0, 0)]
    numbers = itertools.count(-1, -1)  # of equally good ones, the latest comes first: it is nearest to being complete
    while heap:
        excess, _, before, spent, rank = heapq.heappop(heap)
        options = options_of.next_values(before)
        if rank + 1 < len(options):
            heapq.heappush(heap, (spent + options[rank + 1][0], next(numbers), before, spent, rank + 1))
        values = (*before, options[rank][1])
        if len(values) == len(eliminations):
            yield options_of.by_variable(values)
        else:
            heapq.heappush(heap, (excess, next(numbers), values, excess, 0))


class _Options:
    """The values that the next variable can take after others have theirs, ordered by cost."""

    def __init__(self, variables: Sequence[Variable], eliminations: Sequence[Elimination]) -> None:
        self._variables = variables
        self._steps = list(reversed(eliminations))
        self._place = {step.variable: place for place, step in enumerate(self._steps)}
        self._next_values: dict[tuple[int, ...], list[tuple[float, int]]] = {}

    def next_values(self, values: tuple[int, ...]) -> list[tuple[float, int]]:
        """The values of the next variable, best first, each with its extra cost over the best one: (cost, value)."""
        place = len(values)
        step = self._steps[place]
        variable = self._variables[step.variable]
        group = 0 if variable.group is None else values[self._place[variable.group]]
        at = tuple(int(view.positions[values[self._place[view.variable]]]) for view in step.views)
        ordered = self._next_values.get((place, group, *at))
        if ordered is None:
            members = variable.members(group)
            where: tuple[slice | int, ...] = (members, *at)
            seconds = step.seconds[where]
            order = np.argsort(seconds, kind="stable")
            excess = seconds[order] - seconds[order[0]]
            ordered = list(zip(excess.tolist(), (order + members.start).tolist(), strict=True))
            self._next_values[place, group, *at] = ordered
        return ordered

    def by_variable(self, values: tuple[int, ...]) -> dict[int, int]:
        """The values, by the numbers of their variables."""
        return {number: values[place] for number, place in self._place.items()}
