"""Decompose: the plan: an EinGraph with a choice for every EinSum, and what it is expected to cost."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.decompose.model import Choice, CostModel, VertexCost, promoted_labels, reference_tiles, result_tiles
from sparseeinsum.language.eingraph import EinGraph, EinSum, write_einsum
from sparseeinsum.language.tensors import Decomposition
from sparseeinsum.semantics import Absence


@dataclass(frozen=True, slots=True)
class Step:
    """One EinSum of a plan.

    Attributes:
        einsum: What it computes.
        choice: Tiles of its labels.
        absence: How absent tuples are dealt with.
        cost: Expected work.
        repartition_seconds: Of bringing its operands into the decompositions that it wants.
    """

    einsum: EinSum
    choice: Choice
    absence: Absence
    cost: VertexCost
    repartition_seconds: float

    @property
    def promoted(self) -> frozenset[str]:
        """Labels that the database handles."""
        return promoted_labels(self.einsum, self.choice)

    @property
    def notation(self) -> str:
        """The EinSum in upper-case-lower-case notation."""
        return write_einsum(self.einsum, self.promoted)

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
    """

    graph: EinGraph
    steps: tuple[Step, ...]
    inputs: Mapping[str, Decomposition]
    layouts: Mapping[str, Decomposition]
    delivery_seconds: float

    @property
    def seconds(self) -> float:
        """Expected cost of everything."""
        return self.delivery_seconds + sum(step.cost.seconds + step.repartition_seconds for step in self.steps)

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
    for einsum in model.graph.einsums:
        choice = choices[einsum.output.tensor]
        repartition = 0.0
        for operand in einsum.operands:
            wanted = reference_tiles(einsum, operand, choice)
            repartition += model.repartition_cost(operand.tensor, produced.get(operand.tensor, wanted), wanted)
        produced[einsum.output.tensor] = result_tiles(einsum, choice)
        cost = model.vertex_cost(einsum, choice)
        steps.append(Step(einsum, choice, model.absence(einsum, choice), cost, repartition))
    delivered = {name: layouts.get(name, Decomposition(produced[name])) for name in model.graph.outputs}
    delivery = sum(
        model.repartition_cost(name, produced[name], decomposition.tiles) for name, decomposition in delivered.items()
    )
    return DecomposedGraph(model.graph, tuple(steps), stored, delivered, delivery)
