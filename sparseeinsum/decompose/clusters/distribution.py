"""Decompose: distributions of relations over machines, and the bytes transferred between them.

Source: tensor relational algebra, section 4: relations whose tuples have a site; section 5.3: to broadcast f numbers to
s sites transfers f * s numbers, to shuffle them transfers f, of which one in s is already where it belongs.

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


@dataclass(frozen=True, slots=True)
class Cluster:
    """The machines that tables are distributed over.

    Attributes:
        sites: Number of machines.
        shards: Number of parts of a table; each is processed on its own.
        network_bytes_per_second: Throughput of the network between the machines; 10 Gbit/s by default.
    """

    sites: int
    shards: int
    network_bytes_per_second: float = 1.25e9


def transfer_bytes(size_bytes: float, before: Distribution, after: Distribution, cluster: Cluster) -> float:
    """Bytes sent between machines to bring a relation of `size_bytes` from one distribution into another.

    A relation that is broadcast goes to the coordinator first, unless it is there.

    >>> two = Cluster(sites=2, shards=8)
    >>> transfer_bytes(100.0, Central(), Replicated(), two), transfer_bytes(100.0, Hashed(0), Hashed(1), two)
    (200.0, 50.0)
    """
    if before == after or (before, after) == (Replicated(), Central()):
        return 0.0
    if isinstance(after, Replicated):
        return size_bytes * (cluster.sites + (0 if isinstance(before, Central) else 1))
    is_shuffled = isinstance(before, Hashed | Scattered) and isinstance(after, Hashed)
    return size_bytes * (1 - 1 / cluster.sites) if is_shuffled else size_bytes


def bottleneck_copies(before: Distribution, after: Distribution, cluster: Cluster) -> float:
    """How many times the busiest machine handles each tuple, on average, in a transfer as in `transfer_bytes`.

    Machines share what they compute and write in place. They also share a shuffle, in which each tuple is written to a
    file, read from there, and written into a table. The coordinator alone handles all tuples that it gathers or sends.
    Tuples that it sends to all machines are written once for each machine, and each machine reads them once for each of
    its shards of the table that they are joined with; writing or reading is half of the handling.

    >>> two = Cluster(sites=2, shards=8)
    >>> [bottleneck_copies(Hashed(0), after, two) for after in (Hashed(0), Hashed(1), Central(), Replicated())]
    [0.5, 1.5, 1.0, 4.0]
    >>> bottleneck_copies(Central(), Replicated(), two)
    3.0
    """
    is_shared = isinstance(before, Hashed | Scattered)
    if isinstance(after, Replicated):
        sent = (cluster.sites + cluster.shards / cluster.sites) / 2
        return sent if isinstance(before, Central) else sent + 1.0
    if before == after:
        return 1.0 / cluster.sites if is_shared else 1.0
    return 3.0 / cluster.sites if is_shared and isinstance(after, Hashed) else 1.0
