"""Decompose: what it takes, in seconds, to move bytes between the machines of a cluster and to fill tables on them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.clusters.distribution import (
    Central,
    Cluster,
    Distribution,
    Hashed,
    Replicated,
    Scattered,
    transfer_bytes,
    waited_bytes,
)
from sparseeinsum.decompose.clusters.ways import Way
from sparseeinsum.decompose.clusters.wire import row_bytes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.language.tensors import Decomposition

SMALL_BYTES = 8 << 20  # of what every machine may have whole, and of what the coordinator computes with


@dataclass(frozen=True, slots=True)
class MovingCosts:
    """What moving costs on a cluster; defaults are of Citus 13.2 with two workers, 20 MB of arrays or of numbers.

    Attributes:
        cluster: The machines.
        transfer_seconds: To bring a byte from one machine to another, with what both do for that.
        network_share: What a byte counts that moves without others waiting for it: enough that of two plans for which
            all wait as long the one that moves less is better.
        writing_seconds: To write a byte that is in a table into another one.
        table_seconds: To create a table on all machines and to start the statement that fills it.
        small_bytes: Of operands and results together that the coordinator computes with: it serves all, and has the
            memory of one machine.
    """

    cluster: Cluster
    transfer_seconds: float = 1e-8
    network_share: float = 0.1
    writing_seconds: float = 3e-9
    table_seconds: float = 0.012
    small_bytes: float = SMALL_BYTES

    def moving(self, size_bytes: float, before: Distribution, after: Distribution) -> float:
        """To bring a table of a size from one distribution into another.

        That is another table, but where the statement that reads one of the coordinator has it sent to all machines.
        """
        if (before, after) == (Central(), Replicated()):
            return self._sent(size_bytes, before, after)
        return self._sent(size_bytes, before, after) + size_bytes * self.writing_seconds + self.table_seconds

    def filling(self, size_bytes: float, way: Way, place: Distribution, parts: float = 0.0) -> float:
        """To bring what is computed in a way, of a size, into a table, after so many bytes of parts were brought."""
        seconds = self.moving(size_bytes, way.result, place)
        if way.parts_by is not None:
            seconds += self.moving(parts, Scattered(), way.result)
        return seconds + self._sent(parts, Scattered(), Central()) if way.gathers else seconds

    def allowed(self, ways: Iterable[Way], size_bytes: float, is_one_array: bool = False) -> tuple[Way, ...]:
        """Those of the ways that leave operands and results of a size together to the machines that share the work.

        The coordinator computes with what is small, and puts arrays together that are to be in one place.
        """
        may_gather = is_one_array or size_bytes <= self.small_bytes
        return tuple(way for way in ways if may_gather or Central() not in way.operands)

    def delivering(self, size_bytes: float, place: Distribution, promoted: Sequence[int]) -> float:
        """To have a result with keys of these axes in a table that stays, whose rows are distributed."""
        if place != Central() or not promoted:
            return 0.0
        return self.moving(size_bytes, place, Hashed(promoted[0]))

    def share(self, way: Way, keys: float = math.inf) -> float:
        """The share of the work of a way that the machine has which has most, if this many keys divide it."""
        return 1.0 if way.is_of_one_machine else 1.0 / max(min(self.cluster.sites, keys), 1.0)

    def _sent(self, size_bytes: float, before: Distribution, after: Distribution) -> float:
        """Seconds that all wait for what is sent, and a share of what others send meanwhile."""
        waited = waited_bytes(size_bytes, before, after, self.cluster)
        transferred = transfer_bytes(size_bytes, before, after, self.cluster)
        return (waited + self.network_share * transferred) * self.transfer_seconds


def table_bytes(model: CostModel, tensor: str, tiles: Choice) -> float:
    """Expected bytes of all tuples of a tensor in a decomposition, on their way between machines."""
    return model.tuples(tensor, tiles) * row_bytes(model.graph.tensors[tensor], Decomposition(tiles))
