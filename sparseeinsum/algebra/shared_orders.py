"""Algebra: operands that several products order in memory, each in one order alone.

A product with a sparse matrix needs its entries ordered by the rows of the result; the product with its transpose can
be computed from entries in the same order, so that they are ordered once for both. A result that is only read in such
an order needs no table where one statement has all products.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from sparseeinsum.algebra.operators import Compress, Relation
from sparseeinsum.algebra.row_chains import computed_in
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


def ordered_once(definitions: Iterable[ComputedResult], outputs: Iterable[Relation]) -> frozenset[str]:
    """The results that are read several times, but always ordered by row in the same way, and not as outputs.

    A statement puts them in order once, so that it computes them once without a table.
    """
    reads: dict[str, list[Relation]] = defaultdict(list)
    for relation in (*(operand for definition in definitions for operand in definition.relation.inputs), *outputs):
        for name in computed_in(relation):
            reads[name].append(relation)
    return frozenset(
        name
        for name, relations in reads.items()
        if len(relations) > 1 and isinstance(relations[0], Compress) and len(set(relations)) == 1
    )


def computed_again(
    definitions: Sequence[ComputedResult], outputs: Mapping[str, Relation], staged: Collection[str], among: Set[str]
) -> frozenset[str]:
    """The results among some that several statements would compute if only `staged` ones were in tables.

    Args:
        definitions: All EinSums, in topological order.
        outputs: The outputs as statements deliver them, by name.
        staged: The results in tables, each of which a statement of its own computes.
        among: The results that may be given.
    """
    statements: dict[str, set[str]] = defaultdict(set)  # those that read a result, by the result that they compute
    for name, output in outputs.items():
        for read in computed_in(output):
            statements[read].add(f"{name}, delivered")
    again: set[str] = set()
    for definition in reversed(definitions):
        within = statements[definition.name]
        if definition.name in among and len(within) > 1:
            again.add(definition.name)
        if definition.name in staged or definition.name in again:
            within = {definition.name}
        for operand in definition.relation.inputs:
            for read in computed_in(operand):
                statements[read] |= within
    return frozenset(again)
