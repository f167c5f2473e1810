"""Algebra: what EinSums read that are computed row by row together, and how it is joined."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from enum import Enum, auto

from sparseeinsum.algebra.operators import Contract, Densify, Relation, Stored
from sparseeinsum.algebra.tuple_presence import Presence, keys_of_operand, operand_presence, renamed


class Reading(Enum):
    """How the rows of a chain get the value of a relation."""

    INNER = auto()  # every row has a tuple of it
    FILLED = auto()  # a row without a tuple has the fill
    DENSE = auto()  # absent tuples are made present before the join
    KEY = auto()  # the value follows from the key, and nothing is joined


@dataclass(frozen=True, slots=True)
class ChainLeaf:
    """A relation that a chain reads.

    Attributes:
        relation: The relation.
        keys: The key of the chain that equals each of its keys, in axis order.
        reading: How rows get its value.
        presence: Which tuples it has, by keys of the chain.
    """

    relation: Relation
    keys: tuple[str, ...]
    reading: Reading
    presence: Presence

    @property
    def identity(self) -> tuple[Relation, tuple[str, ...]]:
        """What tells it apart from the other leaves of the chain."""
        return self.relation, self.keys

    @property
    def has_rows(self) -> bool:
        """Whether every row of the chain has one of its tuples."""
        return self.reading in (Reading.INNER, Reading.DENSE)

    @property
    def follows_from_key(self) -> bool:
        """Whether it is a generated vector with a value for every index."""
        if not isinstance(self.relation, Stored) or len(self.keys) != 1 or self.presence:
            return False
        source = self.relation.source
        return source.is_query or (source.is_generated and source.value in source.keys)


def leaf_of(
    contract: Contract, number: int, keys: Mapping[str, str], rows: Presence, results: Mapping[str, Presence]
) -> ChainLeaf:
    """An operand as a leaf of a chain.

    Args:
        contract: The EinSum that reads it.
        number: The number of the operand.
        keys: The key of the chain for every promoted label.
        rows: Which rows the chain has, by its keys.
        results: Which tuples results have, by positions of their axes.
    """
    relation = contract.inputs[number]
    names = tuple(keys[label] for label in keys_of_operand(contract, number))
    presence = renamed(operand_presence(contract, number, results), keys)
    if isinstance(relation, Densify) and relation.all_keys is None and names:
        return ChainLeaf(relation.input, names, Reading.FILLED, presence)
    return ChainLeaf(relation, names, Reading.INNER if presence <= rows else Reading.FILLED, presence)


def in_join_order(leaves: Iterable[ChainLeaf], keys: Set[str], rows: Presence) -> tuple[ChainLeaf, ...] | None:
    """The leaves in an order in which they can be joined; None if no join of them has the rows of the chain.

    The first one has rows of its own, and the others follow that share a key with one before them; then come those
    without a tuple in every row, then those without keys, and last those that are not joined.

    Args:
        leaves: The leaves.
        keys: All keys of the chain.
        rows: Which rows the chain has, by its keys.
    """
    readings = _covering(_without_generated(_merged(leaves)), keys)
    with_rows = sorted((leaf for leaf in readings if leaf.has_rows and leaf.keys), key=lambda leaf: -len(leaf.keys))
    joined: list[ChainLeaf] = []
    covered: set[str] = set()
    while with_rows:
        following = next((leaf for leaf in with_rows if not joined or not covered.isdisjoint(leaf.keys)), None)
        if following is None:
            return None
        with_rows.remove(following)
        joined.append(following)
        covered.update(following.keys)
    single = [leaf for leaf in readings if not leaf.keys]
    filled = [leaf for leaf in readings if leaf.reading == Reading.FILLED]
    present = frozenset().union(*(leaf.presence for leaf in (*joined, *single)))
    if covered != keys or present != rows or any(leaf in filled for leaf in single):
        return None
    return (*joined, *filled, *single, *(leaf for leaf in readings if leaf.reading == Reading.KEY))


def _merged(leaves: Iterable[ChainLeaf]) -> list[ChainLeaf]:
    """Every leaf once: of one that is read in two ways, every row has a tuple."""
    merged: dict[object, ChainLeaf] = {}
    for leaf in leaves:
        if leaf.identity not in merged or leaf.reading == Reading.INNER:
            merged[leaf.identity] = leaf
    return list(merged.values())


def _without_generated(leaves: list[ChainLeaf]) -> list[ChainLeaf]:
    """The leaves, of which generated ones need no join whose keys others have."""
    stored = {key for leaf in leaves if leaf.has_rows and not leaf.follows_from_key for key in leaf.keys}
    return [
        replace(leaf, reading=Reading.KEY) if leaf.follows_from_key and stored.issuperset(leaf.keys) else leaf
        for leaf in leaves
    ]


def _covering(leaves: list[ChainLeaf], keys: Set[str]) -> list[ChainLeaf]:
    """The leaves, some of them made dense where no other has the keys of all rows."""
    covered = {key for leaf in leaves if leaf.has_rows for key in leaf.keys}
    readings = []
    for leaf in leaves:
        is_dense = leaf.reading == Reading.FILLED and not leaf.presence and not covered.issuperset(leaf.keys)
        readings.append(replace(leaf, reading=Reading.DENSE) if is_dense else leaf)
        covered |= set(leaf.keys) if is_dense else set()
    return readings if covered >= keys else leaves
