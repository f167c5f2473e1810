"""Workloads in scipy.sparse, which has matrices and elementwise operations of one thread."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.peers.libraries import Library, Run, of_arrays
from bench.peers.unfolding import Fibres, csr, factors, fibres, unfolded
from bench.peers.workloads import Data
from sparseeinsum.api.examples import attention_reference, gcn_reference

Inputs = Mapping[str, Data]


def _matrices(inputs: Inputs) -> dict[str, Any]:
    return {name: data if isinstance(data, np.ndarray) else csr(data) for name, data in inputs.items()}


def _gcn(inputs: Inputs) -> Run:
    matrices = _matrices(inputs)
    return lambda: gcn_reference(matrices, weights_first=True)


def _attention(inputs: Inputs) -> Run:
    matrices = _matrices(inputs)
    return lambda: attention_reference(matrices)


def _product(inputs: Inputs) -> Run:
    left, right = _matrices(inputs).values()
    return lambda: left @ right


def _mttkrp(inputs: Inputs) -> Run:
    parts, second, third = factors(inputs["T"]), inputs["B"], inputs["C"]
    return lambda: parts.outer @ ((parts.inner @ second) * third[parts.third])


def _ttm(inputs: Inputs) -> Run:
    (positions, matrix), factor = fibres(inputs["T"]), inputs["U"]
    return lambda: Fibres(positions, np.asarray(matrix @ factor))


def _triangles(inputs: Inputs) -> Run:
    lower: Any = csr(inputs["A"])
    return lambda: (lower @ lower).multiply(lower).sum()


def _elementwise_product(inputs: Inputs) -> Run:
    left, right = (unfolded(data, 2) for data in inputs.values())
    return lambda: left.multiply(right)


def _elementwise_sum(inputs: Inputs) -> Run:
    left, right = (unfolded(data, 2) for data in inputs.values())
    return lambda: left + right


def _chain(inputs: Inputs) -> Run:
    a, b, c, d, e = _matrices(inputs).values()
    return lambda: (a @ b) @ (c @ (d @ e))


def library(_: int) -> Library:
    """The library; its sparse products have one thread."""
    works = {
        "GCN": _gcn,
        "sparse attention": _attention,
        "SpMM": _product,
        "SpGEMM": _product,
        "MTTKRP": _mttkrp,
        "TTM": _ttm,
        "triangles": _triangles,
        "elementwise product": _elementwise_product,
        "elementwise sum": _elementwise_sum,
        "chain of five": _chain,
    }
    return Library("scipy", of_arrays(works), lambda result, _: result)
