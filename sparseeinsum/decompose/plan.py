"""Decompose: the plan: an EinGraph with a choice for every EinSum, and what it is expected to cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.decompose.cost import Work
from sparseeinsum.decompose.model import (
    Choice,
    CostModel,
    VertexCost,
    promoted_labels,
    promoted_tiles,
    reference_tiles,
    result_tiles,
)
from sparseeinsum.language.eingraph import EinGraph, EinSum, write_einsum
from sparseeinsum.language.tensors import Decomposition, keys_of
from sparseeinsum.semantics.exactness import Absence


@dataclass(frozen=True, slots=True)
class Step:
    """One EinSum of a plan.

    Attributes:
        einsum: What it computes.
        choice: Tiles of its labels.
        cost: Expected work, and how absent tuples are dealt with.
        join_seconds: Of joining tuples and running the kernel.
        aggregation_seconds: Of aggregating pairs.
        repartition_seconds: Of bringing its operands into the decompositions that it wants, every tuple present or kept
            in memory.
    """

    einsum: EinSum
    choice: Choice
    cost: VertexCost
    join_seconds: float
    aggregation_seconds: float
    repartition_seconds: float

    @property
    def promoted(self) -> frozenset[str]:
        """Labels that the database handles."""
        return promoted_labels(self.einsum, self.choice)

    @property
    def absence(self) -> Absence:
        """How absent tuples are dealt with."""
        return self.cost.absence

    @property
    def indexed(self) -> int | None:
        """The operand that is kept in memory and read by index; None where operands are joined."""
        return self.cost.indexed

    @property
    def seconds(self) -> float:
        """Of all of it."""
        return self.join_seconds + self.aggregation_seconds + self.repartition_seconds

    @property
    def notation(self) -> str:
        """The EinSum in upper-case-lower-case notation."""
        return write_einsum(self.einsum, promoted_tiles(self.einsum, self.choice))

    def most_pairs(self, graph: EinGraph) -> int:
        """Tuples of the join that a group has, if every one is present."""
        gone = {
            label: tile
            for label, tile in promoted_tiles(self.einsum, self.choice).items()
            if label not in self.einsum.output.labels
        }
        return math.prod(keys_of(tile, graph.bound_of(self.einsum, label)) for label, tile in gone.items())

    def aggregated_indices(self, graph: EinGraph) -> int:
        """Indices that all aggregated labels have together."""
        return math.prod(graph.bound_of(self.einsum, label) for label in self.einsum.aggregated)

    def operand(self, index: int) -> Decomposition:
        """Decomposition in which an operand is read."""
        return Decomposition(reference_tiles(self.einsum, self.einsum.operands[index], self.choice))

    @property
    def result(self) -> Decomposition:
        """Decomposition in which the result comes out."""
        return Decomposition(result_tiles(self.einsum, self.choice))


@dataclass(frozen=True, slots=True)
class DecomposedGraph:
    """A graph whose every EinSum has a choice.

    Attributes:
        graph: The EinSums.
        steps: One for each, in topological order.
        inputs: Decompositions in which the inputs are stored.
        layouts: Decompositions in which outputs are delivered.
        delivery_seconds: Expected cost of bringing the outputs into their layouts.
        work: Expected work of everything.
    """

    graph: EinGraph
    steps: tuple[Step, ...]
    inputs: Mapping[str, Decomposition]
    layouts: Mapping[str, Decomposition]
    delivery_seconds: float
    work: Work

    @property
    def seconds(self) -> float:
        """Expected cost of everything."""
        return self.delivery_seconds + sum(step.seconds for step in self.steps)

    def step_of(self, name: str) -> Step | None:
        """The step that computes a tensor; None for an input."""
        return next((step for step in self.steps if step.einsum.output.tensor == name), None)


def price_choices(
    model: CostModel,
    choices: Mapping[str, Choice],
    stored: Mapping[str, Decomposition],
    layouts: Mapping[str, Decomposition],
) -> DecomposedGraph:
    """A plan from choices made elsewhere, with its costs.

    Args:
        model: Prices it.
        choices: For every result, the choice of its EinSum.
        stored: Decomposition of every input; an input without one is taken to be there as it is wanted.
        layouts: Decomposition of every output to be delivered; one without is delivered as it comes.
    """
    produced = {name: decomposition.tiles for name, decomposition in stored.items()}
    steps = []
    total = Work()
    for einsum in model.graph.einsums:
        choice = choices[einsum.output.tensor]
        cost = model.vertex_cost(einsum, choice)
        moved = cost.filling
        for operand in einsum.operands:
            wanted = reference_tiles(einsum, operand, choice)
            moved += model.repartition_work(operand.tensor, produced.get(operand.tensor, wanted), wanted)
        produced[einsum.output.tensor] = result_tiles(einsum, choice)
        parts = (cost.join, cost.aggregation, moved)
        total = sum(parts, total)
        steps.append(Step(einsum, choice, cost, *(work.seconds(model.constants) for work in parts)))
    delivered = {name: layouts.get(name, Decomposition(produced[name])) for name in model.graph.outputs}
    deliveries = (model.repartition_work(name, produced[name], layout.tiles) for name, layout in delivered.items())
    delivery = sum(deliveries, Work())
    seconds = delivery.seconds(model.constants)
    return DecomposedGraph(model.graph, tuple(steps), stored, delivered, seconds, total + delivery)
