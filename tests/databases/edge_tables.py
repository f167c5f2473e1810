"""A table of edges that tests refer to as a tensor: what it holds, and the tensor that it is."""

from pathlib import Path

import numpy as np
from reading import read_back

import sparseeinsum as se

EDGES = "CREATE TABLE edges AS FROM (VALUES (0, 1, 1.5::DOUBLE), (2, 0, 2.5), (2, 1, -1.0)) AS t(src, dst, w)"
MATRIX = np.array([[0, 1.5, 0], [0, 0, 0], [2.5, -1, 0]])
ROW_SUMS = "Y[i] = sum(A[i, j])"


def refer(db: se.Database, relation: str | Path, shape: tuple[int, ...] | None = (3, 3)) -> None:
    """Make the relation the tensor A, and see that it reads as the matrix; without a shape its last column is lost."""
    db.tensor_from_table("A", relation, index=["src", "dst"], value="w", shape=shape)
    np.testing.assert_array_equal(read_back(db, "A"), MATRIX if shape else MATRIX[:, :2])
