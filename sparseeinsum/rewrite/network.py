"""Rewriting: factors of a product under labels in, expected work of contracting any two groups of them out.

A group is a set of factors, written as a whole number whose bits are their positions.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.operators.dtypes import promoted
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.estimate import (
    LabelStatistics,
    Statistics,
    join_tuples,
    joined_distinct,
    joined_tuples,
    result_entries,
)

_LARGEST = 1e150  # so that a product of two estimates is a number, too
_SINGLE = 32  # bits

# A tree by its groups: the two groups that each group of more than one factor is computed from.
Tree = dict[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Network:
    """Factors that are joined by one associative operator, and what is left of their labels.

    Attributes:
        factors: Entries of each factor; all of its indices where an absent one counts.
        dtypes: Dtypes of the factors.
        output: Labels of the result.
        bounds: Bounds of all labels.
        is_early: Whether a label is aggregated as soon as no other factor has it, rather than at the end.
        needs_matches: Whether a result is absent where either operand is, rather than where both are.
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
class Estimates:
    """Expected sizes of the results of groups, each the smallest of all ways to compute it that were looked at.

    The size of a group does not depend on the order that a search takes in the end, which makes an exact search exact.
    """

    network: Network
    _sizes: dict[int, LabelStatistics] = field(default_factory=dict)
    _joined: dict[tuple[int, int], float] = field(default_factory=dict)
    _holders: dict[str, int] = field(default_factory=dict)
    _wide: int = 0  # factors of which one is enough for the precision of the result

    def __post_init__(self) -> None:
        for position, factor in enumerate(self.network.factors):
            self._sizes[1 << position] = factor
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
    def looked_at(self) -> int:
        """How many joins were looked at."""
        return len(self._joined)

    def is_precise(self, group: int) -> bool:
        """Whether a group's result is as precise as that of all factors: two float32 beside a float64 are not."""
        if group & self._wide:
            return True
        dtypes = [dtype for position, dtype in enumerate(self.network.dtypes) if group >> position & 1]
        return is_as_precise(dtypes, self.network.dtypes)

    def join(self, first: int, second: int) -> float:
        """Expected tuples of the join of two groups, each a factor or joined before."""
        pair = (first, second) if first < second else (second, first)
        tuples = self._joined.get(pair)
        if tuples is None:
            tuples, size = self._result(first | second, self._sizes[pair[0]], self._sizes[pair[1]])
            known = self._sizes.get(first | second)
            if known is None or size.statistics.entries < known.statistics.entries:
                self._sizes[first | second] = size
            self._joined[pair] = tuples
        return tuples

    def cost(self, tree: Tree) -> float:
        """Expected work of a tree: multiplications, and entries of intermediates and the result."""
        self.visit(tree)
        return math.fsum(self.join(*tree[group]) + self.entries(group) for group in tree)

    def visit(self, tree: Tree) -> None:
        """Look at the sizes of a tree's groups, smaller groups first."""
        for group in sorted(tree, key=int.bit_count):
            self.join(*tree[group])

    def kept(self, group: int, labels: Iterable[str]) -> tuple[str, ...]:
        """Those of a group's labels that its result has."""
        network = self.network
        if group != network.everything and not network.is_early:
            return tuple(labels)
        return tuple(label for label in labels if label in network.output or self._holders[label] & ~group)

    def _result(self, group: int, u: LabelStatistics, v: LabelStatistics) -> tuple[float, LabelStatistics]:
        """Tuples of the join of two operands, and the size of what is left of it."""
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
        kept = self.kept(group, distinct)
        is_aggregated = len(kept) < len(distinct)
        most = _most(u, v, frozenset(kept)) if is_aggregated and kind == JoinKind.INNER else _LARGEST
        values = [max(distinct[label], 1.0) for label in kept]
        entries = min(result_entries(tuples, values, is_aggregated, most), _LARGEST)
        shape = tuple(self.network.bounds[label] for label in kept)
        return tuples, LabelStatistics(kept, Statistics(entries, tuple(min(value, entries) for value in values), shape))

    def _outer(self, u: LabelStatistics, v: LabelStatistics) -> tuple[LabelStatistics, LabelStatistics, JoinKind]:
        """Operands of which neither needs a partner: under different labels all indices count."""
        if set(u.labels) == set(v.labels):
            return u, v, JoinKind.FULL
        return self._dense(u), self._dense(v), JoinKind.INNER

    def _dense(self, operand: LabelStatistics) -> LabelStatistics:
        shape = tuple(self.network.bounds[label] for label in operand.labels)
        values = tuple(float(bound) for bound in shape)
        return LabelStatistics(operand.labels, Statistics(min(math.prod(values), _LARGEST), values, shape))


def _distinct(operand: LabelStatistics) -> dict[str, float]:
    return dict(zip(operand.labels, operand.statistics.distinct, strict=True))


def _most(u: LabelStatistics, v: LabelStatistics, kept: frozenset[str]) -> float:
    """The most entries that a result can have: tuples of the join of what the operands have of its labels."""
    tiles = dict.fromkeys(kept, 1)
    return join_tuples(u.tuples(tiles), v.tuples(tiles), u.distinct(tiles), v.distinct(tiles))


def is_as_precise(dtypes: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether joining or aggregating numbers of some dtypes first changes neither precision nor dtype of the whole.

    Counts of bools are int64, which beside float32 would make float64.
    """
    if promoted(dtypes) == "bool":
        return _precision(whole) != _SINGLE
    return _precision(dtypes) == 0 or _precision(dtypes) >= _precision(whole)


def _precision(dtypes: Sequence[str]) -> int:
    """Bits of the real part of a number of the promoted dtype; 0 where arithmetic is exact."""
    dtype = np.dtype(promoted(dtypes))
    return 0 if dtype.kind in "bi" else dtype.itemsize * (4 if dtype.kind == "c" else 8)
