"""Twenty programs over sparse tensors: products, semirings, masks, elementwise operations, contractions of an axis.

All tensors are random, with fixed seeds; the best plan of each runs in less than half a second on two cores.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import scipy.sparse as sp

from bench.datasets import random_entries
from bench.programs import Case, Data, Source

MATRIX = (20_000, 20_000)
Inputs = dict[str, Data]


def _tensors(source: Source, names: str, entries: int = 100_000, bounds: tuple[int, ...] = MATRIX) -> Inputs:
    """Sparse tensors of the same bounds; two of them have up to three quarters of their entries in common."""
    shape = tuple(source.bound(bound) for bound in bounds)
    count = min(max(round(entries * source.share), 8), math.prod(shape) // 3)
    pool: Any = random_entries(0, count * (3 + len(names)) // 4, *shape)
    inputs: Inputs = {}
    for number, name in enumerate(names):
        part = slice(number * count // 4, number * count // 4 + count)
        content: Any = pool.data[part], tuple(axis[part] for axis in pool.coords)
        inputs[name] = sp.coo_array(content, shape=shape)
    return inputs


def _of_matrices(name: str, source: Source, text: str, names: str, fill: float) -> Case:
    """A program over sparse matrices."""
    return Case(name, text, _tensors(source, names), dict.fromkeys(names, fill))


def _elementwise(name: str, source: Source, text: str, bounds: tuple[int, ...]) -> Case:
    """A program over two sparse tensors of the same bounds."""
    return Case(name, text, _tensors(source, "AB", 200_000, bounds))


def _times_dense(name: str, source: Source, width: int) -> Case:
    """A sparse matrix times a dense one."""
    inputs = _tensors(source, "A") | {"X": source.dense(1, MATRIX[1], width)}
    return Case(name, "Y[i, k] = sum(A[i, j] * X[j, k])", inputs)


def _times_vector(name: str, source: Source, text: str, fill: float) -> Case:
    """A sparse matrix and a dense vector."""
    return Case(name, text, _tensors(source, "A") | {"x": source.dense(1, MATRIX[1])}, {"A": fill})


def _times_factors(name: str, source: Source, text: str) -> Case:
    """A sparse tensor of three axes, and dense factors of the last two."""
    inputs: Inputs = _tensors(source, "T", 100_000, (500, 400, 300))
    inputs |= {"B": source.dense(1, 400, 16)} if "B[" in text else {}
    return Case(name, text, inputs | {"C": source.dense(2, 300, 16)})


_FOUR_AXES = (60, 60, 60, 60)
_SPARSE: Mapping[str, Callable[..., Case]] = {
    "spgemm": partial(_of_matrices, text="Y[i, k] = sum(A[i, j] * B[j, k])", names="AB", fill=0.0),
    "spgemm_of_rows": partial(_of_matrices, text="Y[i, k] = sum(A[i, j] * B[k, j])", names="AB", fill=0.0),
    "chain_of_three": partial(
        _of_matrices, text="T[i, k] = sum(A[i, j] * B[j, k])\nY[i, l] = sum(T[i, k] * C[k, l])", names="ABC", fill=0.0
    ),
    "triangles": partial(_of_matrices, text="Y[] = sum(A[i, j] * A[j, k] * A[i, k])", names="A", fill=0.0),
    "masked_product": partial(_of_matrices, text="Y[i, k] = C[i, k] * sum(A[i, j] * B[j, k])", names="ABC", fill=0.0),
    "two_steps_of_paths": partial(_of_matrices, text="Y[i, k] = min(A[i, j] + B[j, k])", names="AB", fill=math.inf),
    "inner_product": partial(_of_matrices, text="Y[] = sum(A[i, j] * B[i, j])", names="AB", fill=0.0),
    "sums_of_products": partial(_of_matrices, text="Y[i] = sum(A[i, j] * B[i, j])", names="AB", fill=0.0),
    "distance": partial(_of_matrices, text="Y[j] = sum(abs(A[i, j] - B[i, j]))", names="AB", fill=0.0),
    "difference_of_three": partial(_of_matrices, text="Y[i, j] = A[i, j] + B[i, j] - C[i, j]", names="ABC", fill=0.0),
    "elementwise_product": partial(
        _elementwise, text="Y[i, j, k, l] = A[i, j, k, l] * B[i, j, k, l]", bounds=_FOUR_AXES
    ),
    "elementwise_sum": partial(_elementwise, text="Y[i, j, k, l] = A[i, j, k, l] + B[i, j, k, l]", bounds=_FOUR_AXES),
    "elementwise_greatest": partial(
        _elementwise, text="Y[i, j, k] = max(A[i, j, k], B[k, j, i])", bounds=(200, 200, 200)
    ),
    "sum_of_many_rows": partial(_elementwise, text="Y[i, j] = A[i, j] + B[i, j]", bounds=(500_000, 8)),
    "sparse_times_wide": partial(_times_dense, width=64),
    "sparse_times_narrow": partial(_times_dense, width=4),
    "sparse_times_vector": partial(_times_vector, text="Y[i] = sum(A[i, j] * x[j])", fill=0.0),
    "step_of_paths": partial(_times_vector, text="Y[i] = min(A[i, j] + x[j])", fill=math.inf),
    "one_axis": partial(_times_factors, text="Y[i, j, r] = sum(T[i, j, k] * C[k, r])"),
    "factors_of_two_axes": partial(_times_factors, text="Y[i, r] = sum(T[i, j, k] * B[j, r] * C[k, r])"),
}
SPARSE_PROGRAMS: Mapping[str, Callable[[Source], Case]] = {name: partial(make, name) for name, make in _SPARSE.items()}
