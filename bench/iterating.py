"""Steps of loops: a power iteration on 1,000 nodes and 5,000 edges, and a step with almost nothing to compute.

    python -m bench.iterating [--url postgresql://user@host/database] [--repeat 3]

The contenders are `db.iterate`, a loop of `db.run` or of a prepared program, which replace the vector, and the bare
statements: those that return the results of a step, prepared and run again and again on the same vector.
"""

import argparse
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import sparseeinsum as se
from bench.timing import Figure, race, report

NODES = 1000
PROGRAMS = {
    "power iteration": """
        y[i] = sum(A[i, j] * x[j])
        size[] = sqrt(sum(y[i] ^ 2))
        next_x[i] = y[i] / size[]
        """,
    "a tiny step": "next_x[i] = x[i] / 2 + 1",
}


def contenders(db: se.Database, program: str, steps: int) -> dict[str, Callable[[], object]]:
    """Ways to run the steps of a program on a database, which holds A and x."""
    plan = db.plan(program, outputs=["next_x"])
    engine = db._engine  # prepares statements as prepared programs do
    statements = plan.data.statements.one_per_output()
    queries = [engine.prepared_query(f"bare_{hash(program) % 1000}_{s.name}", s.text) for s in statements]
    prepared = db.prepare(program, ["x"], outputs=["next_x"])

    def bare() -> None:
        for _ in range(steps):
            for query in queries:
                query.arrow()

    def run() -> None:
        for _ in range(steps):
            db.tensor("x", db.run(program, outputs=["next_x"], progress=False)["next_x"].to_numpy(), axes=["i"])

    def run_prepared() -> None:
        vector = np.ones(NODES)
        for _ in range(steps):
            vector = prepared.run(x=vector)["next_x"].to_numpy()

    iterate = partial(db.iterate, program, {"x": "next_x"}, steps, progress=False)
    return {
        "bare statements": bare,
        "db.run": run,
        "db.prepare": run_prepared,
        "db.iterate": iterate,
        "db.iterate, commit_seconds=0": partial(iterate, commit_seconds=0),
        "db.iterate, commit_seconds=inf": partial(iterate, commit_seconds=math.inf),
    }


def figures(db: se.Database, steps: int, repeat: int) -> list[Figure]:
    """The contenders on one engine."""
    graph: Any = sp.random_array((NODES, NODES), density=0.005, rng=np.random.default_rng(0), format="csr")
    db.tensor("A", graph, axes=["i", "j"])
    found: list[Figure] = []
    for name, program in PROGRAMS.items():
        db.tensor("x", np.ones(NODES), axes=["i"])
        timed = contenders(db, program, steps)
        title = f"{name}, {steps} steps, {repr(db).split()[0].strip('<')}"
        found += race(title, timed, dict.fromkeys(timed, repeat), "bare statements")
    return found


def main() -> None:
    """Print the figures, and write them into a file if asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="a PostgreSQL database with the extension")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    arguments = parser.parse_args()
    with se.connect() as db:
        found = figures(db, arguments.steps, arguments.repeat)
    if arguments.url:
        with se.connect(arguments.url) as db:
            found += figures(db, arguments.steps, arguments.repeat)
    report("steps of loops", found, "bare statements", arguments.output / "iterating.json")


if __name__ == "__main__":
    main()
