"""Decompose: the plan: an EinGraph with a choice for every EinSum, and what it is expected to cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.decompose.choice import Choice, promoted_labels, promoted_tiles, reference_tiles, result_tiles
from sparseeinsum.decompose.clusters.pricing import Machines
from sparseeinsum.decompose.clusters.spreading import Spreading, spread
from sparseeinsum.decompose.cost import Work
from sparseeinsum.decompose.memory import Passes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.moves import Move
from sparseeinsum.decompose.search import task_of
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.eingraph import EinGraph, EinSum, write_einsum
from sparseeinsum.language.tensors import Decomposition, count_keys
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
        repartition_seconds: Of bringing its operands into the decompositions that it wants, once for every pass, every
            tuple present or kept in memory.
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
    def passes(self) -> Passes | None:
        """In which it is computed; None where one is enough."""
        return self.cost.passes

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
        """The EinSum in upper-case-lower-case notation, and a comment that tells of passes."""
        written = write_einsum(self.einsum, promoted_tiles(self.einsum, self.choice))
        return (
            written if self.passes is None else f"{written}  # in {self.passes.count} passes over {self.passes.label}"
        )

    def most_pairs(self, graph: EinGraph) -> int:
        """Tuples of the join that a group has, if every one is present."""
        gone = {
            label: tile
            for label, tile in promoted_tiles(self.einsum, self.choice).items()
            if label not in self.einsum.output.labels
        }
        return math.prod(count_keys(tile, graph.bound_of(self.einsum, label)) for label, tile in gone.items())

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
        moves: How tensors get into the decompositions in which they are read or delivered.
        delivery_seconds: Expected cost of bringing the outputs into their layouts.
        work: Expected work of everything.
        spreading: Where results lie on a cluster; None on one machine.
    """

    graph: EinGraph
    steps: tuple[Step, ...]
    inputs: Mapping[str, Decomposition]
    layouts: Mapping[str, Decomposition]
    moves: Mapping[tuple[str, Decomposition], Move]
    delivery_seconds: float
    work: Work
    spreading: Spreading | None = None

    @property
    def seconds(self) -> float:
        """Expected cost of everything: on a cluster, whose machines share the work and wait for what they send."""
        if self.spreading is not None:
            return self.spreading.seconds
        return self.delivery_seconds + sum(step.seconds for step in self.steps)

    @property
    def impossible(self) -> tuple[str, Decomposition] | None:
        """A tensor and a decomposition that the memory is too small to bring it into; None where there is none."""
        return next((each for each, move in self.moves.items() if not move.is_possible), None)

    def step_of(self, name: str) -> Step | None:
        """The step that computes a tensor; None for an input."""
        return next((step for step in self.steps if step.einsum.output.tensor == name), None)


def price_choices(
    model: CostModel,
    choices: Mapping[str, Choice],
    stored: Mapping[str, Decomposition],
    layouts: Mapping[str, Decomposition],
    machines: Machines | None = None,
) -> DecomposedGraph:
    """A plan from choices made elsewhere, with its costs.

    Args:
        model: Prices it.
        choices: For every result, the choice of its EinSum.
        stored: Decomposition of every input; an input without one is taken to be there as it is wanted.
        layouts: Decomposition of every output to be delivered; one without is delivered as it comes.
        machines: A cluster, where the plan is for one; then its results get places there.
    """
    produced = {name: decomposition.tiles for name, decomposition in stored.items()}
    steps = []
    moves: dict[tuple[str, Decomposition], Move] = {}
    total = Work()
    for einsum in model.graph.einsums:
        choice = choices[einsum.output.tensor]
        cost = model.vertex_cost(einsum, choice)
        moved = cost.filling + cost.rereading
        for operand in einsum.operands:
            wanted = reference_tiles(einsum, operand, choice)
            given = produced.get(operand.tensor, wanted)
            move = model.move(operand.tensor, given, wanted, cost.reads)
            moved += move.work
            if move.passes is not None:
                moves[operand.tensor, Decomposition(wanted)] = move  # in a table, for whoever else reads it so
            moves.setdefault((operand.tensor, Decomposition(wanted)), move)
        produced[einsum.output.tensor] = result_tiles(einsum, choice)
        parts = (cost.join, cost.aggregation, moved)
        total = sum(parts, total)
        steps.append(Step(einsum, choice, cost, *(work.seconds(model.constants) for work in parts)))
    delivered = {name: layouts.get(name, Decomposition(produced[name])) for name in model.graph.outputs}
    for name, layout in delivered.items():
        moves.setdefault((name, layout), model.move(name, produced[name], layout.tiles))
    delivery = sum((moves[each].work for each in delivered.items()), Work())
    seconds = delivery.seconds(model.constants)
    work = total + delivery
    spreading = None
    if machines is not None:
        spreading = spread(task_of(model, {name: (each,) for name, each in choices.items()}, stored, layouts), machines)
    return DecomposedGraph(model.graph, tuple(steps), stored, delivered, moves, seconds, work, spreading)
