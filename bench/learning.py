"""Formulas of machine learning, as people write them: losses, gradients, and inner loops of five algorithms.

    python -m bench.learning [--rows 8000] [--steps 5]

Runs the loops and prints the result of each step (SPORES, section 4.2). X is sparse, rows by columns; U, V and the
like are dense and narrow, all others are vectors.
"""

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from rich.table import Table

import sparseeinsum as se
from bench.timing import CONSOLE
from sparseeinsum.api.examples import ExampleMatrix

RANK = 10
DENSITY = 0.001


@dataclass(frozen=True)
class Formula:
    """Something to compute, and from which tensors.

    Attributes:
        text: The program.
        tensors: What it reads besides X: for each the axes, rows of X, columns of X, or a rank.
        state: Of a loop, the tensors that results of a step replace, by those.
        objective: Of a loop, the result that is to fall.
    """

    text: str
    tensors: Mapping[str, str]
    state: Mapping[str, str] | None = None
    objective: str = ""


FORMULAS: dict[str, Formula] = {
    "sum((X - U V')^2)": Formula("L = sum((X - U @ V.T)^2)", {"U": "rk", "V": "ck"}),
    "sum((X + U V')^2)": Formula("L = sum((X + U @ V.T)^2)", {"U": "rk", "V": "ck"}),
    "ALS: (U V' - X) V + 0.1 U": Formula("G = (U @ V.T - X) @ V + 0.1 * U", {"U": "rk", "V": "ck"}),
    "PNMF: sum(W H)": Formula("S = sum(W @ H.T)", {"W": "rk", "H": "ck"}),
    "PNMF: X' W / colsums": Formula("G = H * (X.T @ W) / (H * colsums(W) + 1e-3)", {"W": "rk", "H": "ck"}),
    "MLR: P X - P P X": Formula("G = P * X - P * rowsums(P) * X", {"P": "r"}),
    "MLR: X'(Q - P rowsums(Q))": Formula("G = X.T @ (P * (X @ V) - P * rowsums(P * (X @ V)))", {"P": "rk", "V": "ck"}),
    "GLM: X'(P (1 - P) (X d))": Formula("G = X.T @ (P * (1 - P) * (X @ d)) + 0.1 * d", {"P": "r", "d": "c"}),
    "SVM: loss and gradient": Formula(
        """
        margin = relu(1 - y * (X @ w))
        loss = 0.5 * sum(margin^2) + 0.05 * w.T @ w
        G = 0.1 * w - X.T @ (margin * y)
        """,
        {"y": "r", "w": "c"},
    ),
}

LOOPS: dict[str, Formula] = {
    "ALS, a step of gradients": Formula(
        """
        loss = sum((X - U @ V.T)^2) + 0.1 * (sum(U^2) + sum(V^2))
        next_U = U - 1e-5 * ((U @ V.T - X) @ V + 0.1 * U)
        next_V = V - 1e-5 * ((U @ V.T - X).T @ U + 0.1 * V)
        """,
        {"U": "rk", "V": "ck"},
        {"next_U": "U", "next_V": "V"},
        "loss",
    ),
    "PNMF, a multiplicative step": Formula(
        """
        loss = sum(W @ H.T) - sum(X * log(W @ H.T + 1e-9))
        next_H = H * ((X / (W @ H.T + 1e-9)).T @ W) / colsums(W)
        """,
        {"W": "rk", "H": "ck"},
        {"next_H": "H"},
        "loss",
    ),
    "MLR, a step of gradients": Formula(
        """
        E = exp(X @ B)
        P = E / (1 + rowsums(E))
        loss = sum(log(1 + rowsums(E))) - sum(Y * (X @ B))
        D = P * (X @ V)
        curvature = sum(V * (X.T @ (D - P * rowsums(D))))
        next_B = B - 1e-2 * (X.T @ (P - Y))
        """,
        {"B": "ck", "V": "ck", "Y": "rk"},
        {"next_B": "B"},
        "loss",
    ),
    "GLM, a step along a direction": Formula(
        """
        P = sigmoid(X @ w)
        loss = sum(log(1 + exp(X @ w))) - y.T @ (X @ w) + 0.05 * w.T @ w
        d = X.T @ (y - P) - 0.1 * w
        curvature = d.T @ (X.T @ (P * (1 - P) * (X @ d)) + 0.1 * d)
        next_w = w + d.T @ d / (curvature + 1e-9) * d
        """,
        {"w": "c", "y": "r"},
        {"next_w": "w"},
        "loss",
    ),
    "SVM, a step along a direction": Formula(
        """
        margin = relu(1 - y * (X @ w))
        active = where(margin > 0, 1.0, 0.0)
        loss = 0.5 * sum(margin^2) + 0.05 * w.T @ w
        d = X.T @ (margin * y) - 0.1 * w
        curvature = sum(active * (X @ d)^2) + 0.1 * d.T @ d
        next_w = w + d.T @ d / (curvature + 1e-9) * d
        """,
        {"w": "c", "y": "r"},
        {"next_w": "w"},
        "loss",
    ),
}


def tensors_of(formula: Formula, rows: int, columns: int) -> dict[str, ExampleMatrix]:
    """X and the other tensors of a formula, always the same."""
    random = np.random.default_rng(0)
    bounds = {"r": rows, "c": columns, "k": RANK}
    sparse: Any = scipy.sparse.random_array((rows, columns), density=DENSITY, rng=random)
    dense = {name: random.random([bounds[axis] for axis in axes]) for name, axes in formula.tensors.items()}
    return {"X": scipy.sparse.csr_array(sparse), **dense}


def loaded(formula: Formula, rows: int) -> se.Database:
    """A database with the tensors of a formula; X has half as many columns as rows."""
    database = se.connect()
    for name, array in tensors_of(formula, rows, rows // 2).items():
        database.tensor(name, array)
    return database


def steps_of(loop: Formula, database: se.Database) -> Iterator[tuple[float, float]]:
    """Run a loop: after each step the objective, and the seconds that it took, planning included."""
    while True:
        start = time.perf_counter()
        results = database.run(loop.text, outputs=[*(loop.state or ()), loop.objective])
        seconds = time.perf_counter() - start
        for result, name in (loop.state or {}).items():
            database.tensor(name, results[result].to_numpy())
        yield float(results[loop.objective].to_numpy()), seconds


def main(rows: int, steps: int) -> None:
    """Run all loops for some steps, and print what they find."""
    table = Table("loop", "objective, step by step", "seconds of a step", title=f"{rows:,} rows", title_justify="left")
    for name, loop in LOOPS.items():
        with loaded(loop, rows) as database:
            steps_run = [step for step, _ in zip(steps_of(loop, database), range(steps), strict=False)]
        values = ", ".join(f"{value:.6g}" for value, _ in steps_run)
        table.add_row(name, values, f"{np.median([seconds for _, seconds in steps_run]):.4f}")
    CONSOLE.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8000, help="of X (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="of every loop (default: %(default)s)")
    asked = parser.parse_args()
    main(asked.rows, asked.steps)
