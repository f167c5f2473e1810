"""Algebra, implementation: its operators, each with the type and the placement of what it returns.

Source: section 4. A plan that would not compute what the relational expression says, such as a local join of tuples
that do not meet, cannot be made.
"""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sparseeinsum.algebra.implementation.placements import EVERYWHERE, Placement, PlacementKind
from sparseeinsum.algebra.relational.absence import Absent
from sparseeinsum.algebra.relational.compositions import SplitAxis
from sparseeinsum.algebra.relational.expressions import Input
from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.kernels import Kernel, commutes
from sparseeinsum.algebra.relational.keys import Key, KeyMap, KeyPredicate, identity_map
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
class Placed:
    """A relation by name, and where its tuples lie before anything moves."""

    input: Input
    placement: Placement

    @property
    def type(self) -> RelationType:
        """The relation's."""
        return self.input.type

    @property
    def inputs(self) -> "tuple[SitePlan, ...]":
        """None."""
        return ()


@dataclass(frozen=True, slots=True)
class Broadcast(OneInput["SitePlan"]):
    """Every tuple to every site."""

    input: "SitePlan"

    @property
    def type(self) -> RelationType:
        """The input's."""
        return self.input.type

    @property
    def placement(self) -> Placement:
        """Everywhere."""
        return replace(EVERYWHERE, pending=self.input.placement.pending)


@dataclass(frozen=True, slots=True)
class Shuffle(OneInput["SitePlan"]):
    """Every tuple to the site that parts of its key say.

    Attributes:
        input: What is shuffled.
        dims: Positions in the key.
    """

    input: "SitePlan"
    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(set(self.dims)) < len(self.dims) or not set(self.dims) <= set(range(self.type.arity)):
            raise AlgebraError(f"keys of {self.type.arity} parts cannot be partitioned by {self.dims}")

    @property
    def type(self) -> RelationType:
        """The input's."""
        return self.input.type

    @property
    def placement(self) -> Placement:
        """Partitioned."""
        return Placement(PlacementKind.PARTITIONED, self.dims, self.input.placement.pending)


@dataclass(frozen=True, slots=True)
class LocalJoin:
    """Pairs of tuples of the same site whose keys have equal parts, and a kernel of their arrays.

    Attributes:
        left: Its keys come first in the result.
        right: Those of its keys that are not joined on come after them.
        left_keys: Positions in the left key.
        right_keys: Positions in the right key.
        kernel: Of the two arrays.
        kind: Which tuples without a partner are kept.
        absent: What the left one, and the right one, would hold where it is missing.
        keys: What becomes of the keys of pairs; None where they stay.
    """

    left: "SitePlan"
    right: "SitePlan"
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    kernel: Kernel
    kind: JoinKind = JoinKind.INNER
    absent: tuple[Absent | None, Absent | None] = (None, None)
    keys: KeyMap | None = None
    type: RelationType = field(init=False, compare=False, repr=False)
    placement: Placement = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = self.left.type, self.right.type
        bound = self.kernel.bound(left.bound, right.bound)
        joined = joined_type(left, right, self.left_keys, self.right_keys, bound, self.kind)
        placement = self._placement()
        if self.keys is not None:
            joined, placement = mapped_type(joined, self.keys, bound), placement.moved(self.keys.kept)
        object.__setattr__(self, "type", joined)
        object.__setattr__(self, "placement", placement)

    def _placement(self) -> Placement:
        left, right = self.left.placement, self.right.placement
        if left.pending is not None or right.pending is not None:
            raise AlgebraError("tuples are joined before those of the same key are folded")
        if left.is_everywhere and self.kind in (JoinKind.INNER, JoinKind.RIGHT):
            return right.moved(self.pairing.right_position)
        if right.is_everywhere and (self.kind in (JoinKind.INNER, JoinKind.LEFT) or left.is_everywhere):
            return left
        pairs = set(zip(self.left_keys, self.right_keys, strict=True))
        are_partitioned = left.kind == right.kind == PlacementKind.PARTITIONED and len(left.dims) == len(right.dims)
        if are_partitioned and set(zip(left.dims, right.dims, strict=True)) <= pairs:
            return left
        raise AlgebraError(
            f"a relation {left} and one {right} do not meet in a join of {self.left_keys} and {self.right_keys}: "
            "broadcast one, or shuffle both by the same keys"
        )

    @property
    def pairing(self) -> Pairing:
        """How tuples are joined."""
        arities = (self.left.type.arity, self.right.type.arity)
        return Pairing(self.left_keys, self.right_keys, arities, self.kernel, self.kind, self.absent)

    @property
    def inputs(self) -> "tuple[SitePlan, ...]":
        """Both sides."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class LocalAggregation(OneInput["SitePlan"]):
    """One array for every group of tuples of the same site whose keys have these parts in common.

    Where a group may be on several sites, what comes out is pending: it has to be folded again.

    Attributes:
        input: What is aggregated.
        group_by: Positions in the key.
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
        given = self.input.placement
        if given.pending not in (None, self.fold):
            raise AlgebraError(f"tuples that wait to be folded by {given.pending} are folded by {self.fold}")
        is_whole = given.is_within(self.group_by)
        if not is_whole and not self.fold.is_decomposable:
            raise AlgebraError(
                f"groups by <{', '.join(map(str, self.group_by))}> of a relation {given} lie on several sites, and "
                f"{self.fold} cannot be computed of parts: shuffle by those keys before"
            )
        if given.pending is not None and not is_whole:
            raise AlgebraError("tuples that wait to be folded are shuffled by the keys of their groups before")
        kept = replace(given, pending=None).moved(
            lambda position: self.group_by.index(position) if position in self.group_by else None
        )
        return kept if is_whole else replace(kept, pending=self.fold)


@dataclass(frozen=True, slots=True)
class LocalFilter(OneInput["SitePlan"]):
    """The tuples whose keys a predicate holds of.

    Attributes:
        input: What is filtered.
        predicate: Of keys.
    """

    input: "SitePlan"
    predicate: KeyPredicate
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", filtered_type(self.input.type, self.predicate))

    @property
    def placement(self) -> Placement:
        """The input's."""
        return self.input.placement


@dataclass(frozen=True, slots=True)
class LocalMap(OneInput["SitePlan"]):
    """Tuples with other keys and other arrays, one or several for each: the multi-map.

    Attributes:
        input: What is mapped.
        keys: The function of keys.
        kernel: Of arrays; it makes as many of one as the function of keys does.
    """

    input: "SitePlan"
    keys: KeyMap
    kernel: Kernel
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        given, pending = self.input.type, self.input.placement.pending
        if self.keys.copies != self.kernel.copies:
            raise AlgebraError(
                f"{self.keys} makes {self.keys.copies} keys, and {self.kernel} {self.kernel.copies} arrays"
            )
        if pending is not None and not (self.keys.copies == 1 and commutes(self.kernel, pending.law)):
            raise AlgebraError(f"{self.kernel} cannot be applied before tuples of the same key are folded by {pending}")
        if isinstance(self.kernel, SplitAxis):
            found = tiled_type(given, self.kernel.axis, self.kernel.size)
        else:
            found = mapped_type(given, self.keys, self.kernel.bound(given.bound))
        object.__setattr__(self, "type", found)

    @property
    def placement(self) -> Placement:
        """The input's, as far as the parts of keys that it rests on stay."""
        return self.input.placement.moved(self.keys.kept)


@dataclass(frozen=True, slots=True)
class LocalComplete(OneInput["SitePlan"]):
    """The tuples put in that are absent on a site, among those that it would have.

    Attributes:
        input: Everywhere or partitioned, so that every site knows which those are.
        absent: What is put in.
        frontier: Above all keys that there are to be.
    """

    input: "SitePlan"
    absent: Absent
    frontier: Key

    def __post_init__(self) -> None:
        placement = self.input.placement
        if placement.kind == PlacementKind.SCATTERED or placement.pending is not None:
            raise AlgebraError(f"no site knows which tuples of a relation {placement} are absent: shuffle it before")

    @property
    def type(self) -> RelationType:
        """The input's, without holes."""
        return completed_type(self.input.type, self.frontier)

    @property
    def placement(self) -> Placement:
        """The input's."""
        return self.input.placement


SitePlan: TypeAlias = (
    Placed | Broadcast | Shuffle | LocalJoin | LocalAggregation | LocalFilter | LocalMap | LocalComplete
)


def with_inputs(plan: SitePlan, inputs: tuple[SitePlan, ...]) -> SitePlan:
    """The same operator on other inputs.

    Raises:
        AlgebraError: It cannot be computed on them.
    """
    match plan:
        case Placed():
            return plan
        case LocalJoin():
            return replace(plan, left=inputs[0], right=inputs[1])
        case _:
            return replace(plan, input=inputs[0])


def transformed(plan: SitePlan, kernel: Kernel) -> LocalMap:
    """The map that leaves keys as they are."""
    return LocalMap(plan, identity_map(plan.type.arity), kernel)
