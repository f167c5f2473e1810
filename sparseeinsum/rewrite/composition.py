"""Rewriting: the parts that an EinSum was taken apart into in, that EinSum again out, to be taken apart otherwise.

The reverse of `binarise`, of whose parts those are put back that it may join in any order.
"""

from collections.abc import Collection
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import Operand
from sparseeinsum.rewrite.chains import Chain, chain_of, substituted


def composed(graph: EinGraph, parts: Collection[str]) -> EinGraph:
    """Put parts back into the EinSums that read them.

    Args:
        graph: EinSums of one or two operands, in topological order.
        parts: Results that may go; of these stay those that have another reader, or are no factors like the others.
    """
    inlined = {name for name in parts if graph.readers_of(name) == 1 and name not in graph.outputs}
    waiting: dict[str, EinSum] = {}
    kept: list[EinSum] = []
    for einsum in graph.einsums:
        whole = einsum
        for operand in einsum.operands:
            part = waiting.pop(operand.tensor, None)
            if part is not None:
                together = _together(graph, whole, operand, part)
                if together is None:
                    kept.append(part)
                else:
                    whole = together
        name = einsum.output.tensor
        if name in inlined:
            waiting[name] = whole
        else:
            kept.append(whole)
    written = {einsum.output.tensor for einsum in kept}
    computed = {einsum.output.tensor for einsum in graph.einsums}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in written or name not in computed}
    return EinGraph(MappingProxyType(tensors), tuple(kept), graph.outputs)


def _together(graph: EinGraph, einsum: EinSum, operand: Reference, part: EinSum) -> EinSum | None:
    """An EinSum that computes an operand itself; None where that is no factor beside the others."""
    outer, inner = _chain(graph, einsum), _chain(graph, part)
    position = einsum.operands.index(operand)
    if outer is None or inner is None or outer.operator != inner.operator or inner.around != Operand(0):
        return None
    hidden = frozenset(part.labels) - frozenset(part.output.labels)
    if operand.labels != part.output.labels or hidden & frozenset(einsum.labels):
        return None
    aggregates = {each.aggregate for each in (einsum, part)} - {None}
    if Operand(position) not in outer.factors or len(aggregates) > 1:
        return None
    if part.aggregate is not None and not outer.distributes(part.aggregate):
        return None
    return _substituted(einsum, position, part, next(iter(aggregates), None))


def _chain(graph: EinGraph, einsum: EinSum) -> Chain | None:
    dtypes = [graph.tensors[operand.tensor].dtype for operand in einsum.operands]
    return chain_of(einsum.join, einsum.aggregate, dtypes)


def _substituted(einsum: EinSum, position: int, part: EinSum, aggregate: str | None) -> EinSum:
    others = [each for place, each in enumerate(einsum.operands) if place != position]
    operands = tuple(dict.fromkeys((*others, *part.operands)))
    of_part = {place: Operand(operands.index(each)) for place, each in enumerate(part.operands)}
    of_all = {
        place: substituted(part.join, of_part) if place == position else Operand(operands.index(each))
        for place, each in enumerate(einsum.operands)
    }
    join = substituted(einsum.join, of_all)
    return EinSum(einsum.output, operands, join, aggregate, einsum.promoted | part.promoted)
