"""Decompose: a cluster, and the bytes transferred between its machines.

Source: tensor relational algebra, section 5.3: to broadcast f numbers to s sites transfers f * s numbers, to shuffle
them transfers f, of which one in s is already where it belongs.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.places.distribution import Central, Distribution, Gridded, Hashed, Replicated, Scattered


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

    @property
    def cells(self) -> int:
        """The number of cells of a grid: one for each machine that has a shard."""
        return min(self.sites, self.shards)


def transfer_bytes(size_bytes: float, before: Distribution, after: Distribution, cluster: Cluster) -> float:
    """Bytes sent between machines to bring a relation of `size_bytes` from one distribution into another.

    A relation that is broadcast goes to the coordinator first, unless it is there. Copies for the cells of a grid go
    there from where the tuples are, except those whose cell is on the same machine.

    >>> two = Cluster(sites=2, shards=8)
    >>> transfer_bytes(100.0, Central(), Replicated(), two), transfer_bytes(100.0, Hashed(0), Hashed(1), two)
    (200.0, 50.0)
    """
    if before == after or (before, after) == (Replicated(), Central()):
        return 0.0
    if isinstance(after, Replicated):
        return size_bytes * (cluster.sites + (0 if isinstance(before, Central) else 1))
    copies = after.copies if isinstance(after, Gridded) else 1
    return size_bytes * (copies - _copies_in_place(before, after, cluster))


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
    is_shared = isinstance(before, Hashed | Scattered | Gridded)
    if isinstance(after, Replicated):
        sent = (cluster.sites + cluster.shards / cluster.sites) / 2
        return sent if isinstance(before, Central) else sent + 1.0
    if before == after:
        return 1.0 / cluster.sites if is_shared else 1.0
    copies = after.copies if isinstance(after, Gridded) else 1
    return 3.0 * copies / cluster.sites if is_shared and isinstance(after, Hashed | Gridded) else 1.0 * copies


def _copies_in_place(before: Distribution, after: Distribution, cluster: Cluster) -> float:
    """How many copies of a tuple belong, on average, on the machine that has the tuple."""
    if isinstance(after, Gridded):
        if isinstance(before, Gridded):
            return _share_in_both(before, after)
        return after.copies / cluster.sites if isinstance(before, Hashed | Scattered) else 0.0
    return 1 / cluster.sites if isinstance(before, Hashed | Scattered | Gridded) and isinstance(after, Hashed) else 0.0


@lru_cache(maxsize=1 << 14)
def _share_in_both(before: Gridded, after: Gridded) -> float:
    """The share of tuples whose only cell in one grid is among their cells in another one; keys are independent."""
    periods: dict[int, int] = {}
    for axis, count in [*before.cut_axes, *after.cut_axes]:
        periods[axis] = math.lcm(periods.get(axis, 1), count)
    keys = dict(zip(periods, np.ogrid[tuple(map(slice, periods.values()))], strict=True))
    cell: NDArray[np.int64] = np.zeros(tuple(periods.values()), dtype=np.int64)
    for axis, count in before.cut_axes:
        cell = cell * count + keys[axis] % count
    is_same = np.ones(cell.shape, dtype=np.bool_)
    for cut_axis, count in reversed(list(zip(after.axes, after.grid.pieces, strict=True))):
        if cut_axis is not None:
            is_same &= cell % count == keys[cut_axis] % count
        cell //= count
    return float(is_same.mean())
