"""Algebra, implementation: how many tuples operators return: exact without holes, else estimated from T and V.

Source: section 5.3 for relations without holes; SparseEinSum, sections 7.1 and 7.2, for those of sparse tensors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sparseeinsum.algebra.implementation.site_operators import (
    LocalAggregation,
    LocalComplete,
    LocalFilter,
    LocalJoin,
    LocalMap,
    PlacedInput,
    SitePlan,
)
from sparseeinsum.algebra.relational.keys import CopyNumber, Key, KeyMap, KeyPredicate, key_grid
from sparseeinsum.algebra.relational.types import Keys, RelationType
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated
from sparseeinsum.statistics.estimate import joined_distinct, joined_tuples, result_entries

_SAMPLE_SIZE = 1 << 12  # keys that are examined of a relation that has too many


@dataclass(frozen=True, slots=True)
class TupleCounts:
    """How many tuples a relation has.

    Attributes:
        tuples: The number of tuples.
        distinct: For every part of their keys, the number of its distinct values.
        bound: The bound of their arrays.
    """

    tuples: float
    distinct: tuple[float, ...]
    bound: tuple[int, ...]

    @property
    def floats(self) -> float:
        """The number of elements of all arrays."""
        return self.tuples * math.prod(self.bound)

    def values(self, positions: Sequence[int]) -> float:
        """The number of distinct combinations of some parts of the keys, at most."""
        return min(math.prod(self.distinct[position] for position in positions), self.tuples)


def _dense(relation_type: RelationType) -> TupleCounts:
    return TupleCounts(float(relation_type.key_count), tuple(map(float, relation_type.frontier)), relation_type.bound)


def _with_holes(relation_type: RelationType, tuples: float, distinct: Sequence[float]) -> TupleCounts:
    """The counts of a relation with holes: from its keys, if they are known, else from estimates, within limits."""
    if relation_type.known_keys is not None:
        distinct_values = tuple(float(np.unique(part).size) for part in relation_type.known_keys)
        return TupleCounts(float(relation_type.known_keys.shape[1]), distinct_values, relation_type.bound)
    count = min(tuples, float(relation_type.key_count))
    return TupleCounts(
        count,
        tuple(min(float(most), values, count) for most, values in zip(relation_type.frontier, distinct, strict=True)),
        relation_type.bound,
    )


def count_tuples(plan: SitePlan, inputs: Sequence[TupleCounts], sites: int) -> TupleCounts:
    """The tuples that an operator returns on all sites: one that is everywhere counts once, a pending one on each site.

    Args:
        plan: The operator.
        inputs: The counts of its inputs.
        sites: The number of sites.
    """
    result_type = plan.type
    match plan:
        case PlacedInput(relation):
            is_known = result_type.known_keys is not None or relation.tuples is not None
            if result_type.is_continuous or not is_known:
                return _dense(result_type)
            return _with_holes(result_type, relation.tuples or 0.0, relation.distinct or result_type.frontier)
        case LocalAggregation():
            return _aggregated(plan, inputs[0], sites)
        case LocalComplete():
            return _dense(result_type)
        case _ if result_type.is_continuous:
            counts = _dense(result_type)
        case LocalJoin():
            counts = _joined(plan, *inputs)
        case LocalFilter(_, predicate):
            tuples = inputs[0].tuples * _share(predicate, plan.input.type)
            counts = _with_holes(result_type, tuples, inputs[0].distinct)
        case LocalMap(_, keys, _):
            counts = _with_holes(
                result_type, inputs[0].tuples * keys.copies, _mapped(keys, inputs[0].distinct, result_type)
            )
        case _:
            return inputs[0]
    repeats = _repeats(inputs[0], plan.inputs[0]) if plan.pending is not None else 1.0
    return TupleCounts(counts.tuples * repeats, counts.distinct, counts.bound)


def _repeats(counts: TupleCounts, plan: SitePlan) -> float:
    """How often each key of a pending relation occurs, on average."""
    return max(1.0, counts.tuples / plan.type.key_count) if plan.type.is_continuous and plan.type.key_count else 1.0


def _joined(plan: LocalJoin, left: TupleCounts, right: TupleCounts) -> TupleCounts:
    distinct_left = {str(position): count for position, count in enumerate(left.distinct)}
    names = [str(plan.pairing.right_position(position)) for position in range(len(right.distinct))]
    distinct_right = dict(zip(names, right.distinct, strict=True))
    tuples = joined_tuples(plan.kind, left.tuples, right.tuples, distinct_left, distinct_right)
    values = joined_distinct(plan.kind, distinct_left, distinct_right)
    distinct = [values[str(position)] for position in range(len(values))]
    if plan.keys is not None:
        distinct = _mapped(plan.keys, distinct, plan.type)
    return _with_holes(plan.type, tuples, distinct)


def _aggregated(plan: LocalAggregation, counts: TupleCounts, sites: int) -> TupleCounts:
    """The groups of an aggregation; if they are on several sites, a tuple for every site that has some of a group."""
    result_type, distribution = plan.type, plan.input.distribution
    distinct = [counts.distinct[position] for position in plan.group_by]
    if result_type.is_continuous:
        groups = float(result_type.key_count)
    else:
        groups = (
            min(result_entries(counts.tuples, distinct, True, math.inf), result_type.key_count)
            if counts.tuples > 0
            else 0.0
        )
    global_counts = _dense(result_type) if result_type.is_continuous else _with_holes(result_type, groups, distinct)
    if plan.pending is None:
        return global_counts
    site_values = counts.tuples
    if isinstance(distribution, Hashed):
        site_values = counts.values([position for position in distribution.axes if position not in plan.group_by])
    return TupleCounts(
        min(counts.tuples, global_counts.tuples * min(sites, site_values)), global_counts.distinct, global_counts.bound
    )


def _mapped(keys: KeyMap, distinct: Sequence[float], result_type: RelationType) -> list[float]:
    result = list(map(float, result_type.frontier))
    for position, count in enumerate(distinct):
        for at in keys.output_positions((position,)):
            result[at] = count
    for at, part in enumerate(keys.parts):
        if part == CopyNumber():
            result[at] = float(keys.copies)
    return result


def _share(predicate: KeyPredicate, relation_type: RelationType) -> float:
    """The share of the keys of a relation for which a predicate holds; estimated by a sample, if there are many."""
    if relation_type.known_keys is not None:
        return _mean(predicate, relation_type.known_keys)
    return _share_below(predicate, relation_type.frontier)


@lru_cache(maxsize=256)
def _share_below(predicate: KeyPredicate, frontier: Key) -> float:
    columns = key_grid(frontier)
    if columns is None:
        rng = np.random.default_rng(0)
        columns = np.stack([rng.integers(0, limit, _SAMPLE_SIZE) for limit in frontier])
    return _mean(predicate, columns)


def _mean(predicate: KeyPredicate, columns: Keys) -> float:
    return float(predicate.holds_in_columns(columns).mean()) if columns.shape[1] else 0.0


def busiest_share(counts: TupleCounts, distribution: Distribution, sites: int) -> float:
    """The share of the tuples of a relation on the site that has the most, if the keys are distributed evenly.

    >>> busiest_share(TupleCounts(10.0, (10.0,), ()), Hashed(0), 4)
    0.3
    """
    if distribution == Replicated():
        return 1.0
    values = counts.values(distribution.axes) if isinstance(distribution, Hashed) else counts.tuples
    return math.ceil(values / sites) / values if values >= 1 else 1.0
