"""Decompose: choices of decompositions together with where everything lies on a cluster, and what that costs.

Here a choice is the tiles of all labels, the number of the way to compute the EinSum, and that of the place of its
table; a state is the tiles of all axes and the number of a place, and of an operand whether all of its tuples are to be
present. So one search decides what the database handles and what kernels do, and what goes from machine to machine.
"""

import heapq
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.clusters.costs import MovingCosts, volume_of
from sparseeinsum.decompose.clusters.distribution import Distribution
from sparseeinsum.decompose.clusters.parts import dividing_keys, volume_of_parts
from sparseeinsum.decompose.clusters.routes import (
    PricedOperator,
    Routes,
    Seconds,
    SizedRelation,
    place_number,
    place_of,
    tables_for,
)
from sparseeinsum.decompose.clusters.ways import LocalStrategy, ways_to_contract
from sparseeinsum.decompose.search import Choices, State, Task
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import Decomposition, common_tile

_Value = TypeVar("_Value", bound=Hashable)

_MOST_CHOICES = 4096  # of one EinSum: tiles of its labels, ways and places together


@dataclass(frozen=True, slots=True)
class Machines:
    """A cluster, and where inputs lie on it.

    Attributes:
        costs: Of moving bytes.
        places: Of stored tensors, by name.
    """

    costs: MovingCosts
    places: Mapping[str, Distribution]


@dataclass(frozen=True)
class SpreadTask:
    """What may be chosen on a cluster.

    Attributes:
        task: The same on one machine.
        machines: The cluster.
        choices: By result.
    """

    task: Task
    machines: Machines
    choices: Mapping[str, Sequence[Choice]]
    _ways: dict[tuple[str, Choice], tuple[LocalStrategy, ...]] = field(default_factory=dict, repr=False)
    _own: dict[tuple[str, Choice], float] = field(default_factory=dict, repr=False)
    _lies: dict[tuple[str, Choice], SizedRelation] = field(default_factory=dict, repr=False)
    _routes: dict[tuple[str, Choice, Choice, bool, int], Seconds] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, task: Task, machines: Machines) -> "SpreadTask":
        """The same choices, each in all ways."""
        spread = cls(task, machines, {})
        return replace(spread, choices={each.output.tensor: spread._choices_of(each) for each in task.graph.einsums})

    @property
    def graph(self) -> EinGraph:
        """The EinSums."""
        return self.task.graph

    def narrowed(self, choices: Mapping[str, Sequence[Choice]]) -> "SpreadTask":
        """The same with fewer choices."""
        return replace(self, choices=choices)

    def tiles_of(self, choices: Choices) -> Choices:
        """The same choices without ways and places."""
        return tuple((name, choice[:-2]) for name, choice in choices)

    def way(self, einsum: EinSum, choice: Choice) -> LocalStrategy:
        """How a choice computes an EinSum."""
        return self._ways_of(einsum, _tiles(einsum, choice))[choice[-2]]

    def place(self, einsum: EinSum, choice: Choice) -> Distribution:
        """Where the table of a result lies."""
        return place_of(choice[-1], len(einsum.output.labels))

    def result_state(self, einsum: EinSum, choice: Choice) -> State:
        """Tiles and place of the result."""
        return *result_tiles(einsum, _tiles(einsum, choice)), choice[-1]

    def wanted_state(self, einsum: EinSum, index: int, choice: Choice) -> State:
        """Tiles and place of an operand, and whether all of its tuples are to be present."""
        tiles, reference = _tiles(einsum, choice), einsum.operands[index]
        place = self.way(einsum, choice).operands[index]
        is_dense = self.task.model.vertex_cost(einsum, tiles).absence.dense[index]
        return *reference_tiles(einsum, reference, tiles), place_number(place, len(reference.labels)), int(is_dense)

    def own_cost(self, einsum: EinSum, choice: Choice) -> float:
        """Seconds that an EinSum takes whatever others choose: itself, to read stored inputs, to fill its table."""
        name = einsum.output.tensor
        known = self._own.get((name, choice))
        if known is None:
            known = self._own[name, choice] = self._own_cost(einsum, choice)
        return known

    def _own_cost(self, einsum: EinSum, choice: Choice) -> float:
        name, tiles = einsum.output.tensor, _tiles(einsum, choice)
        way, made = self.way(einsum, choice), result_tiles(einsum, tiles)
        costs = self.machines.costs
        seconds = self.task.model.vertex_cost(einsum, tiles).seconds * costs.share(
            way, dividing_keys(self.task.model, einsum, tiles, way)
        )
        parts = volume_of_parts(self.task.model, einsum, tiles, way, costs.cluster)
        seconds += costs.filling(self._sized(name, made).volume, way, self.place(einsum, choice), parts)
        seconds += self.reading_cost(einsum, choice, self._stored())
        seconds += self.task.repartition_seconds(name, made, self.task.layouts.get(name, made))
        if name in self.graph.outputs:
            sized = self._sized(name, made)
            seconds += costs.delivering(sized.volume, self.place(einsum, choice), sized.promoted)
        return seconds

    def reading_cost(self, einsum: EinSum, choice: Choice, states: Mapping[str, State]) -> float:
        """Seconds to bring those operands whose states are given here into those that a choice wants."""
        reads = self.reads(einsum, choice)
        return sum(
            self._between(operand.tensor, states[operand.tensor], self.wanted_state(einsum, index, choice), reads)
            for index, operand in enumerate(einsum.operands)
            if operand.tensor in states
        )

    def reads(self, einsum: EinSum, choice: Choice) -> int:
        """How often an EinSum reads its operands."""
        return self.task.reads(einsum, _tiles(einsum, choice))

    def repartition_costs(
        self, tensor: str, before: Sequence[State], wanted: Sequence[tuple[State, int]]
    ) -> NDArray[np.float64]:
        """Seconds of changes of state: a row for each before, a column for each wanted, read so often."""
        costs = np.empty((len(before), len(wanted)))
        goals = np.array([state[-2] for state, _ in wanted])
        places = np.array([state[-1] for state in before])
        for tiles, rows in _numbers_by([state[:-1] for state in before]):
            for (after, is_dense, reads), columns in _numbers_by([(w[:-2], w[-1], reads) for w, reads in wanted]):
                seconds = self._route_seconds(tensor, tiles, after, bool(is_dense), reads)
                costs[np.ix_(rows, columns)] = seconds[np.ix_(places[rows], goals[columns])]
        return costs

    def operators(
        self, tensor: str, before: Choice, after: Choice, is_dense: bool, reads: int = 1
    ) -> list[PricedOperator]:
        """The operators between two decompositions."""
        between = tuple(map(common_tile, before, after))
        seconds = self.task.repartition_seconds(tensor, before, after, reads)
        seconds /= max((between != before) + (between != after), 1)
        given, middle, wanted = (self._sized(tensor, tiles) for tiles in (before, between, after))
        steps = [(given, middle, seconds)] if between != before else []
        steps += [(middle, wanted, seconds)] if between != after else []
        steps += [(wanted, wanted, 0.0)] if is_dense else []
        return [PricedOperator.between(self.machines.costs, *step) for step in steps]

    def _between(self, tensor: str, before: State, wanted: State, reads: int) -> float:
        *after, goal, is_dense = wanted
        seconds = self._route_seconds(tensor, before[:-1], tuple(after), bool(is_dense), reads)
        return float(seconds[before[-1], goal])

    def _route_seconds(self, tensor: str, before: Choice, after: Choice, is_dense: bool, reads: int) -> Seconds:
        """From every place of a tensor to every other, on the way from one decomposition into another."""
        key = tensor, before, after, is_dense, reads
        known = self._routes.get(key)
        if known is None:
            operators = self.operators(tensor, before, after, is_dense, reads)
            known = self._routes_of(tensor).seconds(self._sized(tensor, before), operators)
            self._routes[key] = known
        return known

    def _routes_of(self, tensor: str) -> Routes:
        return Routes(self.machines.costs, len(self.graph.tensors[tensor].axes))

    def _sized(self, tensor: str, tiles: Choice) -> SizedRelation:
        known = self._lies.get((tensor, tiles))
        if known is None:
            known = SizedRelation(Decomposition(tiles), volume_of(self.task.model, tensor, tiles))
            self._lies[tensor, tiles] = known
        return known

    def _stored(self) -> dict[str, State]:
        """How inputs lie, those that are free in any decomposition left out."""
        return {
            name: (*tiles, place_number(self.machines.places[name], len(tiles)))
            for name, tiles in self.task.stored.items()
        }

    def _ways_of(self, einsum: EinSum, tiles: Choice) -> tuple[LocalStrategy, ...]:
        name = einsum.output.tensor
        known = self._ways.get((name, tiles))
        if known is None:
            join = self.task.model.vertex_cost(einsum, tiles).absence.join
            references = (*einsum.operands, einsum.output)
            size = sum(
                self._sized(each.tensor, reference_tiles(einsum, each, tiles)).volume.size_bytes for each in references
            )
            has_parts = not self.task.model.evaluations[einsum.output.tensor].compensates
            known = self.machines.costs.allowed(ways_to_contract(einsum, tiles, join, has_parts), size)
            self._ways[name, tiles] = known
        return known

    def _choices_of(self, einsum: EinSum) -> list[Choice]:
        """All choices of an EinSum; of one that has too many, those whose tiles are cheapest on one machine."""
        tilings = self.task.choices[einsum.output.tensor]
        found = [self._spread(einsum, tiles) for tiles in tilings]
        if sum(map(len, found)) > _MOST_CHOICES:
            few = max(_MOST_CHOICES // max(map(len, found)), 1)
            found = [
                self._spread(einsum, each)
                for each in heapq.nsmallest(few, tilings, partial(self.task.own_cost, einsum))
            ]
        return [choice for choices in found for choice in choices]

    def _spread(self, einsum: EinSum, tiles: Choice) -> list[Choice]:
        """One choice of tiles in all ways, with all places of the table."""
        axes = len(einsum.output.labels)
        places = [place_number(each, axes) for each in tables_for(Decomposition(result_tiles(einsum, tiles)).promoted)]
        ways = range(len(self._ways_of(einsum, tiles)))
        return [(*tiles, way, place) for way in ways for place in places]


def _tiles(einsum: EinSum, choice: Choice) -> Choice:
    """The tiles of a choice."""
    return choice[: len(einsum.labels)]


def _numbers_by(values: Sequence[_Value]) -> list[tuple[_Value, list[int]]]:
    """Different values, each with the numbers of those that are equal."""
    found: dict[_Value, list[int]] = {}
    for number, value in enumerate(values):
        found.setdefault(value, []).append(number)
    return list(found.items())
