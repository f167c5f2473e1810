"""Statistics: counts of entries at every index, by label, carried through joins and aggregations.

Source: MNC (see `counts`), sections 3 and 4, whose formulas for products and elementwise operations of matrices are
here for labels; where a result's indices are not equally likely, cells are counted by their own chances.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.counts import Counts, Vector, binned, occupied_cells
from sparseeinsum.statistics.estimate import join_tuples

_NEARLY_ONE = 1 - 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Entries of a tensor or of a join, and the counts of them by label."""

    entries: float
    counts: Mapping[str, Counts]

    def scaled(self, entries: float) -> "Sketch":
        """With so many entries, spread alike."""
        return Sketch(entries, {label: counts.scaled(entries) for label, counts in self.counts.items()})


def under_labels(labels: tuple[str, ...], entries: float, axes: Sequence[Counts]) -> Sketch:
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


def joined(u: Sketch, v: Sketch, kind: JoinKind) -> Sketch:
    """The join of two operands, with the entries without a partner that its kind keeps."""
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


def crowding(u: Sketch, v: Sketch, matches: Sketch) -> dict[str, float]:
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


def _agreeing(u: Sketch, v: Sketch, label: str, pairs: float) -> Vector:
    """Pairs at every index of a shared label; an entry has at most one partner that has no label of its own."""
    both = u.counts[label].entries * v.counts[label].entries
    total = both.sum()
    found = both * (pairs / total) if total > 0 else both
    if v.counts.keys() <= u.counts.keys():
        found = np.minimum(found, u.counts[label].entries)
    if u.counts.keys() <= v.counts.keys():
        found = np.minimum(found, v.counts[label].entries)
    return found


def _shared(u: Counts, v: Counts, entries: Vector, pairs: float, is_only: bool) -> Counts:
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


def aggregated(pairs: Sketch, operands: Sequence[Sketch], labels: Sequence[str]) -> Sketch:
    """The join without the labels that the result lacks: pairs that fall into one cell become one entry."""
    kept = {label: pairs.counts[label] for label in labels}
    if not labels:
        return Sketch(1.0, {})
    if len(labels) == 1:
        (counts,) = kept.values()
        return Sketch(counts.distinct, {labels[0]: Counts(counts.present, counts.present)})
    lost = [label for label in pairs.counts if label not in kept]
    if _fall_apart(operands, kept, lost):
        return Sketch(pairs.entries, kept)
    thrown = pairs.entries * _concentration(pairs, kept, lost)
    cells, entries = occupied_cells(thrown, binned(kept.values()))
    found = {
        label: Counts(each, np.minimum(kept[label].present, each)) for label, each in zip(kept, entries, strict=True)
    }
    return Sketch(cells, found) if cells <= pairs.entries else Sketch(cells, found).scaled(pairs.entries)


def _fall_apart(operands: Sequence[Sketch], kept: Mapping[str, Counts], lost: Sequence[str]) -> bool:
    """Whether no two pairs have the same kept indices: a kept label tells the entry of the operand that has the rest.

    MNC, section 3: of a matrix with one entry a row, or a column.
    """
    return any(
        operand.counts.keys() >= set(lost)
        and any(operand.counts[label].is_key for label in kept if label in operand.counts)
        for operand in operands
    )


def _concentration(pairs: Sketch, kept: Mapping[str, Counts], lost: Sequence[str]) -> float:
    """How many more pairs thrown at random take as many cells as these do, as those of one aggregated index never meet.

    MNC, section 3: all pairs of an index are in different cells, so that many of them fill a share of all cells.
    """
    places = math.prod(counts.distinct for counts in kept.values())
    if len(lost) != 1 or places <= 0:
        return 1.0
    shares = np.minimum(pairs.counts[lost[0]].entries / places, _NEARLY_ONE)
    total = float(shares.sum())
    return float(-np.log1p(-shares).sum()) / total if total > 0 else 1.0
