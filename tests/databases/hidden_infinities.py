"""Tensors of which a product turns infinite where nothing is joined with it."""

import numpy as np

import sparseeinsum as se

HIDDEN_INFINITIES = "T[i, j] = U[i] * V[j]\nY[j] = sum(A[i] * T[i, j])"


def load_hidden_infinities(db: se.Database, entries: list[int]) -> None:
    """A is 1 at some entries; its zeros alone meet T where that is infinite."""
    rows = np.zeros(1000)
    rows[entries] = 1
    db.tensor("A", rows, promoted=["dim_0"])
    db.tensor("U", np.where(np.arange(1000) == 990, 1e300, 1), promoted=["dim_0"])
    db.tensor("V", np.full(4, 1e300), promoted=["dim_0"])
