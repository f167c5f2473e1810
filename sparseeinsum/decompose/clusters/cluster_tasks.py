"""Decompose: choices for a cluster: decompositions together with local strategies and distributions, and their cost.

A choice here is the tiles of all labels, then the number of the local strategy that computes the EinSum, then the
number of the distribution of its table. A state is the tiles of all axes, then the number of a distribution; that of an
operand also says whether all its tuples must be present. One search thus decides what the database handles, what
kernels do, and what is transferred between machines.
"""

import heapq
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.clusters.costs import NOTHING, TransferCosts, volume_of, volume_of_all_keys
from sparseeinsum.decompose.clusters.grid_strategies import grid_strategies
from sparseeinsum.decompose.clusters.local_strategies import LocalStrategy, contraction_strategies
from sparseeinsum.decompose.clusters.partial_groups import keys_of_labels, partitioning_keys, volume_of_partials
from sparseeinsum.decompose.clusters.repartition_routes import (
    PossiblePlaces,
    PricedOperator,
    Routes,
    Seconds,
    SizedRelation,
    tables_for,
)
from sparseeinsum.decompose.places.distribution import Distribution, Gridded
from sparseeinsum.decompose.search_tasks import Choices, SearchTask, State, reading_cost
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import Decomposition, common_tile
from sparseeinsum.semantics.exactness import JoinKind

_Value = TypeVar("_Value", bound=Hashable)

_MOST_CHOICES = 4096  # of one EinSum: tiles of its labels, strategies on no grid, and distributions together


@dataclass(frozen=True, slots=True)
class Machines:
    """The machines of a cluster, and the distributions of the inputs there.

    Attributes:
        costs: Costs of transfers between the machines.
        distributions: The distribution of every stored tensor, by name.
        counts_bytes: Whether plans are to send few bytes, instead of taking few seconds.
    """

    costs: TransferCosts
    distributions: Mapping[str, Distribution]
    counts_bytes: bool = False

    @property
    def compared(self) -> "Machines":
        """The machines with the costs by which plans are compared."""
        return Machines(self.costs.of_bytes(), self.distributions) if self.counts_bytes else self


@dataclass(frozen=True)
class ClusterTask:
    """What may be chosen on a cluster; a `GraphPricing` in seconds.

    Attributes:
        task: The choices and costs on one machine.
        machines: The cluster.
        choices: The choices of every EinSum, by the name of its result.
        grids: The distributions on grids that each tensor may have, by its name.
    """

    task: SearchTask
    machines: Machines
    choices: Mapping[str, Sequence[Choice]]
    grids: Mapping[str, tuple[Gridded, ...]] = field(default_factory=dict)
    _strategies: dict[tuple[str, Choice], tuple[LocalStrategy, ...]] = field(default_factory=dict, repr=False)
    _own: dict[tuple[str, Choice], float] = field(default_factory=dict, repr=False)
    _relations: dict[tuple[str, Choice], SizedRelation] = field(default_factory=dict, repr=False)
    _routes: dict[tuple[str, Choice, Choice, bool, int], Seconds] = field(default_factory=dict, repr=False)

    @classmethod
    def from_task(cls, task: SearchTask, machines: Machines) -> "ClusterTask":
        """The choices of a task, each with every strategy on no grid and every distribution."""
        empty = cls(task, machines, {})
        return replace(
            empty, choices={einsum.output.tensor: empty._choices_of(einsum) for einsum in task.graph.einsums}
        )

    @property
    def graph(self) -> EinGraph:
        """The EinSums for which choices are searched, with the tensors that they read and compute."""
        return self.task.graph

    def narrowed(self, choices: Mapping[str, Sequence[Choice]]) -> "ClusterTask":
        """The task with fewer choices."""
        return replace(self, choices=choices)

    def with_grids(self, others: Mapping[str, Sequence[Choice]]) -> "ClusterTask":
        """The task with all choices on grids, and some others."""
        strategies = {einsum.output.tensor: self._on_grids(einsum) for einsum in self.graph.einsums}
        grids: dict[str, dict[Gridded, None]] = {name: {} for name in self.graph.tensors}
        for einsum in self.graph.einsums:
            for _, strategy in strategies[einsum.output.tensor]:
                places = zip((*einsum.operands, einsum.output), (*strategy.operands, strategy.result), strict=True)
                for reference, place in places:
                    if isinstance(place, Gridded):
                        grids[reference.tensor][place] = None
        placed = replace(self, grids={name: tuple(places) for name, places in grids.items()}, _routes={})
        on_grids = {
            name: [(*choice, placed._places(name).number(strategy.result)) for choice, strategy in numbered]
            for name, numbered in strategies.items()
        }
        return placed.narrowed({name: [*choices, *on_grids[name]] for name, choices in others.items()})

    def on_machines(self, machines: Machines) -> "ClusterTask":
        """The task with other costs of the same machines."""
        return replace(self, machines=machines, _own={}, _routes={})

    def tiles_of(self, choices: Choices) -> Choices:
        """The choices without the numbers of strategies and distributions."""
        return tuple((name, choice[:-2]) for name, choice in choices)

    def strategy(self, einsum: EinSum, choice: Choice) -> LocalStrategy:
        """The local strategy of a choice."""
        return self._strategies_of(einsum, _tiles(einsum, choice))[choice[-2]]

    def distribution(self, einsum: EinSum, choice: Choice) -> Distribution:
        """The distribution of the result's table under a choice."""
        return self._places(einsum.output.tensor).numbered(choice[-1])

    def result_state(self, einsum: EinSum, choice: Choice) -> State:
        """Tiles and distribution of the result."""
        return *result_tiles(einsum, _tiles(einsum, choice)), choice[-1]

    def required_state(self, einsum: EinSum, index: int, choice: Choice) -> State:
        """Tiles and distribution that operand `index` must have, and 1 if all its tuples must be present, or else 0."""
        tiles, reference = _tiles(einsum, choice), einsum.operands[index]
        distribution = self.strategy(einsum, choice).operands[index]
        is_dense = self.task.model.vertex_cost(einsum, tiles).absence.dense[index]
        number = self._places(reference.tensor).number(distribution)
        return *reference_tiles(einsum, reference, tiles), number, int(is_dense)

    def own_cost(self, einsum: EinSum, choice: Choice) -> float:
        """Seconds that do not depend on other choices: to read inputs, to compute the EinSum, to fill its table."""
        name = einsum.output.tensor
        cost = self._own.get((name, choice))
        if cost is None:
            cost = self._own[name, choice] = self._own_cost(einsum, choice)
        return cost

    def _own_cost(self, einsum: EinSum, choice: Choice) -> float:
        name, tiles = einsum.output.tensor, _tiles(einsum, choice)
        strategy, of_result = self.strategy(einsum, choice), result_tiles(einsum, tiles)
        costs = self.machines.costs
        seconds = self.task.model.vertex_cost(einsum, tiles).seconds * costs.work_share(
            strategy, partitioning_keys(self.task.model, einsum, tiles, strategy)
        )
        if strategy.grid is not None:  # a cell is in one shard
            seconds += costs.turns_seconds(seconds)
        partials = volume_of_partials(self.task.model, einsum, tiles, strategy, costs.cluster)
        relation, distribution = self._sized(name, of_result), self.distribution(einsum, choice)
        seconds += costs.filling_seconds(relation.volume, strategy, distribution, partials)
        seconds += reading_cost(self, einsum, choice, self._input_states())
        seconds += self.task.repartition_cost(name, of_result, self.task.layouts.get(name, of_result))
        if name in self.graph.outputs:
            seconds += costs.delivery_seconds(relation.volume, distribution, relation.promoted)
        return seconds

    def reads(self, einsum: EinSum, choice: Choice) -> int:
        """How often an EinSum reads its operands."""
        return self.task.reads(einsum, _tiles(einsum, choice))

    def repartition_cost(self, tensor: str, before: State, after: State, reads: int = 1) -> float:
        """Seconds of one change of state."""
        *tiles, end, is_dense = after
        seconds = self._route_seconds(tensor, before[:-1], tuple(tiles), bool(is_dense), reads)
        return float(seconds[before[-1], end])

    def repartition_costs(
        self, tensor: str, before: Sequence[State], required: Sequence[tuple[State, int]]
    ) -> NDArray[np.float64]:
        """Seconds of changes of state: a row for each of `before`, a column for each of `required` with its reads."""
        costs = np.empty((len(before), len(required)))
        ends = np.array([state[-2] for state, _ in required])
        starts = np.array([state[-1] for state in before])
        # Changes between the same tiles have one matrix of costs between distributions.
        after_states = [(state[:-2], state[-1], reads) for state, reads in required]
        for tiles, rows in _positions_by_value([state[:-1] for state in before]):
            for (after, is_dense, reads), columns in _positions_by_value(after_states):
                seconds = self._route_seconds(tensor, tiles, after, bool(is_dense), reads)
                costs[np.ix_(rows, columns)] = seconds[np.ix_(starts[rows], ends[columns])]
        return costs

    def operators(
        self, tensor: str, before: Choice, after: Choice, is_dense: bool, reads: int = 1
    ) -> list[PricedOperator]:
        """The operators of a change of decomposition: to slice, to stack, and to add absent tuples if `is_dense`."""
        between = tuple(map(common_tile, before, after))
        seconds = self.task.repartition_cost(tensor, before, after, reads)
        seconds /= max((between != before) + (between != after), 1)
        stored, sliced, required = (self._sized(tensor, tiles) for tiles in (before, between, after))
        steps = [(stored, sliced, seconds, NOTHING)] if between != before else []
        steps += [(sliced, required, seconds, NOTHING)] if between != after else []
        if is_dense:
            all_keys = volume_of_all_keys(self.graph.tensors[tensor], required.decomposition)
            steps += [(required, required, 0.0, all_keys)]
        return [PricedOperator.between(self.machines.costs, *step) for step in steps]

    def _route_seconds(self, tensor: str, before: Choice, after: Choice, is_dense: bool, reads: int) -> Seconds:
        """Costs of a change of decomposition, between all distributions before and after it."""
        key = tensor, before, after, is_dense, reads
        seconds = self._routes.get(key)
        if seconds is None:
            operators = self.operators(tensor, before, after, is_dense, reads)
            routes = Routes(self.machines.costs, self._places(tensor))
            seconds = self._routes[key] = routes.seconds(self._sized(tensor, before), operators)
        return seconds

    def _sized(self, tensor: str, tiles: Choice) -> SizedRelation:
        relation = self._relations.get((tensor, tiles))
        if relation is None:
            relation = SizedRelation(Decomposition(tiles), volume_of(self.task.model, tensor, tiles))
            self._relations[tensor, tiles] = relation
        return relation

    def _input_states(self) -> dict[str, State]:
        """States of the inputs, except those that may be read in any decomposition at no cost."""
        return {
            name: (*tiles, self._places(name).number(self.machines.distributions[name]))
            for name, tiles in self.task.stored.items()
        }

    def _strategies_of(self, einsum: EinSum, tiles: Choice) -> tuple[LocalStrategy, ...]:
        name = einsum.output.tensor
        allowed = self._strategies.get((name, tiles))
        if allowed is None:
            join = self.task.model.vertex_cost(einsum, tiles).absence.join
            size_bytes = sum(
                self._sized(reference.tensor, reference_tiles(einsum, reference, tiles)).volume.size_bytes
                for reference in (*einsum.operands, einsum.output)
            )
            has_parts = not self.task.model.evaluations[einsum.output.tensor].compensates
            keys = keys_of_labels(self.task.model, einsum, tiles)
            strategies = (
                *contraction_strategies(einsum, tiles, join, has_parts),
                *self._grid_strategies(einsum, keys, join, has_parts),
            )
            allowed = self._strategies[name, tiles] = self.machines.costs.allowed_strategies(strategies, size_bytes)
        return allowed

    def _grid_strategies(
        self, einsum: EinSum, keys: Mapping[str, int], join: JoinKind, has_parts: bool
    ) -> Iterator[LocalStrategy]:
        """Strategies on grids. Outputs do not stay there, and inputs come there only in copies."""
        computed = {other.output.tensor for other in self.graph.einsums}
        is_output = einsum.output.tensor in self.graph.outputs
        reads_computed = any(operand.tensor in computed for operand in einsum.operands)
        for strategy in grid_strategies(einsum, keys, join, has_parts, self.machines.costs.cluster):
            stays = isinstance(strategy.result, Gridded)
            if not (stays and is_output) and (reads_computed or strategy.makes_copies):
                yield strategy

    def _places(self, tensor: str) -> PossiblePlaces:
        """The distributions that a tensor may have."""
        return PossiblePlaces(len(self.graph.tensors[tensor].axes), self.grids.get(tensor, ()))

    def _choices_of(self, einsum: EinSum) -> list[Choice]:
        """All choices of an EinSum; if there are too many, those whose tiles are cheapest on one machine."""
        tilings = self.task.choices[einsum.output.tensor]
        choices = [self._extended(einsum, tiles) for tiles in tilings]
        if sum(map(len, choices)) > _MOST_CHOICES:
            count = max(_MOST_CHOICES // max(map(len, choices)), 1)
            cheapest = heapq.nsmallest(count, tilings, partial(self.task.own_cost, einsum))
            choices = [self._extended(einsum, tiles) for tiles in cheapest]
        return [choice for extended in choices for choice in extended]

    def _extended(self, einsum: EinSum, tiles: Choice) -> list[Choice]:
        """A choice of tiles with every strategy on no grid and every distribution of the table."""
        tables = tables_for(Decomposition(result_tiles(einsum, tiles)).promoted)
        strategies = [at for at, strategy in enumerate(self._strategies_of(einsum, tiles)) if strategy.grid is None]
        numbers = list(map(self._places(einsum.output.tensor).number, tables))
        return [(*tiles, strategy, number) for strategy in strategies for number in numbers]

    def _on_grids(self, einsum: EinSum) -> list[tuple[Choice, LocalStrategy]]:
        """The strategies on a grid, each after the choice of tiles and its number."""
        return [
            ((*tiles, at), strategy)
            for tiles in dict.fromkeys(_tiles(einsum, choice) for choice in self.choices[einsum.output.tensor])
            for at, strategy in enumerate(self._strategies_of(einsum, tiles))
            if strategy.grid is not None
        ]


def _tiles(einsum: EinSum, choice: Choice) -> Choice:
    """The tiles of a choice, without its strategy and distribution."""
    return choice[: len(einsum.labels)]


def _positions_by_value(values: Sequence[_Value]) -> list[tuple[_Value, list[int]]]:
    """The distinct values, each with its positions."""
    positions: dict[_Value, list[int]] = {}
    for position, value in enumerate(values):
        positions.setdefault(value, []).append(position)
    return list(positions.items())
