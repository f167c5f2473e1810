"""Algebra, implementation: the cost of plans: floats that sites send to each other, and the work of the busiest site.

Source: section 5.3: a broadcast of f floats costs f times the number of sites, and a shuffle costs f. A transfer to
where tuples are already costs nothing, and tuples of a pending fold count on every site that has some. Plans are
compared by what the busiest site receives and computes. That is the same for plans that use all sites alike; without
it, the best plan would often transfer little because it computes everything on one site.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparseeinsum.algebra.implementation.counts import TupleCounts, busiest_share, count_tuples
from sparseeinsum.algebra.implementation.movement_rules import moves_nothing
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalJoin,
    LocalMap,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.decompose.places.distribution import Replicated


@dataclass(frozen=True, slots=True)
class Sites:
    """The sites that run plans, and their costs.

    Attributes:
        count: The number of sites.
        memory_floats: How many floats a site can hold for the inputs and the result of one operator; None if not
            limited.
        operation_floats: How many floats all sites can transfer in the time of one operation of the busiest site.
        network_share: The weight of a float that is transferred while the busiest site does not wait for it.
        detours: How many additional copies of a broadcast are sent, such as one to the site that sends the others.
    """

    count: int
    memory_floats: float | None = None
    operation_floats: float = 0.01  # 10 Gb/s a site against 10 billion operations a second, on some 10 sites
    network_share: float = 0.1  # enough to prefer, of two plans with equal waiting, the one with less transfer
    detours: int = 0


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The cost of operators.

    Attributes:
        broadcast: The floats of broadcasts, times the sites that receive them.
        shuffled: The floats of shuffles.
        waited: The floats of shuffles if all sites received as many as the busiest one, for which the others wait. That
            is more than `shuffled`, where few values of keys are distributed over many sites.
        operations: The scalar operations of the busiest site.
        mean_operations: The same, if all sites did as many.
        memory: The floats that the busiest site holds, for the operator that needs the most.
    """

    broadcast: float = 0.0
    shuffled: float = 0.0
    waited: float = 0.0
    operations: float = 0.0
    mean_operations: float = 0.0
    memory: float = 0.0

    @property
    def imbalance(self) -> float:
        """The operations of the busiest site, divided by the mean: the number of sites, if one computes everything."""
        return self.operations / self.mean_operations if self.mean_operations else 1.0

    @property
    def transfer(self) -> float:
        """The cost of the paper: the floats that are transferred."""
        return self.broadcast + self.shuffled

    def total(self, sites: Sites) -> float:
        """The cost by which plans are compared, in floats: transfer and work; infinite if the memory is too small."""
        if sites.memory_floats is not None and self.memory > sites.memory_floats:
            return float("inf")
        waiting = self.broadcast + self.waited + self.operations * sites.operation_floats
        return waiting + self.transfer * sites.network_share

    def __add__(self, other: "PlanCost") -> "PlanCost":
        return PlanCost(
            self.broadcast + other.broadcast,
            self.shuffled + other.shuffled,
            self.waited + other.waited,
            self.operations + other.operations,
            self.mean_operations + other.mean_operations,
            max(self.memory, other.memory),
        )


def operator_cost(plan: SitePlan, inputs: Sequence[TupleCounts], output: TupleCounts, sites: Sites) -> PlanCost:
    """The cost of one operator.

    Args:
        plan: The operator.
        inputs: The counts of its inputs.
        output: The counts of its result.
        sites: The sites and their costs.
    """
    shares = [
        busiest_share(counts, operand.distribution, sites.count)
        for counts, operand in zip(inputs, plan.inputs, strict=True)
    ]
    memory = output.floats * busiest_share(output, plan.distribution, sites.count)
    if not isinstance(plan, Broadcast | Shuffle):  # tuples that are sent need no memory where they were
        memory += sum(counts.floats * share for counts, share in zip(inputs, shares, strict=True))
    broadcast, shuffled, waited, operations, share = 0.0, 0.0, 0.0, 0.0, 1.0
    match plan:
        case Broadcast() if not moves_nothing(plan):
            broadcast = inputs[0].floats * (sites.count + sites.detours)
        case Shuffle() if not (moves_nothing(plan) or plan.input.distribution == Replicated()):
            shuffled = inputs[0].floats
            waited = output.floats * sites.count * busiest_share(output, plan.distribution, sites.count)
        case LocalJoin():
            operations_per_pair = plan.kernel.operations(inputs[0].bound, inputs[1].bound)
            operations = operations_per_pair * output.tuples
            share = busiest_share(output, plan.distribution, sites.count)
        case LocalAggregation():
            operations, share = inputs[0].floats, shares[0]
        case LocalMap(_, _, kernel):
            operations, share = kernel.operations(inputs[0].bound) * inputs[0].tuples, shares[0]
    is_repeated = all(operand.distribution == Replicated() for operand in plan.inputs)  # on every site
    mean = operations if is_repeated else operations / sites.count
    return PlanCost(broadcast, shuffled, waited, operations * share, mean, memory)


def cost_by_operator(plans: Iterable[SitePlan], sites: Sites) -> list[tuple[SitePlan, TupleCounts, PlanCost]]:
    """The counts and the cost of every operator of some plans, in order; an operator that several share occurs once."""
    counts: dict[int, TupleCounts] = {}
    costs = []
    for plan in plans:
        for node in topological_order(plan):
            if id(node) in counts:
                continue
            inputs = [counts[id(operand)] for operand in node.inputs]
            counts[id(node)] = count_tuples(node, inputs, sites.count)
            costs.append((node, counts[id(node)], operator_cost(node, inputs, counts[id(node)], sites)))
    return costs


def cost_of(plans: Iterable[SitePlan], sites: Sites) -> PlanCost:
    """The cost of plans that may share parts, which are counted once."""
    return sum((cost for _, _, cost in cost_by_operator(plans, sites)), PlanCost())
