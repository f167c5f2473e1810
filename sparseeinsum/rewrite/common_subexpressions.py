"""Rewriting: EinSums that compute the same, whatever their labels are called, become one that all readers share."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import key_of
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
    return graph if _all_read_others(graph) else ExpressionClasses(graph, pinned).merged_graph()


def _all_read_others(graph: EinGraph) -> bool:
    """Whether no two EinSums read the same tensors, so that no two compute the same; and none reads one twice."""
    read = [frozenset([operand.tensor for operand in einsum.operands]) for einsum in graph.einsums]
    return len(set(read)) == len(read) and sum(map(len, read)) == sum(
        [len(einsum.operands) for einsum in graph.einsums]
    )


def compute_same(first: EinSum, second: EinSum) -> bool:
    """Whether two EinSums of the same tensors compute the same, if need be with axes in another order."""
    one, other = (_canonical(einsum).key(einsum, None) for einsum in (first, second))
    return one == other


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


class ExpressionClasses:
    """The classes of EinSums of a graph that compute the same, whatever their labels are called.

    Args:
        graph: EinSums of any number of operands, in topological order.
        pinned: For some results, labels to promote and their tiles; see `merge_common_subexpressions`.
    """

    def __init__(self, graph: EinGraph, pinned: Mapping[str, Mapping[str, int]]) -> None:
        self._graph = graph
        self._members: dict[str, _Member] = {}
        self._kept_by_leader: dict[str, str] = {}  # for the leader of every class, the result that keeps its name
        leaders: dict[object, str] = {}
        for einsum in graph.einsums:
            name = einsum.output.tensor
            form = _canonical(self._with_leaders(einsum))
            leader = leaders.setdefault(form.key(einsum, pinned.get(name)), name)
            self._members[name] = _Member(einsum, leader, form.axes)
            if name == leader or (name in graph.outputs and self._kept_by_leader[leader] not in graph.outputs):
                self._kept_by_leader[leader] = name

    def merged_graph(self) -> EinGraph:
        """The graph that computes every class once; see `merge_common_subexpressions`."""
        graph, einsums = self._graph, []
        for einsum in graph.einsums:
            name = einsum.output.tensor
            member = self._members[name]
            kept_result = self._kept_by_leader[member.leader]
            if name == member.leader:
                einsums.append(self._shared(self._members[kept_result].einsum))
            elif name in graph.outputs and name != kept_result:
                copied = self._reference(Reference(name, einsum.output.labels))
                einsums.append(EinSum(einsum.output, (copied,), Operand(0), None, einsum.promoted))
        written = {einsum.output.tensor for einsum in einsums}
        merged_away = self._members.keys() - written
        tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in merged_away}
        return EinGraph(MappingProxyType(tensors), tuple(einsums), graph.outputs)

    def merged_results(self, computed: EinGraph) -> dict[str, str]:
        """For each result that `computed`, the graph after rewriting, computes once with others, the name of that."""
        copies = {
            einsum.output.tensor
            for einsum in computed.einsums
            if einsum.join == Operand(0) and einsum.aggregate is None and len(einsum.operands) == 1
        }
        names = {einsum.output.tensor for einsum in computed.einsums}
        return {
            name: self._kept_by_leader[member.leader]
            for name, member in self._members.items()
            if name != self._kept_by_leader[member.leader] and (name in copies or name not in names)
        }

    def _with_leaders(self, einsum: EinSum) -> EinSum:
        """The EinSum with the leaders of classes as operands."""
        return self._with_operands_from(einsum, {name: member.leader for name, member in self._read(einsum).items()})

    def _shared(self, einsum: EinSum) -> EinSum:
        """The EinSum with the results that are kept as operands."""
        return self._with_operands_from(
            einsum, {name: self._kept_by_leader[member.leader] for name, member in self._read(einsum).items()}
        )

    def _read(self, einsum: EinSum) -> dict[str, _Member]:
        """The operands that are results."""
        names = dict.fromkeys(operand.tensor for operand in einsum.operands)
        return {name: self._members[name] for name in names if name in self._members}

    def _reference(self, reference: Reference) -> Reference:
        """A reference to the result that is kept in the place of the one that `reference` reads."""
        return self._permuted(reference, self._kept_by_leader[self._members[reference.tensor].leader])

    def _with_operands_from(self, einsum: EinSum, names: Mapping[str, str]) -> EinSum:
        references = [
            self._permuted(operand, names[operand.tensor]) if operand.tensor in names else operand
            for operand in einsum.operands
        ]
        operands = tuple(dict.fromkeys(references))  # equal operands become one
        number_of = {operand: number for number, operand in enumerate(operands)}
        positions = {position: Operand(number_of[operand]) for position, operand in enumerate(references)}
        if operands == einsum.operands:
            return einsum
        return replace(einsum, operands=operands, join=substitute(einsum.join, positions))

    def _permuted(self, reference: Reference, name: str) -> Reference:
        label_of = dict(zip(self._members[reference.tensor].axes, reference.labels, strict=True))
        return Reference(name, tuple(label_of[axis] for axis in self._members[name].axes))


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
    if len(places) > _FEW_OPERANDS:
        return _form_in_order(einsum, places)
    tensors = [operand.tensor for operand in einsum.operands]
    # Forms start with the names of tensors, so that only operands of the same tensor are tried in several orders.
    orders = [order for order in itertools.permutations(places) if _is_sorted([tensors[place] for place in order])]
    if len(orders) == 1:
        return _form_in_order(einsum, orders[0])
    return min((_form_in_order(einsum, order) for order in orders), key=lambda form: form.sort_key)


def _is_sorted(names: Sequence[str]) -> bool:
    return all(first <= second for first, second in itertools.pairwise(names))


def _form_in_order(einsum: EinSum, order: Sequence[int]) -> _Form:
    operands = [einsum.operands[position] for position in order]
    labels = dict.fromkeys(label for reference in (*operands, einsum.output) for label in reference.labels)
    numbers = {label: number for number, label in enumerate(labels)}
    named = tuple((operand.tensor, tuple(numbers[label] for label in operand.labels)) for operand in operands)
    axes = tuple(numbers[label] for label in einsum.output.labels)
    return _Form(named, _written_join(einsum.join, tuple(order), key_of(einsum.join)), axes, numbers)


@lru_cache(maxsize=1024)  # most EinSums are products of two tensors
def _written_join(join: Scalar, order: tuple[int, ...], key: tuple[object, ...]) -> str:
    """A join expression of operands in an order, with sorted arguments; `key` is its `key_of`."""
    del key
    renumbered = substitute(join, {position: Operand(number) for number, position in enumerate(order)})
    return repr(_with_sorted_arguments(renumbered))


def _with_sorted_arguments(expression: Scalar) -> Scalar:
    """The expression with the arguments of commutative functions sorted."""
    if not isinstance(expression, Call):
        return expression
    arguments = [_with_sorted_arguments(argument) for argument in expression.arguments]
    if FUNCTIONS[expression.function].is_commutative:
        arguments.sort(key=repr)
    return Call(expression.function, tuple(arguments))
