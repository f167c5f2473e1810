"""Rewriting: reassociation: a product of several EinSums is computed in another order where that is cheaper."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.chains import INEXACT_DTYPES
from sparseeinsum.rewrite.einsum_parts import parts_of
from sparseeinsum.rewrite.inlining import chain_in_graph, inline
from sparseeinsum.rewrite.predicted_costs import CostPredictor, annotated_subgraph

# Another order is chosen where it is expected to take at most this share of the time.
_MOST_SHARE = 0.9

_MOST_FACTORS = 6  # of one product; to search its orders takes about 10 ms


def reassociate_products(
    graph: EinGraph, binary: AnnotatedGraph, cost: CostPredictor, pinned: Collection[str]
) -> AnnotatedGraph:
    """Choose another order for sums of products and the products that alone read them, where that is cheaper.

    Examples are A * sum(U * V) with a sparse A, and (A B) x. All numbers must be finite, and of one inexact dtype.
    EinSums that are promoted by hand or pinned stay as they were written.

    Args:
        graph: EinSums of any number of operands, in topological order; a run detects values that turn NaN or infinite.
        binary: The same graph of EinSums of one or two operands.
        cost: Predicts the seconds of EinSums.
        pinned: Results whose promoted labels the user chose.
    """
    inlinable = _inlinable_products(graph, pinned)
    if not inlinable:
        return binary
    einsum_of = {einsum.output.tensor: einsum for einsum in graph.einsums}
    parts_by_result = parts_of({einsum.output.tensor for einsum in graph.einsums}, binary.graph)
    inlined: set[str] = set()
    chosen: list[AnnotatedGraph] = []
    for names in _product_groups(graph, inlinable, binary):
        written = [part for name in names for part in parts_by_result[name]]
        product = _whole_product([einsum_of[name] for name in names], graph.tensors)
        is_inlined = not any(operand.tensor in names for operand in product.operands)  # a diagonal is not, for example
        cheaper = _cheaper(product, written, binary, cost) if is_inlined else None
        if cheaper is not None:
            inlined |= set(names[:-1])
            chosen.append(cheaper)
    return binarise(inline(graph, inlined), binary.annotator(*chosen), cost.pair_cost) if inlined else binary


def _whole_product(einsums: Sequence[EinSum], tensors: Mapping[str, Tensor]) -> EinSum:
    """The last one of EinSums, each of which reads the one before, with the others inlined."""
    names = [einsum.output.tensor for einsum in einsums]
    read = {operand.tensor for einsum in einsums for operand in einsum.operands}
    group = EinGraph({name: tensors[name] for name in (*read, *names)}, tuple(einsums), (names[-1],))
    product = inline(group, names[:-1]).producer_of(names[-1])
    assert product is not None
    return product


def _inlinable_products(graph: EinGraph, pinned: Collection[str]) -> frozenset[str]:
    """The results of products that only one other product reads."""
    products = {einsum.output.tensor for einsum in graph.einsums if _is_product(graph, einsum)} - set(pinned)
    readers = graph.count_readers()
    return frozenset(
        operand.tensor
        for reader in graph.einsums
        for operand in reader.operands
        if {operand.tensor, reader.output.tensor} <= products
        and operand.tensor not in graph.outputs
        and readers[operand.tensor] == 1
    )


def _is_product(graph: EinGraph, einsum: EinSum) -> bool:
    if einsum.promoted or einsum.aggregate not in (None, "sum"):
        return False
    chain = chain_in_graph(graph, einsum, least_factors=1)
    if einsum.join != Operand(0) and (chain is None or chain.operator != "mul"):
        return False
    dtypes = {graph.tensors[operand.tensor].dtype for operand in einsum.operands}
    return len(dtypes) == 1 and dtypes <= INEXACT_DTYPES


def _product_groups(graph: EinGraph, inlinable: Set[str], binary: AnnotatedGraph) -> Iterator[tuple[str, ...]]:
    """Names of results that form one product, in topological order; only products of few, finite factors.

    Args:
        graph: EinSums of any number of operands.
        inlinable: Results of products that only one other product reads.
        binary: The annotated graph, for the values of operands.
    """
    group_of: dict[str, _ProductGroup] = {}
    for einsum in graph.einsums:
        name = einsum.output.tensor
        operand_groups = [group_of.pop(operand.tensor) for operand in einsum.operands if operand.tensor in group_of]
        factors = len(einsum.operands) + sum(group.factors - 1 for group in operand_groups)
        is_finite = all(binary.tensor(operand.tensor).is_all_finite for operand in einsum.operands)
        if is_finite and factors <= _MOST_FACTORS:
            group = _ProductGroup((*(member for group in operand_groups for member in group.names), name), factors)
        else:
            yield from (group.names for group in operand_groups if len(group.names) > 1)
            group = _ProductGroup((name,), len(einsum.operands))
        if name in inlinable and is_finite:
            group_of[name] = group
        elif len(group.names) > 1:
            yield group.names


@dataclass(frozen=True, slots=True)
class _ProductGroup:
    """Results that form one product, of which the last one is the whole, and the number of its factors."""

    names: tuple[str, ...]
    factors: int


def _join_order(einsums: Sequence[EinSum]) -> object:
    """The order in which the operands of the last EinSum are joined, as nested sets of the names of inputs."""
    orders: dict[str, object] = {}
    for einsum in einsums:
        operands = (orders.get(operand.tensor, operand.tensor) for operand in einsum.operands)
        orders[einsum.output.tensor] = frozenset(operands)
    return orders[einsums[-1].output.tensor]


def _cheaper(
    product: EinSum, written: Sequence[EinSum], binary: AnnotatedGraph, cost: CostPredictor
) -> AnnotatedGraph | None:
    """`product`, split anew, where it is joined in another order than `written` and is predicted to be cheaper."""
    graph = EinGraph(binary.graph.tensors, (product,), (product.output.tensor,))
    before = annotated_subgraph(written, binary)
    if not cost.is_worth_replacing(before, remaining=len(product.operands) - 1):
        return None
    reassociated = binarise(
        graph, binary.annotator_for({operand.tensor for operand in product.operands}), cost.pair_cost
    )
    if _join_order(reassociated.graph.einsums) == _join_order(written):
        return None
    return reassociated if cost.seconds(reassociated) < _MOST_SHARE * cost.seconds(before) else None
