"""EinDecomp: the floats that a partitioned graph transfers between workers: for joins, aggregations and repartitions.

The paper counts everything that a kernel call reads, as if nothing were on its worker already: an upper bound. It
assumes dense tensors; here pieces are counted from T and V, which gives the same for dense tensors.

Source: EinDecomp, section 7.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.eindecomp.overlaps import OverlapCounts, count_overlaps
from sparseeinsum.decompose.places.blocks import BlockPlacement
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import DEMOTED, count_keys
from sparseeinsum.semantics.exactness import Absence, Evaluation, JoinKind
from sparseeinsum.statistics.estimate import LabelStatistics, Statistics, by_label, dense_statistics, joined_tuples

_LARGEST_TABLE = 1 << 20  # the most numbers of a table of repartitions that are computed at once


@dataclass(frozen=True, slots=True)
class TensorPieces:
    """A tensor under a partition vector: the number of pieces that have entries, and the floats of all together."""

    count: float
    floats: float

    @property
    def mean(self) -> float:
        """The mean floats of a piece, n_X."""
        return self.floats / self.count if self.count else 0.0


def join_floats(calls: float, operands: Sequence[TensorPieces]) -> tuple[float, ...]:
    """cost_join = p (n_X + n_Y), as one number for each operand: every call gets a piece of each."""
    return tuple(calls * operand.mean for operand in operands)


def aggregation_floats(calls: float, groups: float, partial_floats: float) -> float:
    """cost_agg = (p / n_agg) (n_agg - 1) n_Z: all partial results of a group but one go to the worker of that one."""
    return max(calls - groups, 0.0) * partial_floats


def repartition_floats(
    floats: float, before: NDArray[np.float64], after: NDArray[np.float64], overlaps: OverlapCounts
) -> NDArray[np.float64]:
    """cost_repart = (n_c / n_int - 1) (n / n_c) (n_c + n_p), and n_p n / n_c in addition if producers' pieces are cut.

    Every piece of the consumer is merged from the producer's pieces that overlap it, one after the other; each merge
    transfers both pieces.

    Args:
        floats: The floats of the tensor, n.
        before: Numbers of pieces of the producer, of n_p floats each.
        after: Numbers of pieces of the consumer, n / n_c.
        overlaps: Overlaps between them: (n_c / n_int) (n / n_c).
    """
    per_before, per_after = (
        np.divide(floats, pieces, out=np.zeros_like(pieces), where=pieces > 0) for pieces in (before, after)
    )
    merged = np.maximum(overlaps.count - after, 0.0) * (per_after + per_before)
    return np.asarray(merged + np.where(overlaps.is_cut, after * per_before, 0.0))


@dataclass(frozen=True, slots=True)
class MovedFloats:
    """Floats that an EinSum transfers, without repartitions of its operands.

    Attributes:
        calls: Expected kernel calls that have joined entries.
        read: Floats transferred into the calls, for each operand.
        aggregation: Floats of partial results.
    """

    calls: float
    read: tuple[float, ...]
    aggregation: float

    @property
    def join(self) -> float:
        """Floats transferred into the calls."""
        return sum(self.read)

    @property
    def floats(self) -> float:
        """All floats that are transferred."""
        return self.join + self.aggregation


@dataclass(frozen=True, slots=True)
class TransferModel:
    """Counts the floats that the EinSums of a graph transfer; partition vectors are given as tiles of their labels.

    Attributes:
        graph: EinSums of one or two operands.
        statistics: T and V of every tensor.
        evaluations: The exact evaluations of every EinSum; operands that must be dense have all pieces.
        stored: Where inputs are, by name; others are available in any partition.
        counts_keys: Whether the keys of entries count, too, as far as an array of all indices is not smaller.
    """

    graph: EinGraph
    statistics: Mapping[str, Statistics]
    evaluations: Mapping[str, Evaluation]
    stored: Mapping[str, BlockPlacement] = field(default_factory=dict)
    counts_keys: bool = False
    _moved: dict[tuple[str, Choice], MovedFloats] = field(default_factory=dict, init=False, repr=False)
    _tuples: dict[tuple[str, Choice], float] = field(default_factory=dict, init=False, repr=False)

    def floats(self, tensor: str) -> float:
        """The floats of a whole tensor: one for every entry, and for each of its keys if they count."""
        entries, axes = self.statistics[tensor].entries, self.graph.tensors[tensor].axes
        if not self.counts_keys:
            return entries
        return min((1 + len(axes)) * entries, max(float(self.graph.tensors[tensor].size), entries))

    def pieces(self, tensor: str, tiles: Choice) -> TensorPieces:
        """The pieces of a tensor that is cut into tiles."""
        return TensorPieces(self.tuples(tensor, tiles), self.floats(tensor))

    def tuples(self, tensor: str, tiles: Choice) -> float:
        """The expected number of pieces of a tensor that have entries."""
        tuples = self._tuples.get((tensor, tiles))
        if tuples is None:
            tuples = self._tuples[tensor, tiles] = self.statistics[tensor].tuples(tiles)
        return tuples

    def moved(self, einsum: EinSum, choice: Choice) -> MovedFloats:
        """The floats that an EinSum transfers by its cheapest exact evaluation, if operands have the required tiles."""
        cheapest = self._moved.get((einsum.output.tensor, choice))
        if cheapest is None:
            keys = tuple(
                frozenset(label for label, tile in zip(einsum.labels, choice, strict=True) if tile != DEMOTED)
                & frozenset(operand.labels)
                for operand in einsum.operands
            )
            absences = self.evaluations[einsum.output.tensor].absence_options(keys)
            options = (self._moved_with(einsum, choice, absence) for absence in absences)
            cheapest = min(options, key=lambda moved: moved.floats)
            self._moved[einsum.output.tensor, choice] = cheapest
        return cheapest

    def _moved_with(self, einsum: EinSum, choice: Choice, absence: Absence) -> MovedFloats:
        calls = self._pairs(einsum, choice, absence)
        operands = []
        for operand, dense in zip(einsum.operands, absence.dense, strict=True):
            tiles = reference_tiles(einsum, operand, choice)
            shape = self.graph.tensors[operand.tensor].shape
            dense_tensor = dense_statistics(shape)
            operands.append(
                TensorPieces(dense_tensor.tuples(tiles), dense_tensor.entries)
                if dense
                else self.pieces(operand.tensor, tiles)
            )
        read = join_floats(calls, operands)
        cut = (label for label, tile in zip(einsum.labels, choice, strict=True) if tile != DEMOTED)
        if frozenset(cut) <= frozenset(einsum.output.labels):
            return MovedFloats(calls, read, 0.0)
        result = self.pieces(einsum.output.tensor, result_tiles(einsum, choice))
        # A partial result of a sparse group may have fewer entries than the group.
        partial_floats = min(result.mean, self._entries_joined(einsum) / calls) if calls else 0.0
        return MovedFloats(calls, read, aggregation_floats(calls, result.count, partial_floats))

    def _entries_joined(self, einsum: EinSum) -> float:
        """The expected number of joined pairs of entries."""
        everything = tuple(frozenset(operand.labels) for operand in einsum.operands)
        absence, *_ = self.evaluations[einsum.output.tensor].absence_options(everything)
        return self._pairs(einsum, (1,) * len(einsum.labels), absence)

    def _pairs(self, einsum: EinSum, choice: Choice, absence: Absence) -> float:
        """The expected tuples of the join in these tiles, times the keys of labels that only the result has."""
        tiles = dict(zip(einsum.labels, choice, strict=True))
        read = [
            self._labelled(operand.tensor, operand.labels, dense)
            for operand, dense in zip(einsum.operands, absence.dense, strict=True)
        ]
        pairs = _joined(read, absence.join, tiles)
        for label in einsum.output.labels:
            if all(label not in operand.labels for operand in einsum.operands):
                pairs *= count_keys(tiles[label], self.graph.bound_of(einsum, label))
        return pairs

    def _labelled(self, tensor: str, labels: tuple[str, ...], dense: bool) -> LabelStatistics:
        shape = self.graph.tensors[tensor].shape
        return by_label(labels, dense_statistics(shape) if dense else self.statistics[tensor])

    def repartition_table(self, tensor: str, before: Sequence[Choice], after: Sequence[Choice]) -> NDArray[np.float64]:
        """Floats transferred by repartitions of a tensor: a row for each vector before, a column for each after."""
        rows = max(_LARGEST_TABLE // len(after), 1)
        row_blocks = [before[start : start + rows] for start in range(0, len(before), rows)]
        return np.concatenate([self._repartitions(tensor, part, after) for part in row_blocks])

    def _repartitions(self, tensor: str, before: Sequence[Choice], after: Sequence[Choice]) -> NDArray[np.float64]:
        tuples = partial(self.tuples, tensor)
        rows, columns = (np.array([tuples(tiles) for tiles in sides], float) for sides in (before, after))
        overlaps = count_overlaps(self.graph.tensors[tensor].shape, tuples, before, after)
        return repartition_floats(self.floats(tensor), rows[:, None], columns[None, :], overlaps)


def _joined(read: Sequence[LabelStatistics], kind: JoinKind, tiles: Mapping[str, int]) -> float:
    u, *others = read
    if not others:
        return u.tuples(tiles)
    (v,) = others
    return joined_tuples(kind, u.tuples(tiles), v.tuples(tiles), u.distinct(tiles), v.distinct(tiles))
