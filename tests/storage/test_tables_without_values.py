"""A table without a value column is a tensor of ones, whose absent rows hold the fill in every kind of join."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.operators.dtypes import Number

pytestmark = pytest.mark.engines("duckdb", "postgresql")

A = np.maximum(np.arange(16.0).reshape(4, 4) - 5, 0)

# Each needs an outer join, or rows for what is absent, in some plan.
ARITHMETIC: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "Y[i, j] = A[i, j] + B[i, j]": lambda b: A + b,
    "Y[i, k] = sum[j]((B[i, j] + 2) * A[j, k])": lambda b: (b + np.int64(2)) @ A,
}
OF_REAL_NUMBERS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "Y[i, j] = where(B[i, j] > 0.5, 7, A[i, j])": lambda b: np.where(b > 0.5, 7, A),
    "Y[i, j] = B[i, j] - 2 * B[j, i]": lambda b: b - 2 * b.T,
    "Y[i, j] = exp(B[i, j])": np.exp,
    "Y[i] = max[j](A[i, j] - B[i, j])": lambda b: (A - b).max(axis=1),
}


@pytest.mark.parametrize(("dtype", "fill"), [("float64", 0), ("int64", 3), ("bool", False), ("complex128", 0)])
def test_programs_are_numpys(shared_db: se.Database, dtype: str, fill: Number) -> None:
    shared_db.connection.execute("DROP TABLE IF EXISTS pairs")
    shared_db.connection.execute("CREATE TABLE pairs AS SELECT 0 AS a, 3 AS b UNION SELECT 0, 1 UNION SELECT 3, 0")
    shared_db.tensor_from_table("B", "pairs", ["a", "b"], shape=(4, 4), dtype=dtype, fill=fill)
    shared_db.tensor("A", A)
    dense = np.full((4, 4), fill, dtype)
    dense[[0, 0, 3], [3, 1, 0]] = 1
    programs = ARITHMETIC if dtype in ("bool", "complex128") else ARITHMETIC | OF_REAL_NUMBERS
    for program, expected in programs.items():
        for optimizer in ("dp", "relational", "dense"):
            result = shared_db.run(program, optimizer=optimizer)["Y"].to_numpy()
            np.testing.assert_allclose(result, expected(dense), err_msg=f"{program}, {optimizer}")
