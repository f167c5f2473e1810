"""Render: what a kernel computes for all rows of entries in memory, in one call."""

from sqlglot import exp

from sparseeinsum.render.calls import call
from sparseeinsum.render.gathered_sums import SUM_FUNCTION
from sparseeinsum.render.layouts import ROW_COLUMN

PRODUCT_SUM_FUNCTION = "tensor_gather_product_sum"
NUMBER_FUNCTION, ROW_FUNCTION = "tensor_product_number", "tensor_product_row"
MASKED_ROW_FUNCTION, DOT_ROW_FUNCTION = "tensor_masked_product_row", "tensor_scaled_dot_row"
_OF_ALL_ROWS = {
    SUM_FUNCTION: "tensor_gather_sums",
    PRODUCT_SUM_FUNCTION: "tensor_gather_product_sums",
    NUMBER_FUNCTION: "tensor_product_numbers",
    ROW_FUNCTION: "tensor_product_rows",
    MASKED_ROW_FUNCTION: "tensor_masked_product_rows",
    DOT_ROW_FUNCTION: "tensor_scaled_dot_rows",
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
