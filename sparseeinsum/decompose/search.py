"""Decompose: what a search is asked, and what it answers: ways to compute a graph, each a choice for every EinSum."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.repartition_tables import repartition_table
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import Decomposition

Choices = tuple[tuple[str, Choice], ...]  # (result, choice of its EinSum)
State = tuple[int, ...]  # how a tensor is there, or wanted: its tiles, and what else a search tells apart

_ROUNDING = 1e-9  # by which sums of the same costs may differ


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A way to compute some EinSums: what it is expected to cost, and their choices."""

    cost: float
    choices: Choices


class Pricing(Protocol):
    """What may be chosen, and what it costs; in which unit is the business of those who ask.

    A choice starts with the tiles of all labels, and a state with those of all axes; what follows is theirs, too.
    """

    @property
    def choices(self) -> Mapping[str, Sequence[Choice]]:
        """Allowed choices by result."""

    def result_state(self, einsum: EinSum, choice: Choice) -> State:
        """How the result comes out."""

    def wanted_state(self, einsum: EinSum, index: int, choice: Choice) -> State:
        """How an operand, by its number, is wanted."""

    def own_cost(self, einsum: EinSum, choice: Choice) -> float:
        """What an EinSum costs whatever others choose."""

    def reading_cost(self, einsum: EinSum, choice: Choice, states: Mapping[str, State]) -> float:
        """What it costs to bring those operands whose states are given here into those that a choice wants."""

    def reads(self, einsum: EinSum, choice: Choice) -> int:
        """How often an EinSum reads its operands."""

    def repartition_costs(
        self, tensor: str, before: Sequence[State], wanted: Sequence[tuple[State, int]]
    ) -> NDArray[np.float64]:
        """What changes of state cost: a row for each before, a column for each wanted, read so often."""


class GraphPricing(Pricing, Protocol):
    """The same for all EinSums of a graph."""

    @property
    def graph(self) -> EinGraph:
        """The EinSums."""

    def narrowed(self, choices: Mapping[str, Sequence[Choice]]) -> Self:
        """The same with fewer choices."""


@dataclass(frozen=True, slots=True)
class Task:
    """What may be chosen, and how tensors are there and wanted.

    Attributes:
        model: Prices choices and repartitions.
        choices: Allowed choices by result.
        stored: Tiles in which inputs are stored; one that is absent is free in any.
        layouts: Tiles in which results are delivered; absent where they are not, or as they come.
    """

    model: CostModel
    choices: Mapping[str, Sequence[Choice]]
    stored: Mapping[str, Choice]
    layouts: Mapping[str, Choice]
    _own: dict[tuple[str, Choice], float] = field(default_factory=dict, repr=False)
    _moves: dict[tuple[str, Choice, Choice, int], float] = field(default_factory=dict, repr=False)

    @property
    def graph(self) -> EinGraph:
        """The EinSums."""
        return self.model.graph

    def narrowed(self, choices: Mapping[str, Sequence[Choice]]) -> "Task":
        """The same with fewer choices."""
        return replace(self, choices=choices)

    def result_state(self, einsum: EinSum, choice: Choice) -> State:
        """The tiles in which the result comes out."""
        return result_tiles(einsum, choice)

    def wanted_state(self, einsum: EinSum, index: int, choice: Choice) -> State:
        """The tiles in which an operand is wanted."""
        return reference_tiles(einsum, einsum.operands[index], choice)

    def own_cost(self, einsum: EinSum, choice: Choice) -> float:
        """What an EinSum costs whatever others choose: itself, to read stored inputs, to deliver its result."""
        name = einsum.output.tensor
        known = self._own.get((name, choice))
        if known is None:
            known = self.model.vertex_cost(einsum, choice).seconds + self.reading_cost(einsum, choice, self.stored)
            tiles = result_tiles(einsum, choice)
            known += self.repartition_seconds(name, tiles, self.layouts.get(name, tiles))
            self._own[name, choice] = known
        return known

    def reading_cost(self, einsum: EinSum, choice: Choice, tiles: Mapping[str, Choice]) -> float:
        """What it costs to bring those operands whose tiles are given here into the tiles that a choice wants."""
        reads = self.reads(einsum, choice)
        return sum(
            self.repartition_seconds(
                operand.tensor, tiles[operand.tensor], reference_tiles(einsum, operand, choice), reads
            )
            for operand in einsum.operands
            if operand.tensor in tiles
        )

    def reads(self, einsum: EinSum, choice: Choice) -> int:
        """How often an EinSum reads its operands."""
        return self.model.vertex_cost(einsum, choice).reads

    def repartition_seconds(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> float:
        """What a change of decomposition costs whose result is read so often."""
        if before == after:
            return 0.0
        known = self._moves.get((tensor, before, after, reads))
        if known is None:
            known = self.model.repartition_cost(tensor, before, after, reads)
            self._moves[tensor, before, after, reads] = known
        return known

    def repartition_costs(
        self, tensor: str, before: Sequence[Choice], wanted: Sequence[tuple[Choice, int]]
    ) -> NDArray[np.float64]:
        """Seconds of changes of decomposition: a row for each before, a column for each wanted, read so often."""

        def price(tiles: Choice, after: Choice, reads: int) -> float:
            return self.repartition_seconds(tensor, tiles, after, reads)

        return repartition_table(before, wanted, partial(self.model.sizes_in_repartitions, tensor), price)


def task_of(
    model: CostModel,
    choices: Mapping[str, Sequence[Choice]],
    stored: Mapping[str, Decomposition],
    layouts: Mapping[str, Decomposition],
) -> Task:
    """What may be chosen, from decompositions; see `Task`."""
    return Task(
        model,
        choices,
        {name: decomposition.tiles for name, decomposition in stored.items()},
        {name: layout.tiles for name, layout in layouts.items()},
    )


def choices_within(task: Pricing, einsums: Iterable[EinSum], cost: float) -> dict[str, tuple[Choice, ...]]:
    """The choices without those that no plan makes that costs at most so much, which some plan does.

    Those are they that cost more with every other EinSum as cheap as it gets by itself.
    """
    own: dict[str, dict[Choice, float]] = {}
    for einsum in einsums:
        name = einsum.output.tensor
        own[name] = {choice: task.own_cost(einsum, choice) for choice in task.choices[name]}
    least = {name: min(costs.values()) for name, costs in own.items()}
    slack = cost * (1 + _ROUNDING) - sum(least.values())
    return {
        name: tuple(choice for choice, each in costs.items() if not each - least[name] > slack)
        for name, costs in own.items()
    }
