"""Algebra, relational: types of relations (frontiers of keys, bounds of arrays), and how operators change them.

Source: sections 3.2 (uniqueness, continuity, frontiers) and 5.3 (the frontier of what each operator returns).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.algebra.relational.equal_parts import (
    distinct_parts,
    equal_after,
    equal_in_both,
    equalities_in,
    with_equal,
)
from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.kernels import ArrayBound, Kernel
from sparseeinsum.algebra.relational.key_map_bounds import is_injective, upper_bound
from sparseeinsum.algebra.relational.keys import (
    MAX_GRID_KEYS,
    Key,
    KeyMap,
    KeyPart,
    KeyPredicate,
    key_grid,
    pair_position,
)
from sparseeinsum.errors import AlgebraError
from sparseeinsum.semantics.exactness import JoinKind

Keys = NDArray[np.int64]  # columns: (arity, count)


@dataclass(frozen=True, slots=True)
class RelationType:
    """What is known of a relation of keys and arrays.

    Attributes:
        frontier: The least vector above every key; for a relation with holes, it may be higher.
        bound: The bound of the arrays.
        is_continuous: Whether there is a tuple for every key below the frontier.
        is_ragged: Whether arrays at the end of an axis may be smaller than the bound.
        known_keys: The keys of a relation that is not continuous, as columns; None if they are not known.
        first_equal: For every part of the key, the first part that is known to equal it in all tuples.
    """

    frontier: Key
    bound: ArrayBound
    is_continuous: bool = True
    is_ragged: bool = False
    known_keys: Keys | None = field(default=None, compare=False, repr=False)
    first_equal: Key = ()

    def __post_init__(self) -> None:
        if not self.first_equal:
            object.__setattr__(self, "first_equal", distinct_parts(self.arity))
        for name, sizes in (("frontier", self.frontier), ("bound", self.bound)):
            if any(size < 0 for size in sizes):
                raise AlgebraError(f"a relation has the {name} {sizes}; each of its numbers must be 0 or more")

    @property
    def arity(self) -> int:
        """The number of parts of a key."""
        return len(self.frontier)

    @property
    def rank(self) -> int:
        """The number of axes of an array."""
        return len(self.bound)

    @property
    def size(self) -> int:
        """The number of elements of an array."""
        return math.prod(self.bound)

    @property
    def key_count(self) -> int:
        """The number of keys below the frontier."""
        return math.prod(self.frontier)

    def keys(self) -> Keys | None:
        """All keys, as columns; None if they are not known, or too many to examine."""
        return key_grid(self.frontier) if self.is_continuous else self.known_keys

    def equal_positions(self, positions: Iterable[int]) -> list[int]:
        """The positions of the parts of the key that equal one of those at `positions`, which are included."""
        firsts = {self.first_equal[position] for position in positions}
        return [position for position, first in enumerate(self.first_equal) if first in firsts]

    def __str__(self) -> str:
        holes = "" if self.is_continuous else " with holes"
        return f"<{', '.join(map(str, self.frontier))}>{holes} of [{', '.join(map(str, self.bound))}]"


def _type_of_keys(keys: Keys, bound: ArrayBound, is_ragged: bool) -> RelationType:
    """The type of a relation whose keys are known and unique."""
    frontier = tuple(int(part.max()) + 1 if part.size else 0 for part in keys)
    is_continuous = math.prod(frontier) == keys.shape[1]
    return RelationType(frontier, bound, is_continuous, is_ragged, None if is_continuous else keys)


def _check_positions(operator: str, positions: Sequence[int], arity: int) -> None:
    beyond = [position for position in positions if not 0 <= position < arity]
    if beyond:
        raise AlgebraError(f"{operator} names the part {beyond[0]} of keys that have {arity}")
    if len(set(positions)) < len(positions):
        raise AlgebraError(f"{operator} names a part of the key twice: {tuple(positions)}")


def aggregated_type(relation: RelationType, group_by: Sequence[int], fold: Fold) -> RelationType:
    """The type of an aggregation.

    Args:
        relation: The type of the input.
        group_by: The positions of the parts of the key that the result keeps.
        fold: What becomes of the arrays of a group.
    """
    _check_positions("group_by", group_by, relation.arity)
    if fold.lacking_parts not in (None, relation.arity - len(group_by)):
        raise AlgebraError(
            f"{fold} returns a part of the key, so groups lack exactly one, and not {relation.arity - len(group_by)}; "
            "group by all others, after a rekey that makes one part of several"
        )
    first_equal = equal_after(relation.first_equal, tuple(map(KeyPart, group_by)))
    return replace(_aggregated(relation, group_by, fold), first_equal=first_equal)


def _aggregated(relation: RelationType, group_by: Sequence[int], fold: Fold) -> RelationType:
    frontier = tuple(relation.frontier[position] for position in group_by)
    bound, is_ragged = fold.bound(relation.bound), relation.is_ragged or fold.makes_ragged
    if relation.is_continuous:
        is_empty = relation.key_count == 0
        return RelationType(frontier, bound, not is_empty or math.prod(frontier) == 0, is_ragged)
    keys = relation.keys()
    if keys is None:
        return RelationType(frontier, bound, False, is_ragged)
    return _type_of_keys(np.unique(keys[list(group_by)], axis=1), bound, is_ragged)


def joined_type(
    left: RelationType,
    right: RelationType,
    left_keys: Sequence[int],
    right_keys: Sequence[int],
    bound: ArrayBound,
    kind: JoinKind = JoinKind.INNER,
) -> RelationType:
    """The type of a join: the left frontier, then the parts of the right frontier that are not joined.

    Args:
        left: The type of the left side.
        right: The type of the right side.
        left_keys: The positions of the joined parts in the left key.
        right_keys: The positions of the joined parts in the right key.
        bound: The bound of the arrays that the kernel computes.
        kind: Which tuples without a partner the join keeps.
    """
    check_join_keys(left.arity, right.arity, left_keys, right_keys)
    frontier = list(left.frontier)
    joined_frontier = _JOINED_FRONTIER[kind]
    for left_key, right_key in zip(left_keys, right_keys, strict=True):
        frontier[left_key] = joined_frontier(left.frontier[left_key], right.frontier[right_key])
    frontier += [part for position, part in enumerate(right.frontier) if position not in right_keys]
    is_continuous = left.is_continuous and right.is_continuous
    if kind != JoinKind.INNER:
        kept_sides = {JoinKind.LEFT: [left], JoinKind.RIGHT: [right]}.get(kind, [left, right])
        is_continuous = any(side.is_continuous and side.key_count == math.prod(frontier) for side in kept_sides)
    first_equal = _equal_in_pairs(left, right, left_keys, right_keys, kind)
    is_ragged = left.is_ragged or right.is_ragged
    return RelationType(tuple(frontier), bound, is_continuous, is_ragged, first_equal=first_equal)


def _equal_in_pairs(
    left: RelationType, right: RelationType, left_keys: Sequence[int], right_keys: Sequence[int], kind: JoinKind
) -> Key:
    """The equal parts of the keys of pairs: those of both sides, or of the side whose tuples are kept unpaired."""
    positions = [pair_position(position, left.arity, left_keys, right_keys) for position in range(right.arity)]
    distinct = distinct_parts(left.arity + right.arity - len(right_keys))
    of_left = with_equal(distinct, enumerate(left.first_equal))
    right_pairs = [(positions[at], positions[first]) for at, first in enumerate(right.first_equal)]
    of_right = with_equal(distinct, right_pairs)
    match kind:
        case JoinKind.INNER:
            return with_equal(of_left, right_pairs)
        case JoinKind.LEFT:
            return of_left
        case JoinKind.RIGHT:
            return of_right
        case JoinKind.FULL:
            return equal_in_both(of_left, of_right)


_JOINED_FRONTIER: dict[JoinKind, Callable[[int, int], int]] = {
    JoinKind.INNER: min,
    JoinKind.LEFT: lambda left, right: left,
    JoinKind.RIGHT: lambda left, right: right,
    JoinKind.FULL: max,
}


def check_join_keys(left: int, right: int, left_keys: Sequence[int], right_keys: Sequence[int]) -> None:
    """Check the positions of keys that a join compares.

    Args:
        left: How many parts the keys of the left relation have.
        right: How many those of the right relation have.
        left_keys: Positions in the left key.
        right_keys: Positions in the right key, each to equal the left one at its place.

    Raises:
        AlgebraError: There are more positions of one key than of the other, or a key has no such part.
    """
    if len(left_keys) != len(right_keys):
        raise AlgebraError(f"{len(left_keys)} keys of the left relation are to equal {len(right_keys)} of the right")
    _check_positions("left_keys", left_keys, left)
    _check_positions("right_keys", right_keys, right)


def filtered_type(relation: RelationType, predicate: KeyPredicate) -> RelationType:
    """The type of a filter: the least frontier of the keys for which the predicate holds, if they are known."""
    if predicate.arity != relation.arity:
        raise AlgebraError(f"a filter of keys of {predicate.arity} parts is given keys of {relation.arity}")
    first_equal = with_equal(relation.first_equal, equalities_in(predicate.condition))
    return replace(_cached_type(_filtered, relation, predicate), first_equal=first_equal)


def _filtered(relation: RelationType, predicate: KeyPredicate) -> RelationType:
    keys = relation.keys()
    if keys is None:
        return RelationType(relation.frontier, relation.bound, False, relation.is_ragged)
    return _type_of_keys(keys[:, predicate.holds_in_columns(keys)], relation.bound, relation.is_ragged)


def _cached_type(function: Callable[..., RelationType], relation: RelationType, *arguments: object) -> RelationType:
    """Compute a type that examines every key, with a cache.

    Types whose keys are known are not cached: they compare as equal to others with the same frontier.
    """
    return (
        _type_with_cache(function, relation, *arguments)
        if relation.known_keys is None
        else function(relation, *arguments)
    )


@lru_cache(maxsize=64)
def _type_with_cache(function: Callable[..., RelationType], relation: RelationType, *arguments: object) -> RelationType:
    return function(relation, *arguments)


def mapped_type(relation: RelationType, mapping: KeyMap, bound: ArrayBound) -> RelationType:
    """The type of tuples with other keys.

    Args:
        relation: The type of the input.
        mapping: The function of keys.
        bound: The bound of the new arrays.

    Raises:
        AlgebraError: The function makes the same key of two, or a part below 0.
    """
    if mapping.arity != relation.arity:
        raise AlgebraError(f"{mapping} maps keys of {mapping.arity} parts, and is given keys of {relation.arity}")
    if mapping.is_identity:
        return replace(relation, bound=bound)
    first_equal = equal_after(relation.first_equal, mapping.parts)
    return replace(_cached_type(_mapped, relation, mapping, bound), first_equal=first_equal)


def _mapped(relation: RelationType, mapping: KeyMap, bound: ArrayBound) -> RelationType:
    frontier = tuple(upper_bound(part, relation.frontier, mapping.copies) + 1 for part in mapping.parts)
    if relation.is_continuous and is_injective(mapping, relation.frontier):
        frontier = frontier if relation.key_count else (0,) * len(frontier)
        return RelationType(
            frontier, bound, math.prod(frontier) == relation.key_count * mapping.copies, relation.is_ragged
        )
    keys = relation.keys()
    if keys is None or keys.shape[1] * mapping.copies > MAX_GRID_KEYS:
        return RelationType(frontier, bound, False, relation.is_ragged)
    mapped = mapping.apply_to_columns(keys)
    check_keys(mapped, mapping)
    return _type_of_keys(mapped, bound, relation.is_ragged)


def keeps_keys_unique(relation: RelationType, mapping: KeyMap) -> bool:
    """Whether it is known that a function makes no two keys of a relation the same."""
    if mapping.is_identity or is_injective(mapping, relation.frontier):
        return True
    keys = relation.keys()  # if they are known, `mapped_type` has checked them
    return keys is not None and keys.shape[1] * mapping.copies <= MAX_GRID_KEYS


def check_keys(keys: Keys, mapping: KeyMap) -> None:
    """Raise an error if keys occur twice, or if a part of one is below 0."""
    if keys.size and int(keys.min()) < 0:
        raise AlgebraError(f"{mapping} makes a key of which a part is below 0: {_first(keys, keys.min(axis=0) < 0)}")
    if keys.shape[0] == 0 and keys.shape[1] > 1:
        raise AlgebraError(f"{mapping} makes the same key, <>, of {keys.shape[1]}; keys must be unique")
    unique, counts = np.unique(keys, axis=1, return_counts=True) if keys.shape[0] else (keys, np.ones(keys.shape[1]))
    if unique.shape[1] < keys.shape[1]:
        raise AlgebraError(f"{mapping} makes the key {_first(unique, counts > 1)} of several; keys must be unique")


def _first(keys: Keys, chosen: NDArray[np.bool_]) -> str:
    return f"<{', '.join(str(part) for part in keys[:, chosen][:, 0])}>"


def transformed_type(relation: RelationType, kernel: Kernel) -> RelationType:
    """The type of a transform: the same keys, with other arrays."""
    return replace(relation, bound=kernel.bound(relation.bound))


def completed_type(relation: RelationType, frontier: Key) -> RelationType:
    """The type of a relation completed to all keys below a frontier."""
    if len(frontier) != relation.arity or (
        relation.is_continuous and any(map(int.__gt__, relation.frontier, frontier))
    ):
        raise AlgebraError(f"a relation {relation} cannot be completed to {frontier}")
    return RelationType(frontier, relation.bound, True, relation.is_ragged)


def tiled_type(relation: RelationType, axis: int, size: int) -> RelationType:
    """The type of a tile: arrays cut into tiles of `size` indices along an axis; a last part of the key tells which."""
    if not 0 <= axis < relation.rank:
        raise AlgebraError(f"arrays of {relation.rank} axes have no axis {axis} to be tiled")
    if size < 1:
        raise AlgebraError(f"tiles of {size} indices; they have 1 or more")
    tiles = -(-relation.bound[axis] // size)
    bound = tuple(min(size, extent) if at == axis else extent for at, extent in enumerate(relation.bound))
    is_ragged = relation.is_ragged or relation.bound[axis] % size != 0
    is_continuous = relation.is_continuous and not relation.is_ragged
    keys = (
        None
        if relation.is_continuous or relation.is_ragged or relation.known_keys is None
        else _tiled_keys(relation.known_keys, tiles)
    )
    first_equal = (*relation.first_equal, relation.arity)
    return RelationType((*relation.frontier, tiles), bound, is_continuous, is_ragged, keys, first_equal)


def _tiled_keys(keys: Keys, tiles: int) -> Keys:
    repeated = np.repeat(keys, tiles, axis=1)
    return np.concatenate([repeated, np.tile(np.arange(tiles), keys.shape[1])[None, :]])
