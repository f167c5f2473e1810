"""Statistics: estimates of results from sketches, the counts of entries at every index."""

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.semantics.exactness import Absence, Evaluation, JoinKind
from sparseeinsum.statistics.axis_counts import (
    AxisCounts,
    CountEntries,
    binned,
    count_occupied_cells,
    even_tensor,
    is_countable,
    measure_counts,
)
from sparseeinsum.statistics.estimate import (
    LabelStatistics,
    Statistics,
    all_have_all_entries,
    by_label,
    dense_statistics,
    estimate_result,
)
from sparseeinsum.statistics.sketch import Sketch, aggregated, joined, joined_entries, skew, under_labels

_MOST_COMPARED = 1 << 17  # counts: 2 MB; to plan for more takes little of a run
_MOST_AXES = 5  # the most axes of a tensor for which every set of axes gets a bound


@dataclass(frozen=True, slots=True)
class SketchEstimator:
    """Estimates results from the counts of inputs.

    Attributes:
        counts: Counts of the axes of inputs; entries of inputs without counts are assumed to be spread evenly.
    """

    name: ClassVar[str] = "sketch"

    counts: Mapping[str, tuple[AxisCounts, ...]]

    @classmethod
    def from_tensors(
        cls, stored: Mapping[str, StoredTensor], measured: Mapping[str, Statistics], count: CountEntries
    ) -> "SketchEstimator":
        """Count the entries of the stored tensors that are countable; `count` counts as `count_entries` does.

        Raises:
            EngineError: A relation cannot be read.
        """
        countable = {name: source for name, source in stored.items() if is_countable(source.tensor.shape)}
        return cls(measure_counts(countable, measured, count))

    @property
    def fingerprint(self) -> str | None:
        """A hash of all counts; None if they are many."""
        axes = [(name, axis) for name, counts in self.counts.items() for axis in counts]
        if sum(axis.entries.size for _, axis in axes) > _MOST_COMPARED:
            return None
        digest = hashlib.sha256()
        for name, axis in axes:
            digest.update(f"{name} {axis.entries.size} ".encode())
            for counts in (axis.entries, axis.present):
                # Entries that are spread evenly are all the same number.
                digest.update((counts[:1] if counts.strides == (0,) else counts).tobytes())
        return digest.hexdigest()

    def with_tensors(
        self, stored: Mapping[str, StoredTensor], counts: Mapping[str, tuple[AxisCounts, ...]]
    ) -> "SketchEstimator":
        """An estimator with the counts of further stored tensors, too."""
        return SketchEstimator({**self.counts, **counts})

    def __call__(
        self, graph: EinGraph, measured: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> dict[str, Statistics]:
        """Statistics of every tensor of a graph."""
        counts = dict(self.counts)
        estimates = {
            name: _with_bounds(statistics, counts[name], {}) if name in counts else statistics
            for name, statistics in measured.items()
        }
        for einsum in graph.einsums:
            name = einsum.output.tensor
            is_dense = all_have_all_entries(estimates[operand.tensor] for operand in einsum.operands)
            operands = None if is_dense else _operand_sketches(graph, einsum, estimates, counts, evaluations[name])
            if operands is None or einsum.demoted_labels:
                estimates[name] = estimate_result(graph, einsum, estimates, evaluations[name])
            else:
                join = _JoinSketch(tuple(operands), _absence(einsum, evaluations[name]).join)
                estimates[name], counts[name] = join.result(einsum, graph.tensors[name].shape)
        return estimates


def _absence(einsum: EinSum, evaluation: Evaluation) -> Absence:
    """How absent tuples are treated if all labels are promoted."""
    return evaluation.absence_options(tuple(frozenset(operand.labels) for operand in einsum.operands))[0]


def _operand_sketches(
    graph: EinGraph,
    einsum: EinSum,
    operand_statistics: Mapping[str, Statistics],
    counts: Mapping[str, tuple[AxisCounts, ...]],
    evaluation: Evaluation,
) -> list["_OperandSketch"] | None:
    """The sketches of all operands, dense for those that are made dense; None if a tensor is not countable.

    Args:
        graph: The graph.
        einsum: The EinSum.
        operand_statistics: Statistics of its operands.
        counts: Counts of the axes of its operands, where there are any.
        evaluation: The exact evaluations of the EinSum.
    """
    if not is_countable(graph.tensors[einsum.output.tensor].shape):
        return None
    sketches = []
    for operand, dense in zip(einsum.operands, _absence(einsum, evaluation).dense, strict=True):
        shape = graph.tensors[operand.tensor].shape
        if not is_countable(shape):
            return None
        statistics = dense_statistics(shape) if dense else operand_statistics[operand.tensor]
        axes = None if dense else counts.get(operand.tensor)
        sketch = under_labels(operand.labels, statistics.entries, axes or even_tensor(statistics))
        sketches.append(_OperandSketch(sketch, by_label(operand.labels, statistics)))
    return sketches


@dataclass(frozen=True, slots=True)
class _OperandSketch:
    """The sketch of an operand, and its statistics, which estimate its tuples for any set of labels."""

    sketch: Sketch
    sizes: LabelStatistics

    def projected(self, labels: Set[str]) -> Sketch:
        """The sketch of the operand's projection to these labels."""
        projected = {label: counts for label, counts in self.sketch.counts.items() if label in labels}
        if len(projected) == len(self.sketch.counts):
            return self.sketch
        if len(projected) == 1:
            ((label, counts),) = projected.items()
            return Sketch(counts.distinct, {label: AxisCounts(counts.present, counts.present)})
        tuples = self.sizes.tuples(dict.fromkeys(labels, 1))
        return Sketch(tuples, projected).scaled(tuples)


@dataclass(frozen=True, slots=True)
class _JoinSketch:
    """The join of an EinSum, and its projections."""

    operands: tuple[_OperandSketch, ...]
    kind: JoinKind

    def result(self, einsum: EinSum, shape: tuple[int, ...]) -> tuple[Statistics, tuple[AxisCounts, ...]]:
        """Statistics and counts of the result; it has at least one entry if the join has any expected pairs."""
        labels = einsum.output.labels
        pairs = self._joined()
        if pairs.entries <= 0:
            nothing = tuple(pairs.counts[label].scaled(0.0) for label in labels)
            return Statistics(0.0, (0.0,) * len(shape), shape), nothing
        sketches = [operand.sketch for operand in self.operands]
        sketch = aggregated(pairs, sketches, labels) if einsum.aggregated else pairs
        places = math.prod(max(counts.distinct, 1.0) for counts in sketch.counts.values())
        most = self._projected_entries(frozenset(labels)) if einsum.aggregated else pairs.entries
        entries = max(min(sketch.entries, places, most), 1.0)
        if entries != sketch.entries:
            # If all possible cells have entries, these are distributed as in the join.
            sketch = Sketch(entries, {label: pairs.counts[label].scaled(entries) for label in labels})
        counts = tuple(sketch.counts[label] for label in labels)
        distinct = tuple(min(max(axis.distinct, 1.0), entries) for axis in counts)
        skews = skew(sketches[0], sketches[1], pairs) if self.kind == JoinKind.INNER and sketches[1:] else {}
        statistics = Statistics(min(entries, math.prod(distinct)), distinct, shape, skew=skews)
        return _with_bounds(statistics, counts, self._tuple_bounds(labels)), counts

    def _joined(self) -> Sketch:
        first, *others = (operand.sketch for operand in self.operands)
        return joined(first, others[0], self.kind) if others else first

    def _projected_entries(self, labels: Set[str]) -> float:
        """The entries of the join of the operands' projections to these labels."""
        first, *others = (operand.projected(labels) for operand in self.operands)
        return joined_entries(first, others[0], self.kind) if others else first.entries

    def _tuple_bounds(self, labels: Sequence[str]) -> dict[frozenset[int], float]:
        """Upper bounds on the tuples of every set of the result's axes: the pairs of the operands' projections."""
        return {
            positions: self._projected_entries(frozenset(labels[position] for position in positions))
            for positions in _sets_of_axes(len(labels))
        }


def _sets_of_axes(rank: int) -> Iterator[frozenset[int]]:
    """The sets of axes whose tuples do not follow from T and V, smaller sets first."""
    for size in range(2, rank) if rank <= _MOST_AXES else ():
        yield from map(frozenset, itertools.combinations(range(rank), size))


def _with_bounds(
    statistics: Statistics, counts: Sequence[AxisCounts], further: Mapping[frozenset[int], float]
) -> Statistics:
    """Statistics with bounds on the tuples of every set of axes: entries that concentrate at few indices have fewer.

    A set has at least as many tuples as each of its subsets. Those of a dense tensor follow from its shape.

    Args:
        statistics: The statistics.
        counts: The counts of the axes.
        most: Further upper bounds, by sets of axes.
    """
    sets = [] if statistics.is_dense else list(_sets_of_axes(len(statistics.shape)))
    if not sets and not statistics.tuple_bounds:
        return statistics
    axes = binned(counts) if sets else []
    bounds: dict[frozenset[int], float] = {}
    for positions in sets:
        cells = count_occupied_cells(statistics.entries, [axes[position] for position in positions])
        smaller_bounds = [bounds.get(positions - {position}, 0.0) for position in positions]
        values = [statistics.distinct[position] for position in positions]
        bounds[positions] = max(min(further.get(positions, math.inf), cells), *smaller_bounds, *values)
    return replace(statistics, tuple_bounds=bounds)
