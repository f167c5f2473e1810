"""EinDecomp: a replay of what a partitioned graph really moves, worker by worker, for up to thousands of them.

The costs of the search are upper bounds: they take it that a call has nothing of what it reads. Here every call runs on
a worker, and only what that worker lacks is moved to it:

- Inputs are there in any partition, each piece with one of the calls that read it.
- A group is aggregated where one of its calls runs, and stays there.
- An operand that comes out in another partition is put together from the parts alone that are wanted; of the calls that
  read the piece, where the one runs whose worker has most of it.

Pieces of sparse tensors are taken to be as full as they are expected on average, calls without any pairs included.
Of the numberings of calls that follow from the order of its labels, an EinSum takes the one that moves least.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import reference_tiles, result_tiles
from sparseeinsum.decompose.eindecomp.grids import Grid, Meetings, Numbers, calls_of, meetings, pieces_read
from sparseeinsum.decompose.eindecomp.partitioning import PartitionedEinSum, Partitioning
from sparseeinsum.language.eingraph import EinGraph, Reference

KINDS = ("join", "aggregation", "repartition")
_MOST_ORDERS = 24  # of labels that are cut, looked at for an EinSum

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Floats of one kind that workers send to others and get from them, by worker."""

    sent: Floats
    received: Floats

    @property
    def floats(self) -> float:
        """All that are moved."""
        return float(self.received.sum())

    @property
    def imbalance(self) -> float:
        """What the worker gets that gets most, in times of what each gets on average; 1 where nothing is moved."""
        mean = float(self.received.mean())
        return float(self.received.max()) / mean if mean else 1.0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.sent + other.sent, self.received + other.received)


@dataclass(frozen=True, slots=True, eq=False)
class PlacedEinSum:
    """Where an EinSum runs.

    Attributes:
        workers: Of every call, in row-major order of the labels' pieces.
        homes: Of every piece of the result, where it is aggregated; -1 where there is no such piece.
        operands: For every operand, where each of its pieces is put together.
    """

    workers: Numbers
    homes: Numbers
    operands: tuple[Numbers, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """What a partitioned graph moves.

    Attributes:
        traffic: By kind.
        operations: Of every worker, operations on dense tensors: one for every index of the labels of an EinSum.
        placed: Where EinSums run, by the name of their result.
    """

    traffic: Mapping[str, Traffic]
    operations: Floats
    placed: Mapping[str, PlacedEinSum]

    @property
    def total(self) -> Traffic:
        """Of all kinds."""
        join, aggregation, repartition = (self.traffic[kind] for kind in KINDS)
        return join + aggregation + repartition

    @property
    def imbalance(self) -> float:
        """Operations of the busiest worker, in times of what each has on average."""
        mean = float(self.operations.mean())
        return float(self.operations.max()) / mean if mean else 1.0


def replay(partitioning: Partitioning, densities: Mapping[str, float] | None = None) -> Replay:
    """Run a partitioned graph without its data.

    Args:
        partitioning: The vectors.
        densities: Of results that are sparse, the floats for an index, on average.
    """
    return _Replaying(partitioning, densities or {}).run()


@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """Floats from workers to others."""

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


class _Replaying:
    def __init__(self, partitioning: Partitioning, densities: Mapping[str, float]) -> None:
        self._workers = max([partitioning.workers, *(step.calls for step in partitioning.steps)])
        self._partitioning = partitioning
        self._densities = densities
        self._results: dict[str, tuple[Grid, Numbers]] = {}
        self._placed: dict[str, PlacedEinSum] = {}

    def run(self) -> Replay:
        graph = self._partitioning.graph
        nothing = Traffic(np.zeros(self._workers), np.zeros(self._workers))
        traffic = dict.fromkeys(KINDS, nothing)
        operations = np.zeros(self._workers)
        for step in self._partitioning.steps:
            calls = calls_of(graph, step.einsum, step.choice)
            ways = (self._placed_as(step, calls, workers) for workers in _numberings(calls))
            placed, moves = min(ways, key=lambda way: sum(move.floats for move in way[1]))
            for move in moves:
                traffic[move.kind] += move.traffic(self._workers)
            operations += np.bincount(placed.workers, weights=calls.sizes(), minlength=self._workers)
            name = step.einsum.output.tensor
            self._placed[name] = placed
            self._results[name] = _grid(graph, name, result_tiles(step.einsum, step.choice)), placed.homes
        return Replay(traffic, operations, self._placed)

    def _placed_as(self, step: PartitionedEinSum, calls: Grid, workers: Numbers) -> tuple[PlacedEinSum, list[_Move]]:
        """An EinSum whose calls run on these workers, and what that moves."""
        moves: list[_Move] = []
        operands = []
        for operand, floats in zip(step.einsum.operands, step.moved.read, strict=True):
            read = pieces_read(step.einsum, calls, operand)
            homes, brought = self._operand(step, operand, read, workers)
            sizes = self._grid_of(step, operand).sizes()[read]
            moves += [*brought, _Move("join", homes[read], workers, sizes * _share(floats, sizes.sum()))]
            operands.append(homes)
        result = step.einsum.output
        made, grid = pieces_read(step.einsum, calls, result), self._grid_of(step, result)
        homes = _first(made, workers, grid.count)
        sizes = grid.sizes()[made]
        share = _share(step.moved.aggregation, sizes.sum() - grid.sizes().sum())
        moves.append(_Move("aggregation", workers, homes[made], sizes * share))
        return PlacedEinSum(workers, homes, tuple(operands)), moves

    def _operand(
        self, step: PartitionedEinSum, operand: Reference, read: Numbers, workers: Numbers
    ) -> tuple[Numbers, list[_Move]]:
        """Where pieces of an operand, which calls read, are put together, and what is moved for that."""
        grid = self._grid_of(step, operand)
        homes = _first(read, workers, grid.count)
        if operand.tensor not in self._results:
            return homes, []
        before, at = self._results[operand.tensor]
        if before == grid:
            return at, []
        met = meetings(before, grid)
        homes = _nearest(met, at, read, workers, homes)
        return homes, [self._repartition(operand.tensor, met, at, homes)]

    def _repartition(self, tensor: str, met: Meetings, at: Numbers, homes: Numbers) -> _Move:
        is_read = homes[met.second] >= 0
        sizes = np.float64(self._densities.get(tensor, 1.0)) * met.sizes[is_read]
        return _Move("repartition", at[met.first[is_read]], homes[met.second[is_read]], sizes)

    def _grid_of(self, step: PartitionedEinSum, reference: Reference) -> Grid:
        tiles = reference_tiles(step.einsum, reference, step.choice)
        return _grid(self._partitioning.graph, reference.tensor, tiles)


def _grid(graph: EinGraph, tensor: str, tiles: tuple[int, ...]) -> Grid:
    return Grid(tiles, graph.tensors[tensor].shape)


def _share(floats: float, size: float) -> np.float64:
    """Floats for an index."""
    return np.float64(floats / size if size else 0.0)


def _numberings(calls: Grid) -> Iterator[Numbers]:
    """Workers of all calls: those that differ in the last label of an order alone are neighbours."""
    cut = [axis for axis, pieces in enumerate(calls.shape) if pieces > 1]
    whole = [axis for axis in range(len(calls.shape)) if axis not in cut]
    for order in itertools.islice(itertools.permutations(cut), _MOST_ORDERS):
        shape = [calls.shape[axis] for axis in (*order, *whole)]
        numbers = np.arange(calls.count, dtype=np.int64).reshape(shape)
        yield np.transpose(numbers, np.argsort([*order, *whole])).ravel()


def _first(pieces: Numbers, workers: Numbers, count: int) -> Numbers:
    """For every piece the worker of the first call that has it; -1 where none does."""
    homes = np.full(count, -1, np.int64)
    homes[pieces[::-1]] = workers[::-1]
    return homes


def _nearest(met: Meetings, at: Numbers, read: Numbers, workers: Numbers, homes: Numbers) -> Numbers:
    """For every piece that is put together, of the workers that read it the one that has most of it; else its home."""
    numbers = int(max(at.max(initial=0), workers.max(initial=0))) + 1
    places, inverse = np.unique(met.second * numbers + at[met.first], return_inverse=True)  # of a piece and a worker
    sizes = np.bincount(inverse, weights=met.sizes, minlength=len(places))
    is_reader = np.isin(places, read * numbers + workers)
    order = np.argsort(sizes[is_reader], kind="stable")
    nearest = homes.copy()
    nearest[places[is_reader][order] // numbers] = places[is_reader][order] % numbers
    return nearest
