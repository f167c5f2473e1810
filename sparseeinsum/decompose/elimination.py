"""Decompose: the k cheapest plans of EinSums that read each other in any way, shared results included.

The choice of every EinSum is an unknown, and so is the state, such as tiles, in which its result comes out where others
read it. On trees, eliminating them is algorithm 1 of SparseEinSum (section 8.1): tables never depend on more than one
result.
"""

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.factors import (
    Elimination,
    Factor,
    Positions,
    Variable,
    View,
    eliminate,
    factor,
    ungrouped_variable,
)
from sparseeinsum.decompose.search import Candidate, Pricing, State
from sparseeinsum.language.eingraph import EinSum

_Value = TypeVar("_Value", State, tuple[State, int])


def cheapest_plans(
    task: Pricing, einsums: Sequence[EinSum], given: Mapping[str, State], k: int, limit: float = math.inf
) -> list[Candidate] | None:
    """The k cheapest ways to compute some EinSums, best first; None where the tables to find them exceed a limit.

    Args:
        task: What may be chosen.
        einsums: In topological order.
        given: How the results are there that they read and others compute.
        k: How many plans.
        limit: Numbers that all tables together may have.
    """
    costs = _Costs(task, einsums, given)
    eliminations = eliminate(costs.unknowns, costs.factors, limit)
    if eliminations is None:
        return None
    found = itertools.islice(_best_first(costs.unknowns, eliminations), k)
    candidates = (costs.candidate(values) for values in found)
    return sorted(candidates)


class _Costs:
    """The unknowns of some EinSums, and what their cost depends on.

    Attributes:
        unknowns: For each EinSum in turn its choice, sorted by the result's state, and the result's state.
        factors: Costs of single EinSums, and of repartitions between two.
    """

    def __init__(self, task: Pricing, einsums: Sequence[EinSum], given: Mapping[str, State]) -> None:
        self._task = task
        self._einsums = einsums
        self._given = given
        self._choices: list[list[Choice]] = []
        self._numbers = {einsum.output.tensor: 2 * number for number, einsum in enumerate(einsums)}
        self._states: dict[str, list[State]] = {}
        self.unknowns: list[Variable] = []
        self.factors: list[Factor] = []
        for einsum in einsums:
            self._add(einsum)

    def _add(self, einsum: EinSum) -> None:
        name = einsum.output.tensor
        number = self._numbers[name]
        result = partial(self._task.result_state, einsum)
        choices = sorted(self._task.choices[name], key=lambda choice: (result(choice), choice))
        states, positions = _positions([result(choice) for choice in choices])
        starts = np.searchsorted(positions, np.arange(len(states)))
        self._choices.append(choices)
        self._states[name] = states
        self.unknowns += [Variable(len(choices), starts, number + 1), ungrouped_variable(len(states))]
        own = [self._own_cost(einsum, choice) for choice in choices]
        self.factors.append(factor([_identity(number, len(choices))], np.array(own)))
        for index, operand in enumerate(einsum.operands):
            if operand.tensor in self._states:
                self.factors.append(self._repartition(einsum, index, choices))

    def _own_cost(self, einsum: EinSum, choice: Choice) -> float:
        return self._task.own_cost(einsum, choice) + self._task.reading_cost(einsum, choice, self._given)

    def _repartition(self, einsum: EinSum, index: int, choices: list[Choice]) -> Factor:
        """What it costs to bring an operand from the state of a result into that which a choice wants."""
        name = einsum.operands[index].tensor
        states = self._states[name]
        wishes = [
            (self._task.required_state(einsum, index, choice), self._task.reads(einsum, choice)) for choice in choices
        ]
        wanted, positions = _positions(wishes)
        costs = self._task.repartition_costs(name, states, wanted)
        as_wanted = View(self._numbers[einsum.output.tensor], positions, len(wanted))
        return factor([_identity(self._numbers[name] + 1, len(states)), as_wanted], costs)

    def candidate(self, values: Mapping[int, int]) -> Candidate:
        """The plan in which unknowns have these values."""
        chosen = [choices[values[2 * number]] for number, choices in enumerate(self._choices)]
        cost = 0.0
        states = dict(self._given)
        for einsum, choice in zip(self._einsums, chosen, strict=True):
            cost += self._task.own_cost(einsum, choice) + self._task.reading_cost(einsum, choice, states)
            states[einsum.output.tensor] = self._task.result_state(einsum, choice)
        names = (einsum.output.tensor for einsum in self._einsums)
        return Candidate(cost, tuple(sorted(zip(names, chosen, strict=True))))


def _positions(values: list[_Value]) -> tuple[list[_Value], Positions]:
    """Different values in order, and for each value its position among them."""
    different = sorted(set(values))
    position = {value: number for number, value in enumerate(different)}
    return different, np.array([position[value] for value in values], np.intp)


def _identity(unknown: int, size: int) -> View:
    return View(unknown, np.arange(size), size)


def _best_first(unknowns: Sequence[Variable], eliminations: Sequence[Elimination]) -> Iterator[dict[int, int]]:
    """Values of all unknowns, those of least cost first.

    Unknowns get values in the opposite order of their elimination. What a value costs more than the best one, given
    those before it, is known from the tables: so partial plans are ordered by the best that can become of them.
    """
    finding = _Finding(unknowns, eliminations)
    heap: list[tuple[float, int, tuple[int, ...], float, int]] = [(0.0, 0, (), 0.0, 0)]
    numbers = itertools.count(-1, -1)  # of plans as good, the latest first: it is nearest to being whole
    while heap:
        excess, _, before, spent, rank = heapq.heappop(heap)
        options = finding.options(before)
        if rank + 1 < len(options):
            heapq.heappush(heap, (spent + options[rank + 1][0], next(numbers), before, spent, rank + 1))
        values = (*before, options[rank][1])
        if len(values) == len(eliminations):
            yield finding.named(values)
        else:
            heapq.heappush(heap, (excess, next(numbers), values, excess, 0))


class _Finding:
    """Values that unknowns can take after others have theirs."""

    def __init__(self, unknowns: Sequence[Variable], eliminations: Sequence[Elimination]) -> None:
        self._unknowns = unknowns
        self._steps = list(reversed(eliminations))
        self._place = {step.unknown: place for place, step in enumerate(self._steps)}
        self._known: dict[tuple[int, ...], list[tuple[float, int]]] = {}

    def options(self, values: tuple[int, ...]) -> list[tuple[float, int]]:
        """Values of the next unknown, best first, each after the seconds that it costs more than the best one."""
        place = len(values)
        step = self._steps[place]
        unknown = self._unknowns[step.unknown]
        group = 0 if unknown.group is None else values[self._place[unknown.group]]
        at = tuple(int(view.positions[values[self._place[view.unknown]]]) for view in step.views)
        known = self._known.get((place, group, *at))
        if known is None:
            members = unknown.members(group)
            where: tuple[slice | int, ...] = (members, *at)
            seconds = step.seconds[where]
            order = np.argsort(seconds, kind="stable")
            excess = seconds[order] - seconds[order[0]]
            known = list(zip(excess.tolist(), (order + members.start).tolist(), strict=True))
            self._known[place, group, *at] = known
        return known

    def named(self, values: tuple[int, ...]) -> dict[int, int]:
        """Values by the number of their unknown."""
        return {number: values[place] for number, place in self._place.items()}
