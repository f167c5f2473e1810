"""Statistics: estimates for results from counts of entries at every index, carried through joins and aggregations.

Source: MNC (see `counts`), section 4, whose formulas for products and elementwise operations of matrices are here for
labels; where a result's indices are not equally likely, cells are counted by their own chances.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.semantics.exactness import Absence, Evaluation, JoinKind
from sparseeinsum.statistics.counts import (
    Counts,
    binned,
    even_tensor,
    is_countable,
    measure_counts,
    occupied_cells,
)
from sparseeinsum.statistics.estimate import (
    LabelStatistics,
    Statistics,
    by_label,
    dense_statistics,
    estimate_result,
    join_tuples,
)
from sparseeinsum.statistics.measure import Executor

_MOST_AXES = 5  # of a tensor for whose every set of axes cells are counted
_NEARLY_ONE = 1 - 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Entries of a tensor or of a join, and the counts of them by label."""

    entries: float
    counts: Mapping[str, Counts]

    def scaled(self, entries: float) -> "Sketch":
        """With so many entries, spread alike."""
        return Sketch(entries, {label: counts.scaled(entries) for label, counts in self.counts.items()})


@dataclass(frozen=True, slots=True)
class SketchEstimator:
    """Estimates results from the counts of inputs.

    Attributes:
        counts: For inputs, the counts of every axis; entries of others are taken to be spread evenly.
    """

    counts: Mapping[str, tuple[Counts, ...]]

    @classmethod
    def measuring(
        cls, stored: Mapping[str, StoredTensor], measured: Mapping[str, Statistics], executor: Executor
    ) -> "SketchEstimator":
        """Count the entries of stored tensors, of those whose axes are not too long for it.

        Raises:
            EngineError: A relation cannot be read.
        """
        countable = {name: each for name, each in stored.items() if is_countable(each.tensor.shape)}
        return cls({name: measure_counts(each, measured[name], executor) for name, each in countable.items()})

    def __call__(
        self, graph: EinGraph, measured: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> dict[str, Statistics]:
        """Statistics of every tensor of a graph."""
        counts = dict(self.counts)
        known = {
            name: _with_bounds(statistics, counts[name], {}) if name in counts else statistics
            for name, statistics in measured.items()
        }
        for einsum in graph.einsums:
            name = einsum.output.tensor
            operands = _operands(graph, einsum, known, counts, evaluations[name])
            if operands is None:
                known[name] = estimate_result(graph, einsum, known, evaluations[name])
            else:
                join = _Join(tuple(operands), _absence(einsum, evaluations[name]).join)
                known[name], counts[name] = join.result(einsum, graph.tensors[name].shape)
        return known


def _absence(einsum: EinSum, evaluation: Evaluation) -> Absence:
    """How the fully relational version deals with what is absent."""
    return evaluation.absences(tuple(frozenset(operand.labels) for operand in einsum.operands))[0]


def _operands(
    graph: EinGraph,
    einsum: EinSum,
    known: Mapping[str, Statistics],
    counts: Mapping[str, tuple[Counts, ...]],
    evaluation: Evaluation,
) -> list["_Operand"] | None:
    """All operands, dense where they are made so; None where an axis is too long to be counted."""
    found = []
    for operand, dense in zip(einsum.operands, _absence(einsum, evaluation).dense, strict=True):
        shape = graph.tensors[operand.tensor].shape
        if not is_countable(shape):
            return None
        statistics = dense_statistics(shape) if dense else known[operand.tensor]
        axes = None if dense else counts.get(operand.tensor)
        sketch = _under_labels(operand.labels, statistics.entries, axes or even_tensor(statistics))
        found.append(_Operand(sketch, by_label(operand.labels, statistics)))
    return found


def _under_labels(labels: tuple[str, ...], entries: float, axes: Sequence[Counts]) -> Sketch:
    """The counts of a tensor under labels; of a repeated label only the diagonal counts."""
    found = Sketch(entries, {})
    for label, counts in zip(labels, axes, strict=True):
        if label in found.counts:
            found = _diagonal(found, label, counts)
        else:
            found = Sketch(found.entries, {**found.counts, label: counts.scaled(found.entries)})
    return found


def _diagonal(sketch: Sketch, label: str, counts: Counts) -> Sketch:
    """Those entries whose index on another axis is that of the label."""
    both = sketch.counts[label]
    chances = np.minimum(both.weights * counts.weights * sketch.entries, np.minimum(both.present, counts.present))
    diagonal = Counts(chances, chances)
    return Sketch(diagonal.distinct, {**sketch.scaled(diagonal.distinct).counts, label: diagonal})


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand: its counts, and its tuples for any set of labels."""

    sketch: Sketch
    sizes: LabelStatistics

    def projected(self, labels: Set[str]) -> Sketch:
        """What is left of it with these labels alone."""
        kept = {label: counts for label, counts in self.sketch.counts.items() if label in labels}
        if len(kept) == len(self.sketch.counts):
            return self.sketch
        if len(kept) == 1:
            ((label, counts),) = kept.items()
            return Sketch(counts.distinct, {label: Counts(counts.present, counts.present)})
        tuples = self.sizes.tuples(dict.fromkeys(labels, 1))
        return Sketch(tuples, kept).scaled(tuples)


@dataclass(frozen=True, slots=True)
class _Join:
    """The join of an EinSum, and what is left of it."""

    operands: tuple[_Operand, ...]
    kind: JoinKind

    def result(self, einsum: EinSum, shape: tuple[int, ...]) -> tuple[Statistics, tuple[Counts, ...]]:
        """Statistics and counts of the result: at least one entry if any is expected at all."""
        labels = einsum.output.labels
        joined = self._projected(frozenset(einsum.labels))
        if joined.entries <= 0:
            nothing = tuple(joined.counts[label].scaled(0.0) for label in labels)
            return Statistics(0.0, (0.0,) * len(shape), shape), nothing
        sketches = [operand.sketch for operand in self.operands]
        found = _aggregated(joined, sketches, labels) if einsum.aggregated else joined
        places = math.prod(max(counts.distinct, 1.0) for counts in found.counts.values())
        entries = max(min(found.entries, places, self._projected(frozenset(labels)).entries), 1.0)
        if entries != found.entries:
            # Where all cells that there can be are taken, entries lie as those of the join do.
            found = Sketch(entries, {label: joined.counts[label].scaled(entries) for label in labels})
        counts = tuple(found.counts[label] for label in labels)
        distinct = tuple(min(max(each.distinct, 1.0), entries) for each in counts)
        crowding = _crowding(sketches[0], sketches[1], joined) if self.kind == JoinKind.INNER and sketches[1:] else {}
        statistics = Statistics(min(entries, math.prod(distinct)), distinct, shape, crowding=crowding)
        return _with_bounds(statistics, counts, self._most(labels)), counts

    def _projected(self, labels: Set[str]) -> Sketch:
        """The join of what the operands have of some labels."""
        first, *others = (operand.projected(labels) for operand in self.operands)
        return _joined(first, others[0], self.kind) if others else first

    def _most(self, labels: Sequence[str]) -> dict[frozenset[int], float]:
        """The most tuples of every set of the result's axes: those of the join of what the operands have of them."""
        return {
            positions: self._projected(frozenset(labels[position] for position in positions)).entries
            for positions in _sets_of_axes(len(labels))
        }


def _sets_of_axes(rank: int) -> Iterator[frozenset[int]]:
    """Sets of axes whose tuples are not known from T and V, those of fewer axes first."""
    for size in range(2, rank) if rank <= _MOST_AXES else ():
        yield from map(frozenset, itertools.combinations(range(rank), size))


def _with_bounds(statistics: Statistics, counts: Sequence[Counts], most: Mapping[frozenset[int], float]) -> Statistics:
    """With bounds on the tuples of every set of axes: entries that crowd at few indices have fewer blocks.

    Each set has at least as many tuples as its parts.
    """
    sets = list(_sets_of_axes(len(statistics.shape)))
    axes = binned(counts) if sets else []
    bounds: dict[frozenset[int], float] = {}
    for positions in sets:
        cells, _ = occupied_cells(statistics.entries, [axes[position] for position in positions])
        parts = [bounds.get(positions - {position}, 0.0) for position in positions]
        values = [statistics.distinct[position] for position in positions]
        bounds[positions] = max(min(most.get(positions, math.inf), cells), *parts, *values)
    return replace(statistics, most=bounds)


def _joined(u: Sketch, v: Sketch, kind: JoinKind) -> Sketch:
    matches = _matches(u, v)
    match kind:
        case JoinKind.INNER:
            return matches
        case JoinKind.LEFT:
            return u
        case JoinKind.RIGHT:
            return v
        case JoinKind.FULL:
            both = {
                label: Counts(
                    u.counts[label].entries + v.counts[label].entries - matches.counts[label].entries,
                    1 - (1 - u.counts[label].present) * (1 - v.counts[label].present),
                )
                for label in u.counts
            }
            return Sketch(u.entries + v.entries - matches.entries, both)


def _matches(u: Sketch, v: Sketch) -> Sketch:
    """Pairs of entries that agree in all shared labels, taking one label's index to tell nothing of another's."""
    shared = [label for label in u.counts if label in v.counts]
    pairs = u.entries * v.entries
    for label in shared:
        pairs *= float(u.counts[label].weights @ v.counts[label].weights)
    agreeing = {label: _agreeing(u, v, label, pairs) for label in shared}
    pairs = min([pairs, *(float(each.sum()) for each in agreeing.values())])
    counts = _alone(u, v, shared, pairs) | _alone(v, u, shared, pairs)
    for label, entries in agreeing.items():
        counts[label] = _shared(u.counts[label], v.counts[label], entries, pairs, is_only=len(shared) == 1)
    return Sketch(pairs, counts)


def _crowding(u: Sketch, v: Sketch, matches: Sketch) -> dict[str, float]:
    """How many times more pairs agree in each shared label than if entries were spread evenly over the indices."""
    shared = [label for label in u.counts if label in v.counts]
    if not shared or u.entries * v.entries <= 0:
        return {}
    found = {
        label: float(u.counts[label].weights @ v.counts[label].weights)
        * max(u.counts[label].distinct, v.counts[label].distinct)
        for label in shared
    }
    evenly = join_tuples(
        u.entries,
        v.entries,
        {label: counts.distinct for label, counts in u.counts.items()},
        {label: counts.distinct for label, counts in v.counts.items()},
    )
    # Where an entry has one partner at most, there are fewer pairs than all labels together would give.
    rest = (matches.entries / (evenly * math.prod(found.values()))) ** (1 / len(shared))
    return {label: factor * rest for label, factor in found.items()}


def _agreeing(u: Sketch, v: Sketch, label: str, pairs: float) -> np.ndarray:
    """Pairs at every index of a shared label; an entry has at most one partner that has no label of its own."""
    both = u.counts[label].entries * v.counts[label].entries
    total = both.sum()
    found = both * (pairs / total) if total > 0 else both
    if v.counts.keys() <= u.counts.keys():
        found = np.minimum(found, u.counts[label].entries)
    if u.counts.keys() <= v.counts.keys():
        found = np.minimum(found, v.counts[label].entries)
    return found


def _shared(u: Counts, v: Counts, entries: np.ndarray, pairs: float, is_only: bool) -> Counts:
    """Counts of a shared label: an index stays where both sides have it, and where other shared labels agree, too."""
    total = entries.sum()
    entries = entries * (pairs / total) if total > 0 else entries
    present = u.present * v.present
    if not is_only:
        fewer = np.minimum(u.entries, v.entries)
        chance = np.minimum(np.divide(entries, fewer, out=np.zeros_like(entries), where=fewer > 0), 1.0)
        present = np.minimum(present, 1 - (1 - chance) ** fewer)
    return Counts(entries, np.minimum(present, entries))


def _alone(u: Sketch, v: Sketch, shared: Sequence[str], pairs: float) -> dict[str, Counts]:
    """Counts in the join of the labels that one operand alone has: an index stays if an entry there has a partner."""
    if u.entries <= 0:
        return {label: counts for label, counts in u.counts.items() if label not in shared}
    has_partner = min(1.0, pairs / u.entries)
    for label in shared:
        has_partner = min(has_partner, float(u.counts[label].weights @ v.counts[label].present))
    found = {}
    for label, counts in u.counts.items():
        if label not in shared:
            stays = counts.present
            if has_partner < 1:
                stays = stays * (1 - (1 - has_partner) ** np.maximum(counts.entries, 1.0))
            found[label] = Counts(counts.entries * (pairs / u.entries), stays)
    return found


def _aggregated(joined: Sketch, operands: Sequence[Sketch], labels: Sequence[str]) -> Sketch:
    """The join without the labels that the result lacks: pairs that fall into one cell become one entry."""
    kept = {label: joined.counts[label] for label in labels}
    if not labels:
        return Sketch(1.0, {})
    if len(labels) == 1:
        (counts,) = kept.values()
        return Sketch(counts.distinct, {labels[0]: Counts(counts.present, counts.present)})
    aggregated = [label for label in joined.counts if label not in kept]
    if _fall_apart(operands, kept, aggregated):
        return Sketch(joined.entries, kept)
    thrown = joined.entries * _concentration(joined, kept, aggregated)
    cells, entries = occupied_cells(thrown, binned(kept.values()))
    found = {
        label: Counts(each, np.minimum(kept[label].present, each)) for label, each in zip(kept, entries, strict=True)
    }
    return Sketch(cells, found) if cells <= joined.entries else Sketch(cells, found).scaled(joined.entries)


def _fall_apart(operands: Sequence[Sketch], kept: Mapping[str, Counts], aggregated: Sequence[str]) -> bool:
    """Whether no two pairs have the same kept indices: a kept label tells the entry of the operand that has the rest.

    MNC, section 3: of a matrix with one entry a row, or a column.
    """
    return any(
        operand.counts.keys() >= set(aggregated)
        and any(operand.counts[label].is_key for label in kept if label in operand.counts)
        for operand in operands
    )


def _concentration(joined: Sketch, kept: Mapping[str, Counts], aggregated: Sequence[str]) -> float:
    """How many more pairs thrown at random take as many cells as these do, as those of one aggregated index never meet.

    MNC, section 3: all pairs of an index are in different cells, so that many of them fill a share of all cells.
    """
    places = math.prod(counts.distinct for counts in kept.values())
    if len(aggregated) != 1 or places <= 0:
        return 1.0
    shares = np.minimum(joined.counts[aggregated[0]].entries / places, _NEARLY_ONE)
    total = float(shares.sum())
    return float(-np.log1p(-shares).sum()) / total if total > 0 else 1.0
