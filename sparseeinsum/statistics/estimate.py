"""Statistics: sizes of tensors in any decomposition, and of results that nobody has computed yet.

Source: SparseEinSum, sections 7.1 (equation 7) and 8.2 (algorithm 2), for values spread uniformly.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import DEMOTED, count_keys
from sparseeinsum.semantics.exactness import Evaluation, JoinKind

_MOST_AXES = 8  # of a result whose every set of axes is bounded: 2^8 sets


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of one tensor's entries.

    Attributes:
        entries: T: indices whose value is not the fill.
        distinct: V: for every axis, how many of its indices have at least one such entry.
        shape: Bounds of all axes.
        most: For results, the most tuples that there can be with some axes promoted, as far as the operands' tuples
            tell; by the positions of those axes.
        measured: Tuples that were counted instead of estimated, by the tiles of all axes.
        crowding: For results, how many times more pairs of the operands' entries have the same index than if entries
            were spread evenly; by the label of that index.
    """

    entries: float
    distinct: tuple[float, ...]
    shape: tuple[int, ...]
    most: Mapping[frozenset[int], float] = field(default_factory=dict)
    measured: Mapping[tuple[int, ...], float] = field(default_factory=dict, compare=False)
    crowding: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_dense(self) -> bool:
        """Whether every index has an entry."""
        return self.entries >= math.prod(self.shape)

    def tuples(self, tiles: Sequence[int]) -> float:
        """T(P): expected tuples of a decomposition, which gives every axis a tile, or DEMOTED.

        Equation 7, n (1 - exp(-T / n)), with its ends mended: exactly 1 (or 0) tuple where no axis is promoted,
        T where all are and none is tiled, and never outside [largest V, min(n, T)]. Of a tiled axis V counts blocks.
        Equation 7 takes entries to be spread evenly, which they are not where a sparse operand spreads dense ones:
        there the operands' tuples bound it.

        >>> Statistics(100.0, (10.0, 50.0), (10, 200)).tuples((1, 0))
        10.0
        >>> dense_statistics((10, 200)).tuples((5, 100))
        4.0
        """
        if self.entries <= 0:
            return 0.0
        if tuple(tiles) in self.measured:
            return self.measured[tuple(tiles)]
        positions = [position for position, tile in enumerate(tiles) if tile != DEMOTED]
        if not positions:
            return 1.0
        values = [self.blocks(position, tiles[position]) for position in positions]
        places = math.prod(values)
        if self.is_dense:
            return places
        most = min(places, self.entries, self.most.get(frozenset(positions), math.inf))
        expected = self.entries if all(tile == 1 for tile in tiles) else occupied(places, self.entries)
        return min(max(expected, *values), most)

    def blocks(self, position: int, tile: int) -> float:
        """Expected blocks of so many indices of an axis that have an entry: V where a block is one index.

        >>> Statistics(100.0, (100.0,), (100,)).blocks(0, 8)
        13.0
        """
        values = self.distinct[position]
        if tile == 1:
            return values
        blocks = count_keys(tile, self.shape[position])
        if values >= self.shape[position]:
            return float(blocks)
        return min(max(occupied(blocks, values), values / tile), values, blocks)


def occupied(places: float, entries: float) -> float:
    """Places that get at least one of so many entries, thrown at random: equation 7.

    Of more places than there are numbers for, each entry gets one of its own.

    >>> round(occupied(1_000, 1_000))
    632
    """
    if math.isinf(places):
        return entries
    return -places * math.expm1(-entries / places) if places > 0 else 0.0


def dense_statistics(shape: Sequence[int]) -> Statistics:
    """Statistics of a tensor whose every index is present."""
    return Statistics(float(math.prod(shape)), tuple(float(bound) for bound in shape), tuple(shape))


def estimate(
    graph: EinGraph, measured: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
) -> dict[str, Statistics]:
    """Statistics of every tensor of a graph: the measured ones, and estimates for results.

    Args:
        graph: The EinSums, in topological order.
        measured: Statistics of the inputs.
        evaluations: What is exact for each EinSum: absent tuples that count become entries.
    """
    known = dict(measured)
    for einsum in graph.einsums:
        known[einsum.output.tensor] = estimate_result(graph, einsum, known, evaluations[einsum.output.tensor])
    return known


def estimate_result(
    graph: EinGraph, einsum: EinSum, known: Mapping[str, Statistics], evaluation: Evaluation
) -> Statistics:
    """Statistics of the result of one EinSum, from those of its operands."""
    everything = tuple(frozenset(operand.labels) for operand in einsum.operands)
    absence, *_ = evaluation.absence_options(everything)
    operands = []
    for operand, dense in zip(einsum.operands, absence.dense, strict=True):
        statistics = dense_statistics(graph.tensors[operand.tensor].shape) if dense else known[operand.tensor]
        operands.append(by_label(operand.labels, statistics))
    shape = graph.tensors[einsum.output.tensor].shape
    joined, values = _joined(operands, absence.join, einsum.labels)
    if joined <= 0:
        return Statistics(0.0, (0.0,) * len(shape), shape)
    if all(operand.statistics.is_dense for operand in operands):
        return dense_statistics(shape)
    labels = tuple(label for label in einsum.output.labels if label != einsum.state)
    kept = [max(values[label], 1.0) for label in labels]
    most = _most_tuples(labels, kept, operands, absence.join)
    bound = most.get(frozenset(range(len(kept))), math.inf)
    entries = result_entries(joined, kept, bool(einsum.aggregated), bound)
    distinct = tuple(min(value, entries) for value in kept)
    if einsum.state is not None:
        return Statistics(entries * shape[-1], (*distinct, float(shape[-1])), shape)
    found = Statistics(entries, distinct, shape, most)
    return _filled(found, labels.index(einsum.along)) if einsum.along in labels else found


def _filled(statistics: Statistics, axis: int) -> Statistics:
    """With an entry at every index of an axis, wherever there is one at all."""
    rest = statistics.tuples([DEMOTED if position == axis else 1 for position in range(len(statistics.shape))])
    bound = float(statistics.shape[axis])
    distinct = (*statistics.distinct[:axis], bound, *statistics.distinct[axis + 1 :])
    return Statistics(rest * bound, distinct, statistics.shape)


def result_entries(joined: float, distinct: Sequence[float], is_aggregated: bool, most: float) -> float:
    """Entries of a result: the tuples of its join, of which those that differ in aggregated labels alone become one.

    Args:
        joined: Tuples of the join.
        distinct: V of the labels of the result, in the join.
        is_aggregated: Whether the result lacks labels of the join.
        most: What the operands' tuples allow at most.
    """
    entries = joined
    if is_aggregated:
        places = math.prod(distinct)
        entries = min(max([occupied(places, joined), *distinct]), places, joined)
    # Less than one entry would make the products of V smaller the more axes there are.
    return max(min(entries, most), 1.0)


def _most_tuples(
    labels: Sequence[str], distinct: Sequence[float], operands: Sequence["LabelStatistics"], kind: JoinKind
) -> dict[frozenset[int], float]:
    """For every set of the result's axes: the tuples of the join of what the operands have of those labels.

    The indices of a result are among those of that join, whatever is aggregated. A join on more labels may be
    estimated smaller, which no result is: each set has at least what its parts have.
    """
    if len(labels) > _MOST_AXES:
        return {}
    most: dict[frozenset[int], float] = {}
    for size in range(1, len(labels) + 1):
        for positions in map(frozenset, itertools.combinations(range(len(labels)), size)):
            joined, _ = _joined(operands, kind, [labels[position] for position in positions])
            parts = (most.get(positions - {position}, distinct[position]) for position in positions)
            most[positions] = max(joined, *parts)
    return most


@dataclass(frozen=True, slots=True)
class LabelStatistics:
    """Statistics of a tensor under labels, each of them once."""

    labels: tuple[str, ...]
    statistics: Statistics

    def tuples(self, tiles: Mapping[str, int]) -> float:
        """Expected tuples when labels have these tiles; others are demoted."""
        return self.statistics.tuples([tiles.get(label, DEMOTED) for label in self.labels])

    def distinct(self, tiles: Mapping[str, int]) -> dict[str, float]:
        """V of every promoted label that the tensor has; blocks of those that are tiled."""
        found = ((label, position, tiles.get(label, DEMOTED)) for position, label in enumerate(self.labels))
        return {label: self.statistics.blocks(position, tile) for label, position, tile in found if tile != DEMOTED}


def by_label(labels: tuple[str, ...], statistics: Statistics) -> LabelStatistics:
    """Statistics of a tensor under labels; of a repeated label only the diagonal counts."""
    if len(set(labels)) == len(labels):
        return LabelStatistics(labels, statistics)
    distinct: dict[str, float] = {}
    entries = statistics.entries
    for label, values in zip(labels, statistics.distinct, strict=True):
        if label in distinct:
            entries = min(entries, max(entries / max(distinct[label], values, 1.0), 1.0))
        distinct[label] = min(distinct.get(label, values), values)
    bounds = dict(zip(labels, statistics.shape, strict=True))
    possible = tuple(min(values, entries) for values in distinct.values())
    return LabelStatistics(tuple(distinct), Statistics(entries, possible, tuple(bounds.values())))


def _joined(
    operands: Sequence[LabelStatistics], kind: JoinKind, promoted: Iterable[str]
) -> tuple[float, dict[str, float]]:
    """Tuples of the join of all operands with some labels promoted, and V of each of them in it."""
    tiles = dict.fromkeys(promoted, 1)
    if len(operands) == 1:
        return operands[0].tuples(tiles), operands[0].distinct(tiles)
    u, v = operands
    distinct_u, distinct_v = u.distinct(tiles), v.distinct(tiles)
    tuples = joined_tuples(kind, u.tuples(tiles), v.tuples(tiles), distinct_u, distinct_v)
    values = joined_distinct(kind, distinct_u, distinct_v)
    return tuples, {label: min(value, tuples) for label, value in values.items()}


def joined_distinct(kind: JoinKind, u: Mapping[str, float], v: Mapping[str, float]) -> dict[str, float]:
    """V of every label of a join.

    A label of both has the smaller V where both must match, the larger where either will do, or that of the side that
    is kept whole.

    >>> joined_distinct(JoinKind.INNER, {"i": 10, "j": 50}, {"j": 20})
    {'i': 10, 'j': 20}
    """
    match kind:
        case JoinKind.LEFT:
            return {**v, **u}
        case JoinKind.RIGHT:
            return {**u, **v}
        case _:
            both = min if kind == JoinKind.INNER else max
            return {**u, **v, **{label: both(u[label], v[label]) for label in u if label in v}}


def joined_tuples(
    kind: JoinKind, u: float, v: float, distinct_u: Mapping[str, float], distinct_v: Mapping[str, float]
) -> float:
    """Tuples of a join that keeps also the tuples without a partner that its kind names."""
    matches = join_tuples(u, v, distinct_u, distinct_v)
    match kind:
        case JoinKind.INNER:
            return matches
        case JoinKind.LEFT:
            return max(matches, u)
        case JoinKind.RIGHT:
            return max(matches, v)
        case JoinKind.FULL:
            return u + v - min(matches, u, v)


def join_tuples(u: float, v: float, distinct_u: Mapping[str, float], distinct_v: Mapping[str, float]) -> float:
    """Tuples of a join on the labels that both sides have: T(U) T(V) / prod max(V(l, U), V(l, V)).

    Source: SparseEinSum, section 7.2.

    >>> join_tuples(1_000, 200, {"i": 10, "j": 50}, {"j": 100})
    2000.0
    """
    shared = (max(distinct_u[label], distinct_v[label], 1.0) for label in distinct_u if label in distinct_v)
    return u * v / math.prod(shared)
