"""API: products of arrays that fit into memory; opt_einsum contracts them on numpy, without a database."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.api.array_products import Product
from sparseeinsum.api.einsum_operands import EinsumOperand, as_dense, squeezed


def multiply_dense(product: Product, arrays: Sequence[EinsumOperand]) -> NDArray[Any] | None:
    """The sum of a product of arrays, in an array of its own, in the dtype that numpy would return.

    Args:
        product: The product.
        arrays: The operands; sparse ones become dense.

    Returns:
        None if the product is one for a database: numpy cannot hold an operand or a result of its contractions, or a
        sum of int64 might overflow.
    """
    if not product.fits_numpy:
        return None
    operands = [
        as_dense(squeezed(array, axes)).astype(product.computed, copy=False)
        for array, axes in zip(arrays, product.stretched, strict=True)
    ]
    if product.may_overflow(operands):
        return None
    with np.errstate(all="ignore"):  # NaN and infinity are values, as in a database
        result = np.asarray(product.contract(*operands), product.computed).astype(product.dtype, copy=False)
    return result.copy() if np.may_share_memory(result, operands[0]) else result
