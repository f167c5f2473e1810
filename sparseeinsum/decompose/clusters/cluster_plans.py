"""Decompose: on a cluster, for every EinSum a local strategy and a distribution of its result, and their cost."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparseeinsum.decompose.clusters.cluster_tasks import ClusterTask, Machines
from sparseeinsum.decompose.clusters.local_strategies import LocalStrategy
from sparseeinsum.decompose.joint import search_jointly
from sparseeinsum.decompose.places.distribution import Distribution, Gridded, Hashed
from sparseeinsum.decompose.search_tasks import Candidate, Choices, GraphPricing, SearchTask, total_cost
from sparseeinsum.language.eingraph import EinSum, Reference

_CANDIDATES_PER_TILING = 8  # plans to search for every one that is asked for, as several have the same tiles


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """How the EinSums of a graph are computed on a cluster, and where their results are.

    Attributes:
        machines: The cluster, with the costs by which plans are compared.
        strategies: The local strategy of every EinSum, by the name of its result.
        distributions: The distribution of every result's table, by its name.
        seconds: Expected seconds of everything.
        cost: What plans are compared by: these seconds, or mostly the bytes that are sent.
    """

    machines: Machines
    strategies: Mapping[str, LocalStrategy]
    distributions: Mapping[str, Distribution]
    seconds: float
    cost: float

    def describe(self, einsum: EinSum) -> str:
        """Where an EinSum reads its operands and writes its result, such as `A by i, B everywhere -> by i`."""
        name = einsum.output.tensor
        strategy = self.strategies[name]
        operands = [
            f"{operand.tensor} {write_distribution(distribution, operand)}"
            for operand, distribution in zip(einsum.operands, strategy.operands, strict=True)
        ]
        partials = ", parts to the coordinator" if strategy.gathers else ""
        if strategy.parts_by is not None:
            partials = f", parts {write_distribution(strategy.result, einsum.output)}"
        return f"{', '.join(operands)}{partials} -> {write_distribution(self.distributions[name], einsum.output)}"


def write_distribution(distribution: Distribution, reference: Reference) -> str:
    """A distribution in words; axes are named by their labels in the reference."""
    match distribution:
        case Hashed():
            return f"by {reference.labels[distribution.axis]}"
        case Gridded(grid, axes):
            labels = ", ".join(reference.labels[axis] for axis in axes if axis is not None)
            return f"by {labels} in {distribution.copies} of {grid.cells} cells" if labels else "everywhere"
        case _:
            return str(distribution)


def search_for_cluster(
    task: SearchTask, machines: Machines, search: Callable[[GraphPricing, int], list[Candidate]], k: int
) -> list[Candidate]:
    """The k cheapest choices of tiles that `search` finds if it prices them on a cluster, best first.

    Grids are searched in place of parts of the best plan without any, so that they never displace a better plan.
    """
    cluster_task = ClusterTask.from_task(task, machines.compared)
    without_grids = search(cluster_task, 1 if k == 1 else k * _CANDIDATES_PER_TILING)
    on_grids = cluster_task.with_grids({name: [choice] for name, choice in without_grids[0].choices})
    candidates: dict[Choices, Candidate] = {}
    for candidate in sorted([*search(on_grids, 1), *without_grids]):
        tiles = cluster_task.tiles_of(candidate.choices)
        candidates.setdefault(tiles, Candidate(candidate.cost, tiles))
    return list(candidates.values())[:k]


def plan_on_cluster(task: SearchTask, machines: Machines) -> ClusterPlan:
    """The cheapest strategies and distributions for a task in which every EinSum has a single choice of tiles."""
    compared = machines.compared
    cluster_task = ClusterTask.from_task(task, compared)
    on_grids = cluster_task.with_grids(cluster_task.choices)
    best = min(search_jointly(cluster_task, 1) + search_jointly(on_grids, 1))
    choices, seconds = dict(best.choices), best.cost
    if compared is not machines:
        seconds = total_cost(on_grids.on_machines(machines), task.graph.einsums, choices, {})
    einsums = {einsum.output.tensor: einsum for einsum in task.graph.einsums}
    return ClusterPlan(
        compared,
        {name: on_grids.strategy(einsum, choices[name]) for name, einsum in einsums.items()},
        {name: on_grids.distribution(einsum, choices[name]) for name, einsum in einsums.items()},
        seconds,
        best.cost,
    )
