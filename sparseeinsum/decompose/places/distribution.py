"""Decompose, places: distributions of relations over machines, also called sites or workers.

A distribution says which keys select the machine of a tuple. The blocks of a tensor that numbered machines have are in
`blocks`.

Source: tensor relational algebra, section 4: relations whose tuples have a site.

In Citus, a hashed relation is a table with a distribution column, a replicated relation is a reference table, and a
central relation is a local table of the coordinator, whose rows are sent to all machines by every statement that needs
them there.
"""

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


Distribution = Hashed | Replicated | Scattered | Central


def is_within(distribution: Distribution, positions: Collection[int]) -> bool:
    """Whether tuples whose keys agree at these positions are on one machine."""
    match distribution:
        case Hashed(axes):
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
