"""Matrix products with and without tiles: dense, block-sparse and hyper-sparse times dense, beside scipy and numpy.

    python -m bench.tiles

Compute only: tensors are loaded before, the block-sparse matrix as entries and again in blocks. Results stay in the
cheapest decomposition of each plan. Purely relational plans run only on the smaller of two sizes of the dense
product; on the larger one they would join too many pairs of entries.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import sparseeinsum as se
from bench.timing import CONSOLE, Figure, race, report
from sparseeinsum.api.examples import ExampleMatrix

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
BLOCK = 64


@dataclass(frozen=True)
class Case:
    """A product.

    Attributes:
        name: What it is.
        left: A.
        right: B.
        has_blocks: Whether A is worth storing in blocks.
        has_relational: Whether a purely relational plan ends in reasonable time.
    """

    name: str
    left: ExampleMatrix
    right: NDArray[Any]
    has_blocks: bool = False
    has_relational: bool = True


def cases() -> list[Case]:
    """The products, always the same."""
    rng = np.random.default_rng(0)
    blocks = np.kron(rng.random((64, 64)) < 0.05, np.ones((BLOCK, BLOCK), bool))
    sparse = scipy.sparse.csr_array(blocks * rng.random(blocks.shape))
    hyper = scipy.sparse.csr_array(scipy.sparse.random_array((100_000, 100_000), density=2e-6, rng=rng))
    return [
        Case("dense, 300", rng.random((300, 300)), rng.random((300, 300))),
        Case("dense, 2048", rng.random((2048, 2048)), rng.random((2048, 2048)), has_relational=False),
        Case("block-sparse", sparse, rng.random((sparse.shape[1], 256)), has_blocks=True),
        Case("hyper-sparse", hyper, rng.random((hyper.shape[1], 64))),
    ]


def plans_of(case: Case) -> dict[str, tuple[se.Database, se.Plan]]:
    """Plans by what they may do; all have been run and checked."""
    expected = case.left @ case.right
    database = load(case.left, case.right, None)
    plans = {
        "untiled": (database, database.plan(PRODUCT, layout="any")),
        "tiled": (database, database.plan(PRODUCT, layout="any", tiles="auto")),
    }
    if case.has_blocks:
        in_blocks = load(case.left, case.right, {"dim_0": BLOCK, "dim_1": BLOCK})
        plans["stored in blocks"] = in_blocks, in_blocks.plan(PRODUCT, layout="any")
    if case.has_relational:
        relational = load(case.left, case.right, ["dim_0", "dim_1"])
        plans["relational"] = relational, relational.plan(PRODUCT, optimizer="relational")
    for name, (database, plan) in plans.items():
        product = database.run(plan)["C"].to_numpy()
        np.testing.assert_allclose(product, expected, rtol=1e-9, atol=1e-9, err_msg=f"{case.name}, {name}")
        CONSOLE.print(f"{case.name}, {name}: {', '.join(plan.notation())}", markup=False)
    return plans


def load(left: ExampleMatrix, right: NDArray[Any], promoted: list[str] | Mapping[str, int] | None) -> se.Database:
    """A database of the two matrices; the right one in rows, unless both are to be entries."""
    database = se.connect()
    database.tensor("A", left, promoted=promoted)
    database.tensor("B", right, promoted=promoted if isinstance(promoted, list) else None)
    return database


def run(case: Case, repeat: int) -> list[Figure]:
    """Race the plans, and scipy or numpy."""
    plans = plans_of(case)
    contenders: dict[str, Callable[[], object]] = {"scipy": lambda: case.left @ case.right}
    contenders |= {name: partial(database.run, plan, replan=False) for name, (database, plan) in plans.items()}
    return race(case.name, contenders, dict.fromkeys(contenders, repeat) | {"relational": max(1, repeat // 2)}, "scipy")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="runs of every contender (default: 5)")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    figures = [figure for case in cases() for figure in run(case, asked.repeat)]
    report("Matrix products", figures, "scipy", asked.output / "tiles.json")
