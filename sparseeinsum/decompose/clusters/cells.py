"""Decompose: the cells of grids on the machines of a Citus cluster.

Source: PostgreSQL's hash function of a BIGINT (hashint8 in hashfunc.c, hash_bytes_uint32 in hashfn.c). Citus cuts the
hashes, numbers of 32 bits, into as many equal ranges as a table has shards, and deals the shards out to the machines.
"""

from functools import lru_cache

from sparseeinsum.decompose.clusters.transfers import Cluster

_MASK = (1 << 32) - 1
_START = 0x9E3779B9 + 4 + 3923095
# Each step of the mix: the number that changes, the one that it is mixed with, and by how many bits that is rotated.
_MIX = (("c", "b", 14), ("a", "c", 11), ("b", "a", 25), ("c", "b", 16), ("a", "c", 4), ("b", "a", 14), ("c", "b", 24))


def shard_of(key: int, shards: int) -> int:
    """The number of the shard that has the rows whose distribution column holds a key from 0 to 2^32 - 1."""
    signed = (_hash(key) + (1 << 31)) & _MASK  # ranges begin with the least signed number
    return min(signed // ((1 << 32) // shards), shards - 1)


@lru_cache
def cell_keys(cluster: Cluster) -> tuple[int, ...]:
    """The least keys of cells that lie on machines of their own: as many as there are machines with shards."""
    keys: dict[int, int] = {}
    key = 0
    while len(keys) < cluster.cells:
        keys.setdefault(shard_of(key, cluster.shards) % cluster.sites, key)
        key += 1
    return tuple(keys[machine] for machine in sorted(keys))


def _hash(key: int) -> int:
    mixed = {"a": (_START + key) & _MASK, "b": _START, "c": _START}
    for changed, other, bits in _MIX:
        mixed[changed] = ((mixed[changed] ^ mixed[other]) - _rotated(mixed[other], bits)) & _MASK
    return mixed["c"]


def _rotated(number: int, bits: int) -> int:
    return ((number << bits) | (number >> (32 - bits))) & _MASK
