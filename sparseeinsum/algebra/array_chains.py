"""Algebra: EinSums over single arrays, which one SELECT computes in one row.

An EinSum whose result has no keys, and whose operands have none, computes one array from others. One row has all that
such EinSums read, and each of them is one more column: nothing is joined, and nothing is stored in between.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from sparseeinsum.algebra.operators import Compress, Computed, Contract, Relation
from sparseeinsum.algebra.row_chains import computed_in, is_index_map
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.algebra.translate import ComputedResult
from sparseeinsum.decompose.choice import LARGEST_ROW_ARRAY

_MOST_NESTED = 64  # SELECTs; engines limit how deep they are nested


@dataclass(frozen=True)  # no slots: names and leaves are collected once
class ArrayChain:
    """EinSums that one SELECT computes in one row.

    Attributes:
        definitions: The EinSums, in topological order.
        returned: The names of the results that others read, in that order.
    """

    definitions: tuple[ComputedResult, ...]
    returned: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the last result that others read."""
        return self.returned[-1]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all results."""
        return frozenset(definition.name for definition in self.definitions)

    @property
    def inner(self) -> frozenset[str]:
        """The names of the results that only the chain reads."""
        return self.names.difference(self.returned)

    @cached_property
    def leaves(self) -> tuple[Relation, ...]:
        """What the EinSums read besides results of the chain, each once."""
        read = (operand for definition in self.definitions for operand in definition.relation.inputs)
        return tuple(dict.fromkeys(operand for operand in read if not self.computes(operand)))

    @cached_property
    def contracts(self) -> Mapping[str, Contract]:
        """How the results are computed, by name; those of dtype bool in the dtype in which the chain reads them.

        Columns hold truths as float32, which every reader would have to convert.
        """
        contracts = {definition.name: definition.relation for definition in self.definitions}
        dtypes = self._dtypes_of_truths()

        def with_dtype(schema: Schema) -> Schema:
            tensor = schema.tensor
            if tensor.name not in dtypes:
                return schema
            return replace(schema, tensor=replace(tensor, dtype=dtypes[tensor.name], fill=int(tensor.fill == 1)))

        def with_dtypes(contract: Contract) -> Contract:
            inputs = [Computed(with_dtype(read.schema)) if self.computes(read) else read for read in contract.inputs]
            return replace(contract, inputs=tuple(inputs), output=with_dtype(contract.output))

        return {name: with_dtypes(contract) for name, contract in contracts.items()} if dtypes else contracts

    def _dtypes_of_truths(self) -> dict[str, str]:
        """The dtypes that arrays of truths are computed and read in, if only the chain reads them and in one dtype."""
        readers: dict[str, set[str]] = defaultdict(set)
        for definition in self.definitions:
            for operand in definition.relation.inputs:
                for name in computed_in(operand):
                    is_direct = self.computes(operand)
                    readers[name].add(definition.relation.computed_in if is_direct else operand.schema.tensor.dtype)
        return {
            definition.name: definition.relation.computed_in
            for definition in self.definitions
            if definition.name in self.inner
            and definition.relation.schema.tensor.dtype == "bool"
            and definition.relation.schema.tensor.axes
            and readers[definition.name] == {definition.relation.computed_in}
        }

    def computes(self, operand: Relation) -> bool:
        """Whether an operand is a result of the chain."""
        return isinstance(operand, Computed) and operand.schema.tensor.name in self.names


@dataclass(frozen=True, slots=True)
class ArrayChains:
    """Chains of two or more EinSums among the EinSums that statements compute.

    Attributes:
        chains: The chains, in an order in which they can be computed.
        definitions: All EinSums, in a topological order in which those of a chain follow each other.
    """

    chains: tuple[ArrayChain, ...]
    definitions: tuple[ComputedResult, ...]


def array_chains(
    definitions: Sequence[ComputedResult], targets: Iterable[Relation], apart: Set[str] = frozenset()
) -> ArrayChains:
    """The chains among EinSums.

    Args:
        definitions: The EinSums, in topological order.
        targets: The relations that statements return.
        apart: Results that no chain computes.
    """
    groups = _Groups.of(definitions, apart)
    readers = reading_groups(definitions, targets, groups.number_of)
    members: dict[int, list[ComputedResult]] = defaultdict(list)
    for definition in definitions:
        if definition.name in groups.number_of:
            members[groups.number_of[definition.name]].append(definition)
    chains = []
    for number, chain in sorted(members.items(), key=lambda item: groups.levels[item[1][0].name]):
        returned = tuple(definition.name for definition in chain if readers[definition.name] - {number})
        if len(chain) > 1 and returned:
            chains.append(ArrayChain(tuple(chain), returned))
    return ArrayChains(tuple(chains), _in_order(definitions, chains, groups) if chains else tuple(definitions))


def _in_order(
    definitions: Sequence[ComputedResult], chains: Sequence[ArrayChain], groups: "_Groups"
) -> tuple[ComputedResult, ...]:
    first = {name: number for number, chain in enumerate(chains) for name in chain.names}

    def place(definition: ComputedResult) -> tuple[int, bool, int]:
        number = groups.number_of.get(definition.name)
        return groups.levels[definition.name], number is not None, first.get(definition.name, -1)

    return tuple(sorted(definitions, key=place))


def reading_groups(
    definitions: Sequence[ComputedResult], targets: Iterable[Relation], number_of: Mapping[str, int]
) -> Mapping[str, set[int]]:
    """For every result, the numbers of the groups of EinSums that read it; -1 stands for all other readers.

    Args:
        definitions: The EinSums.
        targets: The relations that statements return.
        number_of: The number of the group of every EinSum that is in one.
    """
    readers: dict[str, set[int]] = defaultdict(set)
    for target in targets:
        for name in computed_in(target):
            readers[name].add(-1)
    for definition in definitions:
        for operand in definition.relation.inputs:
            for name in computed_in(operand):
                readers[name].add(number_of.get(definition.name, -1))
    return readers


@dataclass(frozen=True, slots=True)
class _Groups:
    """Groups of EinSums over single arrays, of which every two are connected by results of the group.

    Attributes:
        levels: For every EinSum a number, none less than those of what it reads; and greater, if it reads a result of a
            group and is not in this group.
        number_of: The number of the group of every EinSum that is in one.
    """

    levels: Mapping[str, int]
    number_of: Mapping[str, int]

    @classmethod
    def of(cls, definitions: Sequence[ComputedResult], apart: Set[str]) -> "_Groups":
        """The groups of EinSums, in topological order; none has results in `apart`."""
        reads = _reads(definitions)
        over_arrays = {
            definition.name
            for definition in definitions
            if definition.name not in apart and _is_over_arrays(definition)
        }
        levels = _levels(reads, over_arrays, {})
        levels = _levels(reads, over_arrays, _latest_levels(reads, over_arrays, levels))
        leader: dict[str, str] = {}

        def find(name: str) -> str:
            while leader[name] != name:
                leader[name] = name = leader[leader[name]]
            return name

        for name, read in reads.items():
            if name in over_arrays:
                leader[name] = name
                for other, is_direct in read.items():
                    if is_direct and other in over_arrays and levels[other] == levels[name]:
                        leader[find(other)] = name
        numbers: dict[str, int] = {}
        return cls(levels, {name: numbers.setdefault(find(name), len(numbers)) for name in leader})


def _reads(definitions: Sequence[ComputedResult]) -> dict[str, dict[str, bool]]:
    """For every EinSum, the results of others that it reads, and whether it reads them as they are computed."""
    computed = {definition.name for definition in definitions}
    reads: dict[str, dict[str, bool]] = {}
    for definition in definitions:
        read = reads[definition.name] = {}
        for operand in definition.relation.inputs:
            for name in computed_in(operand):
                if name in computed:
                    read[name] = read.get(name, True) and isinstance(operand, Computed)
    return reads


def _levels(reads: Mapping[str, Mapping[str, bool]], over_arrays: Set[str], least: Mapping[str, int]) -> dict[str, int]:
    """The least levels, none below those in `least`, so that no EinSum is nested too deep in others of its level."""
    levels: dict[str, int] = {}
    depths: dict[str, int] = {}
    for name, read in reads.items():
        steps = {
            other: other in over_arrays and not (is_direct and name in over_arrays) for other, is_direct in read.items()
        }
        level = max((levels[other] + step for other, step in steps.items()), default=0)
        level = max(level, least.get(name, 0))
        depth = 1 + max((depths[other] for other in read if other in over_arrays and levels[other] == level), default=0)
        if depth > _MOST_NESTED and name in over_arrays:
            level, depth = level + 1, 1
        levels[name], depths[name] = level, depth
    return levels


def _latest_levels(
    reads: Mapping[str, Mapping[str, bool]], over_arrays: Set[str], levels: Mapping[str, int]
) -> dict[str, int]:
    """The levels of EinSums over arrays, as late as those allow that read them, so that they are in one group."""
    latest: dict[str, int] = {}
    allowed: dict[str, int] = {}
    for name, read in reversed(list(reads.items())):
        level = allowed.get(name, levels[name]) if name in over_arrays else levels[name]
        if name in over_arrays:
            latest[name] = level
        for other, is_direct in read.items():
            at_most = level - (not (is_direct and name in over_arrays))
            allowed[other] = min(allowed.get(other, at_most), at_most)
    return latest


def _is_over_arrays(definition: ComputedResult) -> bool:
    """Whether an EinSum computes one array from others, or from an operand that is ordered by row."""
    contract = definition.relation
    is_special = contract.is_fused or contract.is_matched or contract.parts_by or definition.step.passes is not None
    if is_special or any(map(is_index_map, contract.inputs)):
        return False
    arrays = [contract.schema, *(read.schema for read in contract.inputs if not isinstance(read, Compress))]
    return all(schema.list_length <= LARGEST_ROW_ARRAY and not schema.keys for schema in arrays)
