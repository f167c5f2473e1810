"""Render: what a kernel computes for all rows of entries in memory, or for all tuples, in one call."""

from collections.abc import Sequence

from sqlglot import exp

from sparseeinsum.render.calls import call, converted, integer
from sparseeinsum.render.gathered_sums import SUM_FUNCTION
from sparseeinsum.render.layouts import ROW_COLUMN
from sparseeinsum.render.listed_tuples import ListedTuples
from sparseeinsum.render.sources import is_plain
from sparseeinsum.statistics.columns import computed_type, type_named

NUMBER_FUNCTION, ROW_FUNCTION, DOT_FUNCTION = "tensor_product_number", "tensor_product_row", "tensor_scaled_dot"
_DOT_ARGUMENTS = 6
_OF_ALL_ROWS = {
    SUM_FUNCTION: "tensor_gather_sums",
    NUMBER_FUNCTION: "tensor_product_numbers",
    ROW_FUNCTION: "tensor_product_rows",
}


def of_all_rows(product: exp.Expr) -> exp.Expr | None:
    """The call that computes for all rows what `product` computes for row r; None if there is none."""
    if not isinstance(product, exp.Anonymous) or product.name not in _OF_ALL_ROWS:
        return None
    of_row = exp.column(ROW_COLUMN, table="r")
    shared = [argument for argument in product.expressions if argument != of_row]
    if len(shared) != len(product.expressions) - 1:
        return None
    return call(_OF_ALL_ROWS[product.name], *[argument.copy() for argument in shared])


def scaled_dots(query: exp.Select, numbered: exp.Select, counts: Sequence[int], dtype: str) -> exp.Expr | None:
    """The call that computes an inner product for every tuple of a query; None if its values are others.

    Args:
        query: A query of two keys, which number the rows of two arrays, and of a value.
        numbered: The query of the numbers of its tuples and of their values.
        counts: How many values each key can have.
        dtype: The dtype of the values.
    """
    *keys, value = (column.unalias() for column in query.selects)
    is_product = isinstance(value, exp.Anonymous) and value.name == DOT_FUNCTION
    if not is_plain(query) or not is_product or len(value.expressions) != _DOT_ARGUMENTS:
        return None
    number, left, row, right, other_row, size = value.expressions
    casts = (cast for array in (left, right) for cast in array.find_all(exp.Cast))
    if keys != [row, other_row] or any(cast.this == exp.null() for cast in casts):  # NULL stands for zeros there
        return None
    position = numbered.selects[0].unalias()
    listed = ListedTuples.of(numbered, position, number)
    if listed is None:
        kind = type_named(computed_type(dtype, is_scalar=True))
        collected = call("tensor_collected", position.copy(), converted(number.copy(), kind))
    else:
        collected = listed.collected(dtype)
    tuples = (numbered if listed is None else listed.rows).select(exp.alias_(collected, "tuples"), append=False)
    tuples.set("with_", None)
    return call("tensor_scaled_dots", tuples.subquery(), left.copy(), right.copy(), integer(counts[1]), size.copy())
