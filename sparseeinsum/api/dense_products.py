"""API: products of arrays that fit into memory; opt_einsum contracts them on numpy, without a database."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import opt_einsum
from numpy.typing import NDArray
from opt_einsum.contract import ContractExpression

from sparseeinsum.api.einsum_arguments import check_dtypes
from sparseeinsum.api.einsum_operands import Operand, as_dense, squeezed
from sparseeinsum.api.einsum_options import AUTOMATIC, PathSearch
from sparseeinsum.language.numpy_notation import read_subscripts

# The greatest result of a contraction, in elements; databases compute with more than fits into memory.
_LARGEST_RESULT = 1 << 27
# numpy's arrays have at most so many axes (in its version 1), and a contraction loops over at most so many labels.
_MOST_LABELS = 32
_MOST_OPERANDS = 31  # of one contraction, in numpy 1
_NUMBERS = "biufcO"  # the kinds of dtypes that numpy multiplies and adds
# Up to these sizes sparse operands are faster as dense ones: elements of an operand, operations of the product.
_LARGEST_DENSIFIED = 1 << 18
_MOST_DENSIFIED_OPERATIONS = 1 << 25

_Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _DenseProduct:
    """A sum of a product of arrays with given shapes and dtypes, and the order of its contractions.

    Attributes:
        contract: opt_einsum's function of the operands without their stretched axes.
        stretched: The axes of every operand that numpy would stretch; they have size 1.
        computed: The dtype in which it is computed.
        dtype: The dtype of the result.
        terms: The number of products that are added up for an element of the result.
        is_small: Whether sparse operands are faster as dense ones.
    """

    contract: ContractExpression
    stretched: tuple[tuple[int, ...], ...]
    computed: np.dtype[Any]
    dtype: np.dtype[Any]
    terms: int
    is_small: bool


def multiply_dense(text: str, arrays: Sequence[Operand], search: PathSearch = AUTOMATIC) -> NDArray[Any] | None:
    """The sum of a product of arrays, in an array of its own, in the dtype that numpy would return.

    Args:
        text: The subscripts.
        arrays: The operands.
        search: How to find the order of contractions.

    Returns:
        None if the product is one for a database: an intermediate result is too large, sparse operands are so large
        that they should remain sparse, or a sum of int64 might overflow.

    Raises:
        ParseError: The subscripts have a syntax error.
        ShapeError: The subscripts do not match the shapes of the operands.
        DataError: An operand is not of numbers.
        ArgumentError: The search finds no order.
    """
    product = _plan(text, tuple(array.shape for array in arrays), tuple(array.dtype for array in arrays), search)
    if product is None or not (product.is_small or all(isinstance(array, np.ndarray) for array in arrays)):
        return None
    operands = [
        as_dense(squeezed(array, axes)).astype(product.computed, copy=False)
        for array, axes in zip(arrays, product.stretched, strict=True)
    ]
    if product.computed == np.int64 and _may_overflow(operands, product.terms):
        return None
    with np.errstate(all="ignore"):  # NaN and infinity are values, as in a database
        result = np.asarray(product.contract(*operands), product.computed).astype(product.dtype, copy=False)
    return result.copy() if np.may_share_memory(result, operands[0]) else result


@lru_cache(maxsize=1024)
def _plan(
    text: str, shapes: tuple[_Shape, ...], dtypes: tuple[np.dtype[Any], ...], search: PathSearch
) -> _DenseProduct | None:
    """The product in a cheap order; None if numpy cannot hold a result of its contractions."""
    subscripts = read_subscripts(text, [len(shape) for shape in shapes])
    stretched = subscripts.stretched_axes(shapes)
    if any(dtype.kind not in _NUMBERS for dtype in dtypes):
        check_dtypes(dtypes)
    terms = [_without(term, axes) for term, axes in zip(subscripts.terms, stretched, strict=True)]
    inner = [_without(shape, axes) for shape, axes in zip(shapes, stretched, strict=True)]
    sizes = {
        label: size for term, shape in zip(terms, inner, strict=True) for label, size in zip(term, shape, strict=True)
    }
    symbols = {label: opt_einsum.get_symbol(number) for number, label in enumerate(sizes)}
    *inputs, output = ("".join(symbols[label] for label in term) for term in (*terms, subscripts.output))
    equation = f"{','.join(inputs)}->{output}"
    path, info = opt_einsum.contract_path(
        equation, *inner, shapes=True, optimize=search.optimize, memory_limit=search.memory_limit
    )
    if info.largest_intermediate > _LARGEST_RESULT or max(info.scale_list, default=0) > _MOST_LABELS:
        return None
    if max(map(len, path), default=0) > _MOST_OPERANDS:
        return None
    dtype = np.result_type(*dtypes)
    return _DenseProduct(
        opt_einsum.contract_expression(equation, *inner, optimize=path),
        stretched,
        np.dtype("float32") if dtype == np.float16 else dtype,  # numpy, too, adds up float16 in float32
        dtype,
        math.prod(size for label, size in sizes.items() if label not in subscripts.output),
        max(map(math.prod, shapes)) <= _LARGEST_DENSIFIED and info.opt_cost <= _MOST_DENSIFIED_OPERATIONS,
    )


def _without(items: Sequence[Any], removed: Sequence[int]) -> tuple[Any, ...]:
    return tuple(item for position, item in enumerate(items) if position not in removed)


def _may_overflow(arrays: Sequence[NDArray[Any]], terms: int) -> bool:
    """Whether a sum of so many products might exceed the range of int64."""
    bound = max(terms, 1)
    for array in arrays:
        bound *= max(int(array.max(initial=0)), -int(array.min(initial=0)), 1)
    return bound > np.iinfo(np.int64).max
