"""Language: tensors, their decompositions into relations, and the tables that store them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparseeinsum.errors import SemanticsError, ShapeError
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.operators.dtypes import ITEM_BYTES, Number, as_number, is_complex

VALUE_COLUMN = "val"
DEMOTED = 0  # the tile of an axis that has no key column
MOST_ARRAY_AXES = 16  # that kernels take, MAX_AXES of udfs/layout.py

KEY_BYTES = 8


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A dictionary: it maps natural keys, such as names or dates, to indices, their positions in the dictionary.

    Attributes:
        name: The name of the dictionary, in lower case.
        key_type: The SQL type of the keys: TEXT, DATE, TIMESTAMP, TIMESTAMPTZ, UUID or BIGINT.
        relation: The table of indices and keys, as SQL names it.
    """

    name: str
    key_type: str
    relation: str


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a tensor. Its indices are 0 to `bound` - 1.

    Attributes:
        name: The name of the axis.
        bound: The number of indices; with a dictionary, the number of keys that it has now.
        dictionary: The natural keys of the indices; None if users give the indices themselves.
    """

    name: str
    bound: int
    dictionary: Dictionary | None = None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: name, axes, dtype and fill. Every index without a stored entry has the fill as its value."""

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
        """The bounds of all axes, in order."""
        return tuple([axis.bound for axis in self.axes])

    @property
    def axes_text(self) -> str:
        """The names and bounds of the axes, for people."""
        return " x ".join(f"{axis.name}: {axis.bound:,}" for axis in self.axes) or "scalar"

    @property
    def size(self) -> int:
        """The number of entries, stored or not: the product of the bounds."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A decomposition of a tensor into a relation: for every axis a tile size, or DEMOTED.

    An axis of tile t >= 1 is promoted: its key column holds index div t, and index mod t is the position in the array.
    If t does not divide the bound, the array of the last key is shorter. Tile 1 is the promotion of the SparseEinSum
    paper (section 4.2). A demoted axis has no key column; the whole index is the position in the array.
    """

    tiles: tuple[int, ...]

    @property
    def promoted(self) -> tuple[int, ...]:
        """The positions of the axes that have a key column."""
        return tuple([position for position, tile in enumerate(self.tiles) if tile != DEMOTED])

    @property
    def array_axes(self) -> tuple[int, ...]:
        """The positions of the axes that arrays have: the demoted ones, and those with tiles of several indices."""
        return tuple(position for position, tile in enumerate(self.tiles) if tile != 1)

    @property
    def has_tiles(self) -> bool:
        """Whether the tiles of some axis have several indices."""
        return any(tile > 1 for tile in self.tiles)

    def differing_axes(self, other: "Decomposition") -> tuple[int, ...]:
        """The positions of the axes whose tiles differ between the two decompositions."""
        pairs = zip(self.tiles, other.tiles, strict=True)
        return tuple(position for position, (tile, other_tile) in enumerate(pairs) if tile != other_tile)

    def common_refinement(self, other: "Decomposition") -> "Decomposition":
        """The coarsest decomposition that refines both: each tile of either is a union of its tiles."""
        return Decomposition(tuple(map(common_tile, self.tiles, other.tiles)))

    @property
    def is_scalar(self) -> bool:
        """Whether every tuple has one number instead of an array."""
        return all(tile == 1 for tile in self.tiles)

    def array_size(self, shape: tuple[int, ...]) -> int:
        """The number of elements of the largest array, for a tensor of shape `shape`."""
        return math.prod(map(extent_of, self.tiles, shape))

    def max_tuples(self, shape: tuple[int, ...]) -> int:
        """The number of tuples of a dense tensor of shape `shape`."""
        return math.prod(count_keys(tile, bound) for tile, bound in zip(self.tiles, shape, strict=True))


def unused_axis_name(name: str, tensor: Tensor) -> str:
    """A column name that no axis and no value has: `name`, with underscores appended if needed."""
    used = {VALUE_COLUMN, *(axis.name.lower() for axis in tensor.axes)}
    while name.lower() in used:
        name += "_"
    return name


def write_label(label: str, tiles: Mapping[str, int]) -> str:
    """A label as text: demoted as in `k`, promoted as in `K`, in tiles of 64 indices as in `K:64`.

    >>> write_label("k", {}), write_label("k", {"k": 1}), write_label("k", {"k": 64})
    ('k', 'K', 'K:64')
    """
    if label not in tiles:
        return label
    return label.upper() if tiles[label] == 1 else f"{label.upper()}:{tiles[label]}"


def extent_of(tile: int, bound: int) -> int:
    """The number of indices of an axis in the largest array.

    Args:
        tile: The tile of the axis, or DEMOTED.
        bound: The bound of the axis.
    """
    return bound if tile == DEMOTED else min(tile, bound)


def mean_extent(tile: int, bound: int) -> float:
    """The average number of indices of an axis in one array.

    Args:
        tile: The tile of the axis, or DEMOTED.
        bound: The bound of the axis.
    """
    keys = count_keys(tile, bound)
    return bound / keys if keys else 1.0


def count_keys(tile: int, bound: int) -> int:
    """The number of values that the key column of an axis can have; 1 for a demoted axis.

    Args:
        tile: The tile of the axis, or DEMOTED.
        bound: The bound of the axis.
    """
    return 1 if tile == DEMOTED else -(-bound // tile)


def is_ragged(tile: int, bound: int) -> bool:
    """Whether the last tile of an axis is shorter than the others."""
    return tile > 1 and bound % tile != 0


def common_tile(first: int, second: int) -> int:
    """The size of the coarsest tile that divides two tiles; DEMOTED counts as a tile of the whole axis.

    >>> common_tile(64, 0), common_tile(64, 48), common_tile(1, 64), common_tile(0, 0)
    (64, 16, 1, 0)
    """
    return math.gcd(first, second)


def fully_promoted(rank: int) -> Decomposition:
    """The decomposition that promotes all of `rank` axes, with tile 1: every tuple has one number."""
    return Decomposition((1,) * rank)


def tuple_bytes(tensor: Tensor, decomposition: Decomposition) -> int:
    """The bytes of one tuple: its keys, and its number or largest array."""
    return KEY_BYTES * len(decomposition.promoted) + array_bytes(tensor, decomposition)


def are_one_array(tensor: Tensor, decomposition: Decomposition) -> bool:
    """Whether one array of all elements has the arrays of a decomposition one after the other, in order of their keys.

    Absent ones must hold a fill that is one element; that of complex numbers is two, unless it is 0.
    """
    tiles, keys = decomposition.tiles, decomposition.tiles.count(1)
    cut = tiles[keys : keys + 1]
    is_even = not any(map(is_ragged, cut, tensor.shape[keys:]))
    is_in_order = is_even and tiles == (1,) * keys + cut + (DEMOTED,) * (len(tiles) - keys - len(cut))
    has_arrays = keys < len(tiles) or is_complex(tensor.dtype)
    return is_in_order and has_arrays and not (is_complex(tensor.dtype) and tensor.fill)


def array_bytes(tensor: Tensor, decomposition: Decomposition) -> int:
    """The bytes of the number or of the largest array in one tuple."""
    return decomposition.array_size(tensor.shape) * ITEM_BYTES[tensor.dtype]


def key_dictionaries(tensor: Tensor, decomposition: Decomposition) -> tuple[Dictionary | None, ...]:
    """For every key column, in axis order, the dictionary of its axis; None if there is none or its keys are tiles."""
    axes, tiles = tensor.axes, decomposition.tiles
    return tuple(axes[position].dictionary if tiles[position] == 1 else None for position in decomposition.promoted)


@dataclass(frozen=True, slots=True)
class ListLayout:
    """A compressed layout: a tuple of a table has the entries at one key in lists, with their positions.

    An axis has a key column, a list of positions, or both: then the key numbers tiles, and positions count within a
    tile. Tuples have different keys; the entries of a tuple are sorted by the lists of positions, in their order.

    Attributes:
        tiles: For every axis, the indices that share a key: 1 without a list; DEMOTED without a key column.
        compressed: The positions of the axes that have lists, in the order by which entries are sorted.
    """

    tiles: tuple[int, ...]
    compressed: tuple[int, ...]

    @property
    def keys(self) -> tuple[int, ...]:
        """The positions of the axes that have a key column."""
        return Decomposition(self.tiles).promoted

    def list_columns(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns of the lists, in their order, from the names of the axes, which are those of the key columns."""
        taken, columns = {*names, VALUE_COLUMN}, []
        for axis in self.compressed:
            column = names[axis]
            if self.tiles[axis] != DEMOTED:
                column += "_in_tile"
                while column in taken:
                    column += "_"
            taken.add(column)
            columns.append(column)
        return tuple(columns)

    def write(self, name: str, names: Sequence[str]) -> str:
        """The layout as text, as in A[I, ~j] or A[I:1024, ~i, ~j].

        Args:
            name: The name of the tensor.
            names: The names of its axes.

        >>> ListLayout((1, DEMOTED), (1,)).write("A", ["i", "j"])
        'A[I, ~j]'
        >>> ListLayout((1024, DEMOTED), (0, 1)).write("A", ["i", "j"])
        'A[I:1024, ~i, ~j]'
        """
        keys = {axis: write_label(names[axis], {names[axis]: self.tiles[axis]}) for axis in self.keys}
        lists = {axis: f"~{names[axis]}" for axis in self.compressed}
        if keys.keys() & lists.keys() or tuple(sorted(lists)) != self.compressed:
            return f"{name}[{', '.join([*keys.values(), *lists.values()])}]"
        return f"{name}[{', '.join((keys | lists)[axis] for axis in range(len(names)))}]"


@dataclass(frozen=True, slots=True)
class ListTable:
    """The table that holds the entries of a tensor in lists.

    Attributes:
        relation: The table as SQL names it.
        layout: How entries are put into lists.
    """

    relation: str
    layout: ListLayout


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor, and the table, view or file that holds it.

    Attributes:
        tensor: The tensor.
        decomposition: Its decomposition, in which it is stored.
        relation: The relation as SQL names it, such as `main.edges` or `read_parquet('edges.parquet')`; it can be a
            SELECT if the tensor is generated.
        keys: The key columns of the promoted axes, in axis order.
        value: The column of the values or arrays; None if every tuple has the value 1.
        casts: Whether the values must be cast, because they are computed in another type than the column has.
        is_owned: Whether loading created the table; it is then dropped when the tensor is replaced.
        is_generated: Whether the rows are generated when they are read; such a tensor is in no catalogue.
        row_count: How many rows are generated from bounds alone; None if other rows determine them.
        holds_keys: Whether the key columns of axes with a dictionary hold natural keys, which are looked up when rows
            are read, rather than indices.
        owner: The database role that added it to the catalogue; None if there is none or it is unknown.
        index: The index that an index map stands for, of the labels of all its axes but the last, in order; None for
            other tensors.
        lists: The table that holds the entries in lists, of which the relation is a view with one row an entry; None if
            the relation holds them itself.
    """

    tensor: Tensor
    decomposition: Decomposition
    relation: str
    keys: tuple[str, ...]
    value: str | None
    casts: bool
    is_owned: bool
    is_generated: bool = False
    row_count: int | None = None
    holds_keys: bool = False
    owner: str | None = field(default=None, compare=False)
    index: AffineIndex | None = None
    lists: ListTable | None = None

    @property
    def table(self) -> str:
        """What holds the rows, as SQL names it: the relation, or the table of lists of which that is a view."""
        return self.relation if self.lists is None else self.lists.relation

    @property
    def max_tuples(self) -> int:
        """The number of tuples if there is one for every possible key."""
        return self.decomposition.max_tuples(self.tensor.shape)

    @property
    def as_view(self) -> "StoredTensor":
        """The tensor as its relation has it, which is a view of entries if the table has them in lists."""
        return replace(self, lists=None)

    @property
    def is_query(self) -> bool:
        """Whether the relation is a SELECT, which only generated tensors have."""
        return self.is_generated and self.relation.startswith("SELECT ")

    @property
    def is_index_range(self) -> bool:
        """Whether the bounds alone determine its rows, so that these cannot change."""
        return self.row_count is not None

    @property
    def is_index_map(self) -> bool:
        """Whether a row is generated for every combination of all indices but the last, which they determine."""
        return self.value is None and self.row_count == math.prod(self.tensor.shape[:-1])

    @property
    def column_dictionaries(self) -> dict[str, Dictionary]:
        """The dictionaries of the key columns that hold natural keys, by column."""
        columns = zip(self.keys, key_dictionaries(self.tensor, self.decomposition), strict=True)
        return {key: dictionary for key, dictionary in columns if self.holds_keys and dictionary is not None}

    @property
    def notation(self) -> str:
        """The tensor as it is stored, as in A[I, j]: promoted axes in upper case, with their tiles, ~ before lists."""
        if self.lists is not None:
            return self.lists.layout.write(self.tensor.name, [axis.name for axis in self.tensor.axes])
        axes = zip(self.tensor.axes, self.decomposition.tiles, strict=True)
        labels = (write_label(axis.name, {axis.name: tile} if tile else {}) for axis, tile in axes)
        return f"{self.tensor.name}[{', '.join(labels)}]"

    def __repr__(self) -> str:
        fill = f", fill {self.tensor.fill}" if self.tensor.fill else ""
        return f"<{self.notation} {self.tensor.axes_text} {self.tensor.dtype}{fill}, in {self.table}>"
