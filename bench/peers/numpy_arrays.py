"""Workloads in numpy: dense arrays where these are small, else gathered rows at the indices of entries."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench.peers.libraries import Library, Run, UnavailableError, of_arrays
from bench.peers.unfolding import csr
from bench.peers.workloads import Data
from sparseeinsum.operators.reference_functions import sigmoid

Inputs = Mapping[str, Data]
MOST_ELEMENTS = 10**7  # of a dense array in place of a sparse one


def _arrays(inputs: Inputs) -> dict[str, NDArray[np.float64]]:
    if max(math.prod(data.shape) for data in inputs.values()) > MOST_ELEMENTS:
        raise UnavailableError("dense")
    return {name: data if isinstance(data, np.ndarray) else data.toarray() for name, data in inputs.items()}


def _gcn(inputs: Inputs) -> Run:
    arrays = _arrays(inputs)
    degrees = np.diagonal(arrays["D"]).copy()

    def run() -> object:
        normalised = degrees[:, None] * arrays["A"] * degrees
        hidden = sigmoid(normalised @ (arrays["X"] @ arrays["W1"]))
        return sigmoid(normalised @ (hidden @ arrays["W2"]))

    return run


def _product(inputs: Inputs) -> Run:
    left, right = _arrays(inputs).values()
    return lambda: left @ right


def _sddmm(inputs: Inputs) -> Run:
    sampled: Any = inputs["A"]
    (rows, columns), left, right = sampled.coords, inputs["U"], inputs["V"]

    def run() -> object:
        values = sampled.data * np.einsum("ek,ek->e", left[rows], right[columns])
        return sp.coo_array((values, (rows, columns)), shape=sampled.shape)

    return run


def _dense_attention(inputs: Inputs) -> Run:
    queries, keys, values = _arrays(inputs).values()

    def run() -> object:
        scores = queries @ keys.transpose(0, 2, 1) / math.sqrt(keys.shape[2])
        powers = np.exp(scores - scores.max(axis=2, keepdims=True))
        return powers / powers.sum(axis=2, keepdims=True) @ values

    return run


def _triangles(inputs: Inputs) -> Run:
    lower = _arrays(inputs)["A"]
    return lambda: ((lower @ lower) * lower).sum()


def _min_plus(inputs: Inputs) -> Run:
    """Every row has an entry."""
    lengths: Any = csr(inputs["A"])
    starts, columns, distances = lengths.indptr[:-1], lengths.indices, inputs["D"]
    return lambda: np.minimum.reduceat(lengths.data + distances[columns], starts)


def library(_: int) -> Library:
    """The library; products of dense matrices have the threads of its BLAS, which are all."""
    works = {
        "GCN": _gcn,
        "SpMM": _product,
        "SpGEMM": _product,
        "SDDMM": _sddmm,
        "dense product": _product,
        "dense products": _product,
        "dense attention": _dense_attention,
        "triangles": _triangles,
        "min-plus step": _min_plus,
    }
    return Library("numpy", of_arrays(works), lambda result, _: result)
