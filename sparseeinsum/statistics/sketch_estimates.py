"""Statistics: estimates for results from counts of entries at every index."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.semantics.exactness import Absence, Evaluation, JoinKind
from sparseeinsum.statistics.counts import Counts, binned, even_tensor, is_countable, measure_counts, occupied_cells
from sparseeinsum.statistics.estimate import LabelStatistics, Statistics, by_label, dense_statistics, estimate_result
from sparseeinsum.statistics.measure import Executor
from sparseeinsum.statistics.sketch import Sketch, aggregated, crowding, joined, under_labels

_MOST_AXES = 5  # of a tensor for whose every set of axes cells are counted


@dataclass(frozen=True, slots=True)
class SketchEstimator:
    """Estimates results from the counts of inputs.

    Attributes:
        counts: For inputs, the counts of every axis; entries of others are taken to be spread evenly.
    """

    name: ClassVar[str] = "sketch"

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
        return cls(measure_counts(countable, measured, executor))

    def knowing(
        self, stored: Mapping[str, StoredTensor], counts: Mapping[str, tuple[Counts, ...]]
    ) -> "SketchEstimator":
        """The estimator with the counts of further stored tensors."""
        return SketchEstimator({**self.counts, **counts})

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
            if operands is None or einsum.demoted_labels:
                known[name] = estimate_result(graph, einsum, known, evaluations[name])
            else:
                join = _Join(tuple(operands), _absence(einsum, evaluations[name]).join)
                known[name], counts[name] = join.result(einsum, graph.tensors[name].shape)
        return known


def _absence(einsum: EinSum, evaluation: Evaluation) -> Absence:
    """How the fully relational version deals with what is absent."""
    return evaluation.absence_options(tuple(frozenset(operand.labels) for operand in einsum.operands))[0]


def _operands(
    graph: EinGraph,
    einsum: EinSum,
    known: Mapping[str, Statistics],
    counts: Mapping[str, tuple[Counts, ...]],
    evaluation: Evaluation,
) -> list["_Operand"] | None:
    """All operands, dense where they are made so; None where a tensor cannot be counted."""
    if not is_countable(graph.tensors[einsum.output.tensor].shape):
        return None
    found = []
    for operand, dense in zip(einsum.operands, _absence(einsum, evaluation).dense, strict=True):
        shape = graph.tensors[operand.tensor].shape
        if not is_countable(shape):
            return None
        statistics = dense_statistics(shape) if dense else known[operand.tensor]
        axes = None if dense else counts.get(operand.tensor)
        sketch = under_labels(operand.labels, statistics.entries, axes or even_tensor(statistics))
        found.append(_Operand(sketch, by_label(operand.labels, statistics)))
    return found


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
        pairs = self._projected(frozenset(einsum.labels))
        if pairs.entries <= 0:
            nothing = tuple(pairs.counts[label].scaled(0.0) for label in labels)
            return Statistics(0.0, (0.0,) * len(shape), shape), nothing
        sketches = [operand.sketch for operand in self.operands]
        found = aggregated(pairs, sketches, labels) if einsum.aggregated else pairs
        places = math.prod(max(counts.distinct, 1.0) for counts in found.counts.values())
        entries = max(min(found.entries, places, self._projected(frozenset(labels)).entries), 1.0)
        if entries != found.entries:
            # Where all cells that there can be are taken, entries lie as those of the join do.
            found = Sketch(entries, {label: pairs.counts[label].scaled(entries) for label in labels})
        counts = tuple(found.counts[label] for label in labels)
        distinct = tuple(min(max(each.distinct, 1.0), entries) for each in counts)
        crowded = crowding(sketches[0], sketches[1], pairs) if self.kind == JoinKind.INNER and sketches[1:] else {}
        statistics = Statistics(min(entries, math.prod(distinct)), distinct, shape, crowding=crowded)
        return _with_bounds(statistics, counts, self._most(labels)), counts

    def _projected(self, labels: Set[str]) -> Sketch:
        """The join of what the operands have of some labels."""
        first, *others = (operand.projected(labels) for operand in self.operands)
        return joined(first, others[0], self.kind) if others else first

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
