"""Rewriting: a graph in, groups of EinSums out that read one another, each to be computed by other formulas at once."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.operators.expressions import Call, Scalar
from sparseeinsum.rewrite.saturation.reading import is_readable

_MOST_EINSUMS = 12
_MOST_INLINED = 40  # EinSums, where what several read is written out in each of them
_MOST_ROOTS = 4


@dataclass(frozen=True, slots=True)
class Group:
    """EinSums that read one another.

    Attributes:
        einsums: In topological order.
        roots: Those whose results the program returns, or others read.
    """

    einsums: tuple[EinSum, ...]
    roots: tuple[EinSum, ...]

    @property
    def inputs(self) -> frozenset[str]:
        """The tensors that they read, and none of them computes."""
        computed = {einsum.output.tensor for einsum in self.einsums}
        return frozenset(operand.tensor for einsum in self.einsums for operand in einsum.operands) - computed

    def needed_for(self, roots: Collection[str]) -> tuple[EinSum, ...]:
        """The EinSums that some roots are computed with, as they are written."""
        needed = set(roots)
        found = []
        for einsum in reversed(self.einsums):
            if einsum.output.tensor in needed:
                found.append(einsum)
                needed.update(operand.tensor for operand in einsum.operands)
        return tuple(reversed(found))


def groups_of(graph: EinGraph, pinned: Collection[str]) -> list[Group]:
    """Groups in which sums of several terms are summed.

    What is promoted by hand or pinned is in none, nor what is not of real numbers of one dtype. Nothing outside a group
    is computed from its results and read in it again.

    Args:
        graph: EinSums of any number of operands, in topological order.
        pinned: Results whose labels to promote are given.
    """
    if not any(_has_terms(einsum.join) for einsum in graph.einsums):
        return []
    finder = _Finder(graph)
    for einsum in graph.einsums:
        if einsum.output.tensor not in pinned and is_readable(einsum, graph):
            finder.add(einsum)
    return [group for group in finder.groups() if _has_sums_of_terms(group.einsums)]


@dataclass(slots=True)
class _Finder:
    graph: EinGraph
    members: dict[str, list[str]] = field(default_factory=dict)  # of the group of every result
    inlined: dict[str, int] = field(default_factory=dict)  # EinSums that a result is, written out
    ancestors: dict[str, int] = field(default_factory=dict)  # of every result, as bits
    bits: Mapping[str, int] = field(init=False)
    readers: Mapping[str, Sequence[str]] = field(init=False)

    def __post_init__(self) -> None:
        names = [einsum.output.tensor for einsum in self.graph.einsums]
        self.bits = {name: 1 << number for number, name in enumerate(names)}
        readers: dict[str, list[str]] = {}
        for einsum in self.graph.einsums:
            found = 0
            for operand in dict.fromkeys(operand.tensor for operand in einsum.operands):
                found |= self.bits.get(operand, 0) | self.ancestors.get(operand, 0)
                readers.setdefault(operand, []).append(einsum.output.tensor)
            self.ancestors[einsum.output.tensor] = found
        self.readers = readers

    def add(self, einsum: EinSum) -> None:
        """Put an EinSum into the group of what it reads; where that does not go, into one of its own."""
        name = einsum.output.tensor
        own, inlined = [name], 1
        for operand in dict.fromkeys(operand.tensor for operand in einsum.operands):
            group = self.members.get(operand)
            if group is None:
                continue
            together = own if group is own else [*group, *own]
            size = inlined + self.inlined[operand] * sum(each.tensor == operand for each in einsum.operands)
            if len(together) <= _MOST_EINSUMS and size <= _MOST_INLINED and self._is_apt(together):
                own, inlined = together, size
                self.members |= dict.fromkeys(own, own)
        self.members[name] = own
        self.inlined[name] = inlined

    def _is_apt(self, names: Sequence[str]) -> bool:
        """Whether few of them are read outside, and nothing outside both reads one of them and is read by one."""
        inside = sum(self.bits[name] for name in names)
        if sum(map(self._is_root, names, [names] * len(names))) > _MOST_ROOTS:
            return False
        around = 0
        for name in names:
            around |= self.ancestors[name]
        around &= ~inside
        return not any(self.ancestors[name] & inside for name, bit in self.bits.items() if bit & around)

    def _is_root(self, name: str, names: Sequence[str]) -> bool:
        return name in self.graph.outputs or any(reader not in names for reader in self.readers.get(name, ()))

    def groups(self) -> Iterator[Group]:
        """All groups, in the order of their last EinSums."""
        einsums = {einsum.output.tensor: einsum for einsum in self.graph.einsums}
        for names in {id(names): names for names in self.members.values()}.values():
            ordered = sorted(names, key=self.bits.__getitem__)
            roots = [name for name in ordered if self._is_root(name, names)]
            yield Group(tuple(einsums[name] for name in ordered), tuple(einsums[name] for name in roots))


def _has_sums_of_terms(group: Sequence[EinSum]) -> bool:
    """Whether something is to be gained beyond the order of products."""
    return any(each.aggregate == "sum" for each in group) and any(_has_terms(each.join) for each in group)


def _has_terms(expression: Scalar) -> bool:
    match expression:
        case Call(function, arguments):
            return function in ("add", "sub") or any(map(_has_terms, arguments))
        case _:
            return False
