"""Algebra: operands that several products order in memory, each in one order alone.

A product with a sparse matrix needs its entries ordered by the rows of the result; the product with its transpose can
be computed from entries in the same order, so that they are ordered once for both.
"""

from collections.abc import Iterable
from dataclasses import replace

from sparseeinsum.algebra.operators import Compress, Relation
from sparseeinsum.algebra.translate import ComputedResult


def with_shared_orders(definitions: Iterable[ComputedResult]) -> tuple[ComputedResult, ...]:
    """The definitions, in which a product with a transposed matrix reads it in the order of an earlier product."""
    orders: set[Relation] = set()
    return tuple(_with_order_among(definition, orders) for definition in definitions)


def _with_order_among(definition: ComputedResult, orders: set[Relation]) -> ComputedResult:
    """The definition with the other order of what it multiplies by, if only that is among `orders`, which grow."""
    contract = definition.relation
    if not contract.is_sparse_sum_of_products:
        return definition
    index = contract.compressed[0]
    compressed = contract.inputs[index]
    assert isinstance(compressed, Compress)
    swapped = replace(compressed, row_axes=compressed.position_axes, position_axes=compressed.row_axes)
    if swapped not in orders or compressed in orders:
        orders.add(compressed)
        return definition
    inputs = tuple(swapped if number == index else operand for number, operand in enumerate(contract.inputs))
    return replace(definition, relation=replace(contract, inputs=inputs))
