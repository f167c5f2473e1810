"""Results of every layout are indexed, iterated and converted as numpy's arrays are, without a dense array of all."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from random_runs import examples

import sparseeinsum as se
from sparseeinsum.results import array_interface

SHAPE = (3, 4, 5)
CUBE = np.where(np.arange(60) % 7 < 2, np.arange(60), 0.5).reshape(SHAPE)
LAYOUTS = ["I, J, K", "I, j, k", "i, J, k", "I:2, J, k", "I:2, J:3, K:2", "i, j, k"]


@pytest.fixture(params=LAYOUTS, scope="module")
def cube(shared_db: se.Database, request: pytest.FixtureRequest) -> se.TensorResult:
    shared_db.tensor("A", np.where(CUBE == 0.5, 0.0, CUBE - 0.5), axes=["i", "j", "k"])
    result = shared_db.run(f"Y[{request.param}] = A[{request.param}] + 0.5", layout="any")["Y"]
    assert result.fill == 0.5
    return result


@pytest.fixture
def matrix(shared_db: se.Database) -> se.TensorResult:
    shared_db.tensor("M", np.arange(6).reshape(2, 3))
    return shared_db.run("Y[i, j] = M[i, j]")["Y"]


def sparse_result(db: se.Database, size: int) -> se.TensorResult:
    """A square matrix with three entries."""
    db.tensor("Large", ([[0, 7, size - 1], [5, 2, size - 1]], [1.0, 2.0, 3.0]), shape=(size, size))
    return db.run("Y[i, j] = Large[i, j]")["Y"]


def outcome(array: Any, index: object) -> object:  # noqa: ANN401  # an array or a result
    try:
        return array[index]
    except IndexError as error:
        return str(error).strip()


def assert_equal_outcomes(result: se.TensorResult, array: NDArray[Any], index: object) -> None:
    actual, expected = outcome(result, index), outcome(array, index)
    if isinstance(expected, np.ndarray) and not expected.size and "out of bounds" in str(actual):
        return  # numpy checks no index where another one is empty
    assert type(actual) is type(expected)
    np.testing.assert_array_equal(actual, expected)


def items(bound: int) -> st.SearchStrategy[Any]:
    """What may stand for one axis: an index, a slice, or an array of indices or booleans."""
    numbers = st.lists(st.integers(-bound, bound - 1), max_size=4)
    return (
        st.integers(-bound, bound - 1)
        | st.slices(bound)
        | numbers
        | numbers.map(lambda chosen: np.array(chosen, np.int8).reshape(-1, 1))
        | st.lists(st.booleans(), min_size=bound, max_size=bound).map(np.array)
        | st.none()
    )


@settings(max_examples=examples(60))
@given(data=st.data())
def test_index_is_as_in_numpy(cube: se.TensorResult, data: st.DataObject) -> None:
    """Arrays together, apart, of several shapes, among slices and new axes."""
    index = data.draw(st.tuples(*map(items, SHAPE)) | st.tuples(*map(items, SHAPE[:2])))
    try:
        CUBE[index]
    except IndexError:  # shapes of arrays that do not broadcast, or too many or too few new axes
        with pytest.raises(IndexError):
            cube[index]
        return
    assert_equal_outcomes(cube, CUBE, index)


@settings(max_examples=40)
@given(index=arrays.basic_indices(SHAPE, allow_newaxis=True))
def test_basic_index_is_as_in_numpy(cube: se.TensorResult, index: Any) -> None:  # noqa: ANN401
    np.testing.assert_array_equal(cube[index], CUBE[index])


@pytest.mark.parametrize(
    "index",
    [
        3,
        (0, 0, 0, 0),
        (0, -5),
        [0, 3],
        (slice(None), [1, 2], [0, 9]),
        "a",
        0.5,
        (..., ...),
        [0.5],
        np.ones((3, 3), bool),
        np.ones((3, 4), bool),
        CUBE > 20,
        np.uint64(2),
        (np.array(1), slice(None), np.array([[0, 1], [2, 3]])),
        ([0, 1], [0, 1, 2]),
        2**70,
        [],
        (),
        slice(10**12, None, -(10**12)),
    ],
    ids=str,
)
def test_index_and_its_error_are_as_in_numpy(matrix: se.TensorResult, shared_db: se.Database, index: object) -> None:
    shared_db.tensor("C", CUBE, axes=["i", "j", "k"])
    assert_equal_outcomes(shared_db.run("Y[i, j, k] = C[i, j, k]")["Y"], CUBE, index)


def test_iteration(cube: se.TensorResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_interface, "_ITERATED", 2 * 20)  # two indices of the first axis at a time
    assert len(cube) == 3
    np.testing.assert_array_equal(list(cube), CUBE)
    np.testing.assert_array_equal([list(row) for row in cube[1]], CUBE[1])


def test_conversion_by_numpy(cube: se.TensorResult, matrix: se.TensorResult) -> None:
    np.testing.assert_array_equal(np.asarray(cube), CUBE)
    assert np.asarray(cube, dtype="float32").dtype == np.float32
    np.testing.assert_array_equal(np.from_dlpack(cube), CUBE)
    np.testing.assert_array_equal(CUBE + cube, 2 * CUBE)
    np.testing.assert_array_equal(np.sum(cube, axis=0), CUBE.sum(axis=0))
    assert (matrix.dtype, matrix.ndim, matrix.size, matrix.shape) == (np.dtype("int64"), 2, 6, (2, 3))
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.array(matrix, copy=False)
    array = np.array(matrix)
    array[0, 0] = 7  # the result stays as it is
    assert matrix[0, 0] == 0


@pytest.mark.parametrize("convert", [float, int, bool, complex, len, iter, operator.methodcaller("item")])
@pytest.mark.parametrize("left", ["Y[]", "Y[i]", "Y[i, j]"])
def test_numbers_of_python_are_as_in_numpy(shared_db: se.Database, convert: Callable[[Any], Any], left: str) -> None:
    """A result converts if it has one value; the errors are numpy's."""
    for array in (np.array([[2.5]]), np.array([[1.5, 2.5], [0.0, 1.0]]), np.zeros((0, 2))):
        shared_db.tensor("A", array)
        result = shared_db.run(f"{left} = sum(A[i, j])" if left != "Y[i, j]" else f"{left} = A[i, j]")["Y"]
        dense = result.to_numpy()
        try:
            expected = convert(dense)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)) as caught:
                convert(result)
            assert str(caught.value) == str(error)
        else:
            if convert is not iter:
                assert (convert(result), type(convert(result))) == (expected, type(expected))


def test_scalar_shows_its_value(shared_db: se.Database) -> None:
    shared_db.tensor("A", np.array([1.5, 2.0]))
    total = shared_db.run("S[] = sum(A[i])")["S"]
    assert "│ 3.5 │" in repr(total)
    assert (f"{total:.2f}", f"{total}") == ("3.50", str(total))


def test_parts_of_results_beyond_memory(shared_db: se.Database) -> None:
    """Single values, slices and arrays of indices need no dense array; what needs one is refused by name."""
    assert sparse_result(shared_db, 1 << 40)[7, 2] == 2
    size = 1 << 30
    result = sparse_result(shared_db, size)
    assert (result[7, 2], result[7, 3], result[-1, -1]) == (2, 0, 3)
    assert result[:10, :6].sum() == 3
    assert result[[0, 0, size - 1, 7], [5, 6, -1, 2]].tolist() == [1, 0, 3, 2]
    assert next(iter(result[:3, 5])) == 1
    for attempt in (
        result.to_numpy,
        result.to_xarray,
        lambda: np.asarray(result),
        lambda: np.from_dlpack(result),
    ):
        with pytest.raises(se.ResultSizeError, match=r"Y as a dense array .*bytes.*by to_scipy\(\), to_sparse\(\)"):
            attempt()
    assert issubclass(se.ResultSizeError, MemoryError)
    assert result.to_sparse().nnz == 3
