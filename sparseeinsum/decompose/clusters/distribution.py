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
    """

    sites: int
    parts: int


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


def waited_bytes(size_bytes: float, before: Distribution, after: Distribution, cluster: Cluster) -> float:
    """What goes through the machine that the others wait for, of what `transfer_bytes` counts.

    Machines shuffle at the same time; the coordinator sends, and gets, all that it does one after the other.

    >>> two = Cluster(sites=2, parts=8)
    >>> waited_bytes(100.0, Hashed(0), Hashed(1), two), waited_bytes(100.0, Hashed(0), Central(), two)
    (25.0, 100.0)
    """
    transferred = transfer_bytes(size_bytes, before, after, cluster)
    is_shuffle = isinstance(before, Hashed | Scattered) and isinstance(after, Hashed)
    return transferred / cluster.sites if is_shuffle else transferred
