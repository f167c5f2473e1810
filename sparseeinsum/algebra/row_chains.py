"""Algebra: EinSums that one SELECT computes row by row, over one join of all that they read.

An EinSum whose operands have no key that its result lacks is computed row by row. If it reads results of such EinSums
with the same keys, one join of all that these read has the rows of all of them: every relation is joined once, however
many of the EinSums read it, and no intermediate result is joined at all.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from sparseeinsum.algebra.chain_leaves import ChainLeaf, Reading, in_join_order, leaf_of
from sparseeinsum.algebra.operators import AllKeys, Computed, Contract, Densify, Relation, Stored
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.algebra.translate import ComputedResult
from sparseeinsum.algebra.tuple_presence import Presence, keys_of_operand, keys_of_result, renamed, result_presence

_SEVERAL_JOINS = 2


@dataclass(frozen=True, slots=True)
class ChainLink:
    """An EinSum of a chain.

    Attributes:
        contract: The EinSum over its operands.
        keys: The key of the chain for every promoted label.
    """

    contract: Contract
    keys: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the result."""
        return self.contract.schema.tensor.name


@dataclass(frozen=True, slots=True)
class RowChain:
    """EinSums that are computed row by row.

    Attributes:
        links: The EinSums, in topological order; the result of the last one is that of the chain.
        leaves: What they read besides results of the chain, in the order in which it is joined: the first has rows of
            its own, each of the others has a key that one before it has, or no key.
        reads: For every EinSum, its operands: positions of leaves, or names of results of the chain.
    """

    links: tuple[ChainLink, ...]
    leaves: tuple[ChainLeaf, ...]
    reads: tuple[tuple[int | str, ...], ...]

    @property
    def name(self) -> str:
        """The name of the result."""
        return self.links[-1].name

    @property
    def schema(self) -> Schema:
        """The schema of the result."""
        return self.links[-1].contract.schema

    @property
    def detects_nonfinite(self) -> bool:
        """Whether a value of some result that turned NaN or infinite ends the run."""
        return any(link.contract.detects_nonfinite for link in self.links)


def row_chains(
    definitions: Sequence[ComputedResult],
    targets: Iterable[Relation],
    stored: Set[str] = frozenset(),
    saves_joins: bool = True,
) -> tuple[RowChain, ...]:
    """The chains among the EinSums that statements compute.

    Args:
        definitions: The EinSums, in topological order.
        targets: The relations that the statements return.
        stored: Results that other statements read from tables.
        saves_joins: Whether to return only chains that take fewer joins than their EinSums on their own.
    """
    contracts = {definition.name: definition.relation for definition in definitions if _is_row_by_row(definition)}
    presences: dict[str, Presence] = {}
    for name, contract in contracts.items():
        presence = result_presence(contract, presences)
        if presence is not None:
            presences[name] = presence
    returned = tuple(targets)
    last = frozenset(stored)  # results of chains
    plain = contracts.keys() - presences.keys()  # results that no chain computes
    while True:
        candidates = {name: contract for name, contract in contracts.items() if name not in plain}
        groups = _groups(candidates, _readers(definitions, candidates, returned), last)
        unfit = {link.name for links in groups for link in links[:-1] if not _has_rows_of(links[-1], link, presences)}
        if unfit:
            last |= unfit
            continue
        chains = [_chain(links, presences) for links in groups if _joins(links) > 0 or not saves_joins]
        unjoined = {links.name for links in chains if isinstance(links, ChainLink)}
        if not unjoined:
            joined = (chain for chain in chains if isinstance(chain, RowChain))
            return tuple(chain for chain in joined if not saves_joins or _saves_joins(chain))
        plain |= unjoined


def _joins(links: Sequence[ChainLink]) -> int:
    return sum(len(link.contract.inputs) > 1 for link in links)


def _saves_joins(chain: RowChain) -> bool:
    """Whether the EinSums on their own would take more joins, those that make operands dense among them."""
    joins = _joins(chain.links)
    if joins >= _SEVERAL_JOINS:
        return True
    operands = {operand for link in chain.links for operand in link.contract.inputs}
    made_dense = sum(isinstance(operand, Densify) and operand.all_keys is None for operand in operands)
    joined = sum(leaf.reading != Reading.KEY for leaf in chain.leaves) - 1
    return joined + sum(leaf.reading == Reading.DENSE for leaf in chain.leaves) < joins + made_dense


def _is_row_by_row(definition: ComputedResult) -> bool:
    """Whether each tuple of a result is computed of one tuple of every operand."""
    contract = definition.relation
    is_special = contract.compressed or contract.indexed is not None or contract.is_fused or contract.parts_by
    if is_special or definition.step.passes is not None or len(contract.complete) != len(contract.inputs):
        return False
    operands = contract.einsum.operands
    if any(len(set(operand.labels)) < len(operand.labels) for operand in operands):
        return False
    keys = {label for number in range(len(operands)) for label in keys_of_operand(contract, number)}
    return bool(keys) and keys == set(keys_of_result(contract)) and not any(map(is_index_map, contract.inputs))


def is_index_map(relation: Relation) -> bool:
    """Whether a relation is an index map, of which a reader may copy arrays."""
    while not isinstance(relation, Stored | Computed | Contract | AllKeys):
        relation = relation.input
    return isinstance(relation, Stored) and relation.source.is_index_map


def _has_rows_of(last: ChainLink, link: ChainLink, presences: Mapping[str, Presence]) -> bool:
    """Whether an EinSum has a tuple for every row of its chain, and no other that a run must check."""
    own, rows = _presence(link, presences), _presence(last, presences)
    return own == rows if link.contract.detects_nonfinite else own <= rows


def _presence(link: ChainLink, presences: Mapping[str, Presence]) -> Presence:
    """Which tuples a result has, by keys of the chain."""
    labels = link.contract.einsum.output.labels
    keys = {position: link.keys[label] for position, label in enumerate(labels) if label in link.keys}
    return renamed(presences[link.name], keys)


def _readers(
    definitions: Sequence[ComputedResult], contracts: Mapping[str, Contract], targets: Sequence[Relation]
) -> Mapping[str, set[tuple[str, int]]]:
    """For every result, the EinSums that read its rows, and as which operand; an empty name for other readers."""
    readers: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for target in targets:
        for name in computed_in(target):
            readers[name].add(("", 0))
    for definition in definitions:
        for number, operand in enumerate(definition.relation.inputs):
            reads_rows = definition.name in contracts and isinstance(operand, Computed)
            for name in computed_in(operand):
                readers[name].add((definition.name, number) if reads_rows else ("", 0))
    return readers


def computed_in(relation: Relation) -> Iterator[str]:
    """The names of the results that a relation is made of."""
    match relation:
        case Computed(schema):
            yield schema.tensor.name
        case Contract(inputs=inputs):
            for operand in inputs:
                yield from computed_in(operand)
        case Stored() | AllKeys():
            pass
        case Densify(input=source, all_keys=all_keys) if all_keys is not None:
            yield from (*computed_in(source), *computed_in(all_keys))
        case _:
            yield from computed_in(relation.input)


def _groups(
    contracts: Mapping[str, Contract], readers: Mapping[str, set[tuple[str, int]]], last: frozenset[str]
) -> list[tuple[ChainLink, ...]]:
    """EinSums of which each but the last is read by others of its group alone, with the same keys.

    Args:
        contracts: EinSums that are computed row by row, in topological order.
        readers: Who reads their results.
        last: Results that are the last of their group.
    """
    group_of: dict[str, str] = {}
    links: dict[str, ChainLink] = {}
    for name, contract in reversed(list(contracts.items())):
        group, keys = name, dict(zip(keys_of_result(contract), contract.schema.keys, strict=True))
        reading = readers[name]
        if name not in last and reading and all(reader in links for reader, _ in reading):
            mapped = {(group_of[reader], _keys_read(contract, links[reader], number)) for reader, number in reading}
            (candidate, pairs), *others = mapped
            if not others and len(pairs) == len(links[candidate].keys):
                group, keys = candidate, dict(pairs)
        group_of[name], links[name] = group, ChainLink(contract, keys)
    members: dict[str, list[ChainLink]] = defaultdict(list)
    for name in contracts:
        members[group_of[name]].append(links[name])
    return [tuple(group) for group in members.values()]


def _keys_read(contract: Contract, reader: ChainLink, number: int) -> tuple[tuple[str, str], ...]:
    """For every label that is a key of a result, the key of the chain that its reader has for it."""
    read = reader.contract.einsum.operands[number].labels
    labels = contract.einsum.output.labels
    return tuple((labels[position], reader.keys[read[position]]) for position in contract.output.decomposition.promoted)


def _chain(links: tuple[ChainLink, ...], presences: Mapping[str, Presence]) -> RowChain | ChainLink:
    """The chain of a group; its last EinSum if no join has the rows of the chain."""
    computed = {link.name for link in links}
    rows = _presence(links[-1], presences)
    reads = [
        [
            operand.schema.tensor.name
            if isinstance(operand, Computed) and operand.schema.tensor.name in computed
            else leaf_of(link.contract, number, link.keys, rows, presences)
            for number, operand in enumerate(link.contract.inputs)
        ]
        for link in links
    ]
    read = [operand for operands in reads for operand in operands if isinstance(operand, ChainLeaf)]
    leaves = in_join_order(read, set(links[-1].keys.values()), rows)
    if leaves is None:
        return links[-1]
    numbers = {leaf.identity: number for number, leaf in enumerate(leaves)}
    numbered = (
        tuple(numbers[operand.identity] if isinstance(operand, ChainLeaf) else operand for operand in operands)
        for operands in reads
    )
    return RowChain(links, leaves, tuple(numbered))
