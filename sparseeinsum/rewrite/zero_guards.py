"""Rewriting: where(u == 0, 0, u * v) is u * v for finite numbers, and so may be computed in another order."""

from collections.abc import Collection
from dataclasses import replace

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.scalar import evaluated_dtype
from sparseeinsum.operators.expressions import Call, Literal, Scalar
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph

_ZERO = Literal(0)


def without_zero_guards(graph: EinGraph, binary: AnnotatedGraph, pinned: Collection[str]) -> EinGraph:
    """Replace products that are 0 wherever a factor is 0, as those of softmax, by plain products.

    Args:
        graph: EinSums of any number of operands; a run detects values that turn NaN or infinite.
        binary: The same graph of EinSums of one or two operands.
        pinned: Results whose promoted labels the user chose; these stay as they are.

    Returns:
        The graph; the same object if it has no such product of finite numbers.
    """
    einsums = tuple(
        einsum if einsum.output.tensor in pinned else _unguarded(einsum, binary) for einsum in graph.einsums
    )
    return graph if einsums == graph.einsums else replace(graph, einsums=einsums)


def _unguarded(einsum: EinSum, binary: AnnotatedGraph) -> EinSum:
    product = _guarded_product(einsum.join)
    if product is None or not einsum.is_rewritable or einsum.promoted:
        return einsum
    operands = [binary.tensor(operand.tensor) for operand in einsum.operands]
    dtypes = [operand.tensor.dtype for operand in operands]
    is_same = evaluated_dtype(product, dtypes) == evaluated_dtype(einsum.join, dtypes)
    return replace(einsum, join=product) if is_same and all(operand.is_all_finite for operand in operands) else einsum


def _guarded_product(expression: Scalar) -> Scalar | None:
    """The product u * v of where(u == 0, 0, u * v); None of other expressions."""
    match expression:
        case Call("where", (Call("eq", (factor, zero)), other_zero, Call("mul", factors) as product)):
            return product if zero == other_zero == _ZERO and factor in factors else None
        case _:
            return None
