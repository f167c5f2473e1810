"""Loops with `deterministic=True` give equal bits in every run: the training of a small graph network, with dropout."""

import numpy as np
import pytest
import scipy.sparse as sp

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

NODES, FEATURES, HIDDEN, CLASSES = 60, 40, 8, 3
STEP = """
include "nn"
include "optim"
state W1, W2, M1, M2, V1, V2
H[i, h] = relu(gcn(N, dropout(X, 0.5, 1, step), W1)[i, h])
Z[i, c] = gcn(N, dropout(H, 0.5, 2, step), W2)[i, c]
loss = cross_entropy(Z, Y) + 5e-4 * l2(W1)
next_M1 = adam_mean(M1, gradient(loss, W1))
next_M2 = adam_mean(M2, gradient(loss, W2))
next_V1 = adam_square(V1, gradient(loss, W1))
next_V2 = adam_square(V2, gradient(loss, W2))
next_W1 = adam(W1, next_M1, next_V1, step, 0.01)
next_W2 = adam(W2, next_M2, next_V2, step, 0.01)
"""


def load(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    graph = sp.random_array((NODES, NODES), density=0.1, rng=rng, format="coo")
    db.tensor("N", graph)
    db.tensor("X", sp.random_array((NODES, FEATURES), density=0.2, rng=rng, format="coo"))
    db.tensor("Y", np.eye(CLASSES)[rng.integers(CLASSES, size=NODES)])


def trained(db: se.Database, commit: float) -> list[bytes]:
    """The bits of the history and of the weights after a few steps from the same start."""
    rng = np.random.default_rng(1)
    for weights, shape in (("1", (FEATURES, HIDDEN)), ("2", (HIDDEN, CLASSES))):
        db.tensor("W" + weights, rng.normal(size=shape))
        for moment in "MV":
            db.tensor(moment + weights, np.zeros(shape))
    result = db.iterate(STEP, steps=6, history=["loss"], deterministic=True, commit_seconds=commit)
    loss = result.history["loss"].to_numpy()
    assert loss[-1] < loss[0]
    values = [db.run(f"copy[i, j] = {name}[i, j]")["copy"].to_numpy() for name in ("W1", "W2")]
    return [array.tobytes() for array in (loss, *values)]


def test_training_gives_equal_bits(db: se.Database) -> None:
    load(db)
    assert trained(db, np.inf) == trained(db, 0)
