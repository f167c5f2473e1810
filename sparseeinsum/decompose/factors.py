"""Decompose: variable elimination: to minimise a sum of costs that each depend on a few variables.

Source: bucket elimination (R. Dechter, Artificial Intelligence 113, 1999), section 4. It is exact; its time and space
are those of the largest intermediate table, which depends on the order of elimination.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

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
class Scope:
    """The variables that some costs depend on: a view of each, of more than one position."""

    views: tuple[CostAxis, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Factor(Scope):
    """Costs that depend on some variables: `seconds` has one axis for every view."""

    seconds: Seconds


def make_scope(views: Sequence[CostAxis]) -> Scope:
    """A scope without views of size 1."""
    return Scope(tuple(view for view in views if view.size > 1))


def make_factor(views: Sequence[CostAxis], seconds: Seconds) -> Factor:
    """A factor without views of size 1, and without infinite costs."""
    used = make_scope(views).views
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


def elimination_order(variables: Sequence[Variable], scopes: Iterable[Scope], limit: float) -> list[int] | None:
    """The order that eliminates the variable with the smallest table first; None if the tables exceed a limit.

    Args:
        variables: The variables. One that is the group of another is eliminated after it.
        scopes: What the costs depend on.
        limit: The most numbers that all tables together may have.
    """
    return _Ordering(variables, list(scopes)).run(limit)


def eliminate(variables: Sequence[Variable], factors: Iterable[Factor], order: Iterable[int]) -> list[Elimination]:
    """Eliminate all variables in an order.

    Args:
        variables: The variables.
        factors: The costs, whose sum is minimised.
        order: The numbers of the variables, from `elimination_order`.
    """
    remaining = _ByVariable(len(variables), factors)
    eliminations = []
    for number in order:
        dependent = remaining.pop(number)
        others = _other_views(number, dependent)
        total = np.zeros((variables[number].size, *(view.size for view in others)))
        for item in dependent:
            total += _aligned(item, number, others)
        minima = np.minimum.reduceat(total, variables[number].starts, axis=0)
        remaining.add(make_factor(_remaining_views(variables[number], others), minima))
        eliminations.append(Elimination(number, others, total))
    return eliminations


_ScopeOrFactor = TypeVar("_ScopeOrFactor", bound=Scope)


class _ByVariable(Generic[_ScopeOrFactor]):
    """Scopes or factors, by the numbers of the variables that they depend on."""

    def __init__(self, variables: int, items: Iterable[_ScopeOrFactor]) -> None:
        self._items: dict[int, list[_ScopeOrFactor]] = {number: [] for number in range(variables)}
        for item in items:
            self.add(item)

    def __getitem__(self, number: int) -> list[_ScopeOrFactor]:
        return self._items[number]

    def __contains__(self, number: int) -> bool:
        return number in self._items

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: _ScopeOrFactor) -> None:
        """Add an item to all variables that it depends on."""
        for number in {view.variable for view in item.views}:
            self._items[number].append(item)

    def pop(self, number: int) -> list[_ScopeOrFactor]:
        """Remove a variable, and return the items that depend on it, which others lose, too."""
        removed = self._items.pop(number)
        for other in {view.variable for item in removed for view in item.views} & self._items.keys():
            self._items[other] = [item for item in self._items[other] if item not in removed]
        return removed


class _Ordering:
    """The variables that are left, by the sizes of their tables, while they are eliminated."""

    def __init__(self, variables: Sequence[Variable], scopes: list[Scope]) -> None:
        self._variables = variables
        self._scopes = _ByVariable(len(variables), scopes)
        self._waiting = {variable.group for variable in variables if variable.group is not None}
        self._sizes = {number: self._size(number) for number in range(len(variables))}
        self._heap = [(size, number) for number, size in self._sizes.items()]
        heapify(self._heap)

    def run(self, limit: float) -> list[int] | None:
        """The variables, the one with the smallest table first; None if tables exceed the limit."""
        order: list[int] = []
        while self._scopes:
            number = self._smallest()
            limit -= self._sizes[number]
            if limit < 0:
                return None
            self._eliminate(number)
            order.append(number)
        return order

    def _smallest(self) -> int:
        """The variable with the smallest table that can be eliminated now."""
        while True:
            size, number = heappop(self._heap)
            is_left = number in self._scopes and size == self._sizes[number]  # else it was eliminated, or resized
            if is_left and number not in self._waiting:
                return number

    def _eliminate(self, number: int) -> None:
        """Replace the scopes that depend on a variable by that of their minimum over its values."""
        variable = self._variables[number]
        others = _other_views(number, self._scopes[number])
        touched = {view.variable for view in others}
        self._scopes.pop(number)
        self._scopes.add(make_scope(_remaining_views(variable, others)))
        if variable.group is not None:
            self._waiting.discard(variable.group)
            touched.add(variable.group)
        for other in touched:
            self._sizes[other] = self._size(other)
            heappush(self._heap, (self._sizes[other], other))

    def _size(self, number: int) -> int:
        """The size of the table of a variable, with the current scopes."""
        sizes = (view.size for view in _other_views(number, self._scopes[number]))
        return math.prod(sizes, start=self._variables[number].size)


def _other_views(number: int, items: Iterable[Scope]) -> tuple[CostAxis, ...]:
    """The views of other variables that the costs of a variable depend on."""
    return tuple(dict.fromkeys(view for item in items for view in item.views if view.variable != number))


def _remaining_views(variable: Variable, others: tuple[CostAxis, ...]) -> tuple[CostAxis, ...]:
    """The views that costs depend on when a variable is eliminated: its group, if it has one, and those of others."""
    if variable.group is None:
        return others
    size = len(variable.starts)
    return (CostAxis(variable.group, np.arange(size), size), *others)


def _aligned(factor: Factor, number: int, others: tuple[CostAxis, ...]) -> Seconds:
    """The costs of a factor with the axes of a table: the values of a variable, then the other views."""
    own = [axis for axis, view in enumerate(factor.views) if view.variable == number]
    other_axes = [factor.views.index(view) for view in others if view in factor.views]
    values = factor.seconds.transpose(own + other_axes)[tuple(factor.views[axis].positions for axis in own)]
    shape = [view.size if view in factor.views else 1 for view in others]
    return values.reshape([len(values), *shape])
