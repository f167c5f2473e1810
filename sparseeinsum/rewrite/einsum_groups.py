"""Rewriting: finds groups of EinSums that read each other, for each of which other formulas are searched at once."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import EinGraph, EinSum, needed_einsums
from sparseeinsum.operators.expressions import Call, Scalar
from sparseeinsum.rewrite.saturation.term_reading import is_readable

_MOST_EINSUMS = 12
_MOST_INLINED = 40  # EinSums, if those that several others read are written out in each of these
_MOST_ROOTS = 4


@dataclass(frozen=True, slots=True)
class EinSumGroup:
    """EinSums that read each other.

    Attributes:
        einsums: In topological order.
        roots: Those whose results are outputs or are read by EinSums outside the group.
    """

    einsums: tuple[EinSum, ...]
    roots: tuple[EinSum, ...]

    @property
    def inputs(self) -> frozenset[str]:
        """The tensors that the group reads and does not compute."""
        computed = {einsum.output.tensor for einsum in self.einsums}
        return frozenset(operand.tensor for einsum in self.einsums for operand in einsum.operands) - computed

    def needed_for(self, roots: Collection[str]) -> tuple[EinSum, ...]:
        """The EinSums that compute the results `roots`, as they are written."""
        return needed_einsums(self.einsums, roots)


def find_einsum_groups(graph: EinGraph, pinned: Collection[str]) -> list[EinSumGroup]:
    """The groups that contain a sum and an addition or subtraction.

    No group contains EinSums that are promoted by hand or pinned, or that are not of real numbers of one dtype. No
    EinSum outside a group both reads one of its results and is read by one of its EinSums.

    Args:
        graph: EinSums of any number of operands, in topological order.
        pinned: Results whose promoted labels the user chose.
    """
    finder = _GroupFinder(graph)
    for einsum in graph.einsums:
        if einsum.output.tensor not in pinned and is_readable(einsum, graph):
            finder.add(einsum)
    return [group for group in finder.groups() if has_sum_of_additions(group.einsums)]


@dataclass(slots=True)
class _GroupFinder:
    """Puts EinSums into groups, one after the other.

    Attributes:
        graph: All EinSums.
        members: For every result, the names of the results of its group.
        inlined: For every result, the number of EinSums if all that it reads in its group is written out in it.
        ancestors: For every result, the results that it depends on, as a union of bits.
        bits: The bit of every result, in topological order.
        readers: For every tensor, the results of the EinSums that read it.
    """

    graph: EinGraph
    members: dict[str, list[str]] = field(default_factory=dict)
    inlined: dict[str, int] = field(default_factory=dict)
    ancestors: dict[str, int] = field(default_factory=dict)
    bits: Mapping[str, int] = field(init=False)
    readers: Mapping[str, Sequence[str]] = field(init=False)

    def __post_init__(self) -> None:
        names = [einsum.output.tensor for einsum in self.graph.einsums]
        self.bits = {name: 1 << number for number, name in enumerate(names)}
        readers: dict[str, list[str]] = {}
        for einsum in self.graph.einsums:
            ancestors = 0
            for operand in dict.fromkeys(operand.tensor for operand in einsum.operands):
                ancestors |= self.bits.get(operand, 0) | self.ancestors.get(operand, 0)
                readers.setdefault(operand, []).append(einsum.output.tensor)
            self.ancestors[einsum.output.tensor] = ancestors
        self.readers = readers

    def add(self, einsum: EinSum) -> None:
        """Put `einsum` into the groups of its operands, joined to one, where possible; else into a group of its own."""
        name = einsum.output.tensor
        members, inlined = [name], 1
        for operand in dict.fromkeys(operand.tensor for operand in einsum.operands):
            group = self.members.get(operand)
            if group is None:
                continue
            union = members if group is members else [*group, *members]
            count = sum(reference.tensor == operand for reference in einsum.operands)
            size = inlined + self.inlined[operand] * count
            if len(union) <= _MOST_EINSUMS and size <= _MOST_INLINED and self._can_form_group(union):
                members, inlined = union, size
                self.members |= dict.fromkeys(members, members)
        self.members[name] = members
        self.inlined[name] = inlined

    def _can_form_group(self, names: Sequence[str]) -> bool:
        """Whether few of the results are read outside, and no EinSum outside lies on a path between two of them."""
        inside = sum(self.bits[name] for name in names)
        if sum(map(self._is_root, names, [names] * len(names))) > _MOST_ROOTS:
            return False
        outside = 0
        for name in names:
            outside |= self.ancestors[name]
        outside &= ~inside
        return not any(self.ancestors[name] & inside for name, bit in self.bits.items() if bit & outside)

    def _is_root(self, name: str, names: Sequence[str]) -> bool:
        return name in self.graph.outputs or any(reader not in names for reader in self.readers.get(name, ()))

    def groups(self) -> Iterator[EinSumGroup]:
        """All groups, in the order of their first EinSums."""
        einsums = {einsum.output.tensor: einsum for einsum in self.graph.einsums}
        for names in {id(names): names for names in self.members.values()}.values():
            ordered = sorted(names, key=self.bits.__getitem__)
            roots = [name for name in ordered if self._is_root(name, names)]
            yield EinSumGroup(tuple(einsums[name] for name in ordered), tuple(einsums[name] for name in roots))


def has_sum_of_additions(einsums: Sequence[EinSum]) -> bool:
    """Whether other formulas may gain more than another order of products does."""
    return any(einsum.aggregate == "sum" for einsum in einsums) and any(
        _has_addition(einsum.join) for einsum in einsums
    )


def _has_addition(expression: Scalar) -> bool:
    match expression:
        case Call(function, arguments):
            return function in ("add", "sub") or any(map(_has_addition, arguments))
        case _:
            return False
