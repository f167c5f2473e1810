"""Algebra, relational: types of relations: how far keys go, how large arrays are, and what operators make of it.

Source: sections 3.2 (uniqueness, continuity, frontiers) and 5.3 (the frontier of what each operator returns).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.kernels import Bound, Kernel
from sparseeinsum.algebra.relational.keys import (
    LARGEST_GRID,
    CopyNumber,
    Integer,
    Key,
    KeyExpression,
    KeyMap,
    KeyPart,
    KeyPredicate,
    Operation,
    evaluate_key,
    key_grid,
)
from sparseeinsum.errors import AlgebraError
from sparseeinsum.semantics.exactness import JoinKind

Keys = NDArray[np.int64]  # columns: (arity, count)


@dataclass(frozen=True, slots=True)
class RelationType:
    """What is known of a relation of keys and arrays.

    Attributes:
        frontier: The least vector that is above every key; where there are holes, one that may be higher.
        bound: Of the arrays.
        is_continuous: Whether there is a tuple for every key below the frontier.
        is_ragged: Whether arrays at the end of an axis may be smaller than the bound.
        known_keys: Of a relation that is not continuous, its keys as columns, where they are known.
    """

    frontier: Key
    bound: Bound
    is_continuous: bool = True
    is_ragged: bool = False
    known_keys: Keys | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, sizes in (("frontier", self.frontier), ("bound", self.bound)):
            if any(size < 0 for size in sizes):
                raise AlgebraError(f"a relation has the {name} {sizes}; each of its numbers must be 0 or more")

    @property
    def arity(self) -> int:
        """Parts of the key."""
        return len(self.frontier)

    @property
    def rank(self) -> int:
        """Axes of the arrays."""
        return len(self.bound)

    @property
    def size(self) -> int:
        """Numbers in one array."""
        return math.prod(self.bound)

    @property
    def key_count(self) -> int:
        """Keys below the frontier."""
        return math.prod(self.frontier)

    def keys(self) -> Keys | None:
        """All keys, as columns; None where they are not known, or too many to look at."""
        return key_grid(self.frontier) if self.is_continuous else self.known_keys

    def __str__(self) -> str:
        holes = "" if self.is_continuous else " with holes"
        return f"<{', '.join(map(str, self.frontier))}>{holes} of [{', '.join(map(str, self.bound))}]"


def _with_keys(keys: Keys, bound: Bound, is_ragged: bool) -> RelationType:
    """The type of a relation whose keys are known, and each of them there once."""
    frontier = tuple(int(part.max()) + 1 if part.size else 0 for part in keys)
    is_continuous = math.prod(frontier) == keys.shape[1]
    return RelationType(frontier, bound, is_continuous, is_ragged, None if is_continuous else keys)


def _check_positions(what: str, positions: Sequence[int], arity: int) -> None:
    beyond = [position for position in positions if not 0 <= position < arity]
    if beyond:
        raise AlgebraError(f"{what} names the part {beyond[0]} of keys that have {arity}")
    if len(set(positions)) < len(positions):
        raise AlgebraError(f"{what} names a part of the key twice: {tuple(positions)}")


def aggregated_type(given: RelationType, group_by: Sequence[int], fold: Fold) -> RelationType:
    """Of groups: the frontier's parts that they share, and what becomes of arrays."""
    _check_positions("group_by", group_by, given.arity)
    frontier = tuple(given.frontier[position] for position in group_by)
    bound, is_ragged = fold.bound(given.bound), given.is_ragged or fold.makes_ragged
    if given.is_continuous:
        is_empty = given.key_count == 0
        return RelationType(frontier, bound, not is_empty or math.prod(frontier) == 0, is_ragged)
    keys = given.keys()
    if keys is None:
        return RelationType(frontier, bound, False, is_ragged)
    return _with_keys(np.unique(keys[list(group_by)], axis=1), bound, is_ragged)


def joined_type(
    left: RelationType,
    right: RelationType,
    left_keys: Sequence[int],
    right_keys: Sequence[int],
    bound: Bound,
    kind: JoinKind = JoinKind.INNER,
) -> RelationType:
    """Of pairs: the left frontier, as far as the right one goes where keys are equal, then the right one's rest."""
    check_join_keys(left.arity, right.arity, left_keys, right_keys)
    frontier = list(left.frontier)
    reach = _REACH[kind]
    for mine, other in zip(left_keys, right_keys, strict=True):
        frontier[mine] = reach(left.frontier[mine], right.frontier[other])
    frontier += [part for position, part in enumerate(right.frontier) if position not in right_keys]
    is_continuous = left.is_continuous and right.is_continuous
    if kind != JoinKind.INNER:
        kept = {JoinKind.LEFT: [left], JoinKind.RIGHT: [right]}.get(kind, [left, right])
        is_continuous = any(each.is_continuous and each.key_count == math.prod(frontier) for each in kept)
    return RelationType(tuple(frontier), bound, is_continuous, left.is_ragged or right.is_ragged)


_REACH: dict[JoinKind, Callable[[int, int], int]] = {
    JoinKind.INNER: min,
    JoinKind.LEFT: lambda left, right: left,
    JoinKind.RIGHT: lambda left, right: right,
    JoinKind.FULL: max,
}


def check_join_keys(left: int, right: int, left_keys: Sequence[int], right_keys: Sequence[int]) -> None:
    """Refuse keys to join on that relations of these arities do not have."""
    if len(left_keys) != len(right_keys):
        raise AlgebraError(f"{len(left_keys)} keys of the left relation are to equal {len(right_keys)} of the right")
    _check_positions("left_keys", left_keys, left)
    _check_positions("right_keys", right_keys, right)


def filtered_type(given: RelationType, predicate: KeyPredicate) -> RelationType:
    """Of the tuples that are left: the frontier of the keys that the predicate holds of."""
    if predicate.arity != given.arity:
        raise AlgebraError(f"a filter of keys of {predicate.arity} parts is given keys of {given.arity}")
    return _known_once(_filtered, given, predicate)


def _filtered(given: RelationType, predicate: KeyPredicate) -> RelationType:
    keys = given.keys()
    if keys is None:
        return RelationType(given.frontier, given.bound, False, given.is_ragged)
    return _with_keys(keys[:, predicate.holds_in_columns(keys)], given.bound, given.is_ragged)


def _known_once(function: Callable[..., RelationType], given: RelationType, *arguments: object) -> RelationType:
    """A type that takes a look at every key is made once, but where it rests on holes, which types are not told by."""
    return _remembered(function, given, *arguments) if given.known_keys is None else function(given, *arguments)


@lru_cache(maxsize=64)
def _remembered(function: Callable[..., RelationType], given: RelationType, *arguments: object) -> RelationType:
    return function(given, *arguments)


def mapped_type(given: RelationType, mapping: KeyMap, bound: Bound) -> RelationType:
    """Of tuples with other keys.

    Raises:
        AlgebraError: Two keys become one, or a part of one is below 0.
    """
    if mapping.arity != given.arity:
        raise AlgebraError(f"{mapping} maps keys of {mapping.arity} parts, and is given keys of {given.arity}")
    if mapping.is_identity:
        return RelationType(given.frontier, bound, given.is_continuous, given.is_ragged, given.known_keys)
    return _known_once(_mapped, given, mapping, bound)


def _mapped(given: RelationType, mapping: KeyMap, bound: Bound) -> RelationType:
    frontier = tuple(_highest(part, given.frontier, mapping.copies) + 1 for part in mapping.parts)
    if given.is_continuous and _keeps_all(mapping, given.frontier):
        frontier = frontier if given.key_count else (0,) * len(frontier)
        return RelationType(frontier, bound, math.prod(frontier) == given.key_count * mapping.copies, given.is_ragged)
    keys = given.keys()
    if keys is None or keys.shape[1] * mapping.copies > LARGEST_GRID:
        return RelationType(frontier, bound, False, given.is_ragged)
    mapped = mapping.apply_to_columns(keys)
    check_keys(mapped, mapping)
    return _with_keys(mapped, bound, given.is_ragged)


def keeps_keys_unique(given: RelationType, mapping: KeyMap) -> bool:
    """Whether it is known that no two keys of a relation become one."""
    if mapping.is_identity or _keeps_all(mapping, given.frontier):
        return True
    keys = given.keys()  # which were looked at when the type was made
    return keys is not None and keys.shape[1] * mapping.copies <= LARGEST_GRID


def check_keys(keys: Keys, mapping: KeyMap) -> None:
    """Refuse keys that are made twice, or that are below 0."""
    if keys.size and int(keys.min()) < 0:
        raise AlgebraError(f"{mapping} makes a key of which a part is below 0: {_first(keys, keys.min(axis=0) < 0)}")
    if keys.shape[0] == 0 and keys.shape[1] > 1:
        raise AlgebraError(f"{mapping} makes the same key, <>, of {keys.shape[1]}; keys must be unique")
    unique, counts = np.unique(keys, axis=1, return_counts=True) if keys.shape[0] else (keys, np.ones(keys.shape[1]))
    if unique.shape[1] < keys.shape[1]:
        raise AlgebraError(f"{mapping} makes the key {_first(unique, counts > 1)} of several; keys must be unique")


def _first(keys: Keys, which: NDArray[np.bool_]) -> str:
    return f"<{', '.join(str(part) for part in keys[:, which][:, 0])}>"


def _keeps_all(mapping: KeyMap, frontier: Sequence[int]) -> bool:
    """Whether all parts of a key, and the number of its copy, can be read from what it becomes, none below 0.

    So it is where each stands alone, or they are digits of a number: k0 * 4 + k1 where k1 is less than 4.
    """
    pieces: set[KeyExpression] = set()
    for part in mapping.parts:
        match part:
            case KeyPart() | CopyNumber():
                pieces.add(part)
            case Operation(
                "+", Operation("*", KeyPart() as high, Integer(base)), (KeyPart() | CopyNumber()) as low
            ) if _highest(low, frontier, mapping.copies) < base:
                pieces |= {high, low}
            case _:
                pass
    wanted = {*map(KeyPart, range(mapping.arity))} | ({CopyNumber()} if mapping.copies > 1 else set())
    negative = any(isinstance(part, Operation | Integer) and lower_bound(part) < 0 for part in mapping.parts)
    return wanted <= pieces and not negative


def _highest(part: KeyExpression, frontier: Sequence[int], copies: int) -> int:
    """The highest value of a part of a key, for keys below a frontier; the true one where nothing is subtracted."""
    match part:
        case KeyPart(index):
            return frontier[index] - 1
        case CopyNumber():
            return copies - 1
        case Integer(value):
            return value
        case Operation("-", left, right):
            return _highest(left, frontier, copies) - lower_bound(right)
        case Operation("%", left, Integer(base)):
            return min(base - 1, _highest(left, frontier, copies)) if lower_bound(left) >= 0 else base - 1
        case Operation("*", left, right) if lower_bound(left) < 0 or lower_bound(right) < 0:
            raise AlgebraError("keys are multiplied by numbers of 0 or more")
        case Operation(symbol, left, right):
            values = (_highest(left, frontier, copies), _highest(right, frontier, copies))
            return int(evaluate_key(Operation(symbol, Integer(values[0]), Integer(values[1])), ()))


def lower_bound(part: KeyExpression) -> int:
    """A number that no value of a part of a key is below."""
    match part:
        case Integer(value):
            return value
        case Operation("+" | "*", left, right):
            sides = (lower_bound(left), lower_bound(right))
            return sides[0] + sides[1] if part.symbol == "+" else min(0, *sides)
        case Operation("-", left, Integer(value)):
            return lower_bound(left) - value
        case Operation("-", _, _):
            return -(1 << 62)
        case Operation("//", left, Integer(base)):
            return lower_bound(left) // base
        case _:
            return 0


def transformed_type(given: RelationType, kernel: Kernel) -> RelationType:
    """Of the same keys, with other arrays."""
    bound = kernel.bound(given.bound)
    return RelationType(given.frontier, bound, given.is_continuous, given.is_ragged, given.known_keys)


def completed_type(given: RelationType, frontier: Key) -> RelationType:
    """Of all keys below a frontier."""
    if len(frontier) != given.arity or (given.is_continuous and any(map(int.__gt__, given.frontier, frontier))):
        raise AlgebraError(f"a relation {given} cannot be completed to {frontier}")
    return RelationType(frontier, given.bound, True, given.is_ragged)


def tiled_type(given: RelationType, axis: int, size: int) -> RelationType:
    """Of arrays cut into pieces, which a new part of the key counts."""
    if not 0 <= axis < given.rank:
        raise AlgebraError(f"arrays of {given.rank} axes have no axis {axis} to be tiled")
    if size < 1:
        raise AlgebraError(f"tiles of {size} indices; they have 1 or more")
    pieces = -(-given.bound[axis] // size)
    bound = tuple(min(size, extent) if at == axis else extent for at, extent in enumerate(given.bound))
    is_ragged = given.is_ragged or given.bound[axis] % size != 0
    is_continuous = given.is_continuous and not given.is_ragged
    holes = (
        None
        if given.is_continuous or given.is_ragged or given.known_keys is None
        else _tiled_keys(given.known_keys, pieces)
    )
    return RelationType((*given.frontier, pieces), bound, is_continuous, is_ragged, holes)


def _tiled_keys(keys: Keys, pieces: int) -> Keys:
    repeated = np.repeat(keys, pieces, axis=1)
    return np.concatenate([repeated, np.tile(np.arange(pieces), keys.shape[1])[None, :]])
