"""Decompose: the plan: an EinGraph with a choice for every EinSum, and its expected cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparseeinsum.decompose.choice import Choice, promoted_labels, promoted_tiles, result_tiles
from sparseeinsum.decompose.clusters.cluster_plans import ClusterPlan, plan_on_cluster
from sparseeinsum.decompose.clusters.cluster_tasks import Machines
from sparseeinsum.decompose.compressed_access import RowOrder
from sparseeinsum.decompose.cost import CostConstants, Work
from sparseeinsum.decompose.fused_products import FusedProduct, PricedEinSum, fused_product
from sparseeinsum.decompose.memory_footprint import Passes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.repartitions import Repartition
from sparseeinsum.decompose.search_tasks import task_of
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference, write_einsum
from sparseeinsum.language.tensors import Decomposition, count_keys
from sparseeinsum.semantics.exactness import Absence

_SHARED_SECONDS = 0.002  # of a join, for which it pays to let threads share it: that takes an operator

_NEARLY_ALL = 0.9  # of all tuples
_NARROW = 64  # elements of arrays that are copied in no time, as SQL does where some are filled in


@dataclass(frozen=True, slots=True)
class Step:
    """One EinSum of a plan.

    Attributes:
        einsum: The EinSum.
        choice: Tiles of its labels.
        cost: Expected work, and how absent tuples are treated.
        join_seconds: To join tuples and run the kernel.
        aggregation_seconds: To aggregate the joined pairs.
        repartition_seconds: To bring the operands into their decompositions, once for every pass; to add their absent
            tuples, or to load them into memory, where the step needs that; and to store or to collect its result.
        fused: The product of three operands that computes this EinSum and the one that it reads; None if there is none.
        computed_in: The result whose step computes this one at once with its own; empty if it has a step of its own.
    """

    einsum: EinSum
    choice: Choice
    cost: VertexCost
    join_seconds: float
    aggregation_seconds: float
    repartition_seconds: float
    fused: FusedProduct | None = None
    computed_in: str = ""

    @property
    def read(self) -> tuple[Reference, ...]:
        """The tensors that it reads."""
        return self.einsum.operands if self.fused is None else self.fused.einsum.operands

    @property
    def promoted(self) -> frozenset[str]:
        """Labels that are key columns."""
        return promoted_labels(self.einsum, self.choice)

    @property
    def absence(self) -> Absence:
        """How absent tuples are treated."""
        return self.cost.absence

    @property
    def passes(self) -> Passes | None:
        """The passes that compute the EinSum; None if one is enough."""
        return self.cost.passes

    @property
    def indexed(self) -> int | None:
        """The number of the operand that is kept in memory and read by index; None if operands are joined."""
        return self.cost.indexed

    @property
    def orders(self) -> Mapping[int, RowOrder]:
        """How operands are ordered by row in memory, by their numbers; the first has the rows of the result."""
        return self.cost.orders

    @property
    def seconds(self) -> float:
        """Expected seconds of the whole step."""
        return self.join_seconds + self.aggregation_seconds + self.repartition_seconds

    def fills_rows(self, graph: EinGraph) -> bool:
        """Whether it has a tuple for every key because nearly all are expected, and all are computed anyway.

        What reads all tuples need not look for absent ones then.
        """
        computes_rows = self.cost.has_whole_groups and self.indexed is not None and self.passes is None
        if not computes_rows or self.fused is not None:
            return False
        shape = graph.tensors[self.einsum.output.tensor].shape
        is_narrow = self.result.array_size(shape) <= _NARROW
        return is_narrow and self.cost.tuples >= _NEARLY_ALL * self.result.max_tuples(shape)

    @property
    def is_brief(self) -> bool:
        """Whether it takes so little time that threads gain less by sharing it than it takes to let them."""
        return self.join_seconds < _SHARED_SECONDS

    @property
    def notation(self) -> str:
        """The EinSum, promoted labels in upper case, with a comment if it is computed in passes."""
        written = write_einsum(self.einsum, promoted_tiles(self.einsum, self.choice))
        return (
            written if self.passes is None else f"{written}  # in {self.passes.count} passes over {self.passes.label}"
        )

    def most_pairs(self, graph: EinGraph) -> int:
        """The largest possible number of joined pairs in one group: the product of keys of the aggregated labels."""
        aggregated = {
            label: tile
            for label, tile in promoted_tiles(self.einsum, self.choice).items()
            if label not in self.einsum.output.labels
        }
        return math.prod(count_keys(tile, graph.bound_of(self.einsum, label)) for label, tile in aggregated.items())

    def aggregated_indices(self, graph: EinGraph) -> int:
        """The product of the bounds of the aggregated labels."""
        return math.prod(graph.bound_of(self.einsum, label) for label in self.einsum.aggregated)

    def operand(self, index: int) -> Decomposition:
        """The decomposition in which operand `index` is read."""
        return Decomposition(self.cost.operand_tiles(self.einsum, index, self.choice))

    @property
    def result(self) -> Decomposition:
        """The decomposition of the result."""
        return Decomposition(result_tiles(self.einsum, self.choice))


@dataclass(frozen=True, slots=True)
class DecomposedGraph:
    """A graph with a choice for every EinSum.

    Attributes:
        graph: The EinSums.
        steps: A step for every EinSum, in topological order.
        inputs: Decompositions in which the inputs are stored.
        layouts: Decompositions in which outputs are delivered.
        repartitions: How tensors are brought into the decompositions in which they are read or delivered.
        delivery_seconds: Expected seconds to bring the outputs into their layouts.
        run_seconds: Expected seconds of a run that does nothing.
        work: Expected work of everything.
        cluster_plan: Local strategies and distributions on a cluster; None on one machine.
    """

    graph: EinGraph
    steps: tuple[Step, ...]
    inputs: Mapping[str, Decomposition]
    layouts: Mapping[str, Decomposition]
    repartitions: Mapping[tuple[str, Decomposition], Repartition]
    delivery_seconds: float
    run_seconds: float
    work: Work
    cluster_plan: ClusterPlan | None = None

    @property
    def seconds(self) -> float:
        """Expected seconds of a run."""
        return self.run_seconds + self.work_seconds

    @property
    def cost(self) -> float:
        """What plans are compared by: seconds, or on a cluster also bytes; see `ClusterPlan`."""
        return self.seconds if self.cluster_plan is None else self.run_seconds + self.cluster_plan.cost

    @property
    def work_seconds(self) -> float:
        """Expected seconds of all work; on a cluster, with transfers, and with work that machines share."""
        if self.cluster_plan is not None:
            return self.cluster_plan.seconds
        return self.delivery_seconds + sum(step.seconds for step in self.steps)

    @property
    def impossible(self) -> tuple[str, Decomposition] | None:
        """A tensor and the decomposition into which it cannot be brought in the memory limit; None if there is none."""
        return next((key for key, repartition in self.repartitions.items() if not repartition.is_possible), None)

    @property
    def choices(self) -> dict[str, Choice]:
        """The choice of every EinSum, by the name of its result."""
        return {step.einsum.output.tensor: step.choice for step in self.steps}

    def step_of(self, name: str) -> Step | None:
        """The step that computes the tensor `name`; None if it is an input."""
        return next((step for step in self.steps if step.einsum.output.tensor == name), None)


@dataclass(frozen=True, slots=True)
class _StepWork:
    """The work of a step.

    Attributes:
        priced: The EinSum with its choice and cost.
        join: To join tuples and run the kernel.
        aggregation: To aggregate joined pairs.
        filling: To add absent tuples, or to load operands into memory; to read operands again.
        moving: To bring operands into their decompositions, and the result into a table that several read, or to the
            user.
        fused: As in `Step`.
        computed_in: As in `Step`.
    """

    priced: PricedEinSum
    join: Work
    aggregation: Work
    filling: Work
    moving: Work
    fused: FusedProduct | None = None
    computed_in: str = ""

    @property
    def computing(self) -> Work:
        """The work of the join, of the aggregation, and of filling in absent tuples."""
        return self.join + self.aggregation + self.filling

    @property
    def total(self) -> Work:
        """All work, with that of moving operands."""
        return self.computing + self.moving

    def step(self, constants: CostConstants) -> Step:
        """The step with its expected seconds."""
        join, aggregation, reading = (
            work.seconds(constants) for work in (self.join, self.aggregation, self.filling + self.moving)
        )
        priced = self.priced
        return Step(priced.einsum, priced.choice, priced.cost, join, aggregation, reading, self.fused, self.computed_in)

    def at_once_with(self, read: "_StepWork", product: FusedProduct) -> "_StepWork":
        """The work of one product in place of this step and of one that it reads."""
        return replace(
            self,
            join=product.work,
            aggregation=Work(),
            filling=product.keeping,
            moving=self.moving + read.moving,
            fused=product,
        )


def _fuse(steps: dict[str, _StepWork], model: CostModel) -> None:
    """Let steps compute the EinSum that they read at once with their own, where that is expected to take less time."""
    read_once = model.graph.read_once()
    for name in list(steps):
        for operand in steps[name].priced.einsum.operands:
            reading, read = steps[name], steps.get(operand.tensor)
            if read is None or operand.tensor not in read_once or reading.fused is not None or read.fused is not None:
                continue
            product = fused_product(model, reading.priced, read.priced)
            before = (reading.computing + read.computing).seconds(model.constants)
            if product is not None and product.seconds(model.constants) < before:
                steps[name], nothing = reading.at_once_with(read, product), Work()
                steps[operand.tensor] = _StepWork(read.priced, nothing, nothing, nothing, nothing, computed_in=name)


def _operand_repartitions(
    model: CostModel, einsum: EinSum, choice: Choice, reads: int, tiles_of: Mapping[str, Choice]
) -> list[tuple[tuple[str, Decomposition], Repartition]]:
    """How each operand of an EinSum is brought into the decomposition that it needs, by name and decomposition.

    Args:
        model: The cost model.
        einsum: The EinSum.
        choice: Tiles of its labels.
        reads: How often it reads its operands.
        tiles_of: The tiles of tensors as they are stored or computed, by name; others may be read in any at no cost.
    """
    repartitions = []
    for index, operand in enumerate(einsum.operands):
        required = model.operand_tiles(einsum, index, choice)
        current = tiles_of.get(operand.tensor, required)
        repartition = model.repartitions.cheapest(operand.tensor, current, required, reads)
        repartitions.append(((operand.tensor, Decomposition(required)), repartition))
    return repartitions


def price_choices(
    model: CostModel,
    choices: Mapping[str, Choice],
    stored: Mapping[str, Decomposition],
    layouts: Mapping[str, Decomposition],
    machines: Machines | None = None,
) -> DecomposedGraph:
    """The plan that follows from a choice for every EinSum, with its costs.

    Args:
        model: The cost model.
        choices: The choice of every EinSum, by the name of its result.
        stored: Decompositions of the inputs; an input without one can be read in any at no cost.
        layouts: Decompositions in which outputs are delivered; an output without one is delivered as it is computed.
        machines: The cluster that the plan is for; None for one machine.
    """
    tiles_of = {name: decomposition.tiles for name, decomposition in stored.items()}
    steps: dict[str, _StepWork] = {}
    repartitions: dict[tuple[str, Decomposition], Repartition] = {}
    for einsum in model.graph.einsums:
        choice = choices[einsum.output.tensor]
        cost = model.vertex_cost(einsum, choice)
        read = _operand_repartitions(model, einsum, choice, cost.reads, tiles_of)
        for decomposed, repartition in read:
            if repartition.passes is not None:
                # It goes into a table, which every other reader of this decomposition shares.
                repartitions[decomposed] = repartition
            repartitions.setdefault(decomposed, repartition)
        moving = sum([repartition.work for _, repartition in read], Work()) + cost.storing
        tiles_of[einsum.output.tensor] = result_tiles(einsum, choice)
        filling = cost.filling + cost.rereading
        priced = PricedEinSum(einsum, choice, cost)
        steps[einsum.output.tensor] = _StepWork(priced, cost.join, cost.aggregation, filling, moving)
    if model.resident_bytes > 0:
        _fuse(steps, model)
    total = sum([work.total for work in steps.values()], Work())
    delivered = {name: layouts.get(name, Decomposition(tiles_of[name])) for name in model.graph.outputs}
    for name, layout in delivered.items():
        repartitions.setdefault((name, layout), model.repartitions.cheapest(name, tiles_of[name], layout.tiles))
    delivery = sum((repartitions[output].work for output in delivered.items()), Work())
    seconds = delivery.seconds(model.constants)
    work = total + delivery
    cluster_plan = None
    if machines is not None:
        single_choices = {name: (choice,) for name, choice in choices.items()}
        cluster_plan = plan_on_cluster(task_of(model, single_choices, stored, layouts), machines)
    return DecomposedGraph(
        model.graph,
        tuple([work.step(model.constants) for work in steps.values()]),
        stored,
        delivered,
        repartitions,
        seconds,
        model.constants.fixed_seconds_per_run,
        work,
        cluster_plan,
    )
