"""Statistics: estimates of the sizes of tensors in any decomposition, and of results before they are computed.

Source: SparseEinSum, sections 7.1 (equation 7) and 8.2 (algorithm 2), for entries that are spread uniformly.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import DEMOTED, count_keys
from sparseeinsum.presentation.html_tables import html_table
from sparseeinsum.semantics.exactness import Evaluation, JoinKind

_MOST_AXES = 8  # the most axes of a result for which every set of axes gets a bound: 2^8 sets


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of entries of one tensor.

    Attributes:
        entries: T, the number of index tuples whose value is not the fill.
        distinct: V, for every axis the number of its indices that have entries.
        shape: The bounds of the axes.
        tuple_bounds: For results, upper bounds on the tuples with some axes promoted, by the positions of these axes.
            They follow from the tuples of the operands.
        counted_tuples: Numbers of tuples that were counted instead of estimated, by the tiles of all axes.
        skew: For results, how many times more pairs of the operands' entries match in a label than if entries were
            spread evenly over its indices, by label.
    """

    entries: float
    distinct: tuple[float, ...]
    shape: tuple[int, ...]
    tuple_bounds: Mapping[frozenset[int], float] = field(default_factory=dict)
    counted_tuples: Mapping[tuple[int, ...], float] = field(default_factory=dict, compare=False)
    skew: Mapping[str, float] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        size = math.prod(self.shape)
        density = f", density {self.entries / size:.3g}" if size else ""
        rows = zip(range(len(self.shape)), self.shape, self.distinct, strict=True)
        return html_table(f"statistics: {self.entries:,.0f} entries{density}", ("axis", "bound", "distinct"), rows)

    @property
    def is_dense(self) -> bool:
        """Whether every index tuple has an entry."""
        return self.entries >= math.prod(self.shape)

    def tuples(self, tiles: Sequence[int]) -> float:
        """T(P), the expected tuples in a decomposition, given as the tile of every axis, or DEMOTED.

        This is equation 7, n (1 - exp(-T / n)), corrected at its ends: exactly 1 tuple (or 0) if no axis is promoted,
        T if all are promoted and none is tiled, and always within [largest V, min(n, T)]. For a tiled axis, V counts
        blocks. Equation 7 assumes entries spread evenly. They are not if a sparse operand replicates a dense one; then
        the operands' tuples give an upper bound.

        >>> Statistics(100.0, (10.0, 50.0), (10, 200)).tuples((1, 0))
        10.0
        >>> dense_statistics((10, 200)).tuples((5, 100))
        4.0
        """
        if self.entries <= 0:
            return 0.0
        if self.counted_tuples and tuple(tiles) in self.counted_tuples:
            return self.counted_tuples[tuple(tiles)]
        positions = [position for position, tile in enumerate(tiles) if tile != DEMOTED]
        if not positions:
            return 1.0
        values = [self.blocks(position, tiles[position]) for position in positions]
        places = math.prod(values)
        if self.is_dense:
            return places
        most = min(places, self.entries, self.tuple_bounds.get(frozenset(positions), math.inf))
        expected = self.entries if tiles.count(1) == len(tiles) else occupied(places, self.entries)
        return min(max(expected, *values), most)

    def blocks(self, position: int, tile: int) -> float:
        """The expected number of blocks of `tile` indices of an axis that have entries: V if `tile` is 1.

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
    """The expected number of places that get at least one of `entries` entries at random: equation 7.

    If `places` is infinite, every entry gets a place of its own.

    >>> round(occupied(1_000, 1_000))
    632
    """
    if math.isinf(places):
        return entries
    return -places * math.expm1(-entries / places) if places > 0 else 0.0


def dense_statistics(shape: Sequence[int]) -> Statistics:
    """Statistics of a dense tensor."""
    return Statistics(float(math.prod(shape)), tuple(float(bound) for bound in shape), tuple(shape))


def estimate(
    graph: EinGraph, measured: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
) -> dict[str, Statistics]:
    """Statistics of every tensor of a graph: the measured ones, and estimates for results.

    Args:
        graph: The EinSums, in topological order.
        measured: Statistics of the inputs.
        evaluations: The exact evaluations of every EinSum, which say where absent tuples become entries.
    """
    statistics = dict(measured)
    for einsum in graph.einsums:
        statistics[einsum.output.tensor] = estimate_result(graph, einsum, statistics, evaluations[einsum.output.tensor])
    return statistics


def estimate_result(
    graph: EinGraph, einsum: EinSum, operand_statistics: Mapping[str, Statistics], evaluation: Evaluation
) -> Statistics:
    """Statistics of the result of one EinSum, from those of its operands in `operand_statistics`."""
    all_labels = tuple(frozenset(operand.labels) for operand in einsum.operands)
    absence, *_ = evaluation.absence_options(all_labels)
    read = [
        dense_statistics(graph.tensors[operand.tensor].shape) if dense else operand_statistics[operand.tensor]
        for operand, dense in zip(einsum.operands, absence.dense, strict=True)
    ]
    shape = graph.tensors[einsum.output.tensor].shape
    if all_have_all_entries(read):
        return dense_statistics(shape)
    operands = [by_label(operand.labels, statistics) for operand, statistics in zip(einsum.operands, read, strict=True)]
    joined, values = _joined(operands, absence.join, einsum.labels)
    if joined <= 0:
        return Statistics(0.0, (0.0,) * len(shape), shape)
    labels = tuple(label for label in einsum.output.labels if label != einsum.state)
    distincts = [max(values[label], 1.0) for label in labels]
    bounds = _tuple_bounds(labels, distincts, operands, absence.join)
    most = bounds.get(frozenset(range(len(distincts))), math.inf)
    entries = result_entries(joined, distincts, bool(einsum.aggregated), most)
    distinct = tuple(min(value, entries) for value in distincts)
    if einsum.state is not None:
        return Statistics(entries * shape[-1], (*distinct, float(shape[-1])), shape)
    statistics = Statistics(entries, distinct, shape, bounds)
    return _filled_along(statistics, labels.index(einsum.along)) if einsum.along in labels else statistics


def all_have_all_entries(operands: Iterable[Statistics]) -> bool:
    """Whether operands have an entry at every index tuple, and at least one; so has the result of their EinSum then."""
    for statistics in operands:
        entries = statistics.entries
        if entries <= 0 or entries < math.prod(statistics.shape):
            return False
    return True


def _filled_along(statistics: Statistics, axis: int) -> Statistics:
    """Statistics of a scan: if an entry exists, so do all entries that differ from it only in the index of `axis`."""
    other_tuples = statistics.tuples([DEMOTED if position == axis else 1 for position in range(len(statistics.shape))])
    bound = float(statistics.shape[axis])
    distinct = (*statistics.distinct[:axis], bound, *statistics.distinct[axis + 1 :])
    return Statistics(other_tuples * bound, distinct, statistics.shape)


def result_entries(joined: float, distinct: Sequence[float], is_aggregated: bool, most: float) -> float:
    """Expected entries of a result: tuples of its join that differ only in aggregated labels become one entry.

    Args:
        joined: Expected tuples of the join.
        distinct: V of the result's labels in the join.
        is_aggregated: Whether the result lacks labels of the join.
        most: An upper bound that follows from the operands' tuples.
    """
    entries = joined
    if is_aggregated:
        places = math.prod(distinct)
        entries = min(max([occupied(places, joined), *distinct]), places, joined)
    # With less than one entry, products of V would shrink with the number of axes.
    return max(min(entries, most), 1.0)


def _tuple_bounds(
    labels: Sequence[str], distinct: Sequence[float], operands: Sequence["LabelStatistics"], kind: JoinKind
) -> dict[frozenset[int], float]:
    """Upper bounds on the result's tuples, for every set of its axes: the tuples of the operands' join on those labels.

    The indices of a result are among those of this join, whatever is aggregated. Estimates of joins on more labels may
    be smaller, but a set of axes has at least as many tuples as its subsets; so its bound is at least as large.
    """
    if len(labels) > _MOST_AXES:
        return {}
    bounds: dict[frozenset[int], float] = {}
    for size in range(1, len(labels) + 1):
        for positions in map(frozenset, itertools.combinations(range(len(labels)), size)):
            joined, _ = _joined(operands, kind, [labels[position] for position in positions])
            subsets = (bounds.get(positions - {position}, distinct[position]) for position in positions)
            bounds[positions] = max(joined, *subsets)
    return bounds


@dataclass(frozen=True, slots=True)
class LabelStatistics:
    """Statistics of a tensor whose axes are named by distinct labels."""

    labels: tuple[str, ...]
    statistics: Statistics

    def tuples(self, tiles: Mapping[str, int]) -> float:
        """Expected tuples if labels have these tiles and all others are demoted."""
        return self.statistics.tuples([tiles.get(label, DEMOTED) for label in self.labels])

    def distinct(self, tiles: Mapping[str, int]) -> dict[str, float]:
        """V of every promoted label of the tensor; the number of blocks if the label is tiled."""
        axes = [(label, position, tiles.get(label, DEMOTED)) for position, label in enumerate(self.labels)]
        return {label: self.statistics.blocks(position, tile) for label, position, tile in axes if tile != DEMOTED}


def by_label(labels: tuple[str, ...], statistics: Statistics) -> LabelStatistics:
    """Statistics of a tensor by label; if a label is repeated, those of the diagonal."""
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
    """Tuples of the join of all operands if some labels are promoted, and V of each of these in the join."""
    tiles = dict.fromkeys(promoted, 1)
    if len(operands) == 1:
        return operands[0].tuples(tiles), operands[0].distinct(tiles)
    u, v = operands
    distinct_u, distinct_v = u.distinct(tiles), v.distinct(tiles)
    tuples = joined_tuples(kind, u.tuples(tiles), v.tuples(tiles), distinct_u, distinct_v)
    values = joined_distinct(kind, distinct_u, distinct_v)
    return tuples, {label: min(value, tuples) for label, value in values.items()}


def joined_distinct(kind: JoinKind, u: Mapping[str, float], v: Mapping[str, float]) -> dict[str, float]:
    """V of every label of a join: the expected number of distinct indices.

    For a label of both operands, an inner join has the smaller V, a full join the larger, and a left or right join that
    of the operand whose unmatched tuples it keeps.

    Args:
        kind: Which tuples the join keeps.
        u: V(l, U), by label.
        v: V(l, V), by label.

    >>> joined_distinct(JoinKind.INNER, {"i": 10, "j": 50}, {"j": 20})
    {'i': 10, 'j': 20}
    """
    match kind:
        case JoinKind.LEFT:
            return {**v, **u}
        case JoinKind.RIGHT:
            return {**u, **v}
        case _:
            combine = min if kind == JoinKind.INNER else max
            return {**u, **v, **{label: combine(u[label], v[label]) for label in u if label in v}}


def joined_tuples(
    kind: JoinKind, u: float, v: float, distinct_u: Mapping[str, float], distinct_v: Mapping[str, float]
) -> float:
    """Expected tuples of a join.

    Args:
        kind: Which unmatched tuples the join keeps.
        u: T(U), the tuples of the left operand.
        v: T(V), those of the right one.
        distinct_u: V(l, U), the distinct indices of every label of the left operand.
        distinct_v: V(l, V), those of the right one.
    """
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
    """Expected tuples of an inner join on the common labels: T(U) T(V) / prod max(V(l, U), V(l, V)).

    Args:
        u: T(U), the tuples of one operand.
        v: T(V), those of the other one.
        distinct_u: V(l, U), the distinct indices of every label of the first operand.
        distinct_v: V(l, V), those of the second one.

    Source: SparseEinSum, section 7.2.

    >>> join_tuples(1_000, 200, {"i": 10, "j": 50}, {"j": 100})
    2000.0
    """
    shared = [max(distinct_u[label], distinct_v[label], 1.0) for label in distinct_u if label in distinct_v]
    return u * v / math.prod(shared)
