"""Algebra, implementation: rules for products of tensors in blocks, such as matrices: BMM, CMM and RMM (5.2.2).

They hold of every aggregation of a join: blocks that share joined keys are multiplied, and those that share the rest of
their keys are added up.
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
from sparseeinsum.algebra.relational.keys import CopyNumber, Integer, KeyExpression, KeyMap, KeyPart, Operation
from sparseeinsum.semantics.exactness import JoinKind


@dataclass(frozen=True, slots=True)
class Product:
    """A join, and an aggregation of its pairs, wherever their tuples come from.

    Attributes:
        join: Of relations that need not lie where they meet.
        left: Its left side before anything moves.
        right: Its right side before anything moves.
        group_by: Positions in the keys of pairs.
        fold: What adds up.
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
        """BMM: the left side goes everywhere."""
        pairs = self._paired(Broadcast(self.left), self.right)
        return LocalAggregation(Shuffle(pairs, self.group_by), self.group_by, self.fold)

    def cross(self) -> SitePlan:
        """CMM: both sides are partitioned by the joined keys, which are columns of the one and rows of the other."""
        join = self.join
        pairs = self._paired(Shuffle(self.left, join.left_keys), Shuffle(self.right, join.right_keys))
        return LocalAggregation(Shuffle(pairs, self.group_by), self.group_by, self.fold)

    def replicated(self) -> SitePlan:
        """RMM: blocks of each side are copied for every block of the other that they meet, and go where those are.

        A relational version of the 3D algorithm of Agarwal et al.
        """
        every = tuple(range(self.join.type.arity))
        places = {self.join.pairing.right_position(at): at for at in range(self.right.type.arity)}
        left = self._copied(self.left, {at: at for at in range(self.left.type.arity)})
        right = self._copied(self.right, places)
        shuffled = (Shuffle(left, self.group_by), Shuffle(right, self.group_by))
        pairs = LocalJoin(*shuffled, left_keys=every, right_keys=every, kernel=self.join.kernel)
        return LocalAggregation(pairs, self.group_by, self.fold)

    def _copied(self, side: SitePlan, places: dict[int, int]) -> SitePlan:
        """A side, once for every value of the parts of a pair's key that it lacks, with keys like those of pairs."""
        frontier = self.join.type.frontier
        copies = math.prod(max(values, 1) for at, values in enumerate(frontier) if at not in places)
        below = 1
        parts: list[KeyExpression] = []
        for position, values in enumerate(frontier):
            if position in places:
                parts.append(KeyPart(places[position]))
            else:
                parts.append(_digit(below, max(values, 1), copies))
                below *= max(values, 1)
        return LocalMap(side, KeyMap(side.type.arity, tuple(parts), copies), Duplicate(copies))


def _digit(below: int, base: int, copies: int) -> KeyExpression:
    """A digit of the number of a copy, of so many values."""
    number: KeyExpression = CopyNumber() if below == 1 else Operation("//", CopyNumber(), Integer(below))
    return number if below * base == copies else Operation("%", number, Integer(base))


def product_of(plan: SitePlan) -> Product | None:
    """What a plan multiplies and adds up, in whichever of the three ways; None where it is no such plan."""
    match plan:
        case LocalAggregation(Shuffle(LocalJoin(kind=JoinKind.INNER, keys=None) as join), group_by, fold):
            left, right = (side.input if isinstance(side, Broadcast | Shuffle) else side for side in join.inputs)
            return Product(join, left, right, group_by, fold)
        case _:
            return None


def multiply_in_other_ways(plan: SitePlan) -> Iterator[SitePlan]:
    """BMM, CMM and RMM are equal."""
    product = product_of(plan)
    if product is not None:
        yield from (product.broadcast(), product.cross(), product.replicated())


PRODUCT_RULES = {"BMM, CMM, RMM": multiply_in_other_ways}
