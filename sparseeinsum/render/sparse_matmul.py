"""Render: the product of a sparse operand, which is ordered by row in memory, and an array, in one array."""

import math
from collections.abc import Mapping, Sequence

from sqlglot import exp

from sparseeinsum.algebra.operators import Compress, Contract
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.compressed_access import semiring_of
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.calls import call, constant, integer, integers, text
from sparseeinsum.render.compressed_rows import identity_of, result_value
from sparseeinsum.render.layouts import HANDLE_COLUMN
from sparseeinsum.render.sources import SelectSource, aliased, with_join

_LETTERS = "ijklmnopqrstuvwxyz"


def sparse_matmul_select(relation: Contract, entries: SelectSource, array: SelectSource) -> exp.Select:
    """The SELECT of the product.

    Args:
        relation: The EinSum.
        entries: Where the handle of the compressed operand is read.
        array: Where the array is read.
    """
    handle = exp.column(HANDLE_COLUMN, table="u") if entries.handle is None else entries.handle.copy()
    numbers = exp.column(entries.numbers, table="u") if entries.numbers else None
    value = exp.alias_(sparse_matmul_value(relation, handle, array.value("v"), numbers), VALUE_COLUMN)
    select = exp.select(value).from_(aliased(array.table, "v"), copy=False)
    return select if entries.handle is not None else with_join(select, aliased(entries.table, "u"), kind="CROSS")


def sparse_matmul_value(
    relation: Contract, handle: exp.Expr, array: exp.Expr, numbers: exp.Expr | None = None
) -> exp.Expr:
    """The product, from the handle of the compressed operand, NULL if it has no entries, and the array.

    `numbers` is an array in place of the numbers under the handle, if there is one.

    If the compressed operand is ordered by what the result lacks, the array is multiplied by its transpose.
    """
    index, einsum = relation.compressed[0], relation.einsum
    compressed, dense = relation.inputs[index], relation.inputs[1 - index]
    assert isinstance(compressed, Compress)
    sparse_labels, dense_labels = einsum.operands[index].labels, einsum.operands[1 - index].labels
    rows, positions = (
        [sparse_labels[axis] for axis in axes] for axes in (compressed.row_axes, compressed.position_axes)
    )
    if not einsum.is_multilinear:
        return _in_semiring(
            relation, handle, _permuted(array, dense_labels, positions, _bounds(dense_labels, dense.schema))
        )
    name = "tensor_sparse_matmul"
    if not set(rows) <= set(einsum.output.labels):
        name, rows, positions = "tensor_sparse_matmul_transposed", positions, rows
    inside = [label for label in einsum.output.labels if label not in rows]
    bounds = _bounds(dense_labels, dense.schema) | _bounds(einsum.output.labels, relation.output)
    matrix = _permuted(array, dense_labels, [*positions, *inside], bounds)
    count, width = (math.prod(bounds[label] for label in labels) for labels in (rows, inside))
    others = () if numbers is None else (numbers,)
    product = call(name, handle, integer(count), matrix, integer(width), *others)
    return result_value(relation, _permuted(product, [*rows, *inside], einsum.output.labels, bounds))


def _in_semiring(relation: Contract, handle: exp.Expr, vector: exp.Expr) -> exp.Expr:
    """The product with a vector in another semiring than sums of products."""
    semiring = semiring_of(relation.einsum)
    assert semiring is not None
    product = call(
        "tensor_sparse_matvec",
        text(semiring.text),
        handle,
        integer(relation.output.tensor.size),
        vector,
        identity_of(semiring, relation),
        constant(relation.output.tensor.fill, relation.computed_in),
    )
    return result_value(relation, product)


def _bounds(labels: Sequence[str], schema: Schema) -> dict[str, int]:
    return {label: axis.bound for label, axis in zip(labels, schema.tensor.axes, strict=True)}


def _permuted(array: exp.Expr, labels: Sequence[str], wanted: Sequence[str], bounds: Mapping[str, int]) -> exp.Expr:
    """An array with its axes in another order."""
    if list(labels) == list(wanted):
        return array
    letters = dict(zip(labels, _LETTERS, strict=False))
    before, after = ("".join(letters[label] for label in order) for order in (labels, wanted))
    extents = integers([bounds[label] for label in labels])
    return call("tensor_einsum", text(f"{before}->{after}"), array, extents)
