"""A sparse and a dense matrix in a database, and programs of them."""

import numpy as np
import scipy.sparse as sp

import sparseeinsum as se

A = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
B = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 6.0]])
PRODUCT = "Y[i, k] = sum(A[i, j] * B[j, k])"
SHARED = "T[i, k] = sum(A[i, j] * B[j, k])\nY[i] = sum(T[i, k])\nZ[k] = max(T[i, k])"  # T is materialised


def load(db: se.Database) -> se.Database:
    """Load both matrices; return the database."""
    db.tensor("A", sp.csr_array(A))
    db.tensor("B", B)
    return db
