"""Algebra: operators over tensor relations, each with the schema of what it returns; no SQL.

Source: tensor relational algebra, sections 2 and 3: join and aggregation with kernels, tile (here Slice), concat
(here Stack) and transform, over relations that map keys to arrays.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sparseeinsum.decompose.clusters.distribution import Distribution
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import (
    Decomposition,
    StoredTensor,
    Tensor,
    count_keys,
    extent_of,
    is_ragged,
    key_dictionaries,
)
from sparseeinsum.operators.dtypes import Number, is_complex
from sparseeinsum.semantics.exactness import JoinKind


@dataclass(frozen=True, slots=True)
class Schema:
    """What a tensor relation holds.

    Attributes:
        tensor: Name, axes, dtype and fill; key columns carry the names of the promoted axes.
        decomposition: Which axes are keys and which lie inside the arrays.
    """

    tensor: Tensor
    decomposition: Decomposition

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key columns, in axis order."""
        return tuple(self.tensor.axes[position].name for position in self.decomposition.promoted)

    @property
    def has_dictionaries(self) -> bool:
        """Whether some key column may hold natural keys."""
        return any(key_dictionaries(self.tensor, self.decomposition))

    @property
    def key_counts(self) -> dict[str, int]:
        """How many values each key can have, by its name, in axis order."""
        axes, tiles = self.tensor.axes, self.decomposition.tiles
        return {axes[at].name: count_keys(tiles[at], axes[at].bound) for at in self.decomposition.promoted}

    @property
    def inside(self) -> tuple[int, ...]:
        """Extents of the axes inside the arrays, in axis order; the last tile of an axis may be shorter."""
        tiles, shape = self.decomposition.tiles, self.tensor.shape
        return tuple(extent_of(tiles[position], shape[position]) for position in self.decomposition.array_axes)

    @property
    def is_ragged(self) -> bool:
        """Whether the last arrays of an axis are shorter than the others."""
        return any(map(is_ragged, self.decomposition.tiles, self.tensor.shape))

    @property
    def array_size(self) -> int:
        """Elements of one array; 1 for a number."""
        return math.prod(self.inside)

    @property
    def list_length(self) -> int:
        """Elements of the engine's array, which has two for a complex number."""
        return self.array_size * (2 if is_complex(self.tensor.dtype) else 1)

    @property
    def is_scalar(self) -> bool:
        """Whether tuples hold numbers rather than arrays; a complex number is an array of its two parts."""
        return self.decomposition.is_scalar and not is_complex(self.tensor.dtype)


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as a table holds it."""

    source: StoredTensor

    @property
    def schema(self) -> Schema:
        """As stored."""
        return Schema(self.source.tensor, self.source.decomposition)


@dataclass(frozen=True, slots=True)
class Computed:
    """The result of another EinSum, by name."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class Slice:
    """Arrays cut into smaller ones; tuples that hold only the fill are dropped, unless kept.

    Attributes:
        input: What is cut.
        decomposition: Afterwards: every tile the input's, or one that divides it.
        keeps_fill: Whether tuples that hold only the fill stay.
    """

    input: "Relation"
    decomposition: Decomposition
    keeps_fill: bool = False

    @property
    def axes(self) -> tuple[int, ...]:
        """Positions of the axes that are cut."""
        return self.decomposition.differing_axes(self.input.schema.decomposition)

    @property
    def schema(self) -> Schema:
        """The input's, with more keys or smaller tiles."""
        return Schema(self.input.schema.tensor, self.decomposition)


@dataclass(frozen=True, slots=True)
class Stack:
    """Arrays put together into larger ones: one tuple holds what many held, and the fill where none was.

    Attributes:
        input: What is put together.
        decomposition: Afterwards: every tile the input's, or one that it divides.
    """

    input: "Relation"
    decomposition: Decomposition

    @property
    def axes(self) -> tuple[int, ...]:
        """Positions of the axes whose tiles grow."""
        return self.decomposition.differing_axes(self.input.schema.decomposition)

    @property
    def schema(self) -> Schema:
        """The input's, with fewer keys or larger tiles."""
        return Schema(self.input.schema.tensor, self.decomposition)


@dataclass(frozen=True, slots=True)
class AllKeys:
    """All keys that tuples of a schema can have, and no values."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class Densify:
    """All tuples made present, absent ones holding the fill.

    Attributes:
        input: What may lack some.
        all_keys: All keys in a table; None where they are counted up when the relation is read.
    """

    input: "Relation"
    all_keys: "Materialized | None" = None

    @property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema


@dataclass(frozen=True, slots=True)
class Resident:
    """All arrays kept in memory as one, to be read by their keys; an absent tuple's array holds the fill."""

    input: "Relation"

    @property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema


@dataclass(frozen=True, slots=True)
class Restrict:
    """The tuples in a range of the keys of one axis: TRA's filter, for one pass over the input.

    Attributes:
        input: What is restricted.
        axis: Position of a promoted axis.
        first: Lowest key that stays.
        last: Highest key that stays.
    """

    input: "Relation"
    axis: int
    first: int
    last: int

    @property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema


@dataclass(frozen=True, slots=True)
class Materialized:
    """A relation in a temporary table of its own, where statements may use one; it goes there in passes.

    Attributes:
        input: What is kept.
        axis: Position of the promoted axis whose keys the passes divide, where there are several.
        count: How many passes.
        distribution: Where the tuples of the table are, of several machines; None where there is one.
    """

    input: "Relation"
    axis: int
    count: int
    distribution: Distribution | None = None

    @property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema

    def passes(self) -> tuple["Relation", ...]:
        """The input in parts that have no key in common."""
        if self.count == 1:
            return (self.input,)
        tile, axis = self.schema.decomposition.tiles[self.axis], self.schema.tensor.axes[self.axis]
        ranges = key_ranges(count_keys(tile, axis.bound), self.count)
        return tuple(Restrict(self.input, self.axis, first, last) for first, last in ranges)


def key_ranges(keys: int, count: int) -> Iterator[tuple[int, int]]:
    """First and last key of each of so many passes over all keys."""
    for number in range(count):
        yield keys * number // count, keys * (number + 1) // count - 1


@dataclass(frozen=True, slots=True)
class Compensation:
    """What the pairs of tuples that a join leaves out of a group contribute to it.

    Attributes:
        constant: The value of `join` at every index of such a pair.
        pairs: How many pairs a group has with those left out.
        indices: How many indices the labels that are aggregated over pairs have together.
    """

    constant: Number
    pairs: int
    indices: int


@dataclass(frozen=True, slots=True)
class Contract:
    """An EinSum over relations: join on the keys that its operands share, kernel, aggregation over the other keys.

    Attributes:
        einsum: What is computed.
        inputs: The operands, in the decompositions that the kernel wants; one may be resident, whose keys the other
            one has, too: then nothing is joined.
        join: Which tuples a join of two keeps.
        output: Schema of the result.
        computed_in: Dtype of the kernel's arithmetic.
        compensation: What is put in for pairs left out; None where nothing is.
        detects_nonfinite: Whether a value that turned NaN or infinite ends the run.
        has_single_pairs: Whether no two pairs are known to belong to one tuple of the result, so that none is
            aggregated.
        parts_by: An aggregated label by whose keys parts of groups are kept apart; they are the first of the output's
            keys, before those of the EinSum's result. None where groups are whole.
        keys_from: The operand whose key is read where both have one and an inner join leaves them equal: the one by
            whose keys rows are distributed, which is what an engine knows of them.
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

    @property
    def schema(self) -> Schema:
        """The result's."""
        return self.output

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the output's axes."""
        labels = self.einsum.output.labels
        return labels if self.parts_by is None else (self.parts_by, *labels)

    @property
    def indexed(self) -> int | None:
        """The operand that is resident; None where there is none."""
        return next((index for index, operand in enumerate(self.inputs) if isinstance(operand, Resident)), None)


@dataclass(frozen=True, slots=True)
class Convert:
    """Values as users see them, from what kernels compute with: truth from 0 and 1."""

    input: "Relation"

    @property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema


Relation = (
    Stored | Computed | Slice | Stack | AllKeys | Densify | Resident | Restrict | Materialized | Contract | Convert
)
