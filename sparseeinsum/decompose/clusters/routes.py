"""Decompose: the cheapest way of a tensor from the table where it lies to another distribution or decomposition.

On the way it goes from table to table: an operator reads one in a distribution in which it can be computed on every
machine by itself, and fills one; between two operators a table is brought elsewhere, if it is wanted elsewhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.clusters.costs import MovingCosts, Volume
from sparseeinsum.decompose.clusters.distribution import Central, Distribution, Hashed, Replicated, Scattered
from sparseeinsum.decompose.clusters.ways import LocalStrategy, ways_between
from sparseeinsum.language.tensors import Decomposition

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SizedRelation:
    """A relation of a tensor, wherever it lies.

    Attributes:
        decomposition: Of the tensor.
        volume: Of all tuples.
    """

    decomposition: Decomposition
    volume: Volume

    @property
    def promoted(self) -> tuple[int, ...]:
        """Positions of the axes that have keys."""
        return self.decomposition.promoted


@dataclass(frozen=True, slots=True)
class PricedOperator:
    """An operator on the way.

    Attributes:
        ways: To compute it.
        result: What it makes.
        seconds: That it takes one machine.
    """

    ways: tuple[LocalStrategy, ...]
    result: SizedRelation
    seconds: float

    @classmethod
    def between(
        cls, costs: MovingCosts, given: SizedRelation, made: SizedRelation, seconds: float = 0.0
    ) -> "PricedOperator":
        """What makes one relation of another, in all ways that leave operands and results to the machines."""
        ways = ways_between(given.decomposition, made.decomposition)
        size_bytes = given.volume.size_bytes + made.volume.size_bytes
        return cls(costs.allowed(ways, size_bytes, not made.promoted), made, seconds)


@dataclass(frozen=True, slots=True)
class PlacedOperator:
    """What becomes of one operator: how it is computed, and where the table lies that it fills."""

    way: LocalStrategy
    place: Distribution


def place_number(place: Distribution, axes: int) -> int:
    """A distribution of a tensor of so many axes as a number: its axis, or one after those of the axes.

    >>> [place_number(place, 2) for place in (Hashed(1), Central(), Replicated(), Scattered())]
    [1, 2, 3, 4]
    """
    if isinstance(place, Hashed):
        return place.axis
    return axes + _WITHOUT_AXIS.index(place)


def place_of(number: int, axes: int) -> Distribution:
    """The distribution that a number stands for."""
    return Hashed(number) if number < axes else _WITHOUT_AXIS[number - axes]


_WITHOUT_AXIS: tuple[Distribution, ...] = (Central(), Replicated(), Scattered())


def tables_for(promoted: Iterable[int]) -> list[Distribution]:
    """Distributions that a table of a run with keys of these axes can have.

    None is on every machine: several connections cannot read there what one of them has written.
    """
    return [*map(Hashed, promoted), Central()]


@dataclass(frozen=True, slots=True)
class Routes:
    """The ways of one tensor.

    Attributes:
        costs: What it costs to move bytes.
        axes: Of the tensor.
    """

    costs: MovingCosts
    axes: int

    def seconds(self, given: SizedRelation, operators: Sequence[PricedOperator]) -> Seconds:
        """The least cost from each distribution of a relation that is there to each of what comes out, by number."""
        found = self._moving(given)
        for operator in operators:
            found = _least_sum(_least_sum(found, self._computing(operator)), self._moving(operator.result))
        return found

    def between(self, seconds: Seconds, start: Distribution, end: Distribution) -> float:
        """Of `seconds`, those from one distribution to another."""
        return float(seconds[place_number(start, self.axes), place_number(end, self.axes)])

    def placed_operators(
        self, given: SizedRelation, operators: Sequence[PricedOperator], start: Distribution, end: Distribution
    ) -> tuple[PlacedOperator, ...]:
        """How the operators of the cheapest way are computed that starts and ends in these distributions."""
        stages: list[tuple[PricedOperator | None, Seconds]] = [(None, self._moving(given))]
        for operator in operators:
            stages += [(operator, self._computing(operator)), (None, self._moving(operator.result))]
        reached = [_row(self._size, place_number(start, self.axes))]
        for _, seconds in stages:
            reached.append(_least_sum(reached[-1], seconds))
        at, found = place_number(end, self.axes), []
        if reached[-1][0, at] == np.inf:
            raise ValueError(f"there is no way from {start} to {end}")
        for (computed, seconds), before in zip(reversed(stages), reversed(reached[:-1]), strict=True):
            origin = int(np.argmin(before[0] + seconds[:, at]))
            if computed is not None:
                wanted, place = place_of(origin, self.axes), place_of(at, self.axes)
                found.append(PlacedOperator(self._best_way(computed, wanted, place), place))
            at = origin
        return tuple(reversed(found))

    @property
    def _size(self) -> int:
        return self.axes + len(_WITHOUT_AXIS)

    def _moving(self, sized: SizedRelation) -> Seconds:
        """What it costs to bring a table elsewhere: a row for each distribution before, a column for each after."""
        seconds = np.full((self._size, self._size), np.inf)
        np.fill_diagonal(seconds, 0.0)
        tables = tables_for(sized.promoted)
        for before in [*tables, Replicated(), Scattered()]:
            for after in [*tables, Replicated()]:
                if before != after:
                    at = place_number(before, self.axes), place_number(after, self.axes)
                    seconds[at] = self.costs.moving(sized.volume, before, after)
        return seconds

    def _computing(self, operator: PricedOperator) -> Seconds:
        """What an operator costs: a row for each distribution of its operand, a column for each of its table."""
        seconds = np.full((self._size, self._size), np.inf)
        for way in operator.ways:
            row = place_number(way.operands[0], self.axes)
            for place in tables_for(operator.result.promoted):
                at = row, place_number(place, self.axes)
                seconds[at] = min(seconds[at], self._way_seconds(operator, way, place))
        return seconds

    def _way_seconds(self, operator: PricedOperator, way: LocalStrategy, place: Distribution) -> float:
        return operator.seconds * self.costs.share(way) + self.costs.filling(operator.result.volume, way, place)

    def _best_way(self, operator: PricedOperator, wanted: Distribution, place: Distribution) -> LocalStrategy:
        fitting = (way for way in operator.ways if way.operands == (wanted,))
        return min(fitting, key=lambda way: self._way_seconds(operator, way, place))


def _row(size: int, at: int) -> Seconds:
    seconds = np.full((1, size), np.inf)
    seconds[0, at] = 0.0
    return seconds


def _least_sum(first: Seconds, second: Seconds) -> Seconds:
    """The least sum of an entry of a row and the one of a column that it leads to."""
    least: Seconds = (first[:, :, None] + second[None, :, :]).min(axis=1)
    return least
