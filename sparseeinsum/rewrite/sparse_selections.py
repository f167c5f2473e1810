"""Rewriting: keeps absent entries absent where a statement reads shifted or fixed indices, whatever the fill is.

Y[i] = sum[j](where(S[i, j], X[j], 0)) with an index map S asks for every index of X, also where X has its fill f. But S
is true for one j, so that Y[i] is f where X[j] is:

    P[i] = any[j](S[i, j] and X[j] != f)
    V[i] = sum[j](where(S[i, j] and X[j] != f, X[j], 0))
    Y[i] = where(P[i], V[i], f)

These read stored entries only.
"""

from collections.abc import Collection

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.operators.expressions import Call, Literal, Operand
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, GraphAnnotator
from sparseeinsum.rewrite.predicted_costs import CostPredictor, annotated_subgraph
from sparseeinsum.rewrite.unique_names import UniqueNames

_MAP, _READ = Operand(0), Operand(1)
_SELECTED = Call("where", (_MAP, _READ, Literal(0)))

# The rewritten selection is chosen where it is expected to take at most this share of the time.
_MOST_SHARE = 0.5


def select_sparsely(annotated: AnnotatedGraph, index_maps: Collection[str], cost: CostPredictor) -> AnnotatedGraph:
    """Replace selections that make a tensor dense by those of its stored entries, where that is cheaper.

    Args:
        annotated: The EinSums; a run detects values that turn NaN or infinite.
        index_maps: The names of the index maps.
        cost: Predicts the seconds of EinSums.
    """
    graph, annotator = annotated.graph, annotated.annotator()
    names = UniqueNames(graph.tensors)
    einsums: list[EinSum] = []
    for einsum in graph.einsums:
        parts: tuple[EinSum, ...] = (einsum,)
        if _is_dense_selection(einsum, index_maps, annotator):
            parts = _cheaper(einsum, _sparse(einsum, annotator, names.copy()), annotator, cost)
        names.reserve(part.output.tensor for part in parts)
        for part in parts:
            annotator.add(part)
        einsums += parts
    return annotator.graph_of(einsums, graph.outputs) if len(einsums) > len(graph.einsums) else annotated


def _is_dense_selection(einsum: EinSum, index_maps: Collection[str], annotator: GraphAnnotator) -> bool:
    """Whether an EinSum selects from a tensor that may have absent entries whose fill is not 0."""
    if einsum.aggregate != "sum" or einsum.join != _SELECTED or einsum.operands[0].tensor not in index_maps:
        return False
    read = annotator.tensors[einsum.operands[1].tensor]
    is_of_map = einsum.aggregated == einsum.operands[0].labels[-1:]
    return is_of_map and read.values.has_fill and read.tensor.fill != 0


def _sparse(einsum: EinSum, annotator: GraphAnnotator, names: UniqueNames) -> tuple[EinSum, ...]:
    """The EinSums that select stored entries."""
    fill = Literal(annotator.tensors[einsum.operands[1].tensor].tensor.fill)
    is_entry = Call("and", (_MAP, Call("ne", (_READ, fill))))
    output = einsum.output
    parts = [
        EinSum(Reference(names.invent(output.tensor), output.labels), einsum.operands, join, aggregate, einsum.promoted)
        for join, aggregate in ((is_entry, "any"), (Call("where", (is_entry, _READ, Literal(0))), "sum"))
    ]
    result = Call("where", (Operand(0), Operand(1), fill))
    promoted = einsum.promoted_among(frozenset(output.labels))
    return (*parts, EinSum(output, tuple(part.output for part in parts), result, None, promoted))


def _cheaper(
    written: EinSum, sparse: tuple[EinSum, ...], annotator: GraphAnnotator, cost: CostPredictor
) -> tuple[EinSum, ...]:
    """The EinSums that select stored entries if they are cheaper than the one that is written."""
    seconds = cost.seconds(annotated_subgraph([written], annotator))
    return sparse if cost.seconds(annotated_subgraph(sparse, annotator)) < _MOST_SHARE * seconds else (written,)
