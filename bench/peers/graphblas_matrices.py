"""Workloads in SuiteSparse:GraphBLAS: matrices over semirings, and masks."""

from collections.abc import Callable, Mapping
from typing import Any

import graphblas as gb
import numpy as np
import scipy.sparse as sp

from bench.peers.libraries import Library, Run, of_arrays
from bench.peers.unfolding import Fibres, csr, factors, fibres, unfolded
from bench.peers.workloads import Data, Workload

Inputs = Mapping[str, Data]


def _tensor(data: Data | sp.csr_array) -> Any:  # noqa: ANN401  # the library need not be there
    if isinstance(data, np.ndarray):
        return gb.Vector.from_dense(data) if data.ndim == 1 else gb.Matrix.from_dense(data)
    return gb.io.from_scipy_sparse(csr(data))


def _tensors(inputs: Inputs) -> dict[str, Any]:
    return {name: _tensor(data) for name, data in inputs.items()}


def _times(left: Any, right: Any) -> Any:  # noqa: ANN401
    return gb.semiring.plus_times(left @ right).new()


def _product(inputs: Inputs) -> Run:
    left, right = _tensors(inputs).values()
    return lambda: _times(left, right)


def _sigmoid(values: Any) -> Any:  # noqa: ANN401
    powers = gb.unary.exp(gb.unary.ainv(values).new()).new()
    return gb.unary.minv(gb.binary.plus(powers, right=1.0).new()).new()


def _gcn(inputs: Inputs) -> Run:
    """Every node has a message, or the comparison of results says so."""
    tensors = _tensors(inputs)

    def run() -> object:
        normalised = _times(_times(tensors["D"], tensors["A"]), tensors["D"])
        hidden = _sigmoid(_times(normalised, _times(tensors["X"], tensors["W1"])))
        return _sigmoid(_times(normalised, _times(hidden, tensors["W2"])))

    return run


def _sampled(matrix: Any, left: Any, right: Any) -> Any:  # noqa: ANN401
    dots = gb.semiring.plus_times(left @ right.T).new(mask=matrix.S)
    return gb.binary.times(dots & matrix).new()


def _attention(inputs: Inputs) -> Run:
    tensors = _tensors(inputs)
    root = tensors["WQ"].ncols ** 0.5

    def run() -> object:
        queries, keys = _times(tensors["X"], tensors["WQ"]), _times(tensors["X"], tensors["WK"])
        return gb.binary.truediv(_sampled(tensors["A"], queries, keys), right=root).new()

    return run


def _sddmm(inputs: Inputs) -> Run:
    matrix, left, right = _tensors(inputs).values()
    return lambda: _sampled(matrix, left, right)


def _mttkrp(inputs: Inputs) -> Run:
    parts, second, third = factors(inputs["T"]), _tensor(inputs["B"]), inputs["C"]
    inner, outer = _tensor(parts.inner), _tensor(parts.outer)

    def run() -> object:
        gathered = gb.Matrix.from_dense(third[parts.third])
        return _times(outer, gb.binary.times(_times(inner, second) & gathered).new())

    return run


def _ttm(inputs: Inputs) -> Run:
    positions, matrix = fibres(inputs["T"])
    inner, factor = _tensor(matrix), _tensor(inputs["U"])
    return lambda: Fibres(positions, _times(inner, factor).wait())


def _triangles(inputs: Inputs) -> Run:
    """Dot products of rows, at the edges alone; all values are 1, so that counting is enough."""
    lower = _tensor(inputs["A"])
    upper = lower.T.new()
    return lambda: gb.semiring.plus_pair(lower @ upper.T).new(mask=lower.S).reduce_scalar().new()


def _min_plus(inputs: Inputs) -> Run:
    lengths, distances = _tensors(inputs).values()
    return lambda: gb.semiring.min_plus(lengths @ distances).new()


def _elementwise_product(inputs: Inputs) -> Run:
    left, right = (_tensor(unfolded(data, 2)) for data in inputs.values())
    return lambda: gb.binary.times(left & right).new()


def _elementwise_sum(inputs: Inputs) -> Run:
    left, right = (_tensor(unfolded(data, 2)) for data in inputs.values())
    return lambda: gb.binary.plus(left | right).new()


def _chain(inputs: Inputs) -> Run:
    a, b, c, d, e = _tensors(inputs).values()
    return lambda: _times(_times(a, b), _times(c, _times(d, e)))


def _finished(work: Callable[[Inputs], Run]) -> Callable[[Inputs], Run]:
    """The same, which returns when nothing is left to do: matrices may wait for their sorting."""

    def prepared(inputs: Inputs) -> Run:
        run: Callable[[], Any] = work(inputs)

        def finished() -> object:
            result = run()
            return result if isinstance(result, Fibres) else result.wait()

        return finished

    return prepared


def _plain(result: Any, _: Workload) -> object:  # noqa: ANN401  # a matrix, a vector, a scalar or fibres
    if isinstance(result, gb.Matrix):
        return gb.io.to_scipy_sparse(result, "coo")
    if isinstance(result, gb.Vector):
        return result.to_dense()
    if isinstance(result, Fibres):
        return Fibres(result.positions, result.values.to_dense())
    return result.value


def library(threads: int) -> Library:
    """The library with so many threads; every operation is finished when it returns."""
    gb.ss.config["nthreads"] = threads
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
    }
    return Library("GraphBLAS", of_arrays({kind: _finished(work) for kind, work in works.items()}), _plain)
