"""Rewriting: a sum of products that is multiplied by a constant: an operand is multiplied, where that is cheaper.

sum[d](Q[q, d] * K[t, d]) / 8 writes all sums, and then all of them again. With S[q, d] = Q[q, d] / 8, sum(S * K) is one
product of matrices.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import PRODUCT, evaluate
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, GraphAnnotator
from sparseeinsum.rewrite.inlining import chain_in_graph, with_operand_computed
from sparseeinsum.rewrite.predicted_costs import CostPredictor, annotated_subgraph
from sparseeinsum.rewrite.unique_names import UniqueNames

# An operand is scaled where that is expected to take at most this share of the time.
_MOST_SHARE = 0.9

# A factor of at most 1 lets nothing overflow; one that is not smaller than this takes digits only of numbers near 0.
_LEAST_FACTOR = 2.0**-32

_REAL_DTYPES = frozenset(("float64", "float32"))  # whose products and sums differ by rounding only in another order


def scale_operands(annotated: AnnotatedGraph, cost: CostPredictor, pinned: Collection[str]) -> AnnotatedGraph:
    """Scale an operand in place of a sum of products that is only multiplied by a constant, where that is cheaper.

    All numbers must be finite, and of one inexact dtype. EinSums that are promoted by hand or pinned stay as they are.

    Args:
        annotated: The EinSums; a run detects values that turn NaN or infinite.
        cost: Predicts the seconds of EinSums.
        pinned: Results whose promoted labels the user chose.
    """
    graph = annotated.graph
    sums = {product.output.tensor: product for product in _scaled_sums(graph, pinned)}
    if not sums:
        return annotated
    annotator, names = annotated.annotator(), UniqueNames(graph.tensors)
    einsums: dict[str, EinSum] = {}
    for einsum in graph.einsums:
        statements: tuple[EinSum, ...] = (einsum,)
        product = sums.get(einsum.operands[0].tensor)
        cheaper = None if product is None else _cheaper(product, einsum, annotator, cost, names)
        if cheaper is not None:
            del einsums[einsum.operands[0].tensor]
            statements = cheaper
        for statement in statements:
            annotator.add(statement)
            einsums[statement.output.tensor] = statement
    return annotator.graph_of(einsums.values(), graph.outputs)


def _scaled_sums(graph: EinGraph, pinned: Collection[str]) -> Iterator[EinSum]:
    """The sums of products that one EinSum alone reads, which multiplies them by a constant."""
    readers = graph.count_readers()
    sums = {
        einsum.output.tensor: einsum
        for einsum in graph.einsums
        if einsum.aggregate == "sum"
        and einsum.join == PRODUCT
        and readers[einsum.output.tensor] == 1
        and not einsum.promoted
        and einsum.output.tensor not in {*pinned, *graph.outputs}
        and {graph.tensors[read.tensor].dtype for read in (einsum.output, *einsum.operands)} <= _REAL_DTYPES
    }
    for reader in graph.einsums:
        product = sums.get(reader.operands[0].tensor)
        if product is not None and reader.output.tensor not in pinned and _is_scaling(graph, reader):
            yield product


def _is_scaling(graph: EinGraph, einsum: EinSum) -> bool:
    """Whether an EinSum multiplies all values of its operand by a constant that is not larger than 1."""
    if len(einsum.operands) != 1 or einsum.aggregate is not None or einsum.promoted or not einsum.is_rewritable:
        return False
    if einsum.operands[0].labels != einsum.output.labels:
        return False
    chain = chain_in_graph(graph, einsum, least_factors=1)
    if chain is None or chain.operator != "mul" or chain.factors != (Operand(0),):
        return False
    return _LEAST_FACTOR <= abs(float(np.real(evaluate(chain.enclosing, (1.0,))))) <= 1


def _cheaper(
    product: EinSum, reader: EinSum, annotator: GraphAnnotator, cost: CostPredictor, names: UniqueNames
) -> tuple[EinSum, ...] | None:
    """EinSums that scale an operand of a sum of products, and then compute it; None where that is not cheaper."""
    operands = [annotator.tensors[operand.tensor] for operand in product.operands]
    if not all(operand.is_all_finite for operand in operands):
        return None
    position = min(range(len(operands)), key=lambda index: operands[index].statistics.entries)
    operand = product.operands[position]
    before = annotated_subgraph((product, reader), annotator)
    if len(set(operand.labels)) < len(operand.labels) or not cost.is_worth_replacing(before, remaining=2):
        return None
    scaled = Reference(names.invent(reader.output.tensor), operand.labels)
    of_scaled = replace(
        product, operands=tuple(scaled if index == position else read for index, read in enumerate(product.operands))
    )
    statements = (
        EinSum(scaled, (operand,), reader.join, None),
        with_operand_computed(replace(reader, join=Operand(0)), reader.operands[0], of_scaled, "sum"),
    )
    after = annotated_subgraph(statements, annotator)
    is_alike = after.tensor(reader.output.tensor).tensor == before.tensor(reader.output.tensor).tensor
    return statements if is_alike and cost.seconds(after) < _MOST_SHARE * cost.seconds(before) else None
