"""Every kind of source reads back as it was loaded."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from reading import column_types, read_back

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

MATRIX = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4)
SPARSE_CUBE = np.where(CUBE % 7 == 3, CUBE, 0.0)
ROWS = {"src": [0, 1, 1], "dst": [1, 0, 2], "weight": [1.5, 2.0, -3.0]}  # MATRIX as a frame


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(CUBE, id="dense"),
        pytest.param(SPARSE_CUBE, id="mostly zeros"),
        pytest.param(np.asfortranarray(CUBE), id="Fortran order"),
        pytest.param(CUBE[:, ::2, ::-1], id="not contiguous"),
        pytest.param(np.broadcast_to(MATRIX[0], (4, 3)), id="broadcast"),
        pytest.param(CUBE.astype(">f8"), id="other byte order"),
        pytest.param(SPARSE_CUBE.astype(">f8"), id="other byte order, mostly zeros"),
        pytest.param(np.arange(5.0), id="one axis"),
        pytest.param(np.array(3.5), id="no axis"),
        pytest.param(np.array([np.nan, np.inf, -np.inf, 0.0]), id="not finite"),
    ],
)
def test_array_is_read_back(shared_db: se.Database, array: NDArray[Any]) -> None:
    shared_db.tensor("A", array)
    result = read_back(shared_db, "A")
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("promoted", [[], ["dim_0"], ["dim_1"], ["DIM_0", "dim_2"], ["dim_0", "dim_1", "dim_2"]])
def test_array_is_stored_as_promoted(shared_db: se.Database, promoted: list[str]) -> None:
    stored = shared_db.tensor("A", CUBE, promoted=promoted)
    assert stored.keys == tuple(axis.lower() for axis in promoted)
    assert [*column_types(shared_db, "A")] == [*stored.keys, "val"]
    np.testing.assert_array_equal(read_back(shared_db, "A"), CUBE)


def test_layout_follows_density(shared_db: se.Database) -> None:
    assert shared_db.tensor("A", CUBE).keys == ("dim_0",)
    assert shared_db.tensor("A", SPARSE_CUBE).keys == ("dim_0", "dim_1", "dim_2")
    assert shared_db.connection.execute("SELECT COUNT(*) FROM A").fetchall() == [(np.count_nonzero(SPARSE_CUBE),)]


def test_large_slices_are_cut_along_more_axes(shared_db: se.Database) -> None:
    stored = shared_db.tensor("A", np.ones((2, 3, 1 << 17)))
    assert stored.keys == ("dim_0", "dim_1")


@pytest.mark.parametrize("data", [[[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]], ((0.0, 1.5), (2.0, 0.0), (1.0, 1.0))])
def test_nested_sequences_are_arrays(shared_db: se.Database, data: object) -> None:
    shared_db.tensor("A", data)
    np.testing.assert_array_equal(read_back(shared_db, "A"), np.array(data, float))


@pytest.mark.parametrize("number", [2.5, np.float64(2.5), np.float32(2.5), np.array(2.5)])
def test_number_is_a_tensor_without_axes(shared_db: se.Database, number: object) -> None:
    assert shared_db.tensor("A", number).tensor.shape == ()
    assert read_back(shared_db, "A") == 2.5


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (3, 0), (1, 1), (1, 0, 1), (0, 0)])
@pytest.mark.parametrize("promotes", [False, True])
def test_bounds_0_and_1(shared_db: se.Database, shape: tuple[int, ...], promotes: bool) -> None:
    axes = [f"dim_{position}" for position in range(len(shape))]
    for array in (np.zeros(shape), np.ones(shape)):
        shared_db.tensor("A", array, promoted=axes if promotes else None)
        result = read_back(shared_db, "A")
        assert result.shape == shape
        np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dia", "bsr", "lil", "dok"])
def test_sparse_matrix_is_read_back(shared_db: se.Database, layout: str, kind: str) -> None:
    stored = shared_db.tensor("A", getattr(sp, f"{layout}_{kind}")(MATRIX))
    assert stored.keys == ("dim_0", "dim_1")
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_sparse_arrays_of_other_ranks(shared_db: se.Database) -> None:
    shared_db.tensor("A", sp.coo_array(SPARSE_CUBE))
    np.testing.assert_array_equal(read_back(shared_db, "A"), SPARSE_CUBE)
    shared_db.tensor("A", sp.coo_array(MATRIX[0]))
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX[0])


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (4, 0), (1, 1)])
def test_sparse_matrix_without_entries(shared_db: se.Database, shape: tuple[int, int]) -> None:
    shared_db.tensor("A", sp.csr_array(shape))
    np.testing.assert_array_equal(read_back(shared_db, "A"), np.zeros(shape))


def test_explicit_zeros_are_no_entries(shared_db: se.Database) -> None:
    shared_db.tensor("A", sp.coo_array(([0.0, 1.0], ([0, 1], [1, 1])), shape=(2, 2)))
    assert shared_db.statistics("A").entries == 1
    np.testing.assert_array_equal(read_back(shared_db, "A"), [[0, 0], [0, 1]])


def test_unsummed_duplicates_are_refused_or_summed(shared_db: se.Database) -> None:
    twice = sp.coo_array(([1.0, 4.0, 2.0], ([0, 1, 0], [1, 1, 1])), shape=(2, 2))
    with pytest.raises(se.DataError, match=r"tensor A, row 2 .*coordinate \(0, 1\).*duplicates='sum'"):
        shared_db.tensor("A", twice)
    shared_db.tensor("A", twice, duplicates="sum")
    np.testing.assert_array_equal(read_back(shared_db, "A"), twice.toarray())


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(pd.DataFrame, id="pandas"),
        pytest.param(pl.DataFrame, id="polars"),
        pytest.param(pa.table, id="arrow"),
        pytest.param(lambda rows: pa.table(rows).to_reader(), id="reader"),
        pytest.param(lambda rows: pa.concat_tables([pa.table(rows)[:1], pa.table(rows)[1:]]), id="chunks"),
        pytest.param(
            lambda rows: pd.DataFrame(rows).set_index("src", append=True).reset_index("src"), id="reset index"
        ),
        pytest.param(lambda rows: pd.DataFrame(rows).astype({"src": "uint8", "dst": "Int64"}), id="other integers"),
    ],
)
def test_frame_is_read_back(shared_db: se.Database, make: Callable[[Any], object]) -> None:
    stored = shared_db.tensor("A", make(ROWS))
    assert [axis.name for axis in stored.tensor.axes] == ["src", "dst"]
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_frame_takes_axes_shape_and_dtype(shared_db: se.Database) -> None:
    stored = shared_db.tensor("A", pd.DataFrame(ROWS), axes=["From", "To"], shape=(4, 5), dtype="float32")
    assert [axis.name for axis in stored.tensor.axes] == ["from", "to"]
    expected = np.zeros((4, 5), np.float32)
    expected[:2, :3] = MATRIX
    np.testing.assert_array_equal(read_back(shared_db, "A"), expected)


def test_empty_frame(shared_db: se.Database) -> None:
    shared_db.tensor("A", pd.DataFrame(ROWS)[:0], shape=(2, 3))
    np.testing.assert_array_equal(read_back(shared_db, "A"), np.zeros((2, 3)))
    assert shared_db.tensor("A", pd.DataFrame(ROWS)[:0]).tensor.shape == (0, 0)


def test_frame_of_values_alone_is_a_number(shared_db: se.Database) -> None:
    shared_db.tensor("A", pd.DataFrame({"v": [2.5]}))
    assert read_back(shared_db, "A") == 2.5


@pytest.mark.engines("postgresql", reason="in DuckDB an entry takes a third of what it takes there")
def test_large_sparse_matrices_are_stored_in_arrays_if_smaller(db: se.Database) -> None:
    matrix = sp.csr_array(sp.random_array((800, 1000), density=0.5, rng=np.random.default_rng(0)))
    assert db.tensor("A", matrix, fill=np.inf).decomposition.tiles == (1, 0)
    expected = np.where(matrix.toarray() == 0, np.inf, matrix.toarray())
    np.testing.assert_array_equal(db.run("Y[i] = min(A[i, j])")["Y"].to_numpy(), expected.min(axis=1))
    assert db.tensor("A", matrix[:, :700]).decomposition.is_scalar  # too small
    assert db.tensor("A", matrix, order=["dim_1"]).decomposition.is_scalar
    assert db.tensor("A", matrix, promoted=["dim_0", "dim_1"]).decomposition.is_scalar


class TestLongArrays:
    """DuckDB reads the arrays of 2,048 rows at once, so long arrays are cut."""

    @pytest.mark.engines("duckdb", reason="PostgreSQL reads a row at a time")
    @pytest.mark.parametrize(
        ("shape", "tiles"),
        [
            ((3000, 2048), (1, 0)),
            ((3000, 2500), (1, 500)),
            ((3000, 2049), (1, 512)),  # into 5 tiles, the last of 1: 2,049 is 3 times 683
            ((2500, 50, 42), (1, 10, 0)),
            ((2, 1000, 71, 40), (1, 1, 8, 0)),
            ((3000, 1000), (1, 0)),  # which takes 16 MB
            ((100, 4000), (1, 0)),  # a hundred rows
        ],
    )
    def test_are_cut(self, db: se.Database, shape: tuple[int, ...], tiles: tuple[int, ...]) -> None:
        array = np.random.default_rng(0).random(shape)
        assert db.tensor("A", array).decomposition.tiles == tiles
        labels = "ijkl"[: len(shape)]
        result = db.run(f"y[{labels[0]}] = sum(A[{', '.join(labels)}])")["y"].to_numpy()
        np.testing.assert_allclose(result, array.reshape(shape[0], -1).sum(axis=1))

    @pytest.mark.engines("duckdb", "postgresql")
    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_, np.complex128])
    @pytest.mark.parametrize(
        ("shape", "promoted"),
        [
            ((5, 11), {"dim_0": 1, "dim_1": 4}),
            ((5, 12), {"dim_1": 4}),
            ((5, 3), {"dim_0": 2, "dim_1": 4}),
            ((4, 5, 6), {"dim_1": 2}),
            ((4, 5, 6), {"dim_2": 1, "dim_0": 3}),
            ((4, 5, 6), {"dim_1": 1, "dim_0": 3, "dim_2": 4}),
            ((4, 0), {"dim_0": 1, "dim_1": 4}),
            ((7,), {"dim_0": 3}),
        ],
    )
    def test_in_tiles_are_read_back(
        self, shared_db: se.Database, shape: tuple[int, ...], promoted: dict[str, int], dtype: type
    ) -> None:
        array: np.ndarray[Any, Any] = (np.arange(math.prod(shape)).reshape(shape) % 5).astype(dtype)
        shared_db.tensor("A", array, promoted=promoted)
        np.testing.assert_array_equal(read_back(shared_db, "A"), array)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "uint64", ">i4"])
def test_coordinates_are_read_back(shared_db: se.Database, dtype: str) -> None:
    coordinates = np.array([ROWS["src"], ROWS["dst"]]).astype(dtype)
    shared_db.tensor("A", (coordinates, ROWS["weight"]))
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_coordinates_without_entries(shared_db: se.Database) -> None:
    shared_db.tensor("A", ([[], []], []), shape=(2, 3))
    np.testing.assert_array_equal(read_back(shared_db, "A"), np.zeros((2, 3)))


def test_coordinates_beyond_32_bits(shared_db: se.Database) -> None:
    far = 1 << 40
    stored = shared_db.tensor("A", ([[0, far], [1, 2]], [1.0, 2.0]))
    assert stored.tensor.shape == (far + 1, 3)
    np.testing.assert_array_equal(shared_db.run("Y[j] = sum(A[i, j])")["Y"].to_numpy(), [0, 1, 2])


def test_duplicates_are_summed(shared_db: se.Database) -> None:
    shared_db.tensor("A", ([[1, 0, 1, 1]], np.array([1.0, 2.0, 4.0, 8.0], np.float32)), duplicates="sum", shape=(3,))
    assert shared_db.tensors()["A"].tensor.dtype == "float32"
    np.testing.assert_array_equal(read_back(shared_db, "A"), [2, 13, 0])


def test_columns_of_every_source_have_the_same_names(shared_db: se.Database) -> None:
    sources: list[object] = [MATRIX, sp.csr_array(MATRIX), (np.array(np.nonzero(MATRIX)), MATRIX[MATRIX != 0])]
    for data in sources:
        stored = shared_db.tensor("A", data, axes="ij", shape=(2, 3))
        assert [axis.name for axis in stored.tensor.axes] == ["i", "j"]
        np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_tensors_are_replaced(shared_db: se.Database) -> None:
    for data in (CUBE, sp.csr_array(MATRIX), MATRIX.astype(np.float32), 5.0, CUBE):
        shared_db.tensor("A", data)
        expected = data.toarray() if sp.issparse(data) else np.asarray(data)
        np.testing.assert_array_equal(read_back(shared_db, "A"), expected)


def test_dense_data_have_no_duplicates_to_add(db: se.Database) -> None:
    array = np.arange(6.0).reshape(2, 3)
    db.tensor("A", array, duplicates="sum")
    np.testing.assert_array_equal(db.run("C[i, j] = A[i, j]")["C"].to_numpy(), array)


def test_unknown_treatment_of_duplicates(shared_db: se.Database) -> None:
    with pytest.raises(ValueError, match="duplicates 'mean' is neither 'error' nor 'sum'"):
        shared_db.tensor("A", MATRIX, duplicates="mean")
