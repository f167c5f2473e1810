"""Algebra, implementation: the operators of sites, each with the type and the placement of its result.

Source: section 4. A plan that would not compute what the relational expression means, such as a local join of tuples
that are on different sites, raises an error when it is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sparseeinsum.algebra.implementation.placements import EVERYWHERE, Placement, PlacementKind
from sparseeinsum.algebra.relational.absence import AbsentArray
from sparseeinsum.algebra.relational.compositions import SplitAxis
from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.kernels import Kernel, commutes
from sparseeinsum.algebra.relational.keys import Key, KeyMap, KeyPredicate, identity_map, projection
from sparseeinsum.algebra.relational.relational_expressions import Input
from sparseeinsum.algebra.relational.traversal import OneInput
from sparseeinsum.algebra.relational.tuples import Pairing
from sparseeinsum.algebra.relational.types import (
    RelationType,
    aggregated_type,
    completed_type,
    filtered_type,
    joined_type,
    mapped_type,
    tiled_type,
)
from sparseeinsum.errors import AlgebraError
from sparseeinsum.semantics.exactness import JoinKind


@dataclass(frozen=True, slots=True)
class PlacedInput:
    """A relation that is read by name, and where its tuples are before anything is transferred.

    Attributes:
        input: The relation.
        placement: Where its tuples are.
    """

    input: Input
    placement: Placement

    @property
    def type(self) -> RelationType:
        """The type of the relation."""
        return self.input.type

    @property
    def inputs(self) -> "tuple[SitePlan, ...]":
        """It reads no other operator."""
        return ()


@dataclass(frozen=True, slots=True)
class Broadcast(OneInput["SitePlan"]):
    """A copy of every tuple on every site."""

    input: "SitePlan"

    @property
    def type(self) -> RelationType:
        """The type of the input."""
        return self.input.type

    @property
    def placement(self) -> Placement:
        """Everywhere; a pending fold stays pending."""
        return replace(EVERYWHERE, pending=self.input.placement.pending)


@dataclass(frozen=True, slots=True)
class Shuffle(OneInput["SitePlan"]):
    """Every tuple on the site that parts of its key select.

    Attributes:
        input: The relation that is shuffled.
        dims: The positions of these parts in the key.
    """

    input: "SitePlan"
    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(set(self.dims)) < len(self.dims) or not set(self.dims) <= set(range(self.type.arity)):
            raise AlgebraError(f"keys of {self.type.arity} parts cannot be partitioned by {self.dims}")

    @property
    def type(self) -> RelationType:
        """The type of the input."""
        return self.input.type

    @property
    def placement(self) -> Placement:
        """Partitioned by `dims`; a pending fold stays pending."""
        return Placement(PlacementKind.PARTITIONED, self.dims, self.input.placement.pending).in_type(self.type)


@dataclass(frozen=True, slots=True)
class LocalJoin:
    """Pairs of tuples of the same site whose keys agree in the joined parts, with a kernel of their arrays.

    Attributes:
        left: The left side, whose keys come first in the result.
        right: The right side; the parts of its keys that are not joined come last in the result.
        left_keys: The positions of the joined parts in the left key.
        right_keys: The positions of the joined parts in the right key, in the same order.
        kernel: The kernel of the two arrays.
        kind: Which tuples without a partner are kept.
        absent: What an absent tuple of the left side, and of the right side, would hold.
        keys: A function of the keys of pairs, or None.
    """

    left: "SitePlan"
    right: "SitePlan"
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    kernel: Kernel
    kind: JoinKind = JoinKind.INNER
    absent: tuple[AbsentArray | None, AbsentArray | None] = (None, None)
    keys: KeyMap | None = None
    type: RelationType = field(init=False, compare=False, repr=False)
    placement: Placement = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = self.left.type, self.right.type
        bound = self.kernel.bound(left.bound, right.bound)
        joined = joined_type(left, right, self.left_keys, self.right_keys, bound, self.kind)
        placement = self._placement(joined).in_type(joined)
        if self.keys is not None:
            placement = _with_mapped_keys(placement, joined, self.keys)
            joined = mapped_type(joined, self.keys, bound)
        object.__setattr__(self, "type", joined)
        object.__setattr__(self, "placement", placement)

    def _placement(self, joined: RelationType) -> Placement:
        left = self.left.placement
        right = self.right.placement.with_keys(lambda position: (self.pairing.right_position(position),))
        if left.pending is not None or right.pending is not None:
            raise AlgebraError("tuples are joined before those of the same key are folded")
        if left.is_everywhere and self.kind in (JoinKind.INNER, JoinKind.RIGHT):
            return right
        if right.is_everywhere and (self.kind in (JoinKind.INNER, JoinKind.LEFT) or left.is_everywhere):
            return left
        if left.kind == PlacementKind.PARTITIONED and left.in_type(joined) == right.in_type(joined):
            return left
        raise AlgebraError(
            f"a relation {left} and one {self.right.placement} do not meet in a join of {self.left_keys} and "
            f"{self.right_keys}: broadcast one, or shuffle both by the same keys"
        )

    @property
    def pairing(self) -> Pairing:
        """How the tuples are joined."""
        arities = (self.left.type.arity, self.right.type.arity)
        return Pairing(self.left_keys, self.right_keys, arities, self.kernel, self.kind, self.absent)

    @property
    def inputs(self) -> "tuple[SitePlan, ...]":
        """The left side and the right side."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class LocalAggregation(OneInput["SitePlan"]):
    """One tuple for every group of tuples of the same site whose keys agree in the parts at `group_by`.

    If a group can be on several sites, the fold is pending in the result: its tuples must be folded again.

    Attributes:
        input: The relation that is aggregated.
        group_by: The positions of these parts in the key.
        fold: What becomes of the arrays of a group.
    """

    input: "SitePlan"
    group_by: tuple[int, ...]
    fold: Fold
    type: RelationType = field(init=False, compare=False, repr=False)
    placement: Placement = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", aggregated_type(self.input.type, self.group_by, self.fold))
        object.__setattr__(self, "placement", self._placement())

    def _placement(self) -> Placement:
        placement = self.input.placement
        if placement.pending not in (None, self.fold):
            raise AlgebraError(f"tuples that wait to be folded by {placement.pending} are folded by {self.fold}")
        has_whole_groups = has_groups_on_sites(self.input, self.group_by)
        if not has_whole_groups and not self.fold.is_decomposable:
            raise AlgebraError(
                f"groups by <{', '.join(map(str, self.group_by))}> of a relation {placement} lie on several sites, and "
                f"{self.fold} cannot be computed of parts: shuffle by those keys before"
            )
        if placement.pending is not None and not has_whole_groups:
            raise AlgebraError("tuples that wait to be folded are shuffled by the keys of their groups before")
        groups = projection(self.input.type.arity, self.group_by)
        result = _with_mapped_keys(replace(placement, pending=None), self.input.type, groups)
        return result if has_whole_groups else replace(result, pending=self.fold)


@dataclass(frozen=True, slots=True)
class LocalFilter(OneInput["SitePlan"]):
    """The tuples for whose keys a predicate holds.

    Attributes:
        input: The relation that is filtered.
        predicate: The condition on keys.
    """

    input: "SitePlan"
    predicate: KeyPredicate
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", filtered_type(self.input.type, self.predicate))

    @property
    def placement(self) -> Placement:
        """The placement of the input; parts of keys that the predicate makes equal can take each other's place."""
        return self.input.placement.in_type(self.type)


@dataclass(frozen=True, slots=True)
class LocalMap(OneInput["SitePlan"]):
    """Tuples with other keys and other arrays, one or several for each tuple of the input: the multi-map.

    Attributes:
        input: The relation that is mapped.
        keys: The function of keys.
        kernel: The kernel of one array; it makes as many arrays as `keys` makes keys.
    """

    input: "SitePlan"
    keys: KeyMap
    kernel: Kernel
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        input_type, pending = self.input.type, self.input.placement.pending
        if self.keys.copies != self.kernel.copies:
            raise AlgebraError(
                f"{self.keys} makes {self.keys.copies} keys, and {self.kernel} {self.kernel.copies} arrays"
            )
        if pending is not None and not (self.keys.copies == 1 and commutes(self.kernel, pending)):
            raise AlgebraError(f"{self.kernel} cannot be applied before tuples of the same key are folded by {pending}")
        if isinstance(self.kernel, SplitAxis):
            result_type = tiled_type(input_type, self.kernel.axis, self.kernel.size)
        else:
            result_type = mapped_type(input_type, self.keys, self.kernel.bound(input_type.bound))
        object.__setattr__(self, "type", result_type)

    @property
    def placement(self) -> Placement:
        """The placement of the input, if the parts of keys that it depends on stay."""
        return _with_mapped_keys(self.input.placement, self.input.type, self.keys)


@dataclass(frozen=True, slots=True)
class LocalComplete(OneInput["SitePlan"]):
    """The relation of a site, completed by the absent tuples that would be on this site.

    Attributes:
        input: A relation that is everywhere or partitioned, so that every site knows which tuples it would have.
        absent: What an absent tuple holds in the result.
        frontier: The frontier of the keys of the result.
    """

    input: "SitePlan"
    absent: AbsentArray
    frontier: Key

    def __post_init__(self) -> None:
        placement = self.input.placement
        if placement.kind == PlacementKind.SCATTERED or placement.pending is not None:
            raise AlgebraError(f"no site knows which tuples of a relation {placement} are absent: shuffle it before")

    @property
    def type(self) -> RelationType:
        """The type of the input, without holes."""
        return completed_type(self.input.type, self.frontier)

    @property
    def placement(self) -> Placement:
        """The placement of the input."""
        return self.input.placement


SitePlan: TypeAlias = (
    PlacedInput | Broadcast | Shuffle | LocalJoin | LocalAggregation | LocalFilter | LocalMap | LocalComplete
)


def _with_mapped_keys(placement: Placement, relation_type: RelationType, keys: KeyMap) -> Placement:
    """The placement of a relation after a function of its keys, which `relation_type` is about."""
    return placement.with_keys(lambda position: keys.output_positions(relation_type.equal_positions((position,))))


def has_groups_on_sites(plan: SitePlan, group_by: Sequence[int]) -> bool:
    """Whether tuples whose keys agree in the parts at `group_by` are on one site."""
    return plan.placement.is_within(plan.type.equal_positions(group_by))


def with_inputs(plan: SitePlan, inputs: tuple[SitePlan, ...]) -> SitePlan:
    """The same operator with other inputs.

    Raises:
        AlgebraError: It cannot be computed of them.
    """
    match plan:
        case PlacedInput():
            return plan
        case LocalJoin():
            return replace(plan, left=inputs[0], right=inputs[1])
        case _:
            return replace(plan, input=inputs[0])


def transformed(plan: SitePlan, kernel: Kernel) -> LocalMap:
    """The map that applies a kernel to every array, and leaves keys as they are."""
    return LocalMap(plan, identity_map(plan.type.arity), kernel)
