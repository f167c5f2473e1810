"""Rewriting: replaces sums of products by equal ones that are predicted to be cheaper, by equality saturation.

It treats EinSums that read each other at once. For example, sum((X - U V')^2) needs no product of U and V.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sparseeinsum.errors import PackageError
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.einsum_groups import find_einsum_groups, has_sum_of_additions
from sparseeinsum.rewrite.einsum_parts import parts_of
from sparseeinsum.rewrite.equal_formulas import EqualFormulas
from sparseeinsum.rewrite.formula_search import LEAST_SECONDS, find_cheaper_formulas
from sparseeinsum.rewrite.predicted_costs import CostPredictor
from sparseeinsum.rewrite.unique_names import UniqueNames


@dataclass(frozen=True, slots=True)
class AlgebraicRewrite:
    """A rewritten graph, and the results that have another formula than was written.

    Attributes:
        graph: EinSums of any number of operands.
        binary: The same graph of EinSums of one or two operands.
        derivations: For each result with another formula, that formula.
        unsearched: Results for which no other formulas were searched, because packages are not installed.
    """

    graph: EinGraph
    binary: AnnotatedGraph
    derivations: Mapping[str, Derivation]
    unsearched: tuple[str, ...] = ()


def rewrite_algebraically(
    graph: EinGraph,
    binary: AnnotatedGraph,
    cost: CostPredictor,
    pinned: Mapping[str, Mapping[str, int]],
    equal: EqualFormulas,
) -> AlgebraicRewrite:
    """Replace sums of products by equal ones where those are much cheaper, as SPORES does.

    Numbers must be finite, real, and of one dtype. EinSums that are promoted by hand or pinned stay as they were
    written.

    Args:
        graph: EinSums of any number of operands, in topological order; a run detects values that turn NaN or infinite.
        binary: The same graph of EinSums of one or two operands.
        cost: Predicts the seconds of EinSums.
        pinned: For some results, labels to promote and their tiles.
        equal: The equal formulas that other rewritings of the graph have found; they grow.
    """
    if not has_sum_of_additions(graph.einsums):
        return AlgebraicRewrite(graph, binary, {})
    seconds = cost.seconds_by_result(binary)
    if sum(seconds.values()) < LEAST_SECONDS:
        return AlgebraicRewrite(graph, binary, {})
    parts_by_result = parts_of({einsum.output.tensor for einsum in graph.einsums}, binary.graph)
    merged = merge_common_subexpressions(graph, pinned)
    names = UniqueNames(graph.tensors)
    replaced: dict[str, Sequence[EinSum]] = {}
    derivations: dict[str, Derivation] = {}
    unsearched: list[str] = []
    for group in find_einsum_groups(merged, pinned):
        parts = itertools.chain.from_iterable(parts_by_result[einsum.output.tensor] for einsum in group.einsums)
        if sum(seconds[part.output.tensor] for part in parts) < LEAST_SECONDS:
            continue
        try:
            formulas = find_cheaper_formulas(group, merged, binary, cost, names, equal)
        except PackageError:
            unsearched += [root.output.tensor for root in group.roots]
            continue
        if formulas is not None:
            derivations |= formulas.derivations
            replaced |= {einsum.output.tensor: () for einsum in group.einsums}
            replaced[group.einsums[-1].output.tensor] = formulas.einsums
    if not replaced:
        return AlgebraicRewrite(graph, binary, {}, tuple(unsearched))
    einsums = [other for einsum in merged.einsums for other in replaced.get(einsum.output.tensor, [einsum])]
    better = _with_einsums(_in_topological_order(einsums), merged)
    better_binary = binarise(better, binary.annotator(), cost.pair_cost)
    return AlgebraicRewrite(better, better_binary, derivations, tuple(unsearched))


def _in_topological_order(einsums: Iterable[EinSum]) -> tuple[EinSum, ...]:
    """The EinSums, each after those that it reads; otherwise their order stays."""
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


def _with_einsums(einsums: tuple[EinSum, ...], before: EinGraph) -> EinGraph:
    """A graph of `einsums`, with the inputs and the outputs of `before`."""
    tensors = before.inputs
    for einsum in einsums:
        tensors[einsum.output.tensor] = result_tensor(einsum, tensors)
    return EinGraph(MappingProxyType(tensors), einsums, before.outputs)
