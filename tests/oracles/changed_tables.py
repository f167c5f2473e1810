"""The tensors that tables of a program stand for after changes, and the result of its sum A[i, j] * X[j]."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import sparseeinsum as se
from sparseeinsum.results.results import Results

SIZE = 4  # of every axis of a tensor that the catalogue lists


def tensor_of(columns: Sequence[str], rows: Sequence[Sequence[Any]], keys: Sequence[str] | int) -> np.ndarray | None:
    """The tensor of one index more than SIZE in every axis; None if the rows are none.

    Args:
        columns: The columns of the table.
        rows: Its rows.
        keys: The columns of indices; their number if the catalogue lists no tensor, whose table is then read by its
            columns in their order, and may have one index more.
    """
    bound = SIZE if not isinstance(keys, int) else SIZE + 1
    keys = keys if not isinstance(keys, int) else columns[:keys]
    if not {*keys, "val"} <= set(columns):
        return None
    result = np.zeros((SIZE + 1,) * len(keys))
    entries = [(tuple(row[columns.index(key)] for key in keys), row[columns.index("val")]) for row in rows]
    places = {place for place, _ in entries}
    if len(places) < len(rows) or not all(set(place) <= set(range(bound)) for place in places):
        return None
    for place, value in entries:
        if value is None:
            return None
        result[place] = value
    return result


def check_product(run: Callable[[], Results], matrix: np.ndarray | None, vector: np.ndarray | None) -> None:
    """Assert that a run fails with an error, or returns the product of what the tables hold, as far as it has them."""
    try:
        actual = run()["Y"].to_numpy()
    except se.SparseEinsumError:
        return
    assert matrix is not None
    assert vector is not None
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(actual, (matrix @ vector)[: len(actual)])
