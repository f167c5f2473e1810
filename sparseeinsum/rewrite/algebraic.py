"""Rewriting: EinSums of sums and products in; equal ones that are expected to be cheaper out, found by saturation.

In the place of results that read one another, such as sum((X - U V')^2), which needs no product of U and V.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sparseeinsum.errors import PackageError
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.formulas import better_formulas
from sparseeinsum.rewrite.groups import groups_of
from sparseeinsum.rewrite.known import KnownGraph
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.prices import Pricer


@dataclass(frozen=True, slots=True)
class Improved:
    """A graph, and which of its results are computed by another formula than was written.

    Attributes:
        graph: EinSums of any number of operands.
        apart: The same of one or two operands each.
        derivations: Of those results, the new formula.
        unsearched: Results for which no other formulas were looked for, because packages are not installed.
    """

    graph: EinGraph
    apart: KnownGraph
    derivations: Mapping[str, Derivation]
    unsearched: tuple[str, ...] = ()


def improve(graph: EinGraph, apart: KnownGraph, price: Pricer, pinned: Mapping[str, Mapping[str, int]]) -> Improved:
    """Replace sums of products by equal ones where those are much cheaper (SPORES).

    Numbers must be finite, real, and of one dtype; what is promoted by hand or pinned stays as it was written.

    Args:
        graph: EinSums of any number of operands, in topological order; values that turn NaN or infinite are detected.
        apart: The same of one or two operands each.
        price: Knows what EinSums cost.
        pinned: For some results, labels to promote and their tiles.
    """
    merged = merge_common_subexpressions(graph, pinned)
    groups = groups_of(merged, pinned)
    if not groups:
        return Improved(graph, apart, {})
    names = Names(graph.tensors)
    replaced: dict[str, Sequence[EinSum]] = {}
    derivations: dict[str, Derivation] = {}
    unsearched: list[str] = []
    for group in groups:
        try:
            found = better_formulas(group, merged, apart, price, names)
        except PackageError:
            unsearched += [root.output.tensor for root in group.roots]
            continue
        if found is not None:
            derivations |= found.derivations
            replaced |= {einsum.output.tensor: () for einsum in group.einsums}
            replaced[group.einsums[-1].output.tensor] = found.einsums
    if not replaced:
        return Improved(graph, apart, {}, tuple(unsearched))
    better = _graph(
        _in_order(each for einsum in merged.einsums for each in replaced.get(einsum.output.tensor, [einsum])), merged
    )
    return Improved(better, binarise(better, apart.anew()), derivations, tuple(unsearched))


def _in_order(einsums: Iterable[EinSum]) -> tuple[EinSum, ...]:
    """EinSums, each after those that it reads, which are not moved further than that."""
    by_name = {einsum.output.tensor: einsum for einsum in einsums}
    ordered: dict[str, EinSum] = {}

    def add(einsum: EinSum) -> None:
        for operand in einsum.operands:
            if operand.tensor in by_name and operand.tensor not in ordered:
                add(by_name[operand.tensor])
        ordered[einsum.output.tensor] = einsum

    for einsum in by_name.values():
        if einsum.output.tensor not in ordered:
            add(einsum)
    return tuple(ordered.values())


def _graph(einsums: tuple[EinSum, ...], before: EinGraph) -> EinGraph:
    """A graph with the tensors that its EinSums compute, and the inputs of one before."""
    computed = {einsum.output.tensor for einsum in before.einsums}
    tensors = {name: tensor for name, tensor in before.tensors.items() if name not in computed}
    for einsum in einsums:
        tensors[einsum.output.tensor] = result_tensor(einsum, tensors)
    return EinGraph(MappingProxyType(tensors), einsums, before.outputs)
