"""Rewriting: inlines EinSums into those that read them, so that `binarise` can split the product in another order.

It inlines only factors that `binarise` may join with the others in any order.
"""

from collections.abc import Collection, Mapping, Set
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.rewrite.chains import Chain, as_chain, substitute
from sparseeinsum.rewrite.unique_names import unused_label


def inline(graph: EinGraph, names: Collection[str]) -> EinGraph:
    """Inline results into the EinSums that read them.

    Args:
        graph: EinSums in topological order.
        names: Results that may be inlined. Those stay that have several readers, or are no factors like the others.
    """
    readers = graph.count_readers()
    inlinable = {name for name in names if readers[name] == 1 and name not in graph.outputs}
    waiting: dict[str, EinSum] = {}
    remaining: list[EinSum] = []
    for einsum in graph.einsums:
        current = einsum
        for operand in einsum.operands:
            producer = waiting.pop(operand.tensor, None)
            if producer is not None:
                merged = _with_operand_inlined(graph, current, operand, producer)
                if merged is None:
                    remaining.append(producer)
                else:
                    current = merged
        name = einsum.output.tensor
        if name in inlinable:
            waiting[name] = current
        else:
            remaining.append(current)
    written = {einsum.output.tensor for einsum in remaining}
    computed = {einsum.output.tensor for einsum in graph.einsums}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in written or name not in computed}
    return EinGraph(MappingProxyType(tensors), tuple(remaining), graph.outputs)


def inlined_results(written: EinGraph, graph: EinGraph, merged: Mapping[str, str]) -> dict[str, str]:
    """For each result as written that `inline` removed, the name of the result that contains it now.

    Args:
        written: EinSums of any number of operands.
        graph: The same after rewriting, with common subexpressions merged.
        merged: Results as written that are computed once with others, by the names of those.
    """
    computed = {einsum.output.tensor for einsum in graph.einsums}
    readers = {operand.tensor: einsum.output.tensor for einsum in written.einsums for operand in einsum.operands}
    inlined = {}
    for einsum in written.einsums:
        name = einsum.output.tensor
        if name not in computed and name not in merged:
            reader = readers[name]
            while reader not in computed and reader not in merged:
                reader = readers[reader]
            inlined[name] = merged.get(reader, reader)
    return inlined


def _with_operand_inlined(graph: EinGraph, einsum: EinSum, operand: Reference, producer: EinSum) -> EinSum | None:
    """An EinSum that computes its operand itself, as `producer` does; None where that may not be done."""
    aggregates = {statement.aggregate for statement in (einsum, producer)} - {None}
    if len(aggregates) > 1 or len(set(operand.labels)) < len(operand.labels):
        return None
    position = einsum.operands.index(operand)
    if einsum.join != Operand(position) and not _is_factor(graph, einsum, position, producer):
        return None
    return with_operand_computed(einsum, operand, producer, next(iter(aggregates), None))


def with_operand_computed(einsum: EinSum, operand: Reference, producer: EinSum, aggregate: str | None = None) -> EinSum:
    """An EinSum that computes one of its operands itself.

    Args:
        einsum: The EinSum.
        operand: The operand, no label twice.
        producer: The EinSum that computes the operand.
        aggregate: The aggregate of both, over the labels that the result lacks.
    """
    relabelled = _relabelled(producer, operand.labels, frozenset(einsum.labels))
    return _replace_operand(einsum, einsum.operands.index(operand), relabelled, aggregate)


def _is_factor(graph: EinGraph, einsum: EinSum, position: int, producer: EinSum) -> bool:
    """Whether an operand and the factors of its producer can all be joined in any order."""
    outer, inner = (chain_in_graph(graph, statement, least_factors=1) for statement in (einsum, producer))
    if outer is None or inner is None or outer.operator != inner.operator:
        return False
    if inner.enclosing != Operand(0) and inner.operator != "mul":
        return False  # a sum would add a constant once for each of its terms
    return Operand(position) in outer.factors and (producer.aggregate is None or outer.distributes(producer.aggregate))


def _relabelled(einsum: EinSum, labels: tuple[str, ...], used: Set[str]) -> EinSum:
    """An EinSum whose result has `labels`, and whose other labels are none of `used`."""
    names = dict(zip(einsum.output.labels, labels, strict=True))
    for label in einsum.aggregated:
        names[label] = unused_label(label, {*used, *names.values(), *einsum.labels} if label in used else ())
    return einsum.relabelled(names)


def chain_in_graph(graph: EinGraph, einsum: EinSum, least_factors: int = 2) -> Chain | None:
    """The chain of an EinSum of a graph, of at least so many factors; None where it is none."""
    dtypes = [graph.tensors[operand.tensor].dtype for operand in einsum.operands]
    return as_chain(einsum.join, einsum.aggregate, dtypes, least_factors)


def _replace_operand(einsum: EinSum, position: int, producer: EinSum, aggregate: str | None) -> EinSum:
    """An EinSum with the operands and the join of `producer` in the place of one operand."""
    other_operands = [operand for number, operand in enumerate(einsum.operands) if number != position]
    operands = tuple(dict.fromkeys((*other_operands, *producer.operands)))
    position_of = {operand: number for number, operand in enumerate(operands)}
    of_producer = {number: Operand(position_of[operand]) for number, operand in enumerate(producer.operands)}
    replacements = {
        number: substitute(producer.join, of_producer) if number == position else Operand(position_of[operand])
        for number, operand in enumerate(einsum.operands)
    }
    join = substitute(einsum.join, replacements)
    return EinSum(einsum.output, operands, join, aggregate, einsum.promoted | producer.promoted)
