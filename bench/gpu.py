"""Matrix products in DuckDB on a GPU and on the processor, beside numpy on the processor and cupy on the GPU.

    python -m bench.gpu            # needs cupy and a GPU

Tensors are loaded before, and results stay arrays. cupy starts with numpy's arrays and returns numpy's, as DuckDB does.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sparseeinsum as se
from bench.timing import CONSOLE, Figure, race, report
from sparseeinsum.environment.extras import imported
from sparseeinsum.kernels.duckdb.library import gpu_in_use, use_gpu
from sparseeinsum.kernels.gpus import Gpu


@dataclass(frozen=True)
class Case:
    """A product of two dense tensors.

    Attributes:
        name: What it is.
        text: The program; it computes C from A and B.
        shapes: Of A and B.
        dtype: Of all three.
        promoted: The axes of A and B by which they are stored in several tuples.
    """

    name: str
    text: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    dtype: str = "float64"
    promoted: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def arrays(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Random A and B."""
        rng = np.random.default_rng(0)
        first, second = (rng.random(shape).astype(self.dtype) for shape in self.shapes)
        return first, second


_PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
CASES = (
    *(Case(f"{n}³", _PRODUCT, ((n, n), (n, n))) for n in (500, 1_000, 2_000, 4_000, 8_000)),
    Case("4,000³, float32", _PRODUCT, ((4_000, 4_000), (4_000, 4_000)), "float32"),
    Case(
        "32 products of 1,000³",
        "C[t, i, k] = sum(A[t, i, j] * B[t, j, k])",
        ((32, 1_000, 1_000), (32, 1_000, 1_000)),
        promoted=(("dim_0",), ("dim_0",)),
    ),
    Case(
        "200,000 rows times 1,024 x 1,024",
        _PRODUCT,
        ((200_000, 1_024), (1_024, 1_024)),
        promoted=(("dim_0",), ()),
    ),
)


def run(case: Case, gpu: Gpu | None, repeat: int) -> list[Figure]:
    """Time one case; the results of all are compared first."""
    cupy = imported("cupy", "gpu", "this benchmark")
    a, b = case.arrays()
    database = se.connect()
    database.tensor("A", a, promoted=case.promoted[0])
    database.tensor("B", b, promoted=case.promoted[1])
    plans = {}
    for device in ("cpu", "cuda"):
        use_gpu(gpu if device == "cuda" else None)
        plans[device] = database.plan(case.text, layout="any")
        result = database.run(plans[device])["C"].to_numpy()
        np.testing.assert_allclose(result, np.matmul(a, b), rtol=1e-4 if case.dtype == "float32" else 1e-10)
        CONSOLE.print(f"{case.name}, {device}: {', '.join(plans[device].notation())}", markup=False)

    def on(device: str) -> None:
        use_gpu(gpu if device == "cuda" else None)
        database.run(plans[device], progress=False)

    def on_gpu() -> NDArray[Any]:
        product: NDArray[Any] = cupy.asnumpy(cupy.matmul(cupy.asarray(a), cupy.asarray(b)))
        return product

    contenders: dict[str, Callable[[], object]] = {
        "DuckDB, GPU": partial(on, "cuda"),
        "DuckDB, processor": partial(on, "cpu"),
        "cupy": on_gpu,
        "numpy": lambda: np.matmul(a, b),
    }
    return race(case.name, contenders, dict.fromkeys(contenders, repeat), "numpy")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each")
    parser.add_argument("--cases", nargs="*", default=[case.name for case in CASES], help="only these")
    parser.add_argument("--output", type=Path, default=Path("build/bench/gpu.json"), help="where figures are kept")
    asked = parser.parse_args()
    se.set_device("cuda")
    gpu = gpu_in_use()
    CONSOLE.print(gpu)
    figures = [figure for case in CASES if case.name in asked.cases for figure in run(case, gpu, asked.repeat)]
    report("Matrix products", figures, "numpy", asked.output)


if __name__ == "__main__":
    main()
