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
    bottleneck_copies,
    transfer_bytes,
)
from sparseeinsum.decompose.clusters.ways import LocalStrategy
from sparseeinsum.decompose.clusters.wire import row_bytes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.language.tensors import Decomposition

SMALL_BYTES = 8 << 20  # of what every machine may have whole, and of what the coordinator computes with


@dataclass(frozen=True, slots=True)
class Volume:
    """How much is moved.

    Attributes:
        tuples: How many.
        size_bytes: Of all of them, on their way between machines.
    """

    tuples: float
    size_bytes: float


NOTHING = Volume(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class MovingCosts:
    """What moving costs on a cluster; defaults are of Citus 13.2 with two workers (`bench.moving`).

    Attributes:
        cluster: The machines.
        tuple_seconds: To handle a tuple: to send or to receive it, or to write it into a table.
        byte_seconds: The same for every byte of it.
        gathered_handlings: How often as long the coordinator takes with what a shard has of a group, which Citus's
            aggregates write as text, as with a tuple.
        table_seconds: To create a table on all machines.
        statement_seconds: To start a statement that fills one, or a table of the coordinator.
        small_bytes: Of operands and results together that the coordinator computes with: it serves all, and has the
            memory of one machine.
    """

    cluster: Cluster
    tuple_seconds: float = 6e-7
    byte_seconds: float = 3e-9
    gathered_handlings: float = 5.0
    table_seconds: float = 0.017
    statement_seconds: float = 0.004
    small_bytes: float = SMALL_BYTES

    def moving(self, volume: Volume, before: Distribution, after: Distribution) -> float:
        """To bring a table from one distribution into another, or what was computed in one into a table in another.

        That is another table, but where the statement that reads one of the coordinator has it sent to all machines.
        """
        handling = self._handling(volume, before, after)
        if (before, after) == (Central(), Replicated()):
            return handling
        table = self.table_seconds if isinstance(after, Hashed) else 0.0
        return handling + table + self.statement_seconds

    def filling(self, volume: Volume, way: LocalStrategy, place: Distribution, parts: Volume = NOTHING) -> float:
        """To bring what is computed in a way into a table, put together from parts that are brought before."""
        seconds = self.moving(volume, way.result, place)
        if way.parts_by is not None:
            seconds += self.moving(parts, Scattered(), way.result)
        if way.gathers:
            seconds += self._handling(parts, Scattered(), Central(), self.gathered_handlings)
        return seconds

    def allowed(
        self, ways: Iterable[LocalStrategy], size_bytes: float, is_one_array: bool = False
    ) -> tuple[LocalStrategy, ...]:
        """Those of the ways that leave operands and results of a size together to the machines that share the work.

        The coordinator computes with what is small, and puts arrays together that are to be in one place.
        """
        may_gather = is_one_array or size_bytes <= self.small_bytes
        return tuple(way for way in ways if may_gather or Central() not in way.operands)

    def delivering(self, volume: Volume, place: Distribution, promoted: Sequence[int]) -> float:
        """To have a result with keys of these axes in a table that stays: distributed, or one row on all machines."""
        if place != Central():
            return 0.0
        return self.moving(volume, place, Hashed(promoted[0]) if promoted else Replicated())

    def share(self, way: LocalStrategy, keys: float = math.inf) -> float:
        """The share of the work of a way that the machine has which has most, if this many keys divide it."""
        return 1.0 if way.is_of_one_machine else 1.0 / max(min(self.cluster.sites, keys), 1.0)

    def _handling(self, volume: Volume, before: Distribution, after: Distribution, times: float = 1.0) -> float:
        """What the machine does that all wait for, and the network, through which all bytes go."""
        once = volume.tuples * self.tuple_seconds + volume.size_bytes * self.byte_seconds
        transferred = transfer_bytes(volume.size_bytes, before, after, self.cluster)
        network = transferred / self.cluster.network_bytes_per_second
        return once * times * bottleneck_copies(before, after, self.cluster) + network


def volume_of(model: CostModel, tensor: str, tiles: Choice) -> Volume:
    """Expected of all tuples of a tensor in a decomposition."""
    tuples = model.tuples(tensor, tiles)
    return Volume(tuples, tuples * row_bytes(model.graph.tensors[tensor], Decomposition(tiles)))
