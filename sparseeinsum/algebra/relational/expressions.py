"""Algebra, relational: the operators of the tensor relational algebra, each with the type of what it returns.

Source: section 3.1: aggregation, join, rekey, filter, transform, tile and concat. Relations of sparse tensors have
holes, which the paper's have not: `Complete` fills them, and a join may keep tuples without a partner.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sparseeinsum.algebra.relational.absence import Absent, Extent
from sparseeinsum.algebra.relational.compositions import SplitAxis
from sparseeinsum.algebra.relational.folds import ConcatFold, Fold
from sparseeinsum.algebra.relational.kernels import Kernel
from sparseeinsum.algebra.relational.keys import Key, KeyMap, KeyPredicate, with_copy_number
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
    transformed_type,
)
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.semantics.exactness import JoinKind


@dataclass(frozen=True, slots=True)
class Input:
    """A relation by name.

    Attributes:
        name: Of the relation.
        type: What it holds.
        tuples: Of a relation with holes, how many there are; None where nobody knows.
        distinct: How many values each part of their keys has.
    """

    name: str
    type: RelationType
    tuples: float | None = None
    distinct: tuple[float, ...] = ()

    @property
    def inputs(self) -> "tuple[Expression, ...]":
        """None."""
        return ()


@dataclass(frozen=True, slots=True)
class Aggregation(OneInput["Expression"]):
    """One array for every group of tuples whose keys have these parts in common.

    Attributes:
        input: What is aggregated.
        group_by: Positions in the key, in the order that the result has them.
        fold: What becomes of the arrays of a group.
    """

    input: "Expression"
    group_by: tuple[int, ...]
    fold: Fold
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", aggregated_type(self.input.type, self.group_by, self.fold))


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of tuples whose keys have equal parts, and a kernel of their arrays.

    Attributes:
        left: Its keys come first in the result.
        right: Those of its keys that are not joined on come after them.
        left_keys: Positions in the left key.
        right_keys: Positions in the right key, each to equal the one of the left at the same place.
        kernel: Of the two arrays.
        kind: Which tuples without a partner are kept; none in the paper.
        absent: What the left one, and the right one, would hold where it is the partner that is missing.
    """

    left: "Expression"
    right: "Expression"
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    kernel: Kernel
    kind: JoinKind = JoinKind.INNER
    absent: tuple[Absent | None, Absent | None] = (None, None)
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = self.left.type, self.right.type
        bound = self.kernel.bound(left.bound, right.bound)
        if self.kind != JoinKind.INNER:
            self._check_outer(left, right)
        found = joined_type(left, right, self.left_keys, self.right_keys, bound, self.kind)
        object.__setattr__(self, "type", found)

    def _check_outer(self, left: RelationType, right: RelationType) -> None:
        lacks = ((JoinKind.LEFT, right, self.right_keys, 1), (JoinKind.RIGHT, left, self.left_keys, 0))
        for kind, other, keys, side in lacks:
            if self.kind in (kind, JoinKind.FULL):
                if len(keys) != other.arity:
                    raise AlgebraError(f"a {self.kind.value} join must be on all keys of the side that may be missing")
                if self.absent[side] is None:
                    raise AlgebraError(f"a {self.kind.value} join must know what the missing side holds")

    @property
    def pairing(self) -> Pairing:
        """How tuples are joined."""
        arities = (self.left.type.arity, self.right.type.arity)
        return Pairing(self.left_keys, self.right_keys, arities, self.kernel, self.kind, self.absent)

    @property
    def inputs(self) -> "tuple[Expression, ...]":
        """Both sides."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Rekey(OneInput["Expression"]):
    """Tuples with other keys.

    Attributes:
        input: What is rekeyed.
        keys: The function of keys.
    """

    input: "Expression"
    keys: KeyMap
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.keys.copies > 1:
            raise AlgebraError(f"a rekey makes one key of one, and {self.keys} makes {self.keys.copies}")
        object.__setattr__(self, "type", mapped_type(self.input.type, self.keys, self.input.type.bound))


@dataclass(frozen=True, slots=True)
class Filter(OneInput["Expression"]):
    """The tuples whose keys a predicate holds of.

    Attributes:
        input: What is filtered.
        predicate: Of keys.
    """

    input: "Expression"
    predicate: KeyPredicate
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", filtered_type(self.input.type, self.predicate))


@dataclass(frozen=True, slots=True)
class Transform(OneInput["Expression"]):
    """A kernel of every array.

    Attributes:
        input: What is transformed.
        kernel: Of one array.
    """

    input: "Expression"
    kernel: Kernel
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", transformed_type(self.input.type, self.kernel))


@dataclass(frozen=True, slots=True)
class Tile(OneInput["Expression"]):
    """Arrays cut into pieces along an axis; a new last part of the key counts them.

    Attributes:
        input: What is tiled.
        axis: Of the arrays.
        size: Indices of a piece; the last one may have fewer.
    """

    input: "Expression"
    axis: int
    size: int
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", tiled_type(self.input.type, self.axis, self.size))

    @property
    def keys(self) -> KeyMap:
        """What becomes of keys."""
        return with_copy_number(self.input.type.arity, self.cut.copies)

    @property
    def cut(self) -> SplitAxis:
        """What becomes of arrays."""
        return SplitAxis(self.axis, self.size, max(self.type.frontier[-1], 1))


@dataclass(frozen=True, slots=True)
class Concat(OneInput["Expression"]):
    """Arrays put together along an axis in the order of a part of the key, which is gone afterwards.

    Attributes:
        input: What is put together.
        key: Position of that part of the key.
        axis: Of the arrays.
        extent: Indices of the axis afterwards, from the rest of the key; by default all that there can be.
        fill: What is put in where a tuple is absent; None where none may be.
    """

    input: "Expression"
    key: int
    axis: int
    extent: Extent | None = None
    fill: Number | None = None
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        given = self.input.type
        if not 0 <= self.key < given.arity:
            raise AlgebraError(f"keys of {given.arity} parts have no part {self.key} to be concatenated by")
        if not 0 <= self.axis < given.rank:
            raise AlgebraError(f"arrays of {given.rank} axes have no axis {self.axis} to be concatenated along")
        if not given.is_continuous and self.fill is None and given.keys() is None:
            raise AlgebraError("a relation with holes is concatenated with a fill for what is absent; give it one")
        object.__setattr__(self, "type", aggregated_type(given, self.group_by, self.concatenation))

    @property
    def group_by(self) -> tuple[int, ...]:
        """The parts of the key that stay."""
        return tuple(position for position in range(self.input.type.arity) if position != self.key)

    @property
    def concatenation(self) -> ConcatFold:
        """What becomes of the arrays of a group."""
        tile = self.input.type.bound[self.axis]
        most = tile * self.input.type.frontier[self.key]
        return ConcatFold(self.axis, tile, self.extent or Extent(most, most, None), self.fill)


@dataclass(frozen=True, slots=True)
class Complete(OneInput["Expression"]):
    """All tuples below the frontier: those that were absent hold the fill. The paper's relations always are complete.

    Attributes:
        input: A relation with holes.
        absent: What is put in.
        frontier: Above all keys that there are to be.
    """

    input: "Expression"
    absent: Absent
    frontier: Key
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", completed_type(self.input.type, self.frontier))


Expression: TypeAlias = Input | Aggregation | Join | Rekey | Filter | Transform | Tile | Concat | Complete


def with_inputs(node: Expression, inputs: Sequence[Expression]) -> Expression:
    """The same operator on other inputs.

    Raises:
        AlgebraError: It does not fit them.
    """
    match node:
        case Input():
            return node
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
        case _:
            return replace(node, input=inputs[0])
