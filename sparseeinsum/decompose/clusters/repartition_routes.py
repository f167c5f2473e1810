"""Decompose: the cheapest route of a tensor from its table into another distribution or decomposition.

A route alternates between transfers and operators. Every operator reads a table in a distribution for which it has a
local strategy, and fills another table; a transfer brings a table into the distribution that the next operator needs.
Costs are matrices with a row for each distribution at the start and a column for each at the end, so that the
cheapest route is a min-plus product of such matrices.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.clusters.costs import NOTHING, TransferCosts, Volume
from sparseeinsum.decompose.clusters.local_strategies import LocalStrategy, repartition_strategies
from sparseeinsum.decompose.places.distribution import (
    Central,
    Distribution,
    Gridded,
    Hashed,
    Replicated,
    Scattered,
)
from sparseeinsum.language.tensors import Decomposition

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SizedRelation:
    """The decomposition of a relation and its size.

    Attributes:
        decomposition: The decomposition of its tensor.
        volume: All its tuples.
    """

    decomposition: Decomposition
    volume: Volume

    @property
    def promoted(self) -> tuple[int, ...]:
        """Positions of the axes that have keys."""
        return self.decomposition.promoted


@dataclass(frozen=True, slots=True)
class PricedOperator:
    """An operator of a route.

    Attributes:
        strategies: The local strategies that compute it.
        result: The relation that it returns.
        seconds: Its cost on a single machine.
        all_keys: The keys that it reads if it adds absent tuples; the coordinator enumerates them, and sends them to
            the machines that add the tuples.
    """

    strategies: tuple[LocalStrategy, ...]
    result: SizedRelation
    seconds: float
    all_keys: Volume = NOTHING

    @classmethod
    def between(
        cls,
        costs: TransferCosts,
        operand: SizedRelation,
        result: SizedRelation,
        seconds: float = 0.0,
        all_keys: Volume = NOTHING,
    ) -> "PricedOperator":
        """The operator that makes `result` of `operand`, with all strategies that do not overload the coordinator."""
        strategies = repartition_strategies(operand.decomposition, result.decomposition)
        size_bytes = operand.volume.size_bytes + result.volume.size_bytes
        return cls(costs.allowed_strategies(strategies, size_bytes, not result.promoted), result, seconds, all_keys)


@dataclass(frozen=True, slots=True)
class PlacedOperator:
    """How an operator of a route is computed, and the distribution of the table that it fills."""

    strategy: LocalStrategy
    distribution: Distribution


_WITHOUT_AXIS: tuple[Distribution, ...] = (Central(), Replicated(), Scattered())
_MANY = 2.0**40  # tuples or bytes: so many that nothing of their cost is lost beside what a transfer of none takes


@dataclass(frozen=True, slots=True)
class PossiblePlaces:
    """The distributions that a tensor may have, each with a number: its axis, or one after those of the axes.

    Attributes:
        axes: The number of axes of the tensor.
        grids: The distributions on grids.
    """

    axes: int
    grids: tuple[Gridded, ...] = ()

    def number(self, distribution: Distribution) -> int:
        """The number of a distribution.

        >>> [PossiblePlaces(2).number(place) for place in (Hashed(1), Central(), Replicated(), Scattered())]
        [1, 2, 3, 4]
        """
        if isinstance(distribution, Hashed):
            return distribution.axis
        if isinstance(distribution, Gridded):
            return self.axes + len(_WITHOUT_AXIS) + self.grids.index(distribution)
        return self.axes + _WITHOUT_AXIS.index(distribution)

    def numbered(self, number: int) -> Distribution:
        """The distribution with a number."""
        return Hashed(number) if number < self.axes else (*_WITHOUT_AXIS, *self.grids)[number - self.axes]

    @property
    def count(self) -> int:
        """How many distributions there are."""
        return self.axes + len(_WITHOUT_AXIS) + len(self.grids)


def tables_for(promoted: Iterable[int]) -> list[Distribution]:
    """The distributions that a run can give to a table with keys of these axes.

    No table of a run is replicated: other connections could not read there what one connection has written.
    """
    return [*map(Hashed, promoted), Central()]


@dataclass(frozen=True, slots=True)
class Routes:
    """The cheapest routes of one tensor.

    Attributes:
        costs: Costs of transfers.
        places: The distributions that the tensor may have.
    """

    costs: TransferCosts
    places: PossiblePlaces

    def seconds(self, stored: SizedRelation, operators: Sequence[PricedOperator]) -> Seconds:
        """The least cost from every distribution of `stored` to every distribution of the last operator's result."""
        seconds = self._transfer_costs(stored)
        for operator in operators:
            seconds = _min_plus(seconds, self._operator_costs(operator))
            seconds = _min_plus(seconds, self._transfer_costs(operator.result))
        return seconds

    def between(self, seconds: Seconds, start: Distribution, end: Distribution) -> float:
        """The entry of the matrix `seconds` for two distributions."""
        return float(seconds[self.places.number(start), self.places.number(end)])

    def placed_operators(
        self, stored: SizedRelation, operators: Sequence[PricedOperator], start: Distribution, end: Distribution
    ) -> tuple[PlacedOperator, ...]:
        """How the operators are computed on the cheapest route from one distribution to another.

        Raises:
            ValueError: There is no route.
        """
        stages: list[tuple[PricedOperator | None, Seconds]] = [(None, self._transfer_costs(stored))]
        for operator in operators:
            stages += [(operator, self._operator_costs(operator)), (None, self._transfer_costs(operator.result))]
        # Shortest paths: the least cost to reach every distribution after each stage, then the path backwards.
        reached = [_start_row(self.places.count, self.places.number(start))]
        for _, seconds in stages:
            reached.append(_min_plus(reached[-1], seconds))
        at, placed = self.places.number(end), []
        if reached[-1][0, at] == np.inf:
            raise ValueError(f"there is no way from {start} to {end}")
        for (computed, seconds), before in zip(reversed(stages), reversed(reached[:-1]), strict=True):
            origin = int(np.argmin(before[0] + seconds[:, at]))
            if computed is not None:
                read, written = self.places.numbered(origin), self.places.numbered(at)
                placed.append(PlacedOperator(self._best_strategy(computed, read, written), written))
            at = origin
        return tuple(reversed(placed))

    def _transfer_costs(self, relation: SizedRelation) -> Seconds:
        """Costs of a transfer: a row for each distribution before, a column for each after; 0 where nothing changes."""
        fixed, by_tuples, by_bytes = _transfer_rates(self.costs, self.places, relation.promoted)
        costs: Seconds = fixed + relation.volume.tuples * by_tuples + relation.volume.size_bytes * by_bytes
        return costs

    def _operator_costs(self, operator: PricedOperator) -> Seconds:
        """Costs of an operator: a row for each distribution of its operand, a column for each of the table it fills."""
        seconds = np.full((self.places.count, self.places.count), np.inf)
        for strategy in operator.strategies:
            row = self.places.number(strategy.operands[0])
            for distribution in tables_for(operator.result.promoted):
                at = row, self.places.number(distribution)
                seconds[at] = min(seconds[at], self._strategy_seconds(operator, strategy, distribution))
        return seconds

    def _strategy_seconds(self, operator: PricedOperator, strategy: LocalStrategy, distribution: Distribution) -> float:
        seconds = operator.seconds * self.costs.work_share(strategy)
        if operator.all_keys.tuples and isinstance(strategy.result, Hashed):
            seconds += self.costs.transfer_seconds(operator.all_keys, Central(), strategy.result)
        return seconds + self.costs.filling_seconds(operator.result.volume, strategy, distribution)

    def _best_strategy(self, operator: PricedOperator, read: Distribution, written: Distribution) -> LocalStrategy:
        strategies = (strategy for strategy in operator.strategies if strategy.operands == (read,))
        return min(strategies, key=lambda strategy: self._strategy_seconds(operator, strategy, written))


@lru_cache(maxsize=256)
def _transfer_rates(
    costs: TransferCosts, places: PossiblePlaces, promoted: tuple[int, ...]
) -> tuple[Seconds, Seconds, Seconds]:
    """Costs of transfers of nothing, and what they rise by for each tuple and for each byte.

    Args:
        costs: Costs of transfers, which are linear in tuples and bytes.
        places: The distributions that the relation may have.
        promoted: The positions of its axes that have keys.
    """
    volumes = Volume(0.0, 0.0), Volume(_MANY, 0.0), Volume(0.0, _MANY)
    seconds = np.full((len(volumes), places.count, places.count), np.inf)
    tables = tables_for(promoted)
    results = [grid for grid in places.grids if grid.copies == 1]
    for before in [*tables, Replicated(), Scattered(), *results]:
        row = places.number(before)
        for after in [*tables, Replicated(), *places.grids]:
            seconds[:, row, places.number(after)] = [
                costs.transfer_seconds(volume, before, after) for volume in volumes
            ]
    for matrix in seconds:
        np.fill_diagonal(matrix, 0.0)
    fixed = seconds[0]
    rises = np.where(np.isinf(fixed), 0.0, seconds[1:]) - np.where(np.isinf(fixed), 0.0, fixed)
    by_tuples, by_bytes = rises / _MANY
    return fixed, by_tuples, by_bytes


def _start_row(size: int, at: int) -> Seconds:
    """One row of costs: 0 at a position and infinite elsewhere."""
    seconds = np.full((1, size), np.inf)
    seconds[0, at] = 0.0
    return seconds


def _min_plus(first: Seconds, second: Seconds) -> Seconds:
    """The min-plus product of two matrices of costs."""
    product: Seconds = (first[:, :, None] + second[None, :, :]).min(axis=1)
    return product
