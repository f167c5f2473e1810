"""Decompose: sums of costs, each of which depends on a few unknowns, minimised over one unknown after the other.

Source: bucket elimination (R. Dechter, Artificial Intelligence 113, 1999), section 4: exact, in time and space of the
largest table in between, which depends on the order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]
Positions = NDArray[np.intp]

# What costs more is as bad: differences of costs must not be those of infinities.
_WORST_SECONDS = 1e200


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What costs depend on of an unknown: its values that are at one position cost the same.

    Attributes:
        unknown: Its number.
        positions: For every value of the unknown, its position along an axis of a table.
        size: Positions that there are.
    """

    unknown: int
    positions: Positions
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Costs that depend on some unknowns: `seconds` has one axis for every view."""

    views: tuple[View, ...]
    seconds: Seconds


def factor(views: Sequence[View], seconds: Seconds) -> Factor:
    """A factor without the views that tell nothing, and without infinite costs."""
    kept = tuple(view for view in views if view.size > 1)
    finite = np.minimum(seconds, _WORST_SECONDS)
    return Factor(kept, finite.reshape([view.size for view in kept]))


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """Something to be found.

    Attributes:
        size: Values that there are.
        starts: Where groups of values start; the minimum of each group is kept.
        group: The unknown whose value tells the group; None where there is a single group.
    """

    size: int
    starts: Positions
    group: int | None = None

    def members(self, group: int) -> slice:
        """The values of one group."""
        end = self.starts[group + 1] if group + 1 < len(self.starts) else self.size
        return slice(int(self.starts[group]), int(end))


def ungrouped_variable(size: int) -> Variable:
    """An unknown of which nothing is left once it is eliminated."""
    return Variable(size, np.zeros(1, np.intp))


@dataclass(frozen=True, slots=True, eq=False)
class Elimination:
    """The elimination of one unknown.

    Attributes:
        unknown: Its number.
        views: What the costs depend on besides.
        seconds: All costs that depend on it: its values first, then an axis for each view.
    """

    unknown: int
    views: tuple[View, ...]
    seconds: Seconds


def eliminate(unknowns: Sequence[Variable], factors: Iterable[Factor], limit: float) -> list[Elimination] | None:
    """Eliminate all unknowns, always the one whose table is smallest; None where tables exceed a limit.

    Args:
        unknowns: What there is to eliminate; one that is another's group waits for that.
        factors: The costs, of which the sum is minimised.
        limit: Numbers that all tables together may have.
    """
    return _Elimination(unknowns, list(factors)).run(limit)


class _Elimination:
    def __init__(self, unknowns: Sequence[Variable], factors: list[Factor]) -> None:
        self._unknowns = unknowns
        self._factors: dict[int, list[Factor]] = {number: [] for number in range(len(unknowns))}
        for each in factors:
            self._add(each)
        self._waiting = {unknown.group for unknown in unknowns if unknown.group is not None}
        self._sizes = {number: self._size(number) for number in self._factors}

    def run(self, limit: float) -> list[Elimination] | None:
        done: list[Elimination] = []
        while self._factors:
            ready = (number for number in self._factors if number not in self._waiting)
            number = min(ready, key=self._sizes.__getitem__)
            limit -= self._sizes[number]
            if limit < 0:
                return None
            done.append(self._eliminate(number))
        return done

    def _eliminate(self, number: int) -> Elimination:
        unknown = self._unknowns[number]
        used = self._factors.pop(number)
        others = self._others(number, used)
        total = np.zeros((unknown.size, *(view.size for view in others)))
        for each in used:
            total += _aligned(each, number, others)
        minima = np.minimum.reduceat(total, unknown.starts, axis=0)
        views = others
        if unknown.group is not None:
            self._waiting.discard(unknown.group)
            size = len(unknown.starts)
            views = (View(unknown.group, np.arange(size), size), *others)
        self._replace(used, factor(views, minima))
        return Elimination(number, others, total)

    def _replace(self, used: list[Factor], message: Factor) -> None:
        touched = {view.unknown for each in (*used, message) for view in each.views} & self._factors.keys()
        for number in touched:
            self._factors[number] = [each for each in self._factors[number] if each not in used]
        self._add(message)
        for number in touched:
            self._sizes[number] = self._size(number)

    def _add(self, added: Factor) -> None:
        for number in {view.unknown for view in added.views}:
            self._factors[number].append(added)

    def _size(self, number: int) -> int:
        """Numbers in the table of an unknown, as the factors are now."""
        size = self._unknowns[number].size
        for view in self._others(number, self._factors[number]):
            size *= view.size
        return size

    @staticmethod
    def _others(number: int, factors: list[Factor]) -> tuple[View, ...]:
        views = (view for each in factors for view in each.views if view.unknown != number)
        return tuple(dict.fromkeys(views))


def _aligned(each: Factor, number: int, others: tuple[View, ...]) -> Seconds:
    """The costs of a factor with the axes of a table: the values of an unknown, then the other views."""
    own = [axis for axis, view in enumerate(each.views) if view.unknown == number]
    rest = [each.views.index(view) for view in others if view in each.views]
    values = each.seconds.transpose(own + rest)[tuple(each.views[axis].positions for axis in own)]
    shape = [view.size if view in each.views else 1 for view in others]
    return values.reshape([len(values), *shape])
