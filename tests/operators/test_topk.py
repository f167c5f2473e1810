"""The k largest or smallest values of each row are numpy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.results.greatest import EntriesByRow

X = np.array([[0.0, 3, -1, 3], [-2, -3, 0, -1], [0, 0, 0, 0], [np.nan, 5, np.nan, np.inf]])


def sorted_indices(x: NDArray[np.float64], least: bool) -> NDArray[np.int64]:
    """Indices sorted by numpy, row by row: NaN first, then by value, then by index."""
    orders = [np.lexsort((row if least else -row, ~np.isnan(row))) for row in x]  # which is stable
    return np.array(orders, np.int64).reshape(x.shape)


VALUES = st.sampled_from([-np.inf, -1.0, 0.0, 0.0, 1.0, 1.0, 2.0, np.nan, np.inf])


@given(st.data(), st.sampled_from([0.0, 1.0, -np.inf, np.inf]), st.booleans())
def test_rows_of_entries(data: st.DataObject, fill: float, least: bool) -> None:
    count, bound = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 7))
    x = np.array(data.draw(st.lists(VALUES, min_size=count * bound, max_size=count * bound))).reshape(count, bound)
    row, index = (place.astype(np.int64) for place in np.nonzero(x != fill))
    most = data.draw(st.integers(1, bound))
    values, indices = EntriesByRow(count, bound, fill, row, index, x[row, index]).greatest(most, least)
    expected = sorted_indices(x, least)[:, :most]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis=1))


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("layout", ["entries", "any"])
@pytest.mark.parametrize("fill", [0, 3])
def test_results(db: se.Database, fill: float, layout: str) -> None:
    db.tensor("X", X, fill=fill)
    result = db.run("Y[i, j] = X[i, j]", layout=layout, nonfinite="allow")["Y"]
    for least in (False, True):
        for axis, x in (("j", X), ("I", X.T)):
            values, indices = result.topk(3, axis, least)
            expected = sorted_indices(x, least)[:, :3]
            np.testing.assert_array_equal(indices, expected)
            np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis=1))


@pytest.mark.parametrize("dtype", ["int64", "bool", "float32"])
def test_dtypes_and_axes(db: se.Database, dtype: str) -> None:
    x = np.random.default_rng(0).integers(-1, 2, (3, 4, 5)).astype(dtype)
    if dtype == "int64":
        x[0, 0, :2] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    db.tensor("X", x)
    values, indices = db.run("Y[i, j, k] = X[i, j, k]")["Y"].topk(2, "j")
    assert (values.dtype, values.shape, indices.shape) == (x.dtype, (3, 5, 2), (3, 5, 2))
    moved = np.moveaxis(x, 1, 2)
    np.testing.assert_array_equal(indices[..., 0], moved.argmax(axis=2))
    np.testing.assert_array_equal(np.take_along_axis(moved, indices, axis=2), values)
    np.testing.assert_array_equal(values, np.sort(moved, axis=2)[..., :-3:-1])
    values, indices = db.run("Y[k] = max(X[i, j, k])")["Y"].topk(1)
    assert (values.shape, indices.shape) == ((1,), (1,))


def test_invalid_calls(db: se.Database) -> None:
    db.tensor("X", X)
    result = db.run("Y[i, j] = X[i, j]", nonfinite="allow")["Y"]
    for count in (0, 5):
        with pytest.raises(se.ShapeError, match=f"axis j of Y has 4 indices; {count} are asked for"):
            result.topk(count)
    with pytest.raises(se.ShapeError, match="Y has no axis k; it has i, j"):
        result.topk(1, "k")
    with pytest.raises(se.ShapeError, match="Y has no axis at all; it has one value"):
        db.run("Y[] = sum(X[i, j])", nonfinite="allow")["Y"].topk(1)
    db.tensor("C", np.array([1j]))
    with pytest.raises(se.SemanticsError, match="complex numbers have no order"):
        db.run("Y[i] = C[i]")["Y"].topk(1)
