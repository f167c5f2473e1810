"""Rewriting: EinSums that others read in, those others with them inside out, to be taken apart otherwise.

The reverse of `binarise`, of whose parts those are put back that it may join in any order.
"""

from collections.abc import Collection, Mapping, Set
from dataclasses import replace
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.rewrite.chains import Chain, chain_of, substituted


def composed(graph: EinGraph, parts: Collection[str]) -> EinGraph:
    """Put parts back into the EinSums that read them.

    Args:
        graph: EinSums in topological order.
        parts: Results that may go; of these stay those that have another reader, or are no factors like the others.
    """
    inlined = {name for name in parts if graph.count_readers(name) == 1 and name not in graph.outputs}
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


def composed_results(written: EinGraph, graph: EinGraph, merged: Mapping[str, str]) -> dict[str, str]:
    """Results as written that `composed` made parts of others, by the names of those.

    Args:
        written: EinSums of any number of operands.
        graph: As they were rewritten, common ones merged.
        merged: Results as written that are computed once with others, by the names of those.
    """
    computed = {einsum.output.tensor for einsum in graph.einsums}
    readers = {operand.tensor: einsum.output.tensor for einsum in written.einsums for operand in einsum.operands}
    found = {}
    for einsum in written.einsums:
        name = einsum.output.tensor
        if name not in computed and name not in merged:
            reader = readers[name]
            while reader not in computed and reader not in merged:
                reader = readers[reader]
            found[name] = merged.get(reader, reader)
    return found


def _together(graph: EinGraph, einsum: EinSum, operand: Reference, part: EinSum) -> EinSum | None:
    """An EinSum that computes an operand itself; None where that is no factor beside the others."""
    aggregates = {each.aggregate for each in (einsum, part)} - {None}
    if len(aggregates) > 1 or len(set(operand.labels)) < len(operand.labels):
        return None
    inside = _relabelled(part, operand.labels, frozenset(einsum.labels))
    position = einsum.operands.index(operand)
    if einsum.join != Operand(position) and not _is_factor(graph, einsum, position, part):
        return None
    return _substituted(einsum, position, inside, next(iter(aggregates), None))


def _is_factor(graph: EinGraph, einsum: EinSum, position: int, part: EinSum) -> bool:
    """Whether an operand is joined with the others as the factors of its own EinSum are, in any order."""
    outer, inner = (chain_in(graph, each, fewest=1) for each in (einsum, part))
    if outer is None or inner is None or outer.operator != inner.operator:
        return False
    if inner.around != Operand(0) and inner.operator != "mul":  # of what is added, a sum has as many as terms
        return False
    return Operand(position) in outer.factors and (part.aggregate is None or outer.distributes(part.aggregate))


def _relabelled(part: EinSum, labels: tuple[str, ...], taken: Set[str]) -> EinSum:
    """An EinSum whose result has other labels, and which has none of those that are taken besides."""
    names = dict(zip(part.output.labels, labels, strict=True))
    for label in part.aggregated:
        names[label] = _untaken(label, {*taken, *names.values(), *part.labels} if label in taken else ())

    def renamed(reference: Reference) -> Reference:
        return Reference(reference.tensor, tuple(names[label] for label in reference.labels))

    promoted = frozenset((names[label], tile) for label, tile in part.promoted)
    operands = tuple(map(renamed, part.operands))
    return replace(part, output=renamed(part.output), operands=operands, promoted=promoted)


def _untaken(label: str, taken: Collection[str]) -> str:
    number, name = 1, label
    while name in taken:
        number += 1
        name = f"{label}{number}"
    return name


def chain_in(graph: EinGraph, einsum: EinSum, fewest: int = 2) -> Chain | None:
    """The factors that an EinSum of a graph joins in any order, at least so many; None where it does not."""
    dtypes = [graph.tensors[operand.tensor].dtype for operand in einsum.operands]
    return chain_of(einsum.join, einsum.aggregate, dtypes, fewest)


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
