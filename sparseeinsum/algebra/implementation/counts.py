"""Algebra, implementation: how many tuples operators return: exact without holes, else expected from T and V.

Source: section 5.3 for relations without holes; SparseEinSum, sections 7.1 and 7.2, for those of sparse tensors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sparseeinsum.algebra.implementation.placements import Placement, PlacementKind
from sparseeinsum.algebra.implementation.site_operators import (
    LocalAggregation,
    LocalComplete,
    LocalFilter,
    LocalJoin,
    LocalMap,
    Placed,
    SitePlan,
)
from sparseeinsum.algebra.relational.keys import CopyNumber, Key, KeyMap, KeyPredicate, key_grid
from sparseeinsum.algebra.relational.types import Keys, RelationType
from sparseeinsum.statistics.estimate import joined_distinct, joined_tuples, result_entries

_SAMPLE = 1 << 12  # keys of a relation that has too many to look at


@dataclass(frozen=True, slots=True)
class TupleCounts:
    """How many tuples there are.

    Attributes:
        tuples: All of them.
        distinct: How many values each part of their keys has.
        bound: Of their arrays.
    """

    tuples: float
    distinct: tuple[float, ...]
    bound: tuple[int, ...]

    @property
    def floats(self) -> float:
        """Numbers in all arrays."""
        return self.tuples * math.prod(self.bound)

    def values(self, positions: Sequence[int]) -> float:
        """How many values these parts have together, at most."""
        return min(math.prod(self.distinct[position] for position in positions), self.tuples)


def _dense(of: RelationType) -> TupleCounts:
    return TupleCounts(float(of.key_count), tuple(map(float, of.frontier)), of.bound)


def _with_holes(of: RelationType, tuples: float, distinct: Sequence[float]) -> TupleCounts:
    """Of a relation with holes: no more than there can be, and those that are known, if they are."""
    if of.known_keys is not None:
        values = tuple(float(np.unique(part).size) for part in of.known_keys)
        return TupleCounts(float(of.known_keys.shape[1]), values, of.bound)
    most = min(tuples, float(of.key_count))
    return TupleCounts(
        most, tuple(min(float(part), each, most) for part, each in zip(of.frontier, distinct, strict=True)), of.bound
    )


def count_tuples(plan: SitePlan, inputs: Sequence[TupleCounts], sites: int) -> TupleCounts:
    """Tuples that an operator returns, of all sites; those that are everywhere once, those that are pending as often.

    Args:
        plan: The operator.
        inputs: Tuples that it reads.
        sites: How many there are.
    """
    of = plan.type
    match plan:
        case Placed(given):
            is_known = of.known_keys is not None or given.tuples is not None
            if of.is_continuous or not is_known:
                return _dense(of)
            return _with_holes(of, given.tuples or 0.0, given.distinct or of.frontier)
        case LocalAggregation():
            return _aggregated(plan, inputs[0], sites)
        case LocalComplete():
            return _dense(of)
        case _ if of.is_continuous:
            found = _dense(of)
        case LocalJoin():
            found = _joined(plan, *inputs)
        case LocalFilter(_, predicate):
            kept = inputs[0].tuples * _share(predicate, plan.input.type)
            found = _with_holes(of, kept, inputs[0].distinct)
        case LocalMap(_, keys, _):
            found = _with_holes(of, inputs[0].tuples * keys.copies, _mapped(keys, inputs[0].distinct, of))
        case _:
            return inputs[0]
    repeated = _repeats(inputs[0], plan.inputs[0]) if plan.placement.pending is not None else 1.0
    return TupleCounts(found.tuples * repeated, found.distinct, found.bound)


def _repeats(given: TupleCounts, plan: SitePlan) -> float:
    """How often the keys of a pending relation are there, on average."""
    return max(1.0, given.tuples / plan.type.key_count) if plan.type.is_continuous and plan.type.key_count else 1.0


def _joined(plan: LocalJoin, left: TupleCounts, right: TupleCounts) -> TupleCounts:
    distinct_left = {str(position): each for position, each in enumerate(left.distinct)}
    names = [str(plan.pairing.right_position(position)) for position in range(len(right.distinct))]
    distinct_right = dict(zip(names, right.distinct, strict=True))
    tuples = joined_tuples(plan.kind, left.tuples, right.tuples, distinct_left, distinct_right)
    values = joined_distinct(plan.kind, distinct_left, distinct_right)
    distinct = [values[str(position)] for position in range(len(values))]
    if plan.keys is not None:
        distinct = _mapped(plan.keys, distinct, plan.type)
    return _with_holes(plan.type, tuples, distinct)


def _aggregated(plan: LocalAggregation, given: TupleCounts, sites: int) -> TupleCounts:
    """Groups; where they lie on several sites, as many tuples as there are sites that have some of each."""
    of, placement = plan.type, plan.input.placement
    kept = [given.distinct[position] for position in plan.group_by]
    if of.is_continuous:
        groups = float(of.key_count)
    else:
        groups = min(result_entries(given.tuples, kept, True, math.inf), of.key_count) if given.tuples > 0 else 0.0
    whole = _dense(of) if of.is_continuous else _with_holes(of, groups, kept)
    if plan.placement.pending is None:
        return whole
    rest = [position for position in placement.dims if position not in plan.group_by]
    spread = given.values(rest) if placement.kind == PlacementKind.PARTITIONED else given.tuples
    return TupleCounts(min(given.tuples, whole.tuples * min(sites, spread)), whole.distinct, whole.bound)


def _mapped(keys: KeyMap, distinct: Sequence[float], of: RelationType) -> list[float]:
    found = list(map(float, of.frontier))
    for position, each in enumerate(distinct):
        at = keys.kept(position)
        if at is not None:
            found[at] = each
    for at, part in enumerate(keys.parts):
        if part == CopyNumber():
            found[at] = float(keys.copies)
    return found


def _share(predicate: KeyPredicate, of: RelationType) -> float:
    """The share of the keys below a frontier that a predicate holds of; of many keys, of some."""
    if of.known_keys is not None:
        return _mean(predicate, of.known_keys)
    return _share_below(predicate, of.frontier)


@lru_cache(maxsize=256)
def _share_below(predicate: KeyPredicate, frontier: Key) -> float:
    columns = key_grid(frontier)
    if columns is None:
        rng = np.random.default_rng(0)
        columns = np.stack([rng.integers(0, most, _SAMPLE) for most in frontier])
    return _mean(predicate, columns)


def _mean(predicate: KeyPredicate, columns: Keys) -> float:
    return float(predicate.holds_in_columns(columns).mean()) if columns.shape[1] else 0.0


def busiest_share(counts: TupleCounts, placement: Placement, sites: int) -> float:
    """The share of a relation's tuples that the site has which has the most, if their keys are spread evenly.

    >>> busiest_share(Counts(10.0, (10.0,), ()), Placement(Spread.PARTITIONED, (0,)), 4)
    0.3
    """
    if placement.is_everywhere:
        return 1.0
    values = counts.values(placement.dims) if placement.kind == PlacementKind.PARTITIONED else counts.tuples
    return math.ceil(values / sites) / values if values >= 1 else 1.0
