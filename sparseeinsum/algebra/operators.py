"""Algebra: operators over tensor relations, each with the schema of its result; no SQL.

Source: tensor relational algebra, sections 2 and 3: join and aggregation with kernels, tile (here Slice), concat (here
Stack) and transform, over relations that map keys to arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.places.distribution import Distribution, Gridded
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import (
    Decomposition,
    StoredTensor,
    are_one_array,
    count_keys,
)
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.ranges import Range
from sparseeinsum.semantics.exactness import JoinKind

# For every kind of join, the operands that are filled in where they lack tuples.
FILLED_IN = {
    JoinKind.INNER: (False, False),
    JoinKind.LEFT: (False, True),
    JoinKind.RIGHT: (True, False),
    JoinKind.FULL: (True, True),
}


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor that is stored in a table.

    Attributes:
        source: The tensor, and where it is stored.
    """

    source: StoredTensor

    @property
    def schema(self) -> Schema:
        """The schema in which the table has it."""
        return Schema(self.source.tensor, self.source.decomposition)


@dataclass(frozen=True, slots=True)
class Computed:
    """The result of another EinSum, by name."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class _SameSchema:
    """An operator whose result has the schema of its input."""

    input: "Relation"

    @property
    def schema(self) -> Schema:
        """The schema of the input."""
        return self.input.schema


@dataclass(frozen=True, slots=True)
class _OtherDecomposition:
    """An operator that changes the decomposition of its input."""

    input: "Relation"
    decomposition: Decomposition

    @property
    def axes(self) -> tuple[int, ...]:
        """The positions of the axes that are cut or put together."""
        return self.decomposition.differing_axes(self.input.schema.decomposition)

    @property
    def schema(self) -> Schema:
        """The schema of the input, with other keys or tiles."""
        return Schema(self.input.schema.tensor, self.decomposition)


@dataclass(frozen=True, slots=True)
class Slice(_OtherDecomposition):
    """Arrays cut into smaller ones; tuples that hold only the fill are dropped, unless `keeps_fill`.

    Attributes:
        input: The relation that is cut.
        decomposition: The decomposition of the result: every tile that of the input, or one that divides it.
        keeps_fill: Whether tuples that hold only the fill stay.
    """

    keeps_fill: bool = False


@dataclass(frozen=True, slots=True)
class Stack(_OtherDecomposition):
    """Arrays put together into larger ones, with the fill where tuples are absent.

    Attributes:
        input: The relation whose arrays are put together.
        decomposition: The decomposition of the result: every tile that of the input, or one that it divides.
        is_resident: Whether the result, one array, is put together in memory and read there.
    """

    is_resident: bool = False

    @property
    def can_be_resident(self) -> bool:
        """Whether the result is one array, which has those of the input one after the other."""
        return not self.schema.keys and are_one_array(self.schema.tensor, self.input.schema.decomposition)


@dataclass(frozen=True, slots=True)
class AllKeys:
    """All keys that tuples of a schema can have, without values."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class Densify(_SameSchema):
    """The input with all its tuples present: absent ones hold the fill.

    Attributes:
        input: The relation that may lack tuples.
        all_keys: All keys in a table; None if they are enumerated when the relation is read.
        is_resident: Whether the arrays are put into one in memory, from which all tuples are read, without a join.
    """

    all_keys: "Materialized | None" = None
    is_resident: bool = False


@dataclass(frozen=True, slots=True)
class Resident(_SameSchema):
    """All arrays in memory as one, which is read by their keys; the array of an absent tuple holds the fill."""


@dataclass(frozen=True, slots=True)
class Compress(_SameSchema):
    """All numbers in memory, ordered by row, each with its position in the row.

    Attributes:
        input: The relation of numbers.
        row_axes: The axes whose keys number the rows, in C order.
        position_axes: The axes whose keys number the positions, in C order.
        dtype: The dtype in which the numbers are computed with.
    """

    row_axes: tuple[int, ...]
    position_axes: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Restrict(_SameSchema):
    """The tuples in a range of the keys of one axis, for one pass over the input: a filter of the TRA.

    Attributes:
        input: The relation that is restricted.
        axis: The position of a promoted axis.
        first: The lowest key that stays.
        last: The highest key that stays.
    """

    axis: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class OnGrid:
    """The tuples of the input in all cells of a grid that shall have them: a rekey of the TRA that makes copies.

    Attributes:
        input: The relation that is copied.
        place: The cells of each tuple.
        cell: The name of the key column of the cell, which comes before the other keys.
    """

    input: "Relation"
    place: Gridded
    cell: str

    @property
    def schema(self) -> Schema:
        """The schema of the input, after an axis for the cell."""
        return self.input.schema.with_first_key(self.cell, self.place.grid.bound)


@dataclass(frozen=True, slots=True)
class OffGrid:
    """The tuples of a relation on a grid without the key of their cell: a rekey of the TRA.

    Attributes:
        input: The relation, in which each tuple is in one cell; the key of the cell comes first.
    """

    input: "Relation"

    @property
    def schema(self) -> Schema:
        """The schema of the input, without the axis for the cell."""
        tensor, tiles = self.input.schema.tensor, self.input.schema.decomposition.tiles
        return Schema(replace(tensor, axes=tensor.axes[1:]), Decomposition(tiles[1:]))


@dataclass(frozen=True, slots=True)
class Materialized(_SameSchema):
    """A relation that statements may store in a temporary table of its own, in one pass or several.

    Attributes:
        input: The relation that is stored.
        axis: The position of the promoted axis whose keys the passes divide, if there are several.
        count: The number of passes.
        distribution: Where the tuples of the table are, if there are several machines.
    """

    axis: int
    count: int
    distribution: Distribution | None = None

    def passes(self) -> tuple["Relation", ...]:
        """The input in parts that have no key in common."""
        if self.count == 1:
            return (self.input,)
        tile, axis = self.schema.decomposition.tiles[self.axis], self.schema.tensor.axes[self.axis]
        ranges = key_ranges(count_keys(tile, axis.bound), self.count)
        return tuple(Restrict(self.input, self.axis, first, last) for first, last in ranges)


def key_ranges(keys: int, count: int) -> Iterator[tuple[int, int]]:
    """The first and the last key of each of `count` passes over all keys."""
    for number in range(count):
        yield keys * number // count, keys * (number + 1) // count - 1


@dataclass(frozen=True, slots=True)
class Compensation:
    """What the pairs of tuples that a join omits from a group contribute to it.

    Attributes:
        constant: The value of the join expression at every index of such a pair.
        pairs: How many pairs a group has, with those omitted.
        indices: How many indices the labels that are aggregated over pairs have together.
    """

    constant: Number
    pairs: int
    indices: int


@dataclass(frozen=True, slots=True)
class Contract:
    """An EinSum over relations: a join on the keys that operands share, a kernel, and an aggregation over other keys.

    Attributes:
        einsum: The EinSum that is computed.
        inputs: The operands, in the decompositions that the kernel needs. One may be resident, if the other one has all
            its keys: then nothing is joined. If the other one is compressed, or both are, nothing is grouped, either.
            Three operands are computed by one kernel: numbers and two resident ones, or three that are compressed.
        join: Which tuples a join of two operands keeps.
        output: The schema of the result.
        computed_in: The dtype of the kernel's arithmetic.
        compensation: What the omitted pairs contribute; None if nothing is compensated.
        detects_nonfinite: Whether a value that turned NaN or infinite ends the run.
        has_single_pairs: Whether it is known that every tuple of the result has at most one pair, so that nothing is
            aggregated.
        parts_by: An aggregated label by whose keys groups are computed in parts; its key comes first in the output,
            before those of the EinSum's result. None if groups are whole.
        compressed: The numbers of the operands that are compressed, the one whose rows are those of the result first.
        is_matched: Whether both operands are compressed in one order, and their entries matched row by row, by a join
            of any kind.
        keys_from: The operand whose key is read if both have it and an inner join makes them equal: the one by whose
            keys rows are distributed, because the engine knows how those are.
        ranges: The range of the values of every operand, its fill included; empty if that is not known. Only SQL of
            other engines depends on them, so that relations with other ranges are equal.
        complete: For every operand, whether it is known to have all tuples; empty if nothing is known of that. Equal
            relations may differ in it.
        fills_rows: Whether it has a tuple for every key, which holds the fill where operands have no entry. A kernel
            computes the groups of all keys from a compressed operand and a resident one then.
        is_brief: Whether it takes so little time that threads need not share it. Equal relations may differ in it.
    """

    einsum: EinSum
    inputs: tuple["Relation", ...]
    join: JoinKind
    output: Schema
    computed_in: str
    compensation: Compensation | None
    detects_nonfinite: bool
    has_single_pairs: bool = False
    parts_by: str | None = None
    keys_from: int = 0
    compressed: tuple[int, ...] = ()
    is_matched: bool = False
    ranges: tuple[Range, ...] = field(default=(), compare=False)
    complete: tuple[bool, ...] = field(default=(), compare=False)
    fills_rows: bool = False
    is_brief: bool = field(default=False, compare=False)

    @property
    def schema(self) -> Schema:
        """The schema of the result."""
        return self.output

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the axes of the output."""
        labels = self.einsum.output.labels
        return labels if self.parts_by is None else (self.parts_by, *labels)

    @property
    def needed_join(self) -> JoinKind:
        """The join that keeps the same tuples: of an operand that is known to have all, none needs filling in."""
        if not self.complete or self.join == JoinKind.INNER:
            return self.join
        lacks = [
            fills_in and not is_complete
            for fills_in, is_complete in zip(FILLED_IN[self.join], self.complete, strict=True)
        ]
        return next(kind for kind, filled_in in FILLED_IN.items() if list(filled_in) == lacks)

    @property
    def is_sparse_matmul(self) -> bool:
        """Whether a compressed operand is multiplied by a single array into a single array, in any semiring."""
        return len(self.compressed) == 1 and self.indexed is None and not self.is_fused

    @property
    def is_sparse_sum_of_products(self) -> bool:
        """Whether it is such a product that adds up, which may read a transpose, or other numbers at the entries."""
        return self.is_sparse_matmul and self.einsum.is_multilinear

    @property
    def is_fused(self) -> bool:
        """Whether this is a product of three operands."""
        return len(self.inputs) == 3

    @property
    def indexed(self) -> int | None:
        """The number of the operand that is resident; None if there is none."""
        return next((index for index, operand in enumerate(self.inputs) if isinstance(operand, Resident)), None)


@dataclass(frozen=True, slots=True)
class Convert(_SameSchema):
    """Values as users see them, from what kernels compute with: booleans from 0 and 1."""


Relation = (
    Stored
    | Computed
    | Slice
    | Stack
    | AllKeys
    | Densify
    | Resident
    | Compress
    | Restrict
    | OnGrid
    | OffGrid
    | Materialized
    | Contract
    | Convert
)
