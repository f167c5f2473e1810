"""Algebra, implementation: what plans cost: floats moved between sites, and the work of the busiest site.

Source: section 5.3: a broadcast of f floats costs f times the number of sites, a shuffle f. What lies already where it
is to go costs nothing, and tuples that wait to be folded are counted on every site that has some. Plans are compared by
what the busiest site receives and computes, which for plans that use all sites alike is the same: else the best one
would often move little because it computes all on one site.
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


@dataclass(frozen=True, slots=True)
class Sites:
    """What plans run on.

    Attributes:
        count: How many sites there are.
        memory_floats: That each has for what one operator reads and makes; None for as many as it takes.
        operation_floats: How many floats could be moved, in all, in the time of one operation of the busiest site.
        network_share: What a float counts that moves without the busiest site waiting for it.
        detours: How often what is broadcast is sent besides once to every site, as to where it is sent from.
    """

    count: int
    memory_floats: float | None = None
    operation_floats: float = 0.01  # 10 Gb/s a site against 10 billion operations a second, on some 10 sites
    network_share: float = 0.1  # enough that of two plans for which all wait as long the one that moves less is better
    detours: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    """What operators take.

    Attributes:
        broadcast: Floats, times the sites that they go to.
        shuffled: Floats.
        waited: The same as if all sites received as many as the busiest one does, for which the others wait: more
            than those shuffled, where few values of keys are spread over many sites.
        operations: Of the busiest site.
        memory: Floats of the busiest site, of the operator that has the most.
    """

    broadcast: float = 0.0
    shuffled: float = 0.0
    waited: float = 0.0
    operations: float = 0.0
    memory: float = 0.0

    @property
    def transfer(self) -> float:
        """The paper's cost: floats moved."""
        return self.broadcast + self.shuffled

    def total(self, sites: Sites) -> float:
        """What plans are compared by, in floats: what moves, and work; infinite where the memory is too small."""
        if sites.memory_floats is not None and self.memory > sites.memory_floats:
            return float("inf")
        waiting = self.broadcast + self.waited + self.operations * sites.operation_floats
        return waiting + self.transfer * sites.network_share

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.broadcast + other.broadcast,
            self.shuffled + other.shuffled,
            self.waited + other.waited,
            self.operations + other.operations,
            max(self.memory, other.memory),
        )


def operator_cost(plan: SitePlan, inputs: Sequence[TupleCounts], made: TupleCounts, sites: Sites) -> Cost:
    """Of one operator, from the tuples that it reads and makes."""
    shares = [
        busiest_share(counts, each.placement, sites.count) for counts, each in zip(inputs, plan.inputs, strict=True)
    ]
    memory = made.floats * busiest_share(made, plan.placement, sites.count)
    if not isinstance(plan, Broadcast | Shuffle):  # what moves is gone where it was
        memory += sum(counts.floats * share for counts, share in zip(inputs, shares, strict=True))
    broadcast, shuffled, waited, operations = 0.0, 0.0, 0.0, 0.0
    match plan:
        case Broadcast() if not moves_nothing(plan):
            broadcast = inputs[0].floats * (sites.count + sites.detours)
        case Shuffle() if not (moves_nothing(plan) or plan.input.placement.is_everywhere):
            shuffled = inputs[0].floats
            waited = made.floats * sites.count * busiest_share(made, plan.placement, sites.count)
        case LocalJoin():
            each = plan.kernel.operations(inputs[0].bound, inputs[1].bound)
            operations = each * made.tuples * busiest_share(made, plan.placement, sites.count)
        case LocalAggregation():
            operations = inputs[0].floats * shares[0]
        case LocalMap(_, _, kernel):
            operations = kernel.operations(inputs[0].bound) * inputs[0].tuples * shares[0]
    return Cost(broadcast, shuffled, waited, operations, memory)


def cost_by_operator(plans: Iterable[SitePlan], sites: Sites) -> list[tuple[SitePlan, TupleCounts, Cost]]:
    """Tuples and cost of every operator of some plans, in order; of one that several of them read, once."""
    counts: dict[int, TupleCounts] = {}
    found = []
    for plan in plans:
        for each in topological_order(plan):
            if id(each) in counts:
                continue
            inputs = [counts[id(operand)] for operand in each.inputs]
            counts[id(each)] = count_tuples(each, inputs, sites.count)
            found.append((each, counts[id(each)], operator_cost(each, inputs, counts[id(each)], sites)))
    return found


def cost_of(plan: SitePlan, sites: Sites) -> Cost:
    """Of a whole plan."""
    return sum((cost for _, _, cost in cost_by_operator([plan], sites)), Cost())


def transfer(plan: SitePlan, sites: int) -> float:
    """Floats that a plan moves between so many sites."""
    return cost_of(plan, Sites(sites)).transfer
