"""Work that takes less than its planning would: products of small arrays, and the steps of a loop.

    python -m bench.small

Every contender makes 100 calls in a run. The networks are those of opt_einsum's own tests.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import opt_einsum
import scipy.sparse as sp
from opt_einsum.testing import rand_equation

import sparseeinsum as se
from bench.timing import Figure, race, report

CALLS = 100
STEP = "Y[i] = sum(A[i, j] * X[j])"


def repeated(call: Callable[[], object]) -> Callable[[], None]:
    """A contender that makes all calls."""

    def run() -> None:
        for _ in range(CALLS):
            call()

    return run


def products(repeat: int) -> list[Figure]:
    """Products of arrays: numpy, opt_einsum and se.einsum; scipy for sparse ones."""
    rng = np.random.default_rng(0)
    cases = {
        "3 x 3, 3 x 3": ("ij,jk->ik", [rng.random((3, 3)), rng.random((3, 3))]),
        "3 x 3, thrice": ("ij,jk,kl->il", [rng.random((3, 3)) for _ in range(3)]),
        "100 x 100, 100 x 100": ("ij,jk->ik", [rng.random((100, 100)), rng.random((100, 100))]),
    }
    for factors in (30, 60):
        subscripts, shapes, _ = rand_equation(factors, 3, n_out=2, d_max=3, seed=1, return_size_dict=True)
        cases[f"{factors} factors"] = (subscripts, [rng.random(shape) for shape in shapes])
    figures = []
    for name, (subscripts, arrays) in cases.items():
        contenders: dict[str, Callable[[], object]] = {
            "opt_einsum": partial(opt_einsum.contract, subscripts, *arrays),
            "se.einsum": partial(se.einsum, subscripts, *arrays),
        }
        if len(arrays) == 2:
            contenders["numpy"] = partial(np.einsum, subscripts, *arrays)
        timed = {contender: repeated(call) for contender, call in contenders.items()}
        figures += race(name, timed, dict.fromkeys(timed, repeat), "opt_einsum")
    sparse: Any = sp.random_array((200, 200), density=0.01, rng=rng, format="csr")  # of no typed product
    timed = {
        "scipy": repeated(lambda: sparse @ sparse),
        "se.einsum": repeated(partial(se.einsum, "ij,jk", sparse, sparse)),
    }
    return figures + race("sparse 200 x 200", timed, dict.fromkeys(timed, repeat), "scipy")


def loops(repeat: int) -> list[Figure]:
    """Steps of a power iteration on 1,000 nodes and 5,000 edges, which replace the vector."""
    rng = np.random.default_rng(0)
    graph: Any = sp.random_array((1000, 1000), density=0.005, rng=rng, format="csr")
    db = se.connect()
    db.tensor("A", graph)
    db.tensor("X", rng.random(1000))
    plan = db.plan(STEP)

    def step(program: str | se.Plan) -> None:
        result = db.run(program, progress=False)["Y"].to_numpy()
        db.tensor("X", result / np.linalg.norm(result))

    prepared, vector = db.prepare(STEP, ["X"]), np.ones(1000)

    def prepared_step() -> None:
        result = prepared.run(X=vector)["Y"].to_numpy()
        vector[:] = result / np.linalg.norm(result)

    database, statement = db.connection, plan.sql().strip().rstrip(";")
    timed = {
        "scipy": repeated(lambda: graph @ np.ones(1000)),
        "run of a plan": repeated(lambda: db.run(plan, progress=False)),
        "run of a text": repeated(lambda: db.run(STEP, progress=False)),
        "step of a plan": repeated(lambda: step(plan)),
        "step of a text": repeated(lambda: step(STEP)),
        "statement alone": repeated(lambda: database.sql(statement).to_arrow_table()),
        "prepared step": repeated(prepared_step),
    }
    return race("power iteration", timed, dict.fromkeys(timed, repeat), "run of a plan")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each; the median counts")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    report("100 products", products(asked.repeat), "base", asked.output / "small-products.json")
    report("100 runs", loops(asked.repeat), "run of a plan", asked.output / "small-loops.json")
