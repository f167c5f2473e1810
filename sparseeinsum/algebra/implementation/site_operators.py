"""Algebra, implementation: the operators of sites, each with the type and the distribution of its result.

Source: section 4. A plan that would not compute what the relational expression means, such as a local join of tuples
that are on different sites, raises an error when it is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

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
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated, Scattered, is_within, with_keys
from sparseeinsum.errors import AlgebraError
from sparseeinsum.semantics.exactness import JoinKind


@dataclass(frozen=True, slots=True)
class PlacedInput:
    """A relation that is read by name, and where its tuples are before anything is transferred.

    Attributes:
        input: The relation.
        distribution: Where its tuples are.
    """

    input: Input
    distribution: Distribution

    @property
    def type(self) -> RelationType:
        """The type of the relation."""
        return self.input.type

    @property
    def inputs(self) -> "tuple[SitePlan, ...]":
        """It reads no other operator."""
        return ()

    @property
    def pending(self) -> Fold | None:
        """None, because no two tuples have the same key, so that nothing must be combined."""
        return None


@dataclass(frozen=True, slots=True)
class _OneInput(OneInput["SitePlan"]):
    """An operator of one relation."""

    input: "SitePlan"

    @property
    def pending(self) -> Fold | None:
        """The fold that must still combine tuples of the same key, as in the input; None if keys are unique."""
        return self.input.pending


@dataclass(frozen=True, slots=True)
class Broadcast(_OneInput):
    """A copy of every tuple on every site."""

    @property
    def type(self) -> RelationType:
        """The type of the input."""
        return self.input.type

    @property
    def distribution(self) -> Distribution:
        """All tuples are on every site."""
        return Replicated()


@dataclass(frozen=True, slots=True)
class Shuffle(_OneInput):
    """Every tuple on the site that parts of its key select.

    Attributes:
        input: The relation that is shuffled.
        dims: The positions of these parts in the key.
    """

    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(set(self.dims)) < len(self.dims) or not set(self.dims) <= set(range(self.type.arity)):
            raise AlgebraError(f"keys of {self.type.arity} parts cannot be partitioned by {self.dims}")

    @property
    def type(self) -> RelationType:
        """The type of the input."""
        return self.input.type

    @property
    def distribution(self) -> Distribution:
        """Tuples are partitioned by the parts `dims` of their keys."""
        return in_type(Hashed(*self.dims), self.type)


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
    distribution: Distribution = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = self.left.type, self.right.type
        bound = self.kernel.bound(left.bound, right.bound)
        joined = joined_type(left, right, self.left_keys, self.right_keys, bound, self.kind)
        distribution = in_type(self._joined_distribution(joined), joined)
        if self.keys is not None:
            distribution = _with_mapped_keys(distribution, joined, self.keys)
            joined = mapped_type(joined, self.keys, bound)
        object.__setattr__(self, "type", joined)
        object.__setattr__(self, "distribution", distribution)

    def _joined_distribution(self, joined: RelationType) -> Distribution:
        left = self.left.distribution
        right = with_keys(self.right.distribution, lambda position: (self.pairing.right_position(position),))
        if self.left.pending is not None or self.right.pending is not None:
            raise AlgebraError("tuples are joined before those of the same key are folded")
        if left == Replicated() and self.kind in (JoinKind.INNER, JoinKind.RIGHT):
            return right
        if right == Replicated() and (self.kind in (JoinKind.INNER, JoinKind.LEFT) or left == Replicated()):
            return left
        if isinstance(left, Hashed) and in_type(left, joined) == in_type(right, joined):
            return left
        raise AlgebraError(
            f"a relation {left} and one {self.right.distribution} do not meet in a join of {self.left_keys} and "
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

    @property
    def pending(self) -> Fold | None:
        """None, because no two tuples have the same key, so that nothing must be combined."""
        return None


@dataclass(frozen=True, slots=True)
class LocalAggregation(_OneInput):
    """One tuple for every group of tuples of the same site whose keys agree in the parts at `group_by`.

    If a group can be on several sites, the fold is pending in the result: its tuples must be folded again.

    Attributes:
        input: The relation that is aggregated.
        group_by: The positions of these parts in the key.
        fold: What becomes of the arrays of a group.
    """

    group_by: tuple[int, ...]
    fold: Fold
    type: RelationType = field(init=False, compare=False, repr=False)
    distribution: Distribution = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._check()
        groups = projection(self.input.type.arity, self.group_by)
        distribution = _with_mapped_keys(self.input.distribution, self.input.type, groups)
        object.__setattr__(self, "type", aggregated_type(self.input.type, self.group_by, self.fold))
        object.__setattr__(self, "distribution", distribution)

    @property
    def pending(self) -> Fold | None:
        """The fold of this aggregation, if a group can be on several sites."""
        return None if has_groups_on_sites(self.input, self.group_by) else self.fold

    def _check(self) -> None:
        pending = self.input.pending
        if pending not in (None, self.fold):
            raise AlgebraError(f"tuples that wait to be folded by {pending} are folded by {self.fold}")
        has_whole_groups = has_groups_on_sites(self.input, self.group_by)
        if not has_whole_groups and not self.fold.is_decomposable:
            raise AlgebraError(
                f"groups by <{', '.join(map(str, self.group_by))}> of a relation {self.input.distribution} lie on "
                f"several sites, and {self.fold} cannot be computed of parts: shuffle by those keys before"
            )
        if pending is not None and not has_whole_groups:
            raise AlgebraError("tuples that wait to be folded are shuffled by the keys of their groups before")


@dataclass(frozen=True, slots=True)
class LocalFilter(_OneInput):
    """The tuples for whose keys a predicate holds.

    Attributes:
        input: The relation that is filtered.
        predicate: The condition on keys.
    """

    predicate: KeyPredicate
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", filtered_type(self.input.type, self.predicate))

    @property
    def distribution(self) -> Distribution:
        """That of the input; parts of keys that the predicate makes equal can take each other's place."""
        return in_type(self.input.distribution, self.type)


@dataclass(frozen=True, slots=True)
class LocalMap(_OneInput):
    """Tuples with other keys and other arrays, one or several for each tuple of the input: the multi-map.

    Attributes:
        input: The relation that is mapped.
        keys: The function of keys.
        kernel: The kernel of one array; it makes as many arrays as `keys` makes keys.
    """

    keys: KeyMap
    kernel: Kernel
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        input_type, pending = self.input.type, self.input.pending
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
    def distribution(self) -> Distribution:
        """That of the input, if the parts of keys that it depends on stay."""
        return _with_mapped_keys(self.input.distribution, self.input.type, self.keys)


@dataclass(frozen=True, slots=True)
class LocalComplete(_OneInput):
    """The relation of a site, completed by the absent tuples that would be on this site.

    Attributes:
        input: A relation that is everywhere or partitioned, so that every site knows which tuples it would have.
        absent: What an absent tuple holds in the result.
        frontier: The frontier of the keys of the result.
    """

    absent: AbsentArray
    frontier: Key

    def __post_init__(self) -> None:
        distribution = self.input.distribution
        if distribution == Scattered() or self.pending is not None:
            raise AlgebraError(f"no site knows which tuples of a relation {distribution} are absent: shuffle it before")

    @property
    def type(self) -> RelationType:
        """The type of the input, without holes."""
        return completed_type(self.input.type, self.frontier)

    @property
    def distribution(self) -> Distribution:
        """The distribution of the input."""
        return self.input.distribution


SitePlan: TypeAlias = (
    PlacedInput | Broadcast | Shuffle | LocalJoin | LocalAggregation | LocalFilter | LocalMap | LocalComplete
)


def in_type(distribution: Distribution, relation_type: RelationType) -> Distribution:
    """The distribution of a relation, which names the first of several equal parts of the key."""
    return with_keys(distribution, lambda position: relation_type.equal_positions((position,)))


def _with_mapped_keys(distribution: Distribution, relation_type: RelationType, keys: KeyMap) -> Distribution:
    """The distribution of a relation after a function of its keys, which `relation_type` is about."""
    return with_keys(distribution, lambda position: keys.output_positions(relation_type.equal_positions((position,))))


def has_groups_on_sites(plan: SitePlan, group_by: Sequence[int]) -> bool:
    """Whether tuples whose keys agree in the parts at `group_by` are on one site."""
    return is_within(plan.distribution, plan.type.equal_positions(group_by))


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
