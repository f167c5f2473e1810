"""Algebra, relational: the operators of the tensor relational algebra, each with the type of its result.

Source: section 3.1: aggregation, join, rekey, filter, transform, tile and concat. The paper's relations have no holes,
but those of sparse tensors do: `Complete` fills them, and a join can keep tuples without a partner.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sparseeinsum.algebra.relational.absence import AbsentArray, TileExtent
from sparseeinsum.algebra.relational.compositions import Duplicate, SplitAxis
from sparseeinsum.algebra.relational.folds import ConcatFold, Fold
from sparseeinsum.algebra.relational.kernels import IDENTITY, Kernel
from sparseeinsum.algebra.relational.keys import Key, KeyMap, KeyPredicate, with_copy_number
from sparseeinsum.algebra.relational.traversal import OneInput, topological_order
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
    """A relation that is read by name.

    Attributes:
        name: The name of the relation.
        type: The type of the relation.
        tuples: How many tuples a relation with holes has; None if that is not known.
        distinct: For every part of its keys, how many values it has.
    """

    name: str
    type: RelationType
    tuples: float | None = None
    distinct: tuple[float, ...] = ()

    @property
    def inputs(self) -> "tuple[Expression, ...]":
        """It reads no other operator."""
        return ()


@dataclass(frozen=True, slots=True)
class Aggregation(OneInput["Expression"]):
    """One tuple for every group of tuples whose keys agree in the parts at `group_by`.

    Attributes:
        input: The relation that is aggregated.
        group_by: The positions of these parts in the key, in the order of the result's key.
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
    """Pairs of tuples whose keys agree in the joined parts, with a kernel of their arrays.

    Attributes:
        left: The left side, whose keys come first in the result.
        right: The right side; the parts of its keys that are not joined come last in the result.
        left_keys: The positions of the joined parts in the left key.
        right_keys: The positions of the joined parts in the right key, in the same order.
        kernel: The kernel of the two arrays.
        kind: Which tuples without a partner are kept; in the paper, none.
        absent: What an absent tuple of the left side, and of the right side, would hold, for tuples without a partner.
    """

    left: "Expression"
    right: "Expression"
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    kernel: Kernel
    kind: JoinKind = JoinKind.INNER
    absent: tuple[AbsentArray | None, AbsentArray | None] = (None, None)
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        left, right = self.left.type, self.right.type
        bound = self.kernel.bound(left.bound, right.bound)
        if self.kind != JoinKind.INNER:
            self._check_outer(left, right)
        joined = joined_type(left, right, self.left_keys, self.right_keys, bound, self.kind)
        object.__setattr__(self, "type", joined)

    def _check_outer(self, left: RelationType, right: RelationType) -> None:
        outer_sides = ((JoinKind.LEFT, right, self.right_keys, 1), (JoinKind.RIGHT, left, self.left_keys, 0))
        for kind, other, keys, side in outer_sides:
            if self.kind in (kind, JoinKind.FULL):
                if len(keys) != other.arity:
                    raise AlgebraError(f"a {self.kind.value} join must be on all keys of the side that may be missing")
                if self.absent[side] is None:
                    raise AlgebraError(f"a {self.kind.value} join must know what the missing side holds")

    @property
    def pairing(self) -> Pairing:
        """How the tuples are joined."""
        arities = (self.left.type.arity, self.right.type.arity)
        return Pairing(self.left_keys, self.right_keys, arities, self.kernel, self.kind, self.absent)

    @property
    def inputs(self) -> "tuple[Expression, ...]":
        """The left side and the right side."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Rekey(OneInput["Expression"]):
    """Tuples with other keys; several copies of each, if the function makes several keys: the paper's multi-map.

    Attributes:
        input: The relation whose keys change.
        keys: The function of keys.
    """

    input: "Expression"
    keys: KeyMap
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", mapped_type(self.input.type, self.keys, self.input.type.bound))

    @property
    def kernel(self) -> Kernel:
        """The kernel that makes the arrays of all copies."""
        return IDENTITY if self.keys.copies == 1 else Duplicate(self.keys.copies)


@dataclass(frozen=True, slots=True)
class Filter(OneInput["Expression"]):
    """The tuples for whose keys a predicate holds.

    Attributes:
        input: The relation that is filtered.
        predicate: The condition on keys.
    """

    input: "Expression"
    predicate: KeyPredicate
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", filtered_type(self.input.type, self.predicate))


@dataclass(frozen=True, slots=True)
class Transform(OneInput["Expression"]):
    """The result of a kernel for every array; keys stay as they are.

    Attributes:
        input: The relation that is transformed.
        kernel: The kernel of one array.
    """

    input: "Expression"
    kernel: Kernel
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", transformed_type(self.input.type, self.kernel))


@dataclass(frozen=True, slots=True)
class Tile(OneInput["Expression"]):
    """Arrays cut into tiles along an axis; a new last part of the key numbers the tiles.

    Attributes:
        input: The relation that is tiled.
        axis: The axis of the arrays.
        size: The number of indices of a tile; the last one may have fewer.
    """

    input: "Expression"
    axis: int
    size: int
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", tiled_type(self.input.type, self.axis, self.size))

    @property
    def keys(self) -> KeyMap:
        """The function of keys: one key for every tile."""
        return with_copy_number(self.input.type.arity, self.kernel.copies)

    @property
    def kernel(self) -> SplitAxis:
        """The kernel that cuts the arrays."""
        return SplitAxis(self.axis, self.size, max(self.type.frontier[-1], 1))


@dataclass(frozen=True, slots=True)
class Concat(OneInput["Expression"]):
    """Arrays concatenated along an axis, in the order of a part of the key, which the result lacks.

    Attributes:
        input: The relation whose arrays are concatenated.
        key: The position of that part of the key.
        axis: The axis of the arrays.
        extent: The extent of the axis in the result, by the rest of the key; by default the most that there can be.
        fill: The value in place of absent tuples; None if no tuple may be absent.
    """

    input: "Expression"
    key: int
    axis: int
    extent: TileExtent | None = None
    fill: Number | None = None
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        input_type = self.input.type
        if not 0 <= self.key < input_type.arity:
            raise AlgebraError(f"keys of {input_type.arity} parts have no part {self.key} to be concatenated by")
        if not 0 <= self.axis < input_type.rank:
            raise AlgebraError(f"arrays of {input_type.rank} axes have no axis {self.axis} to be concatenated along")
        if not input_type.is_continuous and self.fill is None and input_type.keys() is None:
            raise AlgebraError("a relation with holes is concatenated with a fill for what is absent; give it one")
        object.__setattr__(self, "type", aggregated_type(input_type, self.group_by, self.concatenation))

    @property
    def group_by(self) -> tuple[int, ...]:
        """The positions of the parts of the key that stay."""
        return tuple(position for position in range(self.input.type.arity) if position != self.key)

    @property
    def concatenation(self) -> ConcatFold:
        """The fold that concatenates the arrays of a group."""
        tile = self.input.type.bound[self.axis]
        most = tile * self.input.type.frontier[self.key]
        return ConcatFold(self.axis, tile, self.extent or TileExtent(most, most, None), self.fill)


@dataclass(frozen=True, slots=True)
class Complete(OneInput["Expression"]):
    """All tuples below a frontier; those that were absent hold the fill. The paper's relations are always complete.

    Attributes:
        input: The relation with holes.
        absent: What an absent tuple holds in the result.
        frontier: The frontier of the keys of the result.
    """

    input: "Expression"
    absent: AbsentArray
    frontier: Key
    type: RelationType = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", completed_type(self.input.type, self.frontier))


Expression: TypeAlias = Input | Aggregation | Join | Rekey | Filter | Transform | Tile | Concat | Complete


def inputs_of(expressions: Iterable[Expression]) -> dict[str, Input]:
    """The inputs of expressions, by name."""
    nodes = (node for expression in expressions for node in topological_order(expression))
    return {node.name: node for node in nodes if isinstance(node, Input)}


def with_inputs(node: Expression, inputs: Sequence[Expression]) -> Expression:
    """The same operator with other inputs.

    Raises:
        AlgebraError: The operator does not fit them.
    """
    match node:
        case Input():
            return node
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
        case _:
            return replace(node, input=inputs[0])
