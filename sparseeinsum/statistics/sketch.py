"""Statistics: sketches, which are counts of entries at every index, by label, propagated through joins and aggregates.

Source: MNC (see `axis_counts`), sections 3 and 4. Its formulas for products and elementwise operations of matrices are
generalised to labels. If a result's indices are not equally likely, every cell is counted with its own probability.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.axis_counts import AxisCounts, Vector, binned, occupied_cells
from sparseeinsum.statistics.estimate import join_tuples

_NEARLY_ONE = 1 - 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """The number of entries of a tensor or of a join, and their counts at every index, by label."""

    entries: float
    counts: Mapping[str, AxisCounts]

    def scaled(self, entries: float) -> "Sketch":
        """A sketch with `entries` entries in the same proportions."""
        return Sketch(entries, {label: counts.scaled(entries) for label, counts in self.counts.items()})


def under_labels(labels: tuple[str, ...], entries: float, axes: Sequence[AxisCounts]) -> Sketch:
    """The sketch of a tensor by label, from the counts of its axes; if a label is repeated, that of the diagonal.

    Args:
        labels: The label of every axis.
        entries: The entries of the tensor.
        axes: The counts of every axis.
    """
    sketch = Sketch(entries, {})
    for label, counts in zip(labels, axes, strict=True):
        if label in sketch.counts:
            sketch = _diagonal(sketch, label, counts)
        else:
            sketch = Sketch(sketch.entries, {**sketch.counts, label: counts.scaled(sketch.entries)})
    return sketch


def _diagonal(sketch: Sketch, label: str, counts: AxisCounts) -> Sketch:
    """The entries that have the same index for `label` and on another axis, whose counts are `counts`."""
    label_counts = sketch.counts[label]
    chances = np.minimum(
        label_counts.weights * counts.weights * sketch.entries, np.minimum(label_counts.present, counts.present)
    )
    diagonal = AxisCounts(chances, chances)
    return Sketch(diagonal.distinct, {**sketch.scaled(diagonal.distinct).counts, label: diagonal})


def joined(u: Sketch, v: Sketch, kind: JoinKind) -> Sketch:
    """The sketch of a join of two operands, including the unmatched entries that its kind keeps."""
    match kind:
        case JoinKind.INNER:
            return _matches(u, v)
        case JoinKind.LEFT:
            return u
        case JoinKind.RIGHT:
            return v
        case JoinKind.FULL:
            matches = _matches(u, v)
            counts = {
                label: AxisCounts(
                    u.counts[label].entries + v.counts[label].entries - matches.counts[label].entries,
                    1 - (1 - u.counts[label].present) * (1 - v.counts[label].present),
                )
                for label in u.counts
            }
            return Sketch(u.entries + v.entries - matches.entries, counts)


def joined_entries(u: Sketch, v: Sketch, kind: JoinKind) -> float:
    """The entries of `joined`, without their counts at every index."""
    match kind:
        case JoinKind.INNER:
            return _pairs(u, v)[0]
        case JoinKind.LEFT:
            return u.entries
        case JoinKind.RIGHT:
            return v.entries
        case JoinKind.FULL:
            return u.entries + v.entries - _pairs(u, v)[0]


def _pairs(u: Sketch, v: Sketch) -> tuple[float, dict[str, Vector]]:
    """The number of pairs of entries that agree in all shared labels, and about how many at every index of each."""
    shared = [label for label in u.counts if label in v.counts]
    pairs = u.entries * v.entries
    for label in shared:
        pairs *= float(u.counts[label].weights @ v.counts[label].weights)
    pairs_by_index = {label: _pairs_by_index(u, v, label, pairs) for label in shared}
    return min([pairs, *(float(entries.sum()) for entries in pairs_by_index.values())]), pairs_by_index


def _matches(u: Sketch, v: Sketch) -> Sketch:
    """The pairs of entries that agree in all shared labels, assuming that labels are independent."""
    pairs, pairs_by_index = _pairs(u, v)
    shared = list(pairs_by_index)
    counts = _counts_of_own_labels(u, v, shared, pairs) | _counts_of_own_labels(v, u, shared, pairs)
    for label, entries in pairs_by_index.items():
        is_only = len(shared) == 1
        counts[label] = _counts_of_shared_label(u.counts[label], v.counts[label], entries, pairs, is_only)
    return Sketch(pairs, counts)


def skew(u: Sketch, v: Sketch, matches: Sketch) -> dict[str, float]:
    """For each shared label, how many times more pairs agree than if entries were spread evenly over its indices.

    Args:
        u: One operand.
        v: The other operand.
        matches: Their join.
    """
    shared = [label for label in u.counts if label in v.counts]
    if not shared or u.entries * v.entries <= 0:
        return {}
    skews = {
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
    # If entries have at most one match, there are fewer pairs than the product of the labels' factors would give.
    correction = (matches.entries / (evenly * math.prod(skews.values()))) ** (1 / len(shared))
    return {label: factor * correction for label, factor in skews.items()}


def _pairs_by_index(u: Sketch, v: Sketch, label: str, pairs: float) -> Vector:
    """The pairs at every index of a shared label.

    If one operand has all labels of the other, each of its entries has at most one match.
    """
    pairs_by_index = u.counts[label].entries * v.counts[label].entries
    total = pairs_by_index.sum()
    entries = pairs_by_index * (pairs / total) if total > 0 else pairs_by_index
    if v.counts.keys() <= u.counts.keys():
        entries = np.minimum(entries, u.counts[label].entries)
    if u.counts.keys() <= v.counts.keys():
        entries = np.minimum(entries, v.counts[label].entries)
    return entries


def _counts_of_shared_label(u: AxisCounts, v: AxisCounts, entries: Vector, pairs: float, is_only: bool) -> AxisCounts:
    """The counts of a shared label in the join: both operands must have the index, and agree in other shared labels.

    Args:
        u: Its counts in one operand.
        v: Its counts in the other operand.
        entries: The pairs at every index.
        pairs: All pairs.
        is_only: Whether it is the only shared label.
    """
    total = entries.sum()
    entries = entries * (pairs / total) if total > 0 else entries
    present = u.present * v.present
    if not is_only:
        fewer = np.minimum(u.entries, v.entries)
        chance = np.minimum(np.divide(entries, fewer, out=np.zeros_like(entries), where=fewer > 0), 1.0)
        present = np.minimum(present, 1 - (1 - chance) ** fewer)
    return AxisCounts(entries, np.minimum(present, entries))


def _counts_of_own_labels(u: Sketch, v: Sketch, shared: Sequence[str], pairs: float) -> dict[str, AxisCounts]:
    """The counts in the join of the labels that only `u` has: an index stays if one of its entries has a match."""
    if u.entries <= 0:
        return {label: counts for label, counts in u.counts.items() if label not in shared}
    has_match = min(1.0, pairs / u.entries)  # the probability that an entry of u has a match
    for label in shared:
        has_match = min(has_match, float(u.counts[label].weights @ v.counts[label].present))
    own_counts = {}
    for label, counts in u.counts.items():
        if label not in shared:
            stays = counts.present
            if has_match < 1:
                stays = stays * -np.expm1(np.maximum(counts.entries, 1.0) * math.log1p(-has_match))
            own_counts[label] = AxisCounts(counts.entries * (pairs / u.entries), stays)
    return own_counts


def aggregated(pairs: Sketch, operands: Sequence[Sketch], labels: Sequence[str]) -> Sketch:
    """The sketch of an aggregate: pairs of a join that fall into one cell become one entry.

    Args:
        pairs: The join.
        operands: Its operands.
        labels: The labels of the result.
    """
    grouped = {label: pairs.counts[label] for label in labels}
    if not labels:
        return Sketch(1.0, {})
    if len(labels) == 1:
        (counts,) = grouped.values()
        return Sketch(counts.distinct, {labels[0]: AxisCounts(counts.present, counts.present)})
    reduced = [label for label in pairs.counts if label not in grouped]
    if _groups_are_single(operands, grouped, reduced):
        return Sketch(pairs.entries, grouped)
    random_pairs = pairs.entries * _equivalent_random_pairs(pairs, grouped, reduced)
    cells, entries = occupied_cells(random_pairs, binned(grouped.values()))
    counts_by_label = {
        label: AxisCounts(by_index, np.minimum(grouped[label].present, by_index))
        for label, by_index in zip(grouped, entries, strict=True)
    }
    sketch = Sketch(cells, counts_by_label)
    return sketch if cells <= pairs.entries else sketch.scaled(pairs.entries)


def _groups_are_single(operands: Sequence[Sketch], grouped: Mapping[str, AxisCounts], reduced: Sequence[str]) -> bool:
    """Whether every group is a single pair: a label of the result identifies the entry that has all aggregated labels.

    MNC, section 3: for a matrix with one entry in every row, or in every column.
    """
    return any(
        operand.counts.keys() >= set(reduced)
        and any(operand.counts[label].is_key for label in grouped if label in operand.counts)
        for operand in operands
    )


def _equivalent_random_pairs(pairs: Sketch, grouped: Mapping[str, AxisCounts], reduced: Sequence[str]) -> float:
    """How many times more random pairs would fill as many cells as these pairs do.

    MNC, section 3: pairs of the same aggregated index are in different cells, so that they fill a larger share of all
    cells than random ones.
    """
    places = math.prod(counts.distinct for counts in grouped.values())
    if len(reduced) != 1 or places <= 0:
        return 1.0
    shares = np.minimum(pairs.counts[reduced[0]].entries / places, _NEARLY_ONE)
    total = float(shares.sum())
    return float(-np.log1p(-shares).sum()) / total if total > 0 else 1.0
