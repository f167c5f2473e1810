"""Rewriting: EinSums that compute the same, under whatever names of labels, become one that all readers share."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.rewrite.chains import substituted

_FEW_OPERANDS = 4


def merge_common_subexpressions(graph: EinGraph, pinned: Mapping[str, Mapping[str, int]]) -> EinGraph:
    """Compute once what several EinSums compute, in another order of axes, too.

    Of results that are the same, one that is an output keeps its name; further outputs are copies of it. Results whose
    labels are promoted by hand or pinned in different ways stay apart.

    Args:
        graph: EinSums of one or two operands, in topological order.
        pinned: For some results, labels to promote and their tiles.
    """
    classes = _Classes(graph, pinned)
    einsums = []
    for einsum in graph.einsums:
        name = einsum.output.tensor
        member = classes.members[name]
        kept = classes.kept[member.leader]
        if name == member.leader:
            einsums.append(classes.shared(classes.members[kept].einsum))
        elif name in graph.outputs and name != kept:
            copied = classes.reference(Reference(name, einsum.output.labels))
            einsums.append(EinSum(einsum.output, (copied,), Operand(0), None, einsum.promoted))
    written = {einsum.output.tensor for einsum in einsums}
    tensors = {name: each for name, each in graph.tensors.items() if name in written or name not in classes.members}
    return EinGraph(MappingProxyType(tensors), tuple(einsums), graph.outputs)


def merged_results(written: EinGraph, graph: EinGraph) -> dict[str, str]:
    """Results as they were written that a graph computes once with others, by the names of those that it computes.

    Args:
        written: EinSums of any number of operands, in topological order.
        graph: The same, merged, of one or two operands each.
    """
    classes = _Classes(written, {})
    copies = {
        einsum.output.tensor
        for einsum in graph.einsums
        if einsum.join == Operand(0) and einsum.aggregate is None and len(einsum.operands) == 1
    }
    computed = {einsum.output.tensor for einsum in graph.einsums}
    return {
        name: classes.kept[member.leader]
        for name, member in classes.members.items()
        if name != classes.kept[member.leader] and (name in copies or name not in computed)
    }


@dataclass(frozen=True, slots=True)
class _Member:
    """An EinSum of a class of equal ones.

    Attributes:
        einsum: As it is in the graph.
        leader: The first result of the class.
        axes: Which canonical label every axis of its result has; the same labels in every member of the class.
    """

    einsum: EinSum
    leader: str
    axes: tuple[int, ...]


class _Classes:
    """Classes of equal EinSums.

    Attributes:
        members: Every EinSum, by its result.
        kept: For the leader of every class, the result that keeps its name.
    """

    def __init__(self, graph: EinGraph, pinned: Mapping[str, Mapping[str, int]]) -> None:
        self.members: dict[str, _Member] = {}
        self.kept: dict[str, str] = {}
        leaders: dict[object, str] = {}
        for einsum in graph.einsums:
            name = einsum.output.tensor
            form = _canonical(self.led(einsum))
            leader = leaders.setdefault(form.key(einsum, pinned.get(name)), name)
            self.members[name] = _Member(einsum, leader, form.axes)
            if name == leader or (name in graph.outputs and self.kept[leader] not in graph.outputs):
                self.kept[leader] = name

    def led(self, einsum: EinSum) -> EinSum:
        """The EinSum of leaders instead of other members of their classes."""
        return self._reading(einsum, {name: member.leader for name, member in self.members.items()})

    def shared(self, einsum: EinSum) -> EinSum:
        """The EinSum of results that are kept."""
        return self._reading(einsum, {name: self.kept[member.leader] for name, member in self.members.items()})

    def reference(self, reference: Reference) -> Reference:
        """The result that is kept instead of one, as it is referred to."""
        return self._permuted(reference, self.kept[self.members[reference.tensor].leader])

    def _reading(self, einsum: EinSum, names: Mapping[str, str]) -> EinSum:
        references = [
            self._permuted(operand, names[operand.tensor]) if operand.tensor in names else operand
            for operand in einsum.operands
        ]
        operands = tuple(dict.fromkeys(references))  # two that were the same are one operand
        positions = {number: Operand(operands.index(each)) for number, each in enumerate(references)}
        return replace(einsum, operands=operands, join=substituted(einsum.join, positions))

    def _permuted(self, reference: Reference, name: str) -> Reference:
        label_of = dict(zip(self.members[reference.tensor].axes, reference.labels, strict=True))
        return Reference(name, tuple(label_of[axis] for axis in self.members[name].axes))


@dataclass(frozen=True, slots=True)
class _Form:
    """An EinSum without its names: labels are numbered as they appear.

    Attributes:
        operands: Tensors and numbers of their labels.
        join: What is computed, arguments of commutative functions in order.
        axes: Numbers of the result's labels.
        numbers: Of all labels.
    """

    operands: tuple[tuple[str, tuple[int, ...]], ...]
    join: str
    axes: tuple[int, ...]
    numbers: Mapping[str, int]

    @property
    def order(self) -> tuple[object, ...]:
        """Tells forms of one EinSum apart."""
        return self.operands, self.join, self.axes

    def key(self, einsum: EinSum, pins: Mapping[str, int] | None) -> object:
        """The same for EinSums that compute the same, but for the order of axes, and are wanted alike."""
        promoted = frozenset((self.numbers[label], tile) for label, tile in einsum.promoted)
        tiles = None if pins is None else frozenset((self.numbers.get(label, label), pins[label]) for label in pins)
        along = None if einsum.along is None else self.numbers[einsum.along]
        return self.operands, self.join, einsum.aggregate, along, frozenset(self.axes), promoted, tiles


def _canonical(einsum: EinSum) -> _Form:
    """The same form whatever the order of operands, where they are few."""
    places = range(len(einsum.operands))
    orders: Iterable[Sequence[int]] = itertools.permutations(places) if len(places) <= _FEW_OPERANDS else [places]
    return min((_form(einsum, order) for order in orders), key=lambda form: form.order)


def _form(einsum: EinSum, order: Sequence[int]) -> _Form:
    operands = [einsum.operands[position] for position in order]
    labels = dict.fromkeys(label for reference in (*operands, einsum.output) for label in reference.labels)
    numbers = {label: number for number, label in enumerate(labels)}
    named = tuple((operand.tensor, tuple(numbers[label] for label in operand.labels)) for operand in operands)
    join = substituted(einsum.join, {position: Operand(number) for number, position in enumerate(order)})
    axes = tuple(numbers[label] for label in einsum.output.labels)
    return _Form(named, repr(_sorted(join)), axes, numbers)


def _sorted(expression: Scalar) -> Scalar:
    """The expression with the arguments of commutative functions in one order."""
    if not isinstance(expression, Call):
        return expression
    arguments = [_sorted(argument) for argument in expression.arguments]
    if FUNCTIONS[expression.function].is_commutative:
        arguments.sort(key=repr)
    return Call(expression.function, tuple(arguments))
