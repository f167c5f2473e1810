"""Algebra, implementation: on which sites the tuples of a relation are: the predicates ALL and PART_D (section 4)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.keys import Key
from sparseeinsum.algebra.relational.types import RelationType

_FACTOR = 1_000_003  # odd, so that keys reach all sites, also if the number of sites is a power of 2


class PlacementKind(StrEnum):
    """How the tuples of a relation are distributed over the sites."""

    EVERYWHERE = "everywhere"  # ALL: every tuple on every site
    PARTITIONED = "partitioned"  # PART_D: each tuple on one site, which parts of its key select
    SCATTERED = "scattered"  # each tuple on any one site


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the tuples of a relation are.

    Two relations that are partitioned by the same number of parts are partitioned in the same way: tuples with equal
    parts are on the same site. The order of the parts counts.

    Attributes:
        kind: How the tuples are distributed over the sites.
        dims: The positions of the parts of the key by which a relation is partitioned.
        pending: The fold that must still combine tuples of the same key; None if keys are unique.
    """

    kind: PlacementKind
    dims: tuple[int, ...] = ()
    pending: Fold | None = None

    @property
    def is_everywhere(self) -> bool:
        """Whether ALL holds: every site has all tuples."""
        return self.kind == PlacementKind.EVERYWHERE

    def is_within(self, positions: Sequence[int]) -> bool:
        """Whether tuples whose keys agree at these positions are on one site: PART of these holds, or ALL."""
        return self.is_everywhere or (self.kind == PlacementKind.PARTITIONED and set(self.dims) <= set(positions))

    def with_keys(self, positions_of: Callable[[int], Iterable[int]]) -> "Placement":
        """The placement after the keys change; of several parts that are equal, it names the first.

        Args:
            positions_of: Returns the positions of the new key whose parts equal a part of the old one, if there are
                any.
        """
        if self.kind != PlacementKind.PARTITIONED:
            return self
        dims: list[int] = []
        for position in self.dims:
            unnamed = set(positions_of(position)) - set(dims)
            if not unnamed:
                return Placement(PlacementKind.SCATTERED, pending=self.pending)
            dims.append(min(unnamed))
        return Placement(self.kind, tuple(dims), self.pending)

    def in_type(self, relation_type: RelationType) -> "Placement":
        """The placement of a relation, which names the first of several equal parts of the key."""
        return self.with_keys(lambda position: relation_type.equal_positions((position,)))

    def __str__(self) -> str:
        parts = f" by <{', '.join(map(str, self.dims))}>" if self.kind == PlacementKind.PARTITIONED else ""
        return f"{self.kind.value}{parts}" + (f", {self.pending} pending" if self.pending is not None else "")


PlacementLike = Placement | Sequence[int] | str  # positions that a relation is partitioned by, or `everywhere`

EVERYWHERE = Placement(PlacementKind.EVERYWHERE)
SCATTERED = Placement(PlacementKind.SCATTERED)


def partitioned(*dims: int) -> Placement:
    """The placement that is partitioned by these parts of the key."""
    return Placement(PlacementKind.PARTITIONED, dims)


def site_of_parts(parts: Sequence[int], sites: int) -> int:
    """The site of the tuples whose keys have these parts.

    >>> [site_of_parts((part,), 4) for part in range(6)]
    [0, 1, 2, 3, 0, 1]
    """
    number = 0
    for part in parts:
        number = number * _FACTOR + part
    return number % sites


def site_of_key(dims: Sequence[int], key: Key, sites: int) -> int:
    """The site of the tuple with a key, in a relation that is partitioned by the parts at `dims`."""
    return site_of_parts([key[position] for position in dims], sites)
