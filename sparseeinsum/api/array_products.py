"""API: products of arrays in memory: their labels and dtypes, and the order of their contractions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import opt_einsum
from numpy.typing import NDArray
from opt_einsum.contract import ContractExpression

from sparseeinsum.api.einsum_arguments import check_numbers
from sparseeinsum.api.einsum_options import PathSearch
from sparseeinsum.language.numpy_notation import read_subscripts

# The greatest result of a contraction, in elements; databases compute with more than fits into memory.
_LARGEST_RESULT = 1 << 27
# numpy's arrays have at most so many axes (in its version 1), and a contraction loops over at most so many labels.
_MOST_LABELS = 32
_MOST_OPERANDS = 31  # of one contraction, in numpy 1

_Shape = tuple[int, ...]
_Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A sum of a product of arrays with given shapes and dtypes, and the order of its contractions.

    Attributes:
        stretched: The axes of every operand that numpy would stretch; they have size 1.
        terms: The labels of every operand, without those of stretched axes.
        output: The labels of the result.
        sizes: The bound of every label.
        path: The positions of the operands of every contraction.
        contract: opt_einsum's function of the operands without their stretched axes.
        computed: The dtype in which it is computed.
        dtype: The dtype of the result.
        added: The number of products that are added up for an element of the result.
        operations: The number of operations on dense arrays.
        fits_numpy: Whether numpy can hold all operands and results of the contractions as dense arrays.
    """

    stretched: tuple[tuple[int, ...], ...]
    terms: tuple[_Labels, ...]
    output: _Labels
    sizes: Mapping[str, int]
    path: tuple[tuple[int, ...], ...]
    contract: ContractExpression
    computed: np.dtype[Any]
    dtype: np.dtype[Any]
    added: int
    operations: float
    fits_numpy: bool

    def may_overflow(self, arrays: Sequence[NDArray[Any]]) -> bool:
        """Whether a sum of products of these values might exceed the range of int64, in which it is computed."""
        if self.computed != np.int64:
            return False
        bound = max(self.added, 1)
        for array in arrays:
            bound *= max(int(array.max(initial=0)), -int(array.min(initial=0)), 1)
        return bound > np.iinfo(np.int64).max


@lru_cache(maxsize=1024)
def plan_product(
    text: str, shapes: tuple[_Shape, ...], dtypes: tuple[np.dtype[Any], ...], search: PathSearch
) -> Product:
    """Plan a product of arrays.

    Args:
        text: The subscripts.
        shapes: The shapes of the operands.
        dtypes: Their dtypes.
        search: How to find the order of contractions.

    Raises:
        ParseError: The subscripts have a syntax error.
        ShapeError: The subscripts do not match the shapes of the operands.
        DataError: An operand is not of numbers.
        ArgumentError: The search finds no order.
    """
    subscripts = read_subscripts(text, [len(shape) for shape in shapes])
    stretched = subscripts.stretched_axes(shapes)
    check_numbers(dtypes)
    terms = tuple(_without(term, axes) for term, axes in zip(subscripts.terms, stretched, strict=True))
    inner = [_without(shape, axes) for shape, axes in zip(shapes, stretched, strict=True)]
    sizes = {
        label: size for term, shape in zip(terms, inner, strict=True) for label, size in zip(term, shape, strict=True)
    }
    symbols = {label: opt_einsum.get_symbol(number) for number, label in enumerate(sizes)}
    *inputs, output = ("".join(symbols[label] for label in term) for term in (*terms, subscripts.output))
    equation = f"{','.join(inputs)}->{output}"
    info = search.contraction(equation, inner)
    dtype = np.result_type(*dtypes)
    return Product(
        stretched=stretched,
        terms=terms,
        output=subscripts.output,
        sizes=sizes,
        path=tuple(map(tuple, info.path)),
        contract=opt_einsum.contract_expression(equation, *inner, optimize=info.path),
        computed=np.dtype("float32") if dtype == np.float16 else dtype,  # numpy, too, adds up float16 in float32
        dtype=dtype,
        added=math.prod(size for label, size in sizes.items() if label not in subscripts.output),
        operations=float(info.opt_cost),
        fits_numpy=max(info.largest_intermediate, *map(math.prod, shapes)) <= _LARGEST_RESULT
        and max(info.scale_list, default=0) <= _MOST_LABELS
        and max(map(len, info.path), default=0) <= _MOST_OPERANDS,
    )


def _without(items: Sequence[Any], removed: Sequence[int]) -> tuple[Any, ...]:
    return tuple(item for position, item in enumerate(items) if position not in removed)
