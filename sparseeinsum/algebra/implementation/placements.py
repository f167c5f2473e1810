"""Algebra, implementation: on which sites the tuples of a relation lie: the predicates ALL and PART_D (section 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.keys import Key

_FACTOR = 1_000_003  # odd, so that digits of keys reach all sites, also where their number is a power of 2


class PlacementKind(StrEnum):
    """How tuples are spread over sites."""

    EVERYWHERE = "everywhere"  # ALL: every tuple on every site
    PARTITIONED = "partitioned"  # PART_D: each on the one site that parts of its key say
    SCATTERED = "scattered"  # each on one site, whichever


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the tuples of a relation lie.

    Two relations that are partitioned by parts of the same values are partitioned in the same way: equal parts lie on
    the same site. The order of the parts counts.

    Attributes:
        kind: How tuples are distributed over the sites.
        dims: Of a partitioned relation, the positions in the key.
        pending: What has still to fold tuples of the same key, which may be several; None where keys are unique.
    """

    kind: PlacementKind
    dims: tuple[int, ...] = ()
    pending: Fold | None = None

    @property
    def is_everywhere(self) -> bool:
        """Whether ALL holds."""
        return self.kind == PlacementKind.EVERYWHERE

    def is_within(self, positions: Sequence[int]) -> bool:
        """Whether tuples whose keys agree at these positions are on one site: PART of them holds, or ALL."""
        return self.is_everywhere or (self.kind == PlacementKind.PARTITIONED and set(self.dims) <= set(positions))

    def moved(self, position_of: Callable[[int], int | None]) -> "Placement":
        """The same where keys are others, of which a function tells where a part of the old ones stands now."""
        if self.kind != PlacementKind.PARTITIONED:
            return self
        found = [position_of(position) for position in self.dims]
        known = tuple(position for position in found if position is not None)
        if len(known) < len(found):
            return Placement(PlacementKind.SCATTERED, pending=self.pending)
        return Placement(self.kind, known, self.pending)

    def __str__(self) -> str:
        parts = f" by <{', '.join(map(str, self.dims))}>" if self.kind == PlacementKind.PARTITIONED else ""
        return f"{self.kind.value}{parts}" + (f", {self.pending} pending" if self.pending is not None else "")


PlacementLike = Placement | Sequence[int] | str  # positions that a relation is partitioned by, or `everywhere`

EVERYWHERE = Placement(PlacementKind.EVERYWHERE)
SCATTERED = Placement(PlacementKind.SCATTERED)


def partitioned(*dims: int) -> Placement:
    """Partitioned by parts of the key."""
    return Placement(PlacementKind.PARTITIONED, dims)


def site_of_parts(parts: Sequence[int], sites: int) -> int:
    """The site of the tuples whose keys have these parts.

    >>> [site_of((part,), 4) for part in range(6)]
    [0, 1, 2, 3, 0, 1]
    """
    found = 0
    for part in parts:
        found = found * _FACTOR + part
    return found % sites


def site_of_key(dims: Sequence[int], key: Key, sites: int) -> int:
    """The site of a key in a relation that is partitioned by these parts."""
    return site_of_parts([key[position] for position in dims], sites)
