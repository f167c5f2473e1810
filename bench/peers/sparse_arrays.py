"""Workloads in pydata/sparse: compressed arrays for products, coordinates for elementwise operations."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import sparse

from bench.peers.libraries import Library, Run, of_arrays
from bench.peers.unfolding import csr
from bench.peers.workloads import Data, Workload
from sparseeinsum.operators.reference_functions import sigmoid

Inputs = Mapping[str, Data]


def _compressed(inputs: Inputs) -> dict[str, Any]:
    return {
        name: data if isinstance(data, np.ndarray) else sparse.GCXS.from_scipy_sparse(csr(data))
        for name, data in inputs.items()
    }


def _coordinates(inputs: Inputs) -> dict[str, Any]:
    return {
        name: data if isinstance(data, np.ndarray) else sparse.COO(np.array(data.coords), data.data, data.shape)
        for name, data in inputs.items()
    }


def _gcn(inputs: Inputs) -> Run:
    arrays = _compressed(inputs)

    def run() -> object:
        normalised = arrays["D"] @ arrays["A"] @ arrays["D"]
        hidden = sigmoid(normalised @ (arrays["X"] @ arrays["W1"]))
        return sigmoid(normalised @ (hidden @ arrays["W2"]))

    return run


def _product(inputs: Inputs) -> Run:
    left, right = _compressed(inputs).values()
    return lambda: left @ right


def _ttm(inputs: Inputs) -> Run:
    arrays = _coordinates(inputs)
    return lambda: sparse.tensordot(arrays["T"], arrays["U"], axes=([2], [0]))


def _triangles(inputs: Inputs) -> Run:
    lower = _compressed(inputs)["A"]
    return lambda: ((lower @ lower) * lower).sum()


def _elementwise_product(inputs: Inputs) -> Run:
    left, right = _coordinates(inputs).values()
    return lambda: left * right


def _elementwise_sum(inputs: Inputs) -> Run:
    left, right = _coordinates(inputs).values()
    return lambda: left + right


def _chain(inputs: Inputs) -> Run:
    a, b, c, d, e = _compressed(inputs).values()
    return lambda: (a @ b) @ (c @ (d @ e))


def _plain(result: Any, _: Workload) -> object:  # noqa: ANN401  # an array of any kind
    if isinstance(result, sparse.GCXS):
        return result.to_scipy_sparse() if result.ndim == 2 else result.todense()
    if isinstance(result, sparse.COO) and result.ndim:
        content: Any = result.data, tuple(result.coords)  # stubs know matrices only
        return sp.coo_array(content, shape=result.shape)
    return result.todense() if isinstance(result, sparse.COO) else result


def library(_: int) -> Library:
    """The library, which has one thread."""
    works = {
        "GCN": _gcn,
        "SpMM": _product,
        "SpGEMM": _product,
        "TTM": _ttm,
        "triangles": _triangles,
        "elementwise product": _elementwise_product,
        "elementwise sum": _elementwise_sum,
        "chain of five": _chain,
    }
    return Library("sparse", of_arrays(works), _plain)
