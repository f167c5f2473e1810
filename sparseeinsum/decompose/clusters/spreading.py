"""Decompose: choices for all EinSums in, where their results lie on a cluster and how they are computed there out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparseeinsum.decompose.clusters.distribution import Central, Distribution, Hashed, Replicated, Scattered
from sparseeinsum.decompose.clusters.pricing import Machines, SpreadTask
from sparseeinsum.decompose.clusters.ways import LocalStrategy
from sparseeinsum.decompose.joint import search_jointly
from sparseeinsum.decompose.search import Candidate, Choices, GraphPricing, Task
from sparseeinsum.language.eingraph import EinSum, Reference


@dataclass(frozen=True, slots=True)
class Spreading:
    """Where the results of EinSums lie on several machines, by name.

    Attributes:
        machines: The cluster.
        ways: How they are computed.
        places: Where their tables lie.
        seconds: Expected of all of it.
    """

    machines: Machines
    ways: Mapping[str, LocalStrategy]
    places: Mapping[str, Distribution]
    seconds: float

    def write(self, einsum: EinSum) -> str:
        """How an EinSum is computed: where its operands are read, and where its result goes.

        Such as `A by i, B everywhere -> by i`.
        """
        name = einsum.output.tensor
        way = self.ways[name]
        read = [
            f"{each.tensor} {write_place(place, each)}"
            for each, place in zip(einsum.operands, way.operands, strict=True)
        ]
        parts = ", parts to the coordinator" if way.gathers else ""
        parts = f", parts {write_place(way.result, einsum.output)}" if way.parts_by is not None else parts
        return f"{', '.join(read)}{parts} -> {write_place(self.places[name], einsum.output)}"


def write_place(place: Distribution, reference: Reference) -> str:
    """Where a tensor lies, in words."""
    match place:
        case Hashed(axis):
            return f"by {reference.labels[axis]}"
        case Replicated():
            return "everywhere"
        case Scattered():
            return "scattered"
        case Central():
            return "at the coordinator"


_WAYS_OF_EACH = 8  # plans in the same tiles that are looked at for every one that is wanted


def search_spread(
    task: Task, machines: Machines, search: Callable[[GraphPricing, int], list[Candidate]], k: int
) -> list[Candidate]:
    """The k cheapest choices of tiles that a search finds for a cluster, best first."""
    spread_task = SpreadTask.of(task, machines)
    found: dict[Choices, Candidate] = {}
    for each in search(spread_task, 1 if k == 1 else k * _WAYS_OF_EACH):
        tiles = spread_task.tiles_of(each.choices)
        found.setdefault(tiles, Candidate(each.cost, tiles))
    return list(found.values())[:k]


def spread(task: Task, machines: Machines) -> Spreading:
    """The cheapest ways and places found for EinSums that have one choice each."""
    chosen = SpreadTask.of(task, machines)
    (best,) = search_jointly(chosen, 1)
    found = dict(best.choices)
    einsums = {each.output.tensor: each for each in task.graph.einsums}
    return Spreading(
        machines,
        {name: chosen.way(einsum, found[name]) for name, einsum in einsums.items()},
        {name: chosen.place(einsum, found[name]) for name, einsum in einsums.items()},
        best.cost,
    )
