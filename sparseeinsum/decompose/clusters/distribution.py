"""Decompose: where the tuples of a relation are on several machines, and what it costs to bring them elsewhere.

Source: tensor relational algebra, section 4: relations whose tuples have a site; section 5.3: to broadcast f numbers to
s sites is to transfer f * s of them, to shuffle them f; of these, one in s is where it is to be. In Citus's words, a
relation that is hashed is a table with a distribution column, one that is replicated a reference table, and one that is
central a local table, which a statement that works on all machines has sent to them for itself.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hashed:
    """Every tuple on the machine that the hash of a key says, the same one for equal keys of all relations.

    Attributes:
        axis: Position of the promoted axis whose key that is.
    """

    axis: int


@dataclass(frozen=True, slots=True)
class Replicated:
    """All tuples on every machine."""


@dataclass(frozen=True, slots=True)
class Scattered:
    """Every tuple on one of the machines, by no rule that others go by."""


@dataclass(frozen=True, slots=True)
class Central:
    """All tuples on the machine that statements are sent to, the coordinator."""


Distribution = Hashed | Replicated | Scattered | Central


@dataclass(frozen=True, slots=True)
class Cluster:
    """The machines that tables are spread over.

    Attributes:
        sites: How many there are.
        parts: How many parts a table is cut into (shards), of which each is worked on by itself.
        network_bytes_per_second: That the network between the machines takes; 10 Gbit/s by default.
    """

    sites: int
    parts: int
    network_bytes_per_second: float = 1.25e9


def transfer_bytes(size_bytes: float, before: Distribution, after: Distribution, cluster: Cluster) -> float:
    """What goes from machine to machine to bring a relation of a size from one distribution into another.

    What is broadcast goes to the coordinator first, unless it is there.

    >>> two = Cluster(sites=2, parts=8)
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
    """How often the machine that the others wait for handles a tuple, on average, where `transfer_bytes` are moved.

    Machines share what they compute and write where it is, and what they shuffle: each tuple is written to a file,
    read from there, and written into a table. All that the coordinator gathers, or sends away, it handles alone; what
    it sends to all machines is written for each of them, and read for each of a machine's parts of a table that it is
    joined with, which is half of what handling a tuple takes.

    >>> two = Cluster(sites=2, parts=8)
    >>> [bottleneck_copies(Hashed(0), after, two) for after in (Hashed(0), Hashed(1), Central(), Replicated())]
    [0.5, 1.5, 1.0, 4.0]
    >>> bottleneck_copies(Central(), Replicated(), two)
    3.0
    """
    is_shared = isinstance(before, Hashed | Scattered)
    if isinstance(after, Replicated):
        sent = (cluster.sites + cluster.parts / cluster.sites) / 2
        return sent if isinstance(before, Central) else sent + 1.0
    if before == after:
        return 1.0 / cluster.sites if is_shared else 1.0
    return 3.0 / cluster.sites if is_shared and isinstance(after, Hashed) else 1.0
