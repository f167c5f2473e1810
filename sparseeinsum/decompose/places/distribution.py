"""Decompose, places: distributions of relations over machines, also called sites or workers.

A distribution says which keys select the machine of a tuple. The blocks of a tensor that numbered machines have are in
`blocks`.

Source: tensor relational algebra, section 4: relations whose tuples have a site.

In Citus, a hashed relation is a table with a distribution column, a replicated relation is a reference table, and a
central relation is a local table of the coordinator, whose rows are sent to all machines by every statement that needs
them there. The distribution column of a gridded relation is an additional one, which has the cell.
"""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, init=False)
class Hashed:
    """Each tuple is on the machine that some of its keys select: PART_D of the paper.

    Relations that are hashed by as many keys are hashed alike: equal keys, in this order, select the same machine. On a
    Citus cluster, stored relations are hashed by one key.

    Attributes:
        axes: The positions of these keys: those of axes of a tensor, or of parts of the key of a relation.
    """

    axes: tuple[int, ...]

    def __init__(self, *axes: int) -> None:
        object.__setattr__(self, "axes", axes)

    @property
    def axis(self) -> int:
        """The position of the only key that selects a machine."""
        (axis,) = self.axes
        return axis

    def __str__(self) -> str:
        return f"partitioned by <{', '.join(map(str, self.axes))}>"


@dataclass(frozen=True, slots=True)
class Replicated:
    """Every machine has all tuples: ALL of the paper."""

    def __str__(self) -> str:
        return "everywhere"


@dataclass(frozen=True, slots=True)
class Scattered:
    """Each tuple is on one machine, but nothing tells on which."""

    def __str__(self) -> str:
        return "scattered"


@dataclass(frozen=True, slots=True)
class Central:
    """The coordinator, to which statements are sent, has all tuples."""

    def __str__(self) -> str:
        return "at the coordinator"


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells on machines: a cell for every combination of a piece of each of several labels.

    Attributes:
        pieces: The number of pieces of each of these labels. A key is in the piece of its remainder.
        cell_keys: The value of the distribution column in every cell, in C order of the pieces.
    """

    pieces: tuple[int, ...]
    cell_keys: tuple[int, ...]

    @property
    def cells(self) -> int:
        """The number of combinations of pieces."""
        return math.prod(self.pieces)

    @property
    def bound(self) -> int:
        """The number above all values of the distribution column."""
        return max(self.cell_keys) + 1


@dataclass(frozen=True, slots=True)
class Gridded:
    """Each tuple is in the cells of a grid that its keys select: in several if the tensor lacks labels of the grid.

    Attributes:
        grid: The grid.
        axes: For each label of the grid, the position of the tensor's axis; None if it has none, so that tuples are
            copied to all pieces of the label.
    """

    grid: Grid
    axes: tuple[int | None, ...]

    @property
    def copies(self) -> int:
        """The number of cells that have each tuple."""
        pieces = zip(self.grid.pieces, self.axes, strict=True)
        return math.prod(count for count, axis in pieces if axis is None)

    @property
    def cut_axes(self) -> list[tuple[int, int]]:
        """The axes of the tensor that are cut, and their numbers of pieces."""
        pieces = zip(self.axes, self.grid.pieces, strict=True)
        return [(axis, count) for axis, count in pieces if axis is not None]

    def __str__(self) -> str:
        axes = ", ".join(str(axis) for axis, _ in self.cut_axes)
        return f"by <{axes}> in {self.copies} of {self.grid.cells} cells"


Distribution = Hashed | Replicated | Scattered | Central | Gridded


def is_within(distribution: Distribution, positions: Collection[int]) -> bool:
    """Whether tuples whose keys agree at these positions are on one machine."""
    match distribution:
        case Hashed(axes):
            return set(axes) <= set(positions)
        case Gridded(_, axes):
            return set(axes) <= set(positions)
        case Scattered():
            return False
        case Replicated() | Central():
            return True


def with_keys(distribution: Distribution, positions_of: Callable[[int], Iterable[int]]) -> Distribution:
    """The distribution after the keys change; of several keys that are equal, it names the first.

    Args:
        distribution: The distribution before.
        positions_of: Returns the positions of the new keys that equal the key at a position before, if there are any.
    """
    if not isinstance(distribution, Hashed):
        return distribution
    axes: list[int] = []
    for position in distribution.axes:
        unnamed = set(positions_of(position)) - set(axes)
        if not unnamed:
            return Scattered()
        axes.append(min(unnamed))
    return Hashed(*axes)
