"""Decompose: the seconds that a cluster takes to transfer tuples between its machines and to fill tables there."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.clusters.local_strategies import LocalStrategy
from sparseeinsum.decompose.clusters.transfers import Cluster, bottleneck_copies, transfer_bytes
from sparseeinsum.decompose.clusters.wire import CELL_BYTES, keys_bytes, row_bytes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.places.distribution import Central, Distribution, Gridded, Hashed, Replicated, Scattered
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import Decomposition, Tensor

SMALL_BYTES = (
    8 << 20
)  # tensors of up to this size are replicated, and EinSums of up to this size run on the coordinator


@dataclass(frozen=True, slots=True)
class Volume:
    """An amount of data.

    Attributes:
        tuples: Number of tuples.
        size_bytes: Bytes of all tuples in the wire format.
    """

    tuples: float
    size_bytes: float

    def in_place(self, distribution: Distribution) -> "Volume":
        """The data in a distribution: tuples in a grid have a column with their cell."""
        cells = CELL_BYTES if isinstance(distribution, Gridded) else 0
        return Volume(self.tuples, self.size_bytes + self.tuples * cells)


NOTHING = Volume(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class TransferCosts:
    """Costs of transfers on a cluster. `bench.moving` measured the defaults on Citus 13.2 with two workers.

    Attributes:
        cluster: The machines.
        tuple_seconds: To send a tuple, to receive it, or to write it into a table.
        byte_seconds: The same for every byte of it.
        gathering_factor: How many times longer the coordinator takes for the partial result of a group than for a
            tuple, because Citus's aggregates send partial results as text.
        table_seconds: To create a table on all machines.
        statement_seconds: To start a statement that fills a table, distributed or on the coordinator.
        small_bytes: The largest size, operands and results together, that the coordinator computes with. It serves all
            connections, but has the memory of one machine.
    """

    cluster: Cluster
    tuple_seconds: float = 6e-7
    byte_seconds: float = 3e-9
    gathering_factor: float = 5.0
    table_seconds: float = 0.017
    statement_seconds: float = 0.004
    small_bytes: float = SMALL_BYTES

    def of_bytes(self) -> "TransferCosts":
        """Costs by which plans send the fewest bytes: a second for every byte, so that all else hardly counts."""
        return replace(self, cluster=replace(self.cluster, network_bytes_per_second=1.0))

    def transfer_seconds(self, volume: Volume, before: Distribution, after: Distribution) -> float:
        """Seconds to bring tuples from the distribution `before` into a table with the distribution `after`.

        From the coordinator to all machines takes no table: the statement that reads the coordinator's table has its
        rows sent to all machines.
        """
        sending = self._sending_seconds(volume.in_place(after), before, after)
        if (before, after) == (Central(), Replicated()):
            return sending
        table = self.table_seconds if isinstance(after, Hashed | Gridded) else 0.0
        return sending + table + self.statement_seconds

    def filling_seconds(
        self, volume: Volume, strategy: LocalStrategy, distribution: Distribution, partials: Volume = NOTHING
    ) -> float:
        """Seconds to bring the results of a local strategy into a table.

        Args:
            volume: The results.
            strategy: How they are computed.
            distribution: That of the table.
            partials: The partial results that are combined first, if the strategy makes any.
        """
        seconds = self.transfer_seconds(volume, strategy.result, distribution)
        if strategy.parts_by is not None:
            seconds += self.transfer_seconds(partials, Scattered(), strategy.result)
        if strategy.gathers:
            seconds += self._sending_seconds(partials, Scattered(), Central(), self.gathering_factor)
        return seconds

    def saving_of_sharing(self, volume: Volume, statements: int) -> float:
        """The seconds that a table on all machines saves, if so many statements would send these tuples to them."""
        once = self.transfer_seconds(volume, Central(), Replicated())
        return (statements - 1) * once - self.table_seconds - self.statement_seconds

    def turns_seconds(self, work_seconds: float) -> float:
        """The most seconds by which work takes longer if every machine works on one of its shards at a time."""
        shards = max(self.cluster.shards / self.cluster.sites, 1.0)
        return work_seconds * (1 - 1 / shards)

    def allowed_strategies(
        self, strategies: Iterable[LocalStrategy], size_bytes: float, is_one_array: bool = False
    ) -> tuple[LocalStrategy, ...]:
        """The strategies that do not overload the coordinator.

        Args:
            strategies: Candidates.
            size_bytes: Size of operands and results together; the coordinator computes only with what is small.
            is_one_array: Whether the result is a single array, which has to be put together in one place.
        """
        may_gather = is_one_array or size_bytes <= self.small_bytes
        return tuple(strategy for strategy in strategies if may_gather or Central() not in strategy.operands)

    def delivery_seconds(self, volume: Volume, distribution: Distribution, promoted: Sequence[int]) -> float:
        """Seconds to store a result that is on the coordinator: distributed by the first promoted axis, or replicated.

        A result that is distributed already stays where it is, at no cost.
        """
        if distribution != Central():
            return 0.0
        return self.transfer_seconds(volume, distribution, Hashed(promoted[0]) if promoted else Replicated())

    def work_share(self, strategy: LocalStrategy, keys: float = math.inf) -> float:
        """The share of the work that the busiest machine does, if so many keys are divided among the machines."""
        return 1.0 if strategy.runs_on_one_site else 1.0 / max(min(self.cluster.sites, keys), 1.0)

    def _sending_seconds(self, volume: Volume, before: Distribution, after: Distribution, factor: float = 1.0) -> float:
        """Seconds of the busiest machine, for which all others wait, and of the network that all bytes share."""
        once = volume.tuples * self.tuple_seconds + volume.size_bytes * self.byte_seconds
        transferred = transfer_bytes(volume.size_bytes, before, after, self.cluster)
        network = transferred / self.cluster.network_bytes_per_second
        return once * factor * bottleneck_copies(before, after, self.cluster) + network


def volume_of(model: CostModel, tensor: str, tiles: Choice) -> Volume:
    """Expected volume of all tuples of a tensor in a decomposition, given as the tiles of its axes."""
    tuples = model.sizes.tuples(tensor, tiles)
    return Volume(tuples, tuples * row_bytes(model.graph.tensors[tensor], Decomposition(tiles)))


def volume_of_all_keys(tensor: Tensor, decomposition: Decomposition) -> Volume:
    """The volume of all keys that tuples of a tensor can have, without values."""
    tuples = decomposition.max_tuples(tensor.shape)
    return Volume(tuples, tuples * keys_bytes(decomposition))


def most_sending_seconds(model: CostModel, costs: TransferCosts, einsum: EinSum, choice: Choice) -> float:
    """The seconds to send all operands of an EinSum to all machines, and its result to the coordinator."""
    seconds = 0.0
    for operand in einsum.operands:
        volume = volume_of(model, operand.tensor, reference_tiles(einsum, operand, choice))
        seconds += costs.transfer_seconds(volume, Scattered(), Replicated())
    result = volume_of(model, einsum.output.tensor, result_tiles(einsum, choice))
    return seconds + costs.transfer_seconds(result, Scattered(), Central())
