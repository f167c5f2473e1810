"""Rewriting: reassociation: a product that several EinSums compute, in another order where that is cheaper."""

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.composition import chain_in, composed
from sparseeinsum.rewrite.known import KnownGraph
from sparseeinsum.rewrite.parts import parts_of
from sparseeinsum.rewrite.prices import Pricer, exact_chain, price_of

# Sums of products of these are the same in any order, but for rounding; of int64, one order may overflow alone.
_ROUNDED = frozenset(("float64", "float32", "complex128", "complex64"))

# What is not computed as it was written must be expected to take at most this share of the time.
_WORTH = 0.9

_MOST_FACTORS = 6  # of one product: its orders are looked at in some 10 ms


def reassociate_products(graph: EinGraph, apart: KnownGraph, price: Pricer, pinned: Collection[str]) -> KnownGraph:
    """Reassociate sums of products with the products that alone read them, where that is cheaper.

    As of A * sum(U * V) with a sparse A, and of (A B) x. Numbers must be finite, and of one dtype that rounds; what is
    promoted by hand or pinned stays as it was written.

    Args:
        graph: EinSums of any number of operands, in topological order; values that turn NaN or infinite are detected.
        apart: The same of one or two operands each.
        price: Knows what EinSums cost.
        pinned: Results whose labels to promote are given.
    """
    parts = _parts(graph, pinned)
    if not parts:
        return apart
    computing = parts_of({einsum.output.tensor for einsum in graph.einsums}, apart.graph)
    cheaper: set[str] = set()
    for group in _groups(graph, parts, apart):
        written = [einsum for name in group for einsum in computing[name]]
        whole = composed(graph, group[:-1]).producer_of(group[-1])
        assert whole is not None
        is_whole = not any(operand.tensor in group for operand in whole.operands)  # as not of a diagonal of a part
        if is_whole and _is_cheaper(whole, written, apart, price):
            cheaper |= set(group[:-1])
    return binarise(composed(graph, cheaper), apart.anew()) if cheaper else apart


def _parts(graph: EinGraph, pinned: Collection[str]) -> frozenset[str]:
    """Results of products that one other product alone reads, whatever their values."""
    products = {einsum.output.tensor for einsum in graph.einsums if _is_product(graph, einsum)} - set(pinned)
    return frozenset(
        operand.tensor
        for reader in graph.einsums
        for operand in reader.operands
        if {operand.tensor, reader.output.tensor} <= products
        and operand.tensor not in graph.outputs
        and graph.count_readers(operand.tensor) == 1
    )


def _is_product(graph: EinGraph, einsum: EinSum) -> bool:
    if einsum.promoted or einsum.aggregate not in (None, "sum"):
        return False
    chain = chain_in(graph, einsum, fewest=1)
    if einsum.join != Operand(0) and (chain is None or chain.operator != "mul"):
        return False
    dtypes = {graph.tensors[operand.tensor].dtype for operand in einsum.operands}
    return len(dtypes) == 1 and dtypes <= _ROUNDED


def _groups(graph: EinGraph, parts: Set[str], apart: KnownGraph) -> Iterator[tuple[str, ...]]:
    """Results that are parts of one product, in topological order, that product last; of few, finite factors."""
    inside: dict[str, _Group] = {}
    for einsum in graph.einsums:
        name = einsum.output.tensor
        below = [inside.pop(operand.tensor) for operand in einsum.operands if operand.tensor in inside]
        factors = len(einsum.operands) + sum(group.factors - 1 for group in below)
        is_finite = all(apart.tensor(operand.tensor).is_all_finite for operand in einsum.operands)
        if is_finite and factors <= _MOST_FACTORS:
            group = _Group((*(each for group in below for each in group.names), name), factors)
        else:
            yield from (group.names for group in below if len(group.names) > 1)
            group = _Group((name,), len(einsum.operands))
        if name in parts and is_finite:
            inside[name] = group
        elif len(group.names) > 1:
            yield group.names


@dataclass(frozen=True, slots=True)
class _Group:
    """Results that are parts of the last of them, and how many factors that has with them inside."""

    names: tuple[str, ...]
    factors: int


def _order(einsums: Sequence[EinSum]) -> object:
    """In which order operands are joined: the last EinSum's, as sets of sets of the names that nothing computes."""
    orders: dict[str, object] = {}
    for einsum in einsums:
        operands = (orders.get(operand.tensor, operand.tensor) for operand in einsum.operands)
        orders[einsum.output.tensor] = frozenset(operands)
    return orders[einsums[-1].output.tensor]


def _is_cheaper(whole: EinSum, written: Sequence[EinSum], apart: KnownGraph, price: Pricer) -> bool:
    graph = EinGraph(apart.graph.tensors, (whole,), (whole.output.tensor,))
    together = binarise(graph, apart.of({operand.tensor for operand in whole.operands}))
    if _order(together.graph.einsums) == _order(written):
        return False
    return price_of(together, price) < _WORTH * price_of(exact_chain(written, apart), price)
