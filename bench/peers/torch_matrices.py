"""Workloads in torch: CSR matrices, whose products are those of MKL, and gathered rows."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from bench.peers.libraries import Library, Run, of_arrays
from bench.peers.unfolding import Fibres, csr, factors, fibres, unfolded
from bench.peers.workloads import Data, Workload

Inputs = Mapping[str, Data]


def _tensor(data: Data | sp.csr_array) -> Any:  # noqa: ANN401  # torch need not be there
    if isinstance(data, np.ndarray):
        return torch.from_numpy(data)
    matrix = csr(data)
    parts = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    with warnings.catch_warnings(action="ignore"):  # says that its CSR matrices are new
        return torch.sparse_csr_tensor(*parts, torch.from_numpy(matrix.data), matrix.shape, check_invariants=False)


def _tensors(inputs: Inputs) -> dict[str, Any]:
    return {name: _tensor(data) for name, data in inputs.items()}


def _with_values(matrix: Any, values: Any) -> Any:  # noqa: ANN401
    parts = matrix.crow_indices(), matrix.col_indices()
    return torch.sparse_csr_tensor(*parts, values, matrix.shape, check_invariants=False)


def _gcn(inputs: Inputs) -> Run:
    """Entries of the adjacency are scaled where they are, which takes less than two products with D."""
    tensors = _tensors(inputs)
    adjacency, scale = tensors["A"], tensors["D"].values()
    starts, columns = adjacency.crow_indices(), adjacency.col_indices()

    def run() -> object:
        factors = torch.repeat_interleave(scale, starts.diff()) * scale[columns]
        normalised = _with_values(adjacency, adjacency.values() * factors)
        hidden = torch.sigmoid(normalised @ (tensors["X"] @ tensors["W1"]))
        return torch.sigmoid(normalised @ (hidden @ tensors["W2"]))

    return run


def _sampled(matrix: Any, left: Any, right: Any) -> Any:  # noqa: ANN401
    dots = torch.sparse.sampled_addmm(matrix, left, right.T, beta=0.0)
    return _with_values(matrix, dots.values() * matrix.values())


def _attention(inputs: Inputs) -> Run:
    tensors = _tensors(inputs)

    def run() -> object:
        queries, keys = tensors["X"] @ tensors["WQ"], tensors["X"] @ tensors["WK"]
        return _sampled(tensors["A"], queries / tensors["WQ"].shape[1] ** 0.5, keys)

    return run


def _dense_attention(inputs: Inputs) -> Run:
    tensors = [tensor[None] for tensor in _tensors(inputs).values()]
    return lambda: torch.nn.functional.scaled_dot_product_attention(*tensors)[0]


def _product(inputs: Inputs) -> Run:
    left, right = _tensors(inputs).values()
    return lambda: left @ right


def _sddmm(inputs: Inputs) -> Run:
    matrix, left, right = _tensors(inputs).values()
    return lambda: _sampled(matrix, left, right)


def _mttkrp(inputs: Inputs) -> Run:
    parts, second, third = factors(inputs["T"]), _tensor(inputs["B"]), _tensor(inputs["C"])
    inner, outer, thirds = _tensor(parts.inner), _tensor(parts.outer), torch.from_numpy(parts.third)
    return lambda: outer @ ((inner @ second) * third[thirds])


def _ttm(inputs: Inputs) -> Run:
    positions, matrix = fibres(inputs["T"])
    inner, factor = _tensor(matrix), _tensor(inputs["U"])
    return lambda: Fibres(positions, (inner @ factor).numpy())


def _triangles(inputs: Inputs) -> Run:
    """MKL leaves the columns of a product unsorted, and torch's elementwise product expects them sorted."""
    lower = _tensor(inputs["A"])
    edges = lower.to_sparse_coo().coalesce()

    def run() -> object:
        paths = (lower @ lower).to_sparse_coo()
        parts = paths.indices(), paths.values()
        unsorted = torch.sparse_coo_tensor(*parts, paths.shape, is_coalesced=False, check_invariants=False)
        return (unsorted.coalesce() * edges).sum()

    return run


def _min_plus(inputs: Inputs) -> Run:
    lengths, distances = _tensors(inputs).values()
    starts, columns, values = lengths.crow_indices(), lengths.col_indices(), lengths.values()
    return lambda: torch.segment_reduce(values + distances[columns], "min", offsets=starts)


def _elementwise_product(inputs: Inputs) -> Run:
    left, right = (_tensor(unfolded(data, 2)) for data in inputs.values())
    return lambda: left * right


def _elementwise_sum(inputs: Inputs) -> Run:
    left, right = (_tensor(unfolded(data, 2)) for data in inputs.values())
    return lambda: left + right


def _chain(inputs: Inputs) -> Run:
    a, b, c, d, e = _tensors(inputs).values()
    return lambda: (a @ b) @ (c @ (d @ e))


def _plain(result: Any, _: Workload) -> object:  # noqa: ANN401  # a tensor or fibres
    if isinstance(result, Fibres):
        return result
    if result.layout is torch.sparse_csr:
        parts = (part.numpy() for part in (result.values(), result.col_indices(), result.crow_indices()))
        return sp.csr_array(tuple(parts), shape=tuple(result.shape))
    return result.numpy()


def library(threads: int) -> Library:
    """The library with so many threads."""
    torch.set_num_threads(threads)
    works = {
        "GCN": _gcn,
        "sparse attention": _attention,
        "SpMM": _product,
        "SpGEMM": _product,
        "SDDMM": _sddmm,
        "MTTKRP": _mttkrp,
        "TTM": _ttm,
        "triangles": _triangles,
        "min-plus step": _min_plus,
        "elementwise product": _elementwise_product,
        "elementwise sum": _elementwise_sum,
        "chain of five": _chain,
        "dense product": _product,
        "dense products": _product,
        "dense attention": _dense_attention,
    }
    return Library("torch", of_arrays(works), _plain)
