"""Decompose: what a search for plans gets and returns: choices with their costs in, a choice for every EinSum out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice, result_tiles
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.repartition_tables import repartition_table
from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.tensors import Decomposition

Choices = tuple[tuple[str, Choice], ...]  # (result, choice of its EinSum)
State = tuple[int, ...]  # the tiles in which a tensor is computed or required, and further numbers of a search

_ROUNDING = 1e-9  # relative difference of sums of the same costs in other orders


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A choice for each of some EinSums, and their expected cost together."""

    cost: float
    choices: Choices


class Vertex(Protocol):
    """What computes a tensor of others: an EinSum, or an operator over tensor relations."""

    @property
    def output(self) -> Reference:
        """The tensor that it computes."""

    @property
    def operands(self) -> tuple[Reference, ...]:
        """The tensors that it reads."""


_Vertex = TypeVar("_Vertex", bound=Vertex, contravariant=True)
_Reader = TypeVar("_Reader", bound=Vertex)


class Pricing(Protocol[_Vertex]):
    """The choices of some EinSums, and their costs in any unit, such as seconds or floats.

    A choice starts with the tiles of all labels, and a state with the tiles of all axes; more numbers may follow.
    """

    @property
    def choices(self) -> Mapping[str, Sequence[Choice]]:
        """The allowed choices of every EinSum, by the name of its result."""

    def result_state(self, einsum: _Vertex, choice: Choice) -> State:
        """The state of the result under a choice."""

    def required_state(self, einsum: _Vertex, index: int, choice: Choice) -> State:
        """The state that a choice requires of operand `index`."""

    def own_cost(self, einsum: _Vertex, choice: Choice) -> float:
        """The cost of an EinSum that does not depend on the choices of others."""

    def reads(self, einsum: _Vertex, choice: Choice) -> int:
        """How often an EinSum reads its operands."""

    def repartition_cost(self, tensor: str, before: State, after: State, reads: int = 1) -> float:
        """The cost of a change of state.

        Args:
            tensor: The name of the tensor.
            before: The state in which it is.
            after: The state in which it is read.
            reads: How many times its result is read.
        """

    def repartition_costs(
        self, tensor: str, before: Sequence[State], required: Sequence[tuple[State, int]]
    ) -> NDArray[np.float64]:
        """Costs of changes of state: a row for each of `before`, a column for each of `required`.

        A required state comes with the number of times that the tensor is read in it.
        """

    def narrowed(self, choices: Mapping[str, Sequence[Choice]]) -> Self:
        """A copy with fewer choices."""


class GraphPricing(Pricing[EinSum], Protocol):
    """The choices and costs of all EinSums of a graph."""

    @property
    def graph(self) -> EinGraph:
        """The EinSums for which choices are searched, with the tensors that they read and compute."""


@dataclass(frozen=True, slots=True)
class SearchTask:
    """The choices on one machine; a `GraphPricing` in seconds.

    Attributes:
        model: The cost model of choices and repartitions.
        choices: The allowed choices of every EinSum, by the name of its result.
        stored: Tiles in which inputs are stored; an input without an item can be read in any tiles at no cost.
        layouts: Tiles in which results are delivered; a result without an item is not delivered, or as it is computed.
    """

    model: CostModel
    choices: Mapping[str, Sequence[Choice]]
    stored: Mapping[str, Choice]
    layouts: Mapping[str, Choice]
    _own: dict[tuple[str, Choice], float] = field(default_factory=dict, repr=False)
    _moves: dict[tuple[str, Choice, Choice, int], float] = field(default_factory=dict, repr=False)

    @property
    def graph(self) -> EinGraph:
        """The EinSums for which choices are searched, with the tensors that they read and compute."""
        return self.model.graph

    def narrowed(self, choices: Mapping[str, Sequence[Choice]]) -> "SearchTask":
        """A copy with only these choices."""
        return replace(self, choices=choices)

    def result_state(self, einsum: EinSum, choice: Choice) -> State:
        """The tiles of the result."""
        return result_tiles(einsum, choice)

    def required_state(self, einsum: EinSum, index: int, choice: Choice) -> State:
        """The tiles in which operand `index` is read."""
        return self.model.operand_tiles(einsum, index, choice)

    def own_cost(self, einsum: EinSum, choice: Choice) -> float:
        """Seconds that do not depend on other choices: to read inputs, to compute the EinSum, to deliver its result."""
        name = einsum.output.tensor
        cost = self._own.get((name, choice))
        if cost is None:
            cost = self.model.vertex_cost(einsum, choice).seconds + reading_cost(self, einsum, choice, self.stored)
            tiles = result_tiles(einsum, choice)
            cost += self.repartition_cost(name, tiles, self.layouts.get(name, tiles))
            self._own[name, choice] = cost
        return cost

    def reads(self, einsum: EinSum, choice: Choice) -> int:
        """How often an EinSum reads its operands."""
        return self.model.vertex_cost(einsum, choice).reads

    def repartition_cost(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> float:
        """Seconds of a change of decomposition, if its result is read `reads` times."""
        if before == after:
            return 0.0
        cost = self._moves.get((tensor, before, after, reads))
        if cost is None:
            cost = self.model.repartitions.seconds(tensor, before, after, reads)
            self._moves[tensor, before, after, reads] = cost
        return cost

    def repartition_costs(
        self, tensor: str, before: Sequence[Choice], required: Sequence[tuple[Choice, int]]
    ) -> NDArray[np.float64]:
        """Seconds of changes of decomposition: a row for each of `before`, a column for each of `required`."""

        def price(tiles: Choice, after: Choice, reads: int) -> float:
            return self.repartition_cost(tensor, tiles, after, reads)

        return repartition_table(before, required, partial(self.model.repartitions.price_key, tensor), price)


def reading_cost(task: Pricing[_Reader], einsum: _Reader, choice: Choice, states: Mapping[str, State]) -> float:
    """The cost to bring the operands that have a state in `states` into the states that a choice requires."""
    cost = 0.0
    for index, operand in enumerate(einsum.operands):
        if operand.tensor in states:
            required, reads = task.required_state(einsum, index, choice), task.reads(einsum, choice)
            cost += task.repartition_cost(operand.tensor, states[operand.tensor], required, reads)
    return cost


def total_cost(
    task: Pricing[_Reader], einsums: Iterable[_Reader], choices: Mapping[str, Choice], states: Mapping[str, State]
) -> float:
    """The cost of choices for EinSums in topological order; `states` are those of results that others compute."""
    cost, computed = 0.0, dict(states)
    for einsum in einsums:
        choice = choices[einsum.output.tensor]
        cost += task.own_cost(einsum, choice) + reading_cost(task, einsum, choice, computed)
        computed[einsum.output.tensor] = task.result_state(einsum, choice)
    return cost


def candidate_of(
    task: Pricing[_Reader], einsums: Iterable[_Reader], choices: Mapping[str, Choice], states: Mapping[str, State]
) -> Candidate:
    """The candidate of choices; the arguments are those of `total_cost`."""
    return Candidate(total_cost(task, einsums, choices, states), tuple(sorted(choices.items())))


def task_of(
    model: CostModel,
    choices: Mapping[str, Sequence[Choice]],
    stored: Mapping[str, Decomposition],
    layouts: Mapping[str, Decomposition],
) -> SearchTask:
    """A task from decompositions instead of tiles; see `SearchTask`.

    Args:
        model: The cost model.
        choices: The choices that the search may make, by the name of the result.
        stored: The decompositions of inputs.
        layouts: The decompositions in which outputs are delivered.
    """
    return SearchTask(
        model,
        choices,
        {name: decomposition.tiles for name, decomposition in stored.items()},
        {name: layout.tiles for name, layout in layouts.items()},
    )


def choices_within(task: GraphPricing, einsums: Iterable[EinSum], cost: float) -> dict[str, tuple[Choice, ...]]:
    """The choices that a plan of at most this cost can make, by the name of the result; some plan must cost so little.

    A choice is dropped if it costs too much together with the cheapest choice of every other EinSum.
    """
    own: dict[str, dict[Choice, float]] = {}
    for einsum in einsums:
        name = einsum.output.tensor
        own[name] = {choice: task.own_cost(einsum, choice) for choice in task.choices[name]}
    least = {name: min(costs.values()) for name, costs in own.items()}
    slack = cost * (1 + _ROUNDING) - sum(least.values())
    return {
        name: tuple(choice for choice, own_cost in costs.items() if not own_cost - least[name] > slack)
        for name, costs in own.items()
    }
