"""Formulas of machine learning, as people write them: losses and inner loops of five algorithms (SPORES, section 4.2).

X is sparse, rows by columns; U, V and the like are dense and narrow, others are vectors.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

import sparseeinsum as se
from sparseeinsum.examples import Matrix

RANK = 10
DENSITY = 0.001
EPSILON = 1e-3

X = se.matrix("X")
U, V, W, H = (se.matrix(name) for name in ("U", "V", "W", "H"))
P = se.vector("P")
labels, weights, direction = (se.vector(name) for name in ("labels", "weights", "direction"))


@dataclass(frozen=True)
class Formula:
    """Something to compute, and from which tensors.

    Attributes:
        build: The results, by name.
        tensors: What they read besides X: for each the axes, rows of X, columns of X, or a rank.
    """

    build: Callable[[], Mapping[str, se.Matrix]]
    tensors: Mapping[str, str]


def _glm() -> dict[str, se.Matrix]:
    """A conjugate gradient's product with the Hessian of logistic regression."""
    return {"G": X.T @ (P * (1 - P) * (X @ direction)) + 0.1 * direction}


def _svm() -> dict[str, se.Matrix]:
    """Objective and gradient of an L2 support vector machine."""
    out = (1 - labels * (X @ weights)).relu().named("margin")
    return {"loss": (out**2).sum() * 0.5 + 0.05 * (weights.T @ weights), "G": 0.1 * weights - X.T @ (out * labels)}


FORMULAS: dict[str, Formula] = {
    "sum((X - U V')^2)": Formula(lambda: {"L": ((X - U @ V.T) ** 2).sum()}, {"U": "rk", "V": "ck"}),
    "sum((X + U V')^2)": Formula(lambda: {"L": ((X + U @ V.T) ** 2).sum()}, {"U": "rk", "V": "ck"}),
    "ALS: (U V' - X) V + 0.1 U": Formula(lambda: {"G": (U @ V.T - X) @ V + 0.1 * U}, {"U": "rk", "V": "ck"}),
    "PNMF: sum(W H)": Formula(lambda: {"S": (W @ H.T).sum()}, {"W": "rk", "H": "ck"}),
    "PNMF: X' W / colsums": Formula(lambda: {"G": H * (X.T @ W) / (H * W.colsums() + EPSILON)}, {"W": "rk", "H": "ck"}),
    "MLR: P X - P P X": Formula(lambda: {"G": P * X - P * P * X}, {"P": "r"}),
    "MLR: X'(Q - P rowsums(Q))": Formula(
        lambda: {"G": X.T @ (U * (X @ V) - U * (U * (X @ V)).rowsums())}, {"U": "rk", "V": "ck"}
    ),
    "GLM: X'(P (1 - P) (X d))": Formula(_glm, {"P": "r", "direction": "c"}),
    "SVM: loss and gradient": Formula(_svm, {"labels": "r", "weights": "c"}),
}


def tensors_of(formula: Formula, rows: int, columns: int) -> dict[str, Matrix]:
    """X and the other tensors of a formula, always the same."""
    random = np.random.default_rng(0)
    bounds = {"r": rows, "c": columns, "k": RANK}
    sparse: Any = scipy.sparse.random_array((rows, columns), density=DENSITY, rng=random)
    dense = {name: random.random([bounds[axis] for axis in axes]) for name, axes in formula.tensors.items()}
    return {"X": scipy.sparse.csr_array(sparse), **dense}
