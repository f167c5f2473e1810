"""Large matrix products run on the GPU that is set, with the same results, and on the processor where it fails."""

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.errors import ArgumentError, KernelsError, PackageError
from sparseeinsum.kernels.duckdb.library import use_gpu
from sparseeinsum.kernels.gpu_products import PRODUCT_FUNCTION, GpuProduct, measured_gpu
from sparseeinsum.kernels.gpus import Gpu

DTYPES = ("float64", "float32", "complex128", "complex64")
SHAPE = (300, 200, 170)
MUCH = float(1 << 60)


@dataclass
class Processor:
    """An array library whose GPU is the processor; it fails if it has not enough memory for a matrix."""

    most_bytes: float = MUCH
    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def asarray(self, array: NDArray[Any]) -> NDArray[Any]:
        if array.nbytes > self.most_bytes:
            raise MemoryError
        return array.copy()

    def matmul(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        self.shapes.append((*first.shape, second.shape[1]))
        product: NDArray[Any] = first @ second
        return product

    def asnumpy(self, array: NDArray[Any]) -> NDArray[Any]:
        return array


@contextmanager
def computing_on(library: Processor, free_bytes: float = MUCH) -> Iterator[None]:
    use_gpu(Gpu("a test", 1, 1e-13, PRODUCT_FUNCTION(GpuProduct(library, lambda: free_bytes))))
    try:
        yield
    finally:
        use_gpu(None)


def matrices(dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    m, k, n = SHAPE
    return rng.integers(-9, 10, (m, k)).astype(dtype), rng.integers(-9, 10, (k, n)).astype(dtype)


def product(a: NDArray[Any], b: NDArray[Any], text: str, deterministic: bool = False) -> NDArray[Any]:
    with se.connect() as db:
        db.tensor("A", a, promoted=())
        db.tensor("B", b, promoted=())
        return db.run(text, optimizer="dense", deterministic=deterministic)["C"].to_numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", ["C[i, k] = sum(A[i, j] * B[j, k])", "C[k, i] = sum(A[i, j] * B[j, k])"])
def test_products_are_numpys(dtype: str, text: str) -> None:
    a, b = matrices(dtype)
    library = Processor()
    with computing_on(library):
        result = product(a, b, text)
    assert len(library.shapes) == 1
    assert (result == (a @ b if text.startswith("C[i") else (a @ b).T)).all()


def test_transposed_operands() -> None:
    a, b = matrices("float64")
    library = Processor()
    with computing_on(library):
        result = product(a.T.copy(), b.T.copy(), "C[i, k] = sum(A[j, i] * B[k, j])")
    assert library.shapes
    assert (result == a @ b).all()


def test_a_small_memory_takes_some_rows_at_a_time() -> None:
    a, b = matrices("float64")
    library = Processor()
    with computing_on(library, (b.nbytes + 70 * 8 * (a.shape[1] + b.shape[1])) / 0.8):
        result = product(a, b, "C[i, k] = sum(A[i, j] * B[j, k])")
    assert [shape[0] for shape in library.shapes] == [70, 70, 70, 70, 20]
    assert (result == a @ b).all()


@pytest.mark.parametrize(("library", "free_bytes"), [(Processor(most_bytes=1000), MUCH), (Processor(), 1000)])
def test_the_processor_computes_what_the_gpu_cannot(library: Processor, free_bytes: float) -> None:
    a, b = matrices("float64")
    with computing_on(library, free_bytes):
        result = product(a, b, "C[i, k] = sum(A[i, j] * B[j, k])")
    assert not library.shapes
    assert (result == a @ b).all()


def test_small_products_and_deterministic_runs_stay_on_the_processor() -> None:
    a, b = matrices("float64")
    library = Processor()
    with computing_on(library):
        assert (product(a[:50], b[:, :50], "C[i, k] = sum(A[i, j] * B[j, k])") == a[:50] @ b[:, :50]).all()
        assert (product(a, b, "C[i, k] = sum(A[i, j] * B[j, k])", deterministic=True) == a @ b).all()
    assert not library.shapes


def test_products_of_many_tuples() -> None:
    """Kernels of several threads call the GPU."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 10, (24, 170, 160)).astype(float), rng.integers(-9, 10, (24, 160, 180)).astype(float)
    library = Processor()
    with computing_on(library), se.connect() as db:
        db.tensor("A", a, promoted=("dim_0",))
        db.tensor("B", b, promoted=("dim_0",))
        result = db.run("C[t, i, k] = sum(A[t, i, j] * B[t, j, k])", pin={"C": "t"})["C"].to_numpy()
    assert library.shapes == [(170, 160, 180)] * 24
    assert (result == a @ b).all()


def test_explanations_name_the_gpu() -> None:
    a, b = matrices("float64")
    with computing_on(Processor()), se.connect() as db:
        db.tensor("A", a, promoted=())
        db.tensor("B", b, promoted=())
        plan = db.plan("C[i, k] = sum(A[i, j] * B[j, k])", optimizer="dense")
        assert re.search(r"C: matrix products of arrays are computed by .*, large ones by a test", str(plan.explain()))
        assert se.get_device() == "a test"
    assert se.get_device() == "cpu"


def test_plans_know_the_speed_of_the_gpu() -> None:
    a, b = matrices("float64")
    with se.connect() as db:
        db.tensor("A", a, promoted=())
        db.tensor("B", b, promoted=())
        before = db.plan("C[i, k] = sum(A[i, j] * B[j, k])", optimizer="dense").cost
        with computing_on(Processor()):
            assert db.plan("C[i, k] = sum(A[i, j] * B[j, k])", optimizer="dense").cost < before


def test_a_gpu_is_measured() -> None:
    gpu = measured_gpu(Processor(), "a test", lambda: MUCH)
    assert gpu.least_products >= 1
    assert 0 < gpu.seconds_per_operation < 1e-6
    assert ctypes.cast(gpu.function, ctypes.c_void_p).value == gpu.address


def test_unknown_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="no device 'tpu'; choose one of cpu, cuda"):
        se.set_device("tpu")
    monkeypatch.setenv("SPARSEEINSUM_DEVICE", "gpu")
    with pytest.raises(ArgumentError, match="SPARSEEINSUM_DEVICE: there is no device 'gpu'"):
        se.connect()


def test_on_a_machine_without_a_gpu_the_error_says_so() -> None:
    try:
        import cupy  # noqa: PLC0415

        has_gpu = cupy.cuda.is_available()
    except ImportError:
        has_gpu = False
    if has_gpu:
        se.set_device("cuda")
        assert se.get_device().startswith("cuda: ")
        se.set_device("cpu")
    else:
        reason = r"pip install 'sparseeinsum\[gpu\]'|cannot compute on a GPU"
        with pytest.raises((PackageError, KernelsError), match=reason):
            se.set_device("cuda")
    assert se.get_device() == "cpu"
