"""Decompose: variable elimination: to minimise a sum of costs that each depend on a few variables.

Source: bucket elimination (R. Dechter, Artificial Intelligence 113, 1999), section 4. It is exact; its time and space
are those of the largest intermediate table, which depends on the order of elimination.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]
Positions = NDArray[np.intp]

# Larger costs are cut to this, because differences of infinite costs would be NaN.
_WORST_SECONDS = 1e200


@dataclass(frozen=True, slots=True, eq=False)
class CostAxis:
    """An axis of a table of costs: the values of a variable, where values at the same position cost the same.

    Attributes:
        variable: The number of the variable.
        positions: For every value of the variable, its position along the axis.
        size: The length of the axis.
    """

    variable: int
    positions: Positions
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Costs that depend on some variables: `seconds` has one axis for every view."""

    views: tuple[CostAxis, ...]
    seconds: Seconds


def make_factor(views: Sequence[CostAxis], seconds: Seconds) -> Factor:
    """A factor without views of size 1, and without infinite costs."""
    used = tuple(view for view in views if view.size > 1)
    finite = np.minimum(seconds, _WORST_SECONDS)
    return Factor(used, finite.reshape([view.size for view in used]))


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A variable of the minimisation. Its values are 0, 1, ...; adjacent ones form groups.

    Attributes:
        size: The number of values.
        starts: The first value of each group. Elimination keeps the minimum of each group.
        group: The number of the variable whose value is the group; None if there is a single group.
    """

    size: int
    starts: Positions
    group: int | None = None

    def members(self, group: int) -> slice:
        """The values of one group, as a slice."""
        end = self.starts[group + 1] if group + 1 < len(self.starts) else self.size
        return slice(int(self.starts[group]), int(end))


def ungrouped_variable(size: int) -> Variable:
    """A variable with a single group, of which elimination leaves nothing."""
    return Variable(size, np.zeros(1, np.intp))


@dataclass(frozen=True, slots=True, eq=False)
class Elimination:
    """The elimination of one variable.

    Attributes:
        variable: The number of the variable.
        views: The other variables that the costs depend on.
        seconds: The sum of all costs that depend on the variable: its values are the first axis, then one per view.
    """

    variable: int
    views: tuple[CostAxis, ...]
    seconds: Seconds


def eliminate(variables: Sequence[Variable], factors: Iterable[Factor], limit: float) -> list[Elimination] | None:
    """Eliminate all variables, always the one with the smallest table; None if the tables exceed a limit.

    Args:
        variables: The variables. One that is the group of another is eliminated after it.
        factors: The costs, whose sum is minimised.
        limit: The most numbers that all tables together may have.
    """
    return _Eliminator(variables, list(factors)).run(limit)


class _Eliminator:
    """The factors that are left, by the variables that they depend on, while variables are eliminated."""

    def __init__(self, variables: Sequence[Variable], factors: list[Factor]) -> None:
        self._variables = variables
        self._factors: dict[int, list[Factor]] = {number: [] for number in range(len(variables))}
        for item in factors:
            self._add(item)
        self._waiting = {variable.group for variable in variables if variable.group is not None}
        self._sizes = {number: self._size(number) for number in self._factors}
        self._heap = [(size, number) for number, size in self._sizes.items()]
        heapify(self._heap)

    def run(self, limit: float) -> list[Elimination] | None:
        """Eliminate all variables, the one with the smallest table first; None if tables exceed the limit."""
        eliminations: list[Elimination] = []
        while self._factors:
            number = self._smallest()
            limit -= self._sizes[number]
            if limit < 0:
                return None
            eliminations.append(self._eliminate(number))
        return eliminations

    def _smallest(self) -> int:
        """The variable with the smallest table that can be eliminated now."""
        while True:
            size, number = heappop(self._heap)
            is_left = number in self._factors and size == self._sizes[number]  # else it was eliminated, or resized
            if is_left and number not in self._waiting:
                return number

    def _eliminate(self, number: int) -> Elimination:
        """Replace the factors that depend on a variable by their minimum over its values."""
        variable = self._variables[number]
        dependent = self._factors.pop(number)
        others = self._other_views(number, dependent)
        total = np.zeros((variable.size, *(view.size for view in others)))
        for item in dependent:
            total += _aligned(item, number, others)
        minima = np.minimum.reduceat(total, variable.starts, axis=0)
        views = others
        if variable.group is not None:
            self._waiting.discard(variable.group)
            heappush(self._heap, (self._sizes[variable.group], variable.group))
            size = len(variable.starts)
            views = (CostAxis(variable.group, np.arange(size), size), *others)
        self._replace(dependent, make_factor(views, minima))
        return Elimination(number, others, total)

    def _replace(self, replaced: list[Factor], message: Factor) -> None:
        touched = {view.variable for factor in (*replaced, message) for view in factor.views} & self._factors.keys()
        for number in touched:
            self._factors[number] = [factor for factor in self._factors[number] if factor not in replaced]
        self._add(message)
        for number in touched:
            self._sizes[number] = self._size(number)
            heappush(self._heap, (self._sizes[number], number))

    def _add(self, added: Factor) -> None:
        for number in {view.variable for view in added.views}:
            self._factors[number].append(added)

    def _size(self, number: int) -> int:
        """The size of the table of a variable, with the current factors."""
        size = self._variables[number].size
        for view in self._other_views(number, self._factors[number]):
            size *= view.size
        return size

    @staticmethod
    def _other_views(number: int, factors: list[Factor]) -> tuple[CostAxis, ...]:
        views = (view for factor in factors for view in factor.views if view.variable != number)
        return tuple(dict.fromkeys(views))


def _aligned(factor: Factor, number: int, others: tuple[CostAxis, ...]) -> Seconds:
    """The costs of a factor with the axes of a table: the values of a variable, then the other views."""
    own = [axis for axis, view in enumerate(factor.views) if view.variable == number]
    other_axes = [factor.views.index(view) for view in others if view in factor.views]
    values = factor.seconds.transpose(own + other_axes)[tuple(factor.views[axis].positions for axis in own)]
    shape = [view.size if view in factor.views else 1 for view in others]
    return values.reshape([len(values), *shape])
