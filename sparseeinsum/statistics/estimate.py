"""Statistics: sizes of tensors in any decomposition, and of results that nobody has computed yet.

Source: SparseEinSum, sections 7.1 (equation 7) and 8.2 (algorithm 2), for values spread uniformly.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.semantics import Evaluation, JoinKind


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of one tensor's entries.

    Attributes:
        entries: T: indices whose value is not the fill.
        distinct: V: for every axis, how many of its indices have at least one such entry.
    """

    entries: float
    distinct: tuple[float, ...]

    def tuples(self, promoted: Iterable[int]) -> float:
        """T(P): expected tuples when the axes at these positions are promoted.

        Equation 7, n (1 - exp(-T / n)), with its ends mended: exactly 1 (or 0) tuple where no axis is promoted,
        T where all are, and never outside [largest V, min(n, T)].

        >>> Statistics(100, (10, 50)).tuples((0,))
        10.0
        """
        positions = tuple(promoted)
        if self.entries <= 0:
            return 0.0
        if not positions:
            return 1.0
        if len(positions) == len(self.distinct):
            return float(self.entries)
        values = [self.distinct[position] for position in positions]
        expected = occupied(math.prod(values), self.entries)
        return min(max(expected, *values, 0.0), math.prod(values), float(self.entries))


def occupied(places: float, entries: float) -> float:
    """Places that get at least one of so many entries, thrown at random: equation 7.

    >>> round(occupied(1_000, 1_000))
    632
    """
    return -places * math.expm1(-entries / places) if places > 0 else 0.0


def dense_statistics(shape: Sequence[int]) -> Statistics:
    """Statistics of a tensor whose every index is present."""
    return Statistics(float(math.prod(shape)), tuple(float(bound) for bound in shape))


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
        known[einsum.output.tensor] = _estimate_result(graph, einsum, known, evaluations[einsum.output.tensor])
    return known


def _estimate_result(
    graph: EinGraph, einsum: EinSum, known: Mapping[str, Statistics], evaluation: Evaluation
) -> Statistics:
    everything = tuple(frozenset(operand.labels) for operand in einsum.operands)
    absence = evaluation.absence(everything)
    operands = []
    for operand, dense in zip(einsum.operands, absence.dense, strict=True):
        statistics = dense_statistics(graph.tensors[operand.tensor].shape) if dense else known[operand.tensor]
        operands.append(by_label(operand.labels, statistics))
    joined, values = _joined(operands, absence.join)
    if not einsum.aggregated:
        return Statistics(joined, tuple(min(values[label], joined) for label in einsum.output.labels))
    kept = [values[label] for label in einsum.output.labels]
    groups = min(max([occupied(math.prod(kept), joined), *kept]), math.prod(kept), joined)
    return Statistics(groups, tuple(min(value, groups) for value in kept))


@dataclass(frozen=True, slots=True)
class LabelStatistics:
    """T of an operand, and V of each of its labels."""

    entries: float
    distinct: Mapping[str, float]


def by_label(labels: Sequence[str], statistics: Statistics) -> LabelStatistics:
    """Statistics of a tensor under labels; of a repeated label only the diagonal counts."""
    distinct: dict[str, float] = {}
    entries = statistics.entries
    for label, values in zip(labels, statistics.distinct, strict=True):
        if label in distinct:
            entries /= max(distinct[label], values, 1.0)
            distinct[label] = min(distinct[label], values)
        else:
            distinct[label] = values
    return LabelStatistics(entries, {label: min(values, entries) for label, values in distinct.items()})


def _joined(operands: Sequence[LabelStatistics], kind: JoinKind) -> tuple[float, dict[str, float]]:
    """Entries of the join of all operands with every label promoted, and V of each label in it."""
    if len(operands) == 1:
        return operands[0].entries, dict(operands[0].distinct)
    u, v = operands
    matches = join_tuples(u.entries, v.entries, u.distinct, v.distinct)
    entries = {
        JoinKind.INNER: matches,
        JoinKind.LEFT: max(matches, u.entries),
        JoinKind.RIGHT: max(matches, v.entries),
        JoinKind.FULL: u.entries + v.entries - min(matches, u.entries, v.entries),
    }[kind]
    # A label of both keeps the smaller V where both must match, the larger one where either will do.
    both = min if kind == JoinKind.INNER else max
    values = {**u.distinct, **v.distinct}
    values |= {label: both(u.distinct[label], v.distinct[label]) for label in u.distinct if label in v.distinct}
    return entries, values


def join_tuples(u: float, v: float, distinct_u: Mapping[str, float], distinct_v: Mapping[str, float]) -> float:
    """Tuples of a join on the labels that both sides have: T(U) T(V) / prod max(V(l, U), V(l, V)).

    Source: SparseEinSum, section 7.2.

    >>> join_tuples(1_000, 200, {"i": 10, "j": 50}, {"j": 100})
    2000.0
    """
    shared = (max(distinct_u[label], distinct_v[label], 1.0) for label in distinct_u if label in distinct_v)
    return u * v / math.prod(shared)
