"""Language: what a tensor is, how it is decomposed into a relation, and where a stored one lies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparseeinsum.errors import SemanticsError, ShapeError
from sparseeinsum.operators.dtypes import ITEM_BYTES, Number, as_number

VALUE_COLUMN = "val"
DEMOTED = 0  # the tile of an axis that has no key column

KEY_BYTES = 8


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Natural keys, such as names or dates, of which each stands for an index: its position in the dictionary.

    Attributes:
        name: In lower case.
        key_type: SQL type of the keys: TEXT, DATE, TIMESTAMP, TIMESTAMPTZ, UUID or BIGINT.
        relation: The table of its indices and keys, as SQL names it.
    """

    name: str
    key_type: str
    relation: str


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a tensor: its indices are 0 to bound - 1.

    Attributes:
        name: Of the axis.
        bound: How many indices it has; of a dictionary, how many keys that has now.
        dictionary: Natural keys of the indices; None where the indices themselves are what users know.
    """

    name: str
    bound: int
    dictionary: Dictionary | None = None


@dataclass(frozen=True, slots=True)
class Tensor:
    """Name, axes, dtype and fill; every index that is not stored holds the fill."""

    name: str
    axes: tuple[Axis, ...]
    dtype: str = "float64"
    fill: Number = 0.0

    def __post_init__(self) -> None:
        names = [axis.name.lower() for axis in self.axes]
        if len(set(names)) < len(names):
            raise ShapeError(f"tensor {self.name} has an axis name twice: {', '.join(names)}")
        if VALUE_COLUMN in names:
            raise ShapeError(
                f"tensor {self.name} has an axis named {VALUE_COLUMN!r}, which is the column of its values"
            )
        for axis in self.axes:
            if axis.bound < 0:
                raise ShapeError(
                    f"axis {axis.name} of tensor {self.name} has the bound {axis.bound}; it must be 0 or more"
                )
        if self.dtype not in ITEM_BYTES:
            raise ShapeError(f"tensor {self.name} has dtype {self.dtype}; supported are {', '.join(ITEM_BYTES)}")
        try:
            fill = as_number(self.fill, self.dtype)
        except SemanticsError as error:
            raise ShapeError(f"tensor {self.name} has a fill that its dtype lacks: {error}") from None
        if fill != fill:
            raise ShapeError(f"tensor {self.name} has the fill NaN, which equals nothing; choose a number or inf")
        object.__setattr__(self, "fill", fill)

    @property
    def shape(self) -> tuple[int, ...]:
        """Bounds of all axes."""
        return tuple(axis.bound for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of indices."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Decomposition:
    """How a tensor becomes a relation: for every axis a tile size, or DEMOTED.

    An axis of tile t >= 1 is promoted: it has a key column holding index div t, and the array holds index mod t; the
    array of the last key is shorter where t does not divide the bound. Tile 1 is the promotion of the SparseEinSum
    paper (section 4.2). A demoted axis lies in the array alone.
    """

    tiles: tuple[int, ...]

    @property
    def promoted(self) -> tuple[int, ...]:
        """Positions of the axes with a key column."""
        return tuple(position for position, tile in enumerate(self.tiles) if tile != DEMOTED)

    @property
    def array_axes(self) -> tuple[int, ...]:
        """Positions of the axes that arrays have: those demoted, and those with tiles of several indices."""
        return tuple(position for position, tile in enumerate(self.tiles) if tile != 1)

    @property
    def has_tiles(self) -> bool:
        """Whether some key stands for several indices."""
        return any(tile > 1 for tile in self.tiles)

    def differing_axes(self, other: "Decomposition") -> tuple[int, ...]:
        """Positions of the axes that have another tile in another decomposition."""
        pairs = zip(self.tiles, other.tiles, strict=True)
        return tuple(position for position, (tile, given) in enumerate(pairs) if tile != given)

    def common_refinement(self, other: "Decomposition") -> "Decomposition":
        """The coarsest decomposition that both consist of."""
        return Decomposition(tuple(map(common_tile, self.tiles, other.tiles)))

    @property
    def is_scalar(self) -> bool:
        """Whether every tuple holds one number."""
        return all(tile == 1 for tile in self.tiles)

    def array_size(self, shape: tuple[int, ...]) -> int:
        """Elements of the array in one tuple of a tensor of this shape."""
        return math.prod(extent_of(tile, bound) for tile, bound in zip(self.tiles, shape, strict=True))

    def max_tuples(self, shape: tuple[int, ...]) -> int:
        """Tuples of a tensor of this shape, if every one is present."""
        return math.prod(count_keys(tile, bound) for tile, bound in zip(self.tiles, shape, strict=True))


def write_label(label: str, tiles: Mapping[str, int]) -> str:
    """A label as in `k`, promoted `K`, or in tiles of 64 indices `K:64`.

    >>> write_label("k", {}), write_label("k", {"k": 1}), write_label("k", {"k": 64})
    ('k', 'K', 'K:64')
    """
    if label not in tiles:
        return label
    return label.upper() if tiles[label] == 1 else f"{label.upper()}:{tiles[label]}"


def extent_of(tile: int, bound: int) -> int:
    """Indices of an axis in one array; of the largest tile."""
    return bound if tile == DEMOTED else min(tile, bound)


def mean_extent(tile: int, bound: int) -> float:
    """Indices of an axis in one array, on average."""
    keys = count_keys(tile, bound)
    return bound / keys if keys else 1.0


def count_keys(tile: int, bound: int) -> int:
    """Values that the key of an axis can have; 1 for an axis that has none."""
    return 1 if tile == DEMOTED else -(-bound // tile)


def is_ragged(tile: int, bound: int) -> bool:
    """Whether the last array of an axis is shorter than the others."""
    return tile > 1 and bound % tile != 0


def common_tile(first: int, second: int) -> int:
    """The coarsest tile that both of two tiles consist of.

    >>> common_tile(64, 0), common_tile(64, 48), common_tile(1, 64), common_tile(0, 0)
    (64, 16, 1, 0)
    """
    return math.gcd(first, second)


def fully_promoted(rank: int) -> Decomposition:
    """All axes promoted: one tuple a number."""
    return Decomposition((1,) * rank)


def fully_demoted(rank: int) -> Decomposition:
    """All axes demoted: a single tuple."""
    return Decomposition((DEMOTED,) * rank)


def tuple_bytes(tensor: Tensor, decomposition: Decomposition) -> int:
    """Bytes of one tuple: its keys and its number or array."""
    return KEY_BYTES * len(decomposition.promoted) + array_bytes(tensor, decomposition)


def array_bytes(tensor: Tensor, decomposition: Decomposition) -> int:
    """Bytes of the number or array in one tuple."""
    return decomposition.array_size(tensor.shape) * ITEM_BYTES[tensor.dtype]


def key_dictionaries(tensor: Tensor, decomposition: Decomposition) -> tuple[Dictionary | None, ...]:
    """For every key column, in axis order, the dictionary of which it may hold keys; None where a key is a tile."""
    axes, tiles = tensor.axes, decomposition.tiles
    return tuple(axes[position].dictionary if tiles[position] == 1 else None for position in decomposition.promoted)


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor and the table, view or file that holds it.

    Attributes:
        tensor: What it is.
        decomposition: How it is stored.
        relation: The relation as SQL names it, such as `main.edges` or `read_parquet('edges.parquet')`; of one that is
            generated maybe a SELECT.
        keys: Column of every promoted axis, in axis order.
        value: Column of the values; None where every tuple counts as 1.
        casts: Whether the column's type is not the one that values are computed with, so that they must be cast.
        is_owned: Whether the table was made by loading, and goes when the tensor is replaced.
        is_generated: Whether rows are made when they are read; no catalogue knows it.
        holds_keys: Whether the key columns of axes with a dictionary hold natural keys, which are looked up when rows
            are read; else they hold indices.
        owner: The role of the database that entered it in the catalogue; None where none did, or nobody knows.
    """

    tensor: Tensor
    decomposition: Decomposition
    relation: str
    keys: tuple[str, ...]
    value: str | None
    casts: bool
    is_owned: bool
    is_generated: bool = False
    holds_keys: bool = False
    owner: str | None = field(default=None, compare=False)

    @property
    def is_query(self) -> bool:
        """Whether the relation is a SELECT, as it may be of what is generated."""
        return self.is_generated and self.relation.startswith("SELECT ")

    @property
    def is_index_range(self) -> bool:
        """Whether its rows are those of a range of indices, and nothing that could change."""
        return self.is_generated and (self.is_query or self.relation.startswith("range("))

    @property
    def column_dictionaries(self) -> dict[str, Dictionary]:
        """Dictionaries by the key columns that hold natural keys."""
        found = zip(self.keys, key_dictionaries(self.tensor, self.decomposition), strict=True)
        return {key: dictionary for key, dictionary in found if self.holds_keys and dictionary is not None}

    @property
    def notation(self) -> str:
        """How the table holds it, as in A[I, j]: key columns in upper case, with their tiles."""
        axes = zip(self.tensor.axes, self.decomposition.tiles, strict=True)
        labels = (write_label(axis.name, {axis.name: tile} if tile else {}) for axis, tile in axes)
        return f"{self.tensor.name}[{', '.join(labels)}]"

    def __repr__(self) -> str:
        shape = " x ".join(f"{axis.name}: {axis.bound:,}" for axis in self.tensor.axes) or "scalar"
        fill = f", fill {self.tensor.fill}" if self.tensor.fill else ""
        return f"<{self.notation} {shape} {self.tensor.dtype}{fill}, in {self.relation}>"
