"""EinDecomp: the floats that a partitioned graph moves between workers: into joins, into aggregations, in between.

The paper counts what every kernel call reads, as if nothing were there already: an upper bound. It takes tensors to be
dense; here pieces are counted by T and V, of which dense tensors are the case in which every piece is there.

Source: EinDecomp, section 7.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.eindecomp.overlaps import Overlaps, overlaps
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import DEMOTED, count_keys
from sparseeinsum.semantics.exactness import Absence, Evaluation, JoinKind
from sparseeinsum.statistics.estimate import LabelStatistics, Statistics, by_label, dense_statistics, joined_tuples

_LARGEST_TABLE = 1 << 20  # numbers of one that is computed at once


@dataclass(frozen=True, slots=True)
class Pieces:
    """A tensor under a partition vector: how many pieces hold anything, and the floats of all of them together."""

    count: float
    floats: float

    @property
    def mean(self) -> float:
        """Floats of a piece: n_X."""
        return self.floats / self.count if self.count else 0.0


def join_floats(calls: float, operands: Sequence[Pieces]) -> tuple[float, ...]:
    """cost_join = p (n_X + n_Y), by operand: every call gets a piece of each."""
    return tuple(calls * operand.mean for operand in operands)


def aggregation_floats(calls: float, groups: float, partial_floats: float) -> float:
    """cost_agg = (p / n_agg) (n_agg - 1) n_Z: every partial result but one a group goes to where the group is."""
    return max(calls - groups, 0.0) * partial_floats


def repartition_floats(
    floats: float, before: NDArray[np.float64], after: NDArray[np.float64], met: Overlaps
) -> NDArray[np.float64]:
    """cost_repart = (n_c / n_int - 1) (n / n_c) (n_c + n_p), and n_p n / n_c where pieces of before are cut.

    A piece of after goes from one contributing piece of before to the next, which comes to meet it.

    Args:
        floats: n, of the tensor.
        before: Pieces of the producer, of n_p floats each.
        after: Pieces of the consumer, n / n_c.
        met: Contributions of pieces of before to pieces of after: (n_c / n_int) (n / n_c) of them.
    """
    per_before, per_after = (
        np.divide(floats, each, out=np.zeros_like(each), where=each > 0) for each in (before, after)
    )
    merged = np.maximum(met.count - after, 0.0) * (per_after + per_before)
    return np.asarray(merged + np.where(met.is_cut, after * per_before, 0.0))


@dataclass(frozen=True, slots=True)
class Moved:
    """Floats that an EinSum moves, but for repartitions of its operands.

    Attributes:
        calls: Of its kernel, as far as pieces are there.
        read: Into the calls, by operand.
        aggregation: Of partial results.
    """

    calls: float
    read: tuple[float, ...]
    aggregation: float

    @property
    def join(self) -> float:
        """Into the calls."""
        return sum(self.read)

    @property
    def floats(self) -> float:
        """All of them."""
        return self.join + self.aggregation


@dataclass(frozen=True, slots=True)
class TransferModel:
    """Floats moved by the EinSums of a graph, by partition vectors, which are given as tiles of their labels.

    Attributes:
        graph: EinSums of one or two operands.
        statistics: T and V of every tensor.
        evaluations: What is exact for every EinSum: operands that must be dense have all pieces.
        stored_floats: Of tensors that are not held as one number an entry, the floats that all of it takes.
    """

    graph: EinGraph
    statistics: Mapping[str, Statistics]
    evaluations: Mapping[str, Evaluation]
    stored_floats: Mapping[str, float] = field(default_factory=dict)
    _moved: dict[tuple[str, Choice], Moved] = field(default_factory=dict, init=False, repr=False)
    _tuples: dict[tuple[str, Choice], float] = field(default_factory=dict, repr=False)

    def floats(self, tensor: str) -> float:
        """Of a whole tensor."""
        return self.stored_floats.get(tensor, self.statistics[tensor].entries)

    def pieces(self, tensor: str, tiles: Choice) -> Pieces:
        """A tensor cut into tiles."""
        return Pieces(self.tuples(tensor, tiles), self.floats(tensor))

    def tuples(self, tensor: str, tiles: Choice) -> float:
        """Pieces of a tensor that hold anything."""
        known = self._tuples.get((tensor, tiles))
        if known is None:
            known = self._tuples[tensor, tiles] = self.statistics[tensor].tuples(tiles)
        return known

    def holding(self, stored_floats: Mapping[str, float]) -> "TransferModel":
        """The same of tensors that take so many floats."""
        return TransferModel(self.graph, self.statistics, self.evaluations, stored_floats, self._tuples)

    def moved(self, einsum: EinSum, choice: Choice) -> Moved:
        """What an EinSum moves whose operands come as it wants them, the cheapest exact way."""
        known = self._moved.get((einsum.output.tensor, choice))
        if known is None:
            keys = tuple(
                frozenset(label for label, tile in zip(einsum.labels, choice, strict=True) if tile != DEMOTED)
                & frozenset(operand.labels)
                for operand in einsum.operands
            )
            ways = self.evaluations[einsum.output.tensor].absences(keys)
            known = min((self._moved_by(einsum, choice, way) for way in ways), key=lambda moved: moved.floats)
            self._moved[einsum.output.tensor, choice] = known
        return known

    def _moved_by(self, einsum: EinSum, choice: Choice, absence: Absence) -> Moved:
        calls = self._pairs(einsum, choice, absence)
        operands = []
        for operand, dense in zip(einsum.operands, absence.dense, strict=True):
            tiles = reference_tiles(einsum, operand, choice)
            shape = self.graph.tensors[operand.tensor].shape
            full = dense_statistics(shape)
            operands.append(Pieces(full.tuples(tiles), full.entries) if dense else self.pieces(operand.tensor, tiles))
        read = join_floats(calls, operands)
        cut = (label for label, tile in zip(einsum.labels, choice, strict=True) if tile != DEMOTED)
        if frozenset(cut) <= frozenset(einsum.output.labels):
            return Moved(calls, read, 0.0)
        result = self.pieces(einsum.output.tensor, result_tiles(einsum, choice))
        # Of a sparse result a call may have fewer entries than the whole group.
        partial_floats = min(result.mean, self._entries_joined(einsum) / calls) if calls else 0.0
        return Moved(calls, read, aggregation_floats(calls, result.count, partial_floats))

    def _entries_joined(self, einsum: EinSum) -> float:
        """Pairs of entries."""
        everything = tuple(frozenset(operand.labels) for operand in einsum.operands)
        absence, *_ = self.evaluations[einsum.output.tensor].absences(everything)
        return self._pairs(einsum, (1,) * len(einsum.labels), absence)

    def _pairs(self, einsum: EinSum, choice: Choice, absence: Absence) -> float:
        """Tuples of the join under some tiles; a label that only the result has multiplies them."""
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
        """Floats moved by changes of a tensor's partition vector: a row for each before, a column for each after."""
        rows = max(_LARGEST_TABLE // len(after), 1)
        parts = [before[start : start + rows] for start in range(0, len(before), rows)]
        return np.concatenate([self._repartitions(tensor, part, after) for part in parts])

    def _repartitions(self, tensor: str, before: Sequence[Choice], after: Sequence[Choice]) -> NDArray[np.float64]:
        tuples = partial(self.tuples, tensor)
        rows, columns = (np.array([tuples(tiles) for tiles in sides], float) for sides in (before, after))
        met = overlaps(self.graph.tensors[tensor].shape, tuples, before, after)
        return repartition_floats(self.floats(tensor), rows[:, None], columns[None, :], met)


def _joined(read: Sequence[LabelStatistics], kind: JoinKind, tiles: Mapping[str, int]) -> float:
    u, *others = read
    if not others:
        return u.tuples(tiles)
    (v,) = others
    return joined_tuples(kind, u.tuples(tiles), v.tuples(tiles), u.distinct(tiles), v.distinct(tiles))
