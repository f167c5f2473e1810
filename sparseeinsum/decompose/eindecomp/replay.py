"""EinDecomp: replays the transfers of a partitioned graph, worker by worker, for up to thousands of workers.

The costs of the search are upper bounds: they assume that a worker has nothing of what its call reads. Here every call
runs on a worker, and only what that worker lacks is transferred:

- Inputs are available in any partition; each piece is on the worker of one of the calls that read it.
- A group is aggregated on the worker of one of its calls, and stays there.
- An operand that is computed in another partition is put together piece by piece, only from the parts that a piece
  needs; each piece on the worker of the call that already has most of it, among those that read it.

Pieces of sparse tensors have the expected mean number of entries, even for calls without any joined pairs. Calls are
numbered by some order of the labels; every EinSum gets the order that transfers least.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import reference_tiles, result_tiles
from sparseeinsum.decompose.eindecomp.grids import Grid, Numbers, PieceOverlaps, calls_of, piece_overlaps, pieces_read
from sparseeinsum.decompose.eindecomp.partitioning import PartitionedEinSum, Partitioning
from sparseeinsum.language.eingraph import EinGraph, Reference

KINDS = ("join", "aggregation", "repartition")
_MOST_ORDERS = 24  # the most orders of cut labels that are tried for an EinSum

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Floats of one kind that every worker sends to others and receives from them."""

    sent: Floats
    received: Floats

    @property
    def floats(self) -> float:
        """All floats that are transferred."""
        return float(self.received.sum())

    @property
    def imbalance(self) -> float:
        """The most that a worker receives, divided by the mean; 1 if nothing is transferred."""
        mean = float(self.received.mean())
        return float(self.received.max()) / mean if mean else 1.0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.sent + other.sent, self.received + other.received)


@dataclass(frozen=True, slots=True, eq=False)
class PlacedEinSum:
    """The workers of an EinSum's calls and pieces.

    Attributes:
        workers: The worker of every call, in row-major order of the labels' pieces.
        homes: The worker on which every piece of the result is aggregated; -1 if no call computes the piece.
        operands: For every operand, the worker on which each of its pieces is put together.
    """

    workers: Numbers
    homes: Numbers
    operands: tuple[Numbers, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """The transfers and operations of a partitioned graph.

    Attributes:
        traffic: The traffic of every kind.
        operations: Operations of every worker, as if tensors were dense: one for every index of an EinSum's labels.
        placed: The workers of every EinSum, by the name of its result.
    """

    traffic: Mapping[str, Traffic]
    operations: Floats
    placed: Mapping[str, PlacedEinSum]

    @property
    def total(self) -> Traffic:
        """The traffic of all kinds together."""
        join, aggregation, repartition = (self.traffic[kind] for kind in KINDS)
        return join + aggregation + repartition

    @property
    def imbalance(self) -> float:
        """The operations of the busiest worker, divided by the mean."""
        mean = float(self.operations.mean())
        return float(self.operations.max()) / mean if mean else 1.0


def replay(partitioning: Partitioning, densities: Mapping[str, float] | None = None) -> Replay:
    """Count the transfers of a partitioned graph, without its data.

    Args:
        partitioning: The graph with its vectors.
        densities: The mean number of floats per index of results that are sparse.
    """
    return _Replayer(partitioning, densities or {}).run()


@dataclass(frozen=True, slots=True, eq=False)
class _Transfer:
    """Transfers of one kind: the workers they come from and go to, and their floats; arrays of the same length."""

    kind: str
    source: Numbers
    target: Numbers
    sizes: Floats

    @property
    def floats(self) -> float:
        return float(self.sizes[self.source != self.target].sum())

    def traffic(self, workers: int) -> Traffic:
        is_moved = self.source != self.target
        sent, received = (
            np.bincount(ends[is_moved], weights=self.sizes[is_moved], minlength=workers)
            for ends in (self.source, self.target)
        )
        return Traffic(sent.astype(np.float64), received.astype(np.float64))


class _Replayer:
    def __init__(self, partitioning: Partitioning, densities: Mapping[str, float]) -> None:
        self._workers = max([partitioning.workers, *(step.calls for step in partitioning.steps)])
        self._partitioning = partitioning
        self._densities = densities
        self._results: dict[str, tuple[Grid, Numbers]] = {}
        self._placed: dict[str, PlacedEinSum] = {}

    def run(self) -> Replay:
        """Place the EinSums in topological order, each as it transfers least."""
        graph = self._partitioning.graph
        nothing = Traffic(np.zeros(self._workers), np.zeros(self._workers))
        traffic = dict.fromkeys(KINDS, nothing)
        operations = np.zeros(self._workers)
        for step in self._partitioning.steps:
            calls = calls_of(graph, step.einsum, step.choice)
            placements = (self._placement(step, calls, workers) for workers in _numberings(calls))
            placed, transfers = min(placements, key=lambda placement: sum(item.floats for item in placement[1]))
            for transfer in transfers:
                traffic[transfer.kind] += transfer.traffic(self._workers)
            operations += np.bincount(placed.workers, weights=calls.sizes(), minlength=self._workers)
            name = step.einsum.output.tensor
            self._placed[name] = placed
            self._results[name] = _grid(graph, name, result_tiles(step.einsum, step.choice)), placed.homes
        return Replay(traffic, operations, self._placed)

    def _placement(
        self, step: PartitionedEinSum, calls: Grid, workers: Numbers
    ) -> tuple[PlacedEinSum, list[_Transfer]]:
        """The placement of an EinSum whose calls run on these workers, and its transfers."""
        transfers: list[_Transfer] = []
        operands = []
        for operand, floats in zip(step.einsum.operands, step.moved.read, strict=True):
            read = pieces_read(step.einsum, calls, operand)
            homes, repartitions = self._operand_homes(step, operand, read, workers)
            sizes = self._grid_of(step, operand).sizes()[read]
            joined = _Transfer("join", homes[read], workers, sizes * _floats_per_index(floats, sizes.sum()))
            transfers += [*repartitions, joined]
            operands.append(homes)
        result = step.einsum.output
        computed, grid = pieces_read(step.einsum, calls, result), self._grid_of(step, result)
        homes = _first_readers(computed, workers, grid.count)
        sizes = grid.sizes()[computed]
        share = _floats_per_index(step.moved.aggregation, sizes.sum() - grid.sizes().sum())
        transfers.append(_Transfer("aggregation", workers, homes[computed], sizes * share))
        return PlacedEinSum(workers, homes, tuple(operands)), transfers

    def _operand_homes(
        self, step: PartitionedEinSum, operand: Reference, read: Numbers, workers: Numbers
    ) -> tuple[Numbers, list[_Transfer]]:
        """The workers on which the pieces of an operand are put together for the calls, and the transfers for that."""
        grid = self._grid_of(step, operand)
        homes = _first_readers(read, workers, grid.count)
        if operand.tensor not in self._results:
            return homes, []
        before, sources = self._results[operand.tensor]
        if before == grid:
            return sources, []
        overlaps = piece_overlaps(before, grid)
        homes = _nearest_homes(overlaps, sources, read, workers, homes)
        return homes, [self._repartition(operand.tensor, overlaps, sources, homes)]

    def _repartition(self, tensor: str, overlaps: PieceOverlaps, sources: Numbers, homes: Numbers) -> _Transfer:
        is_read = homes[overlaps.second] >= 0
        sizes = np.float64(self._densities.get(tensor, 1.0)) * overlaps.sizes[is_read]
        return _Transfer("repartition", sources[overlaps.first[is_read]], homes[overlaps.second[is_read]], sizes)

    def _grid_of(self, step: PartitionedEinSum, reference: Reference) -> Grid:
        tiles = reference_tiles(step.einsum, reference, step.choice)
        return _grid(self._partitioning.graph, reference.tensor, tiles)


def _grid(graph: EinGraph, tensor: str, tiles: tuple[int, ...]) -> Grid:
    return Grid(tiles, graph.tensors[tensor].shape)


def _floats_per_index(floats: float, size: float) -> np.float64:
    """The mean number of floats per index; 0 if there are no indices."""
    return np.float64(floats / size if size else 0.0)


def _numberings(calls: Grid) -> Iterator[Numbers]:
    """Numberings of the calls by workers, one for each order of the cut labels, the last of which varies fastest."""
    cut = [axis for axis, pieces in enumerate(calls.shape) if pieces > 1]
    uncut = [axis for axis in range(len(calls.shape)) if axis not in cut]
    for order in itertools.islice(itertools.permutations(cut), _MOST_ORDERS):
        shape = [calls.shape[axis] for axis in (*order, *uncut)]
        numbers = np.arange(calls.count, dtype=np.int64).reshape(shape)
        yield np.transpose(numbers, np.argsort([*order, *uncut])).ravel()


def _first_readers(pieces: Numbers, workers: Numbers, count: int) -> Numbers:
    """For every piece, the worker of the first call that reads or computes it; -1 if none does."""
    homes = np.full(count, -1, np.int64)
    homes[pieces[::-1]] = workers[::-1]
    return homes


def _nearest_homes(
    overlaps: PieceOverlaps, sources: Numbers, read: Numbers, workers: Numbers, homes: Numbers
) -> Numbers:
    """For every piece, the worker that has most of it among those that read it; its current home if none has any.

    Args:
        overlaps: Overlaps of the pieces before with those after.
        sources: The workers of the pieces before.
        read: The piece that every call reads.
        workers: The worker of every call.
        homes: The homes of the pieces after, as far as known.
    """
    numbers = int(max(sources.max(initial=0), workers.max(initial=0))) + 1
    codes, inverse = np.unique(
        overlaps.second * numbers + sources[overlaps.first], return_inverse=True
    )  # codes of a piece and a worker
    sizes = np.bincount(inverse, weights=overlaps.sizes, minlength=len(codes))
    is_reader = np.isin(codes, read * numbers + workers)
    order = np.argsort(sizes[is_reader], kind="stable")
    nearest = homes.copy()
    nearest[codes[is_reader][order] // numbers] = codes[is_reader][order] % numbers
    return nearest
