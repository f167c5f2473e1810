"""Rewriting: EinSums that compute the same, whatever their labels are called, become one that all readers share."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.rewrite.chains import substitute

_FEW_OPERANDS = 4


def merge_common_subexpressions(graph: EinGraph, pinned: Mapping[str, Mapping[str, int]]) -> EinGraph:
    """Compute once what several EinSums compute, also if their axes are in another order.

    Of equal results, one that is an output keeps its name; other outputs become copies of it. Results whose labels are
    promoted by hand or pinned in different ways are not merged.

    Args:
        graph: EinSums of one or two operands, in topological order.
        pinned: For some results, labels to promote and their tiles.
    """
    classes = _Classes(graph, pinned)
    einsums = []
    for einsum in graph.einsums:
        name = einsum.output.tensor
        member = classes.members[name]
        kept_result = classes.kept_by_leader[member.leader]
        if name == member.leader:
            einsums.append(classes.shared(classes.members[kept_result].einsum))
        elif name in graph.outputs and name != kept_result:
            copied = classes.reference(Reference(name, einsum.output.labels))
            einsums.append(EinSum(einsum.output, (copied,), Operand(0), None, einsum.promoted))
    written = {einsum.output.tensor for einsum in einsums}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in written or name not in classes.members}
    return EinGraph(MappingProxyType(tensors), tuple(einsums), graph.outputs)


def merged_results(written: EinGraph, graph: EinGraph) -> dict[str, str]:
    """For each result as written that a graph computes once with others, the name of the result it computes.

    Args:
        written: EinSums of any number of operands, in topological order.
        graph: The same after merging, of one or two operands each.
    """
    classes = _Classes(written, {})
    copies = {
        einsum.output.tensor
        for einsum in graph.einsums
        if einsum.join == Operand(0) and einsum.aggregate is None and len(einsum.operands) == 1
    }
    computed = {einsum.output.tensor for einsum in graph.einsums}
    return {
        name: classes.kept_by_leader[member.leader]
        for name, member in classes.members.items()
        if name != classes.kept_by_leader[member.leader] and (name in copies or name not in computed)
    }


@dataclass(frozen=True, slots=True)
class _Member:
    """An EinSum of a class of equal EinSums.

    Attributes:
        einsum: The EinSum as it is in the graph.
        leader: The first result of the class.
        axes: The canonical number of the label of each axis of the result; all members of a class use the same numbers.
    """

    einsum: EinSum
    leader: str
    axes: tuple[int, ...]


class _Classes:
    """The classes of equal EinSums of a graph.

    Attributes:
        members: Every EinSum, by its result.
        kept_by_leader: For the leader of every class, the result that keeps its name.
    """

    def __init__(self, graph: EinGraph, pinned: Mapping[str, Mapping[str, int]]) -> None:
        self.members: dict[str, _Member] = {}
        self.kept_by_leader: dict[str, str] = {}
        leaders: dict[object, str] = {}
        for einsum in graph.einsums:
            name = einsum.output.tensor
            form = _canonical(self.with_leaders(einsum))
            leader = leaders.setdefault(form.key(einsum, pinned.get(name)), name)
            self.members[name] = _Member(einsum, leader, form.axes)
            if name == leader or (name in graph.outputs and self.kept_by_leader[leader] not in graph.outputs):
                self.kept_by_leader[leader] = name

    def with_leaders(self, einsum: EinSum) -> EinSum:
        """The EinSum with the leaders of classes as operands."""
        return self._with_operands_from(einsum, {name: member.leader for name, member in self._read(einsum).items()})

    def shared(self, einsum: EinSum) -> EinSum:
        """The EinSum with the results that are kept as operands."""
        return self._with_operands_from(
            einsum, {name: self.kept_by_leader[member.leader] for name, member in self._read(einsum).items()}
        )

    def _read(self, einsum: EinSum) -> dict[str, _Member]:
        """The operands that are results."""
        names = dict.fromkeys(operand.tensor for operand in einsum.operands)
        return {name: self.members[name] for name in names if name in self.members}

    def reference(self, reference: Reference) -> Reference:
        """A reference to the result that is kept in the place of the one that `reference` reads."""
        return self._permuted(reference, self.kept_by_leader[self.members[reference.tensor].leader])

    def _with_operands_from(self, einsum: EinSum, names: Mapping[str, str]) -> EinSum:
        references = [
            self._permuted(operand, names[operand.tensor]) if operand.tensor in names else operand
            for operand in einsum.operands
        ]
        operands = tuple(dict.fromkeys(references))  # equal operands become one
        number_of = {operand: number for number, operand in enumerate(operands)}
        positions = {position: Operand(number_of[operand]) for position, operand in enumerate(references)}
        return replace(einsum, operands=operands, join=substitute(einsum.join, positions))

    def _permuted(self, reference: Reference, name: str) -> Reference:
        label_of = dict(zip(self.members[reference.tensor].axes, reference.labels, strict=True))
        return Reference(name, tuple(label_of[axis] for axis in self.members[name].axes))


@dataclass(frozen=True, slots=True)
class _Form:
    """An EinSum without names of labels, which are numbered as they appear.

    Attributes:
        operands: Tensors and the numbers of their labels.
        join: The join expression, with the arguments of commutative functions sorted.
        axes: The numbers of the labels of the result.
        numbers: The number of every label.
    """

    operands: tuple[tuple[str, tuple[int, ...]], ...]
    join: str
    axes: tuple[int, ...]
    numbers: Mapping[str, int]

    @property
    def sort_key(self) -> tuple[object, ...]:
        """What the forms of one EinSum are compared by, to choose one of them."""
        return self.operands, self.join, self.axes

    def key(self, einsum: EinSum, pins: Mapping[str, int] | None) -> object:
        """A key that is equal for EinSums that compute the same up to the order of axes, and have the same pins."""
        promoted = frozenset((self.numbers[label], tile) for label, tile in einsum.promoted)
        tiles = None if pins is None else frozenset((self.numbers.get(label, label), pins[label]) for label in pins)
        along = None if einsum.along is None else self.numbers[einsum.along]
        return self.operands, self.join, einsum.aggregate, along, frozenset(self.axes), promoted, tiles


def _canonical(einsum: EinSum) -> _Form:
    """A form that does not depend on the order of the operands, unless they are many."""
    places = range(len(einsum.operands))
    orders: Iterable[Sequence[int]] = itertools.permutations(places) if len(places) <= _FEW_OPERANDS else [places]
    return min((_form_in_order(einsum, order) for order in orders), key=lambda form: form.sort_key)


def _form_in_order(einsum: EinSum, order: Sequence[int]) -> _Form:
    operands = [einsum.operands[position] for position in order]
    labels = dict.fromkeys(label for reference in (*operands, einsum.output) for label in reference.labels)
    numbers = {label: number for number, label in enumerate(labels)}
    named = tuple((operand.tensor, tuple(numbers[label] for label in operand.labels)) for operand in operands)
    join = substitute(einsum.join, {position: Operand(number) for number, position in enumerate(order)})
    axes = tuple(numbers[label] for label in einsum.output.labels)
    return _Form(named, repr(_with_sorted_arguments(join)), axes, numbers)


def _with_sorted_arguments(expression: Scalar) -> Scalar:
    """The expression with the arguments of commutative functions sorted."""
    if not isinstance(expression, Call):
        return expression
    arguments = [_with_sorted_arguments(argument) for argument in expression.arguments]
    if FUNCTIONS[expression.function].is_commutative:
        arguments.sort(key=repr)
    return Call(expression.function, tuple(arguments))
