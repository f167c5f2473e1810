"""Rewriting: operand scaling: where a constant multiplies a sum of products, it multiplies one of their operands.

sum[d](Q[q, d] * K[t, d]) / 8 writes all sums, and then all of them again. With S[q, d] = 0.125 * Q[q, d], sum(S * K) is
one product of matrices.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import PRODUCT, evaluate
from sparseeinsum.operators.expressions import Call, Literal, Operand
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, GraphAnnotator
from sparseeinsum.rewrite.inlining import chain_in_graph, with_operand_computed
from sparseeinsum.rewrite.predicted_costs import CostPredictor, annotated_subgraph
from sparseeinsum.rewrite.unique_names import UniqueNames

# An operand is scaled where that is expected to take at most this share of the time.
_MOST_SHARE = 0.9

# The least factors for dtypes whose sums of products differ by rounding only if an operand is scaled. A factor of at
# most 1 lets nothing overflow; one that is not smaller than this takes digits only of numbers near 0.
_LEAST_FACTORS = {"float64": 2.0**-32, "float32": 2.0**-16}


@dataclass(frozen=True, slots=True)
class _ScaledSum:
    """A sum of products of two operands, and the factor by which the EinSum multiplies it that alone reads it."""

    sum_of_products: EinSum
    factor: float


def scale_operands(
    annotated: AnnotatedGraph, cost: CostPredictor, pinned: Collection[str], names: UniqueNames
) -> AnnotatedGraph:
    """Scale an operand in place of a sum of products that is only multiplied by a constant, where that is cheaper.

    All numbers must be finite, and all float64 or all float32. EinSums that are promoted by hand or pinned stay as
    they are.

    Args:
        annotated: The EinSums; a run detects values that turn NaN or infinite.
        cost: Predicts the seconds of EinSums.
        pinned: Results whose promoted labels the user chose.
        names: Invents names of results.
    """
    graph = annotated.graph
    scaled_sums = _scaled_sums(graph, pinned)
    if not scaled_sums:
        return annotated
    annotator = annotated.annotator()
    einsums: dict[str, EinSum] = {}
    for einsum in graph.einsums:
        statements: tuple[EinSum, ...] = (einsum,)
        scaled_sum = scaled_sums.get(einsum.output.tensor)
        cheaper = None if scaled_sum is None else _cheaper(scaled_sum, einsum, annotator, cost, names)
        if cheaper is not None:
            del einsums[einsum.operands[0].tensor]
            statements = cheaper
        for statement in statements:
            annotator.add(statement)
            einsums[statement.output.tensor] = statement
    return annotator.graph_of(einsums.values(), graph.outputs)


def _scaled_sums(graph: EinGraph, pinned: Collection[str]) -> Mapping[str, _ScaledSum]:
    """The sums of products that are only scaled, by the names of what they are scaled to."""
    sums = {einsum.output.tensor: einsum for einsum in graph.einsums if _is_sum_of_products(graph, einsum)}
    read, readers, kept = Counter(map(_operand_names, sums.values())), graph.count_readers(), {*pinned, *graph.outputs}
    # Sums that read the same may be the same sum, which is computed once for all.
    free = {name for name in sums.keys() - kept if readers[name] == 1 and read[_operand_names(sums[name])] == 1}
    scaled_sums = {}
    for reader in graph.einsums:
        name = reader.operands[0].tensor
        factor = _factor(graph, reader) if name in free and reader.output.tensor not in pinned else None
        if factor is not None:
            scaled_sums[reader.output.tensor] = _ScaledSum(sums[name], factor)
    return scaled_sums


def _is_sum_of_products(graph: EinGraph, einsum: EinSum) -> bool:
    """Whether an EinSum sums products of two operands, all numbers float64 or all float32."""
    dtypes = {graph.tensors[read.tensor].dtype for read in (einsum.output, *einsum.operands)}
    is_sum = einsum.aggregate == "sum" and einsum.join == PRODUCT and not einsum.promoted
    return is_sum and len(dtypes) == 1 and dtypes <= _LEAST_FACTORS.keys()


def _operand_names(einsum: EinSum) -> tuple[str, ...]:
    return tuple(sorted(operand.tensor for operand in einsum.operands))


def _factor(graph: EinGraph, einsum: EinSum) -> float | None:
    """The constant by which an EinSum multiplies its operand; None if it does something else.

    None, too, for constants above 1 or below the least factor. Of several constants, their product is returned.
    """
    is_elementwise = len(einsum.operands) == 1 and einsum.aggregate is None and einsum.is_rewritable
    if not is_elementwise or einsum.promoted or einsum.operands[0].labels != einsum.output.labels:
        return None
    chain = chain_in_graph(graph, einsum, least_factors=1)
    if chain is None or chain.operator != "mul" or chain.factors != (Operand(0),):
        return None
    # Products of some of the constants may be beyond float64.
    factor = evaluate(chain.enclosing, (np.ones((), np.longdouble),))
    least = _LEAST_FACTORS[graph.tensors[einsum.operands[0].tensor].dtype]
    return float(factor) if np.isrealobj(factor) and least <= abs(factor) <= 1 else None


def _cheaper(
    scaled_sum: _ScaledSum, reader: EinSum, annotator: GraphAnnotator, cost: CostPredictor, names: UniqueNames
) -> tuple[EinSum, ...] | None:
    """EinSums that scale an operand, and then sum the products as `reader` has them; None where not cheaper."""
    sum_of_products = scaled_sum.sum_of_products
    operands = [annotator.tensors[operand.tensor] for operand in sum_of_products.operands]
    if not all(operand.is_all_finite for operand in operands):
        return None
    position = min(range(len(operands)), key=lambda index: operands[index].statistics.entries)
    operand = sum_of_products.operands[position]
    before = annotated_subgraph((sum_of_products, reader), annotator)
    if len(set(operand.labels)) < len(operand.labels) or not cost.is_worth_replacing(before, remaining=2):
        return None
    tried = names.copy()
    scaled = Reference(tried.invent(reader.output.tensor), operand.labels)
    read = tuple(scaled if index == position else other for index, other in enumerate(sum_of_products.operands))
    of_scaled = replace(sum_of_products, operands=read)
    statements = (
        EinSum(scaled, (operand,), Call("mul", (Literal(scaled_sum.factor), Operand(0))), None),
        with_operand_computed(replace(reader, join=Operand(0)), reader.operands[0], of_scaled, "sum"),
    )
    after = annotated_subgraph(statements, annotator)
    is_alike = after.tensor(reader.output.tensor).tensor == before.tensor(reader.output.tensor).tensor
    if not is_alike or cost.seconds(after) >= _MOST_SHARE * cost.seconds(before):
        return None
    names.reserve([scaled.tensor])
    return statements
