"""Rewriting: the expected work of contracting the factors of a product, for any two groups of factors.

A group is a set of factors, written as an integer whose bits are their positions.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.operators.dtypes import result_dtype
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.estimate import (
    LabelStatistics,
    Statistics,
    all_have_all_entries,
    join_tuples,
    joined_distinct,
    joined_tuples,
    result_entries,
)

_LARGEST = 1e150  # so that a product of two estimates is finite, too
_SINGLE = 32  # bits

# The cost of a join of two operands, given with its result and the bounds of all labels; in floats, for example.
PairCost = Callable[[LabelStatistics, LabelStatistics, LabelStatistics, Mapping[str, int]], float]

# A binary tree: for each group of more than one factor, the two groups that it is joined from.
Tree = dict[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ContractionNetwork:
    """Factors that one associative operator joins, and the labels that the result keeps.

    Attributes:
        factors: Labels and statistics of each factor; dense ones if its absent entries count.
        dtypes: Dtypes of the factors.
        output: Labels of the result.
        bounds: Bounds of all labels.
        is_early: Whether a label is aggregated as soon as no other factor has it, rather than at the end.
        needs_matches: Whether a result is absent where either operand is, rather than only where both are.
    """

    factors: tuple[LabelStatistics, ...]
    dtypes: tuple[str, ...]
    output: frozenset[str]
    bounds: Mapping[str, int]
    is_early: bool = True
    needs_matches: bool = True

    @property
    def everything(self) -> int:
        """The group of all factors."""
        return (1 << len(self.factors)) - 1


@dataclass(slots=True)
class ContractionEstimates:
    """Expected sizes of the results of groups, each the smallest of all joins for it that were looked at.

    A search gets the same sizes whatever order it takes in the end, so that an exhaustive search is exact.

    Attributes:
        network: The factors.
        pair_cost: By what joins are compared; None for their work: multiplications, and the entries of results.
    """

    network: ContractionNetwork
    pair_cost: PairCost | None = None
    _sizes: dict[int, LabelStatistics] = field(default_factory=dict)
    _joined: dict[tuple[int, int], float] = field(default_factory=dict)
    _holders: dict[str, int] = field(default_factory=dict)
    _dense: set[int] = field(default_factory=set)  # groups whose results have entries at all indices, at least one
    _wide: int = 0  # the factors each of which alone is as precise as the result

    def __post_init__(self) -> None:
        for position, factor in enumerate(self.network.factors):
            self._sizes[1 << position] = factor
            if all_have_all_entries([factor.statistics]):
                self._dense.add(1 << position)
            for label in factor.labels:
                self._holders[label] = self._holders.get(label, 0) | 1 << position
        precision = _precision(self.network.dtypes)
        self._wide = sum(
            1 << position for position, dtype in enumerate(self.network.dtypes) if _precision((dtype,)) >= precision
        )

    def labels(self, group: int) -> tuple[str, ...]:
        """Labels of the result of a group that is a factor or was joined before."""
        return self._sizes[group].labels

    def entries(self, group: int) -> float:
        """Expected entries of the result of a group that is a factor or was joined before."""
        return self._sizes[group].statistics.entries

    @property
    def visited_joins(self) -> int:
        """The number of joins that were looked at."""
        return len(self._joined)

    def is_precise(self, group: int) -> bool:
        """Whether the result of a group is as precise as that of all factors.

        The result of two float32 is not, if there is a float64.
        """
        if group & self._wide:
            return True
        dtypes = [dtype for position, dtype in enumerate(self.network.dtypes) if group >> position & 1]
        return is_as_precise(dtypes, self.network.dtypes)

    def join(self, first: int, second: int) -> float:
        """The expected number of tuples of a join of two groups, each a factor or joined before.

        Args:
            first: A group: an integer with a bit for each of its factors.
            second: Another one, with no factor in common.
        """
        pair = (first, second) if first < second else (second, first)
        tuples = self._joined.get(pair)
        if tuples is None:
            group, are_dense = first | second, first in self._dense and second in self._dense
            join = self._dense_result if are_dense else self._result
            tuples, size = join(group, self._sizes[pair[0]], self._sizes[pair[1]])
            smallest = self._sizes.get(group)
            if smallest is None or size.statistics.entries < smallest.statistics.entries:
                self._sizes[group] = size
                if are_dense and size.statistics.entries < _LARGEST:
                    self._dense.add(group)
                else:
                    self._dense.discard(group)
            self._joined[pair] = tuples
        return tuples

    def cost(self, tree: Tree) -> float:
        """Expected cost of a tree: the work of all joins, or their `pair_cost`."""
        self.visit(tree)
        return math.fsum(self.join_cost(*tree[group]) + self.result_cost(group) for group in tree)

    def join_cost(self, first: int, second: int) -> float:
        """The expected cost of a join of two groups, each a factor or joined before, without that of its result.

        Args:
            first: A group: an integer with a bit for each of its factors.
            second: Another one, with no factor in common.
        """
        tuples = self.join(first, second)
        if self.pair_cost is None:
            return tuples
        sizes = self._sizes
        return self.pair_cost(sizes[first], sizes[second], sizes[first | second], self.network.bounds)

    def result_cost(self, group: int) -> float:
        """Expected cost of the result of a group that was joined before."""
        return self.entries(group) if self.pair_cost is None else 0.0

    def visit(self, tree: Tree) -> None:
        """Estimate the sizes of a tree's groups, smaller groups first."""
        for group in sorted(tree, key=int.bit_count):
            self.join(*tree[group])

    def kept_labels(self, group: int, labels: Iterable[str]) -> tuple[str, ...]:
        """Those of `labels` of a group that its result keeps."""
        network = self.network
        if group != network.everything and not network.is_early:
            return tuple(labels)
        others, output = ~group, network.output
        return tuple([label for label in labels if label in output or self._holders[label] & others])

    def _result(self, group: int, u: LabelStatistics, v: LabelStatistics) -> tuple[float, LabelStatistics]:
        """The expected tuples of the join of `u` and `v`, and the size of the result of their group."""
        kind = JoinKind.INNER
        if not self.network.needs_matches:
            u, v, kind = self._outer(u, v)
        distinct_u, distinct_v = _distinct(u), _distinct(v)
        tuples = joined_tuples(kind, u.statistics.entries, v.statistics.entries, distinct_u, distinct_v)
        tuples = min(tuples, _LARGEST)
        distinct = {
            label: min(values, max(tuples, 1.0))
            for label, values in joined_distinct(kind, distinct_u, distinct_v).items()
        }
        kept_labels = self.kept_labels(group, distinct)
        is_aggregated = len(kept_labels) < len(distinct)
        most_entries = (
            _most_entries(u, v, frozenset(kept_labels)) if is_aggregated and kind == JoinKind.INNER else _LARGEST
        )
        values = [max(distinct[label], 1.0) for label in kept_labels]
        entries = min(result_entries(tuples, values, is_aggregated, most_entries), _LARGEST)
        shape = tuple(self.network.bounds[label] for label in kept_labels)
        return tuples, LabelStatistics(
            kept_labels, Statistics(entries, tuple(min(value, entries) for value in values), shape)
        )

    def _dense_result(self, group: int, u: LabelStatistics, v: LabelStatistics) -> tuple[float, LabelStatistics]:
        """What `_result` returns, for `u` and `v` with entries at all indices."""
        labels, bounds = dict.fromkeys((*u.labels, *v.labels)), self.network.bounds
        tuples = min(math.prod([float(bounds[label]) for label in labels]), _LARGEST)
        return tuples, self._with_all_entries(self.kept_labels(group, labels))

    def _outer(self, u: LabelStatistics, v: LabelStatistics) -> tuple[LabelStatistics, LabelStatistics, JoinKind]:
        """Operands and kind of a join that needs no matches: with different labels, all indices count."""
        if set(u.labels) == set(v.labels):
            return u, v, JoinKind.FULL
        return self._with_all_entries(u.labels), self._with_all_entries(v.labels), JoinKind.INNER

    def _with_all_entries(self, labels: tuple[str, ...]) -> LabelStatistics:
        shape = tuple([self.network.bounds[label] for label in labels])
        values = tuple(map(float, shape))
        return LabelStatistics(labels, Statistics(min(math.prod(values), _LARGEST), values, shape))


def _distinct(operand: LabelStatistics) -> dict[str, float]:
    return dict(zip(operand.labels, operand.statistics.distinct, strict=True))


def _most_entries(u: LabelStatistics, v: LabelStatistics, labels: frozenset[str]) -> float:
    """The most entries that a result can have: the tuples of the join of the operands projected to its labels."""
    tiles = dict.fromkeys(labels, 1)
    return join_tuples(u.tuples(tiles), v.tuples(tiles), u.distinct(tiles), v.distinct(tiles))


def is_as_precise(dtypes: Sequence[str], all_dtypes: Sequence[str]) -> bool:
    """Whether joining or aggregating numbers of `dtypes` first changes neither precision nor dtype of the result.

    Counts of bools are int64, which with float32 would give float64.
    """
    if result_dtype(dtypes) == "bool":
        return _precision(all_dtypes) != _SINGLE
    return _precision(dtypes) == 0 or _precision(dtypes) >= _precision(all_dtypes)


def _precision(dtypes: Sequence[str]) -> int:
    """Bits of the real part of a number of the promoted dtype; 0 where arithmetic is exact."""
    dtype = np.dtype(result_dtype(dtypes))
    return 0 if dtype.kind in "bi" else dtype.itemsize * (4 if dtype.kind == "c" else 8)
