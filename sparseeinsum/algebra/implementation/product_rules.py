"""Algebra, implementation: rules for products of tensors in blocks, such as matrices: BMM, CMM and RMM (5.2.2).

They hold for every aggregation of a join: blocks that agree in the joined keys are multiplied, and the products that
agree in the other keys are added up.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalJoin,
    LocalMap,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.compositions import Duplicate
from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.kernels import IDENTITY
from sparseeinsum.algebra.relational.keys import CopyNumber, Integer, KeyExpression, KeyMap, KeyPart, Operation
from sparseeinsum.semantics.exactness import JoinKind


@dataclass(frozen=True, slots=True)
class AggregatedJoin:
    """A join, and an aggregation of its pairs, with the plans of its sides before any transfer.

    Attributes:
        join: The join; its sides need not be where they meet.
        left: The plan of the left side before any transfer.
        right: The plan of the right side before any transfer.
        group_by: The positions in the keys of pairs by which they are aggregated.
        fold: The fold of the aggregation.
    """

    join: LocalJoin
    left: SitePlan
    right: SitePlan
    group_by: tuple[int, ...]
    fold: Fold

    def _paired(self, left: SitePlan, right: SitePlan) -> LocalJoin:
        join = self.join
        return LocalJoin(left, right, join.left_keys, join.right_keys, join.kernel)

    def broadcast(self) -> SitePlan:
        """BMM: the left side is broadcast."""
        pairs = self._paired(Broadcast(self.left), self.right)
        return LocalAggregation(Shuffle(pairs, self.group_by), self.group_by, self.fold)

    def cross(self) -> SitePlan:
        """CMM: both sides are partitioned by the joined keys: columns of the left matrix, and rows of the right one."""
        join = self.join
        pairs = self._paired(Shuffle(self.left, join.left_keys), Shuffle(self.right, join.right_keys))
        return LocalAggregation(Shuffle(pairs, self.group_by), self.group_by, self.fold)

    def replicated(self) -> SitePlan:
        """RMM: blocks of each side are copied for every block of the other side that they meet.

        They are sent to the site of their result. This is a relational version of the 3D algorithm of Agarwal et al.
        """
        all_keys = tuple(range(self.join.type.arity))
        right_positions = {self.join.pairing.right_position(at): at for at in range(self.right.type.arity)}
        left = self._copied(self.left, {at: at for at in range(self.left.type.arity)})
        right = self._copied(self.right, right_positions)
        shuffled = (Shuffle(left, self.group_by), Shuffle(right, self.group_by))
        pairs = LocalJoin(*shuffled, left_keys=all_keys, right_keys=all_keys, kernel=self.join.kernel)
        return LocalAggregation(pairs, self.group_by, self.fold)

    def _copied(self, side: SitePlan, positions: dict[int, int]) -> SitePlan:
        """A side, copied for every value of the parts of a pair's key that it lacks, with keys like those of pairs.

        Args:
            side: The plan of the side.
            positions: For parts of a pair's key that the side has, their positions in its own key.
        """
        frontier = self.join.type.frontier
        copies = math.prod(max(limit, 1) for at, limit in enumerate(frontier) if at not in positions)
        stride = 1
        parts: list[KeyExpression] = []
        for position, limit in enumerate(frontier):
            if position in positions:
                parts.append(KeyPart(positions[position]))
            else:
                parts.append(_digit(stride, max(limit, 1), copies))
                stride *= max(limit, 1)
        kernel = IDENTITY if copies == 1 else Duplicate(copies)
        return LocalMap(side, KeyMap(side.type.arity, tuple(parts), copies), kernel)


def _digit(stride: int, base: int, copies: int) -> KeyExpression:
    """A digit of the number of a copy: `copy // stride % base`."""
    number: KeyExpression = CopyNumber() if stride == 1 else Operation("//", CopyNumber(), Integer(stride))
    return number if stride * base == copies else Operation("%", number, Integer(base))


def product_of(plan: SitePlan) -> AggregatedJoin | None:
    """The product that a plan computes, in any of the three forms; None if it computes none."""
    match plan:
        case LocalAggregation(Shuffle(LocalJoin(kind=JoinKind.INNER, keys=None) as join), group_by, fold):
            left, right = (side.input if isinstance(side, Broadcast | Shuffle) else side for side in join.inputs)
            return AggregatedJoin(join, left, right, group_by, fold)
        case _:
            return None


def other_products(plan: SitePlan) -> Iterator[SitePlan]:
    """BMM, CMM and RMM compute the same."""
    product = product_of(plan)
    if product is not None:
        yield from (product.broadcast(), product.cross(), product.replicated())


PRODUCT_RULES = {"BMM, CMM, RMM": other_products}
