"""Loading: every source is read back as it was, and bad data are refused by name, with the database as it was."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from reading import contents, read_back

import sparseeinsum as se

MATRIX = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4)
SPARSE_CUBE = np.where(CUBE % 7 == 3, CUBE, 0.0)
ROWS = {"src": [0, 1, 1], "dst": [1, 0, 2], "weight": [1.5, 2.0, -3.0]}  # MATRIX as a frame
KEYWORDS = ["select", "group", "order", "table"]
ODD_NAMES = ["a b", 'a"b', "a'b", "a.b", "größe", "1st", "a;b", "a\nb"]


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
    columns = [name for name, *_ in shared_db.connection.execute("DESCRIBE A").fetchall()]
    assert columns == [*stored.keys, "val"]
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


def test_float32_stays(shared_db: se.Database) -> None:
    stored = shared_db.tensor("A", MATRIX.astype(np.float32))
    result = read_back(shared_db, "A")
    assert stored.tensor.dtype == result.dtype.name == "float32"
    np.testing.assert_array_equal(result, MATRIX)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64", "bool", "float16", "longdouble"])
@pytest.mark.parametrize("wanted", ["float64", "float32"])
def test_other_numbers_become_the_dtype_asked_for(shared_db: se.Database, dtype: str, wanted: str) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    for data in (array, sp.coo_array(array) if dtype != "float16" else array):
        with pytest.raises(se.DataError, match=rf"tensor A has dtype {array.dtype.name}.*pass dtype='float64'"):
            shared_db.tensor("A", data)
        assert shared_db.tensor("A", data, dtype=wanted).tensor.dtype == wanted
        np.testing.assert_array_equal(read_back(shared_db, "A"), array.astype(wanted))


@pytest.mark.parametrize(
    ("number", "dtype", "wanted"),
    [
        (2**53 + 1, "int64", "float64"),
        (2**63 - 1, "int64", "float64"),
        (2**64 - 1, "uint64", "float64"),
        (2**24 + 1, "int32", "float32"),
        (-(2**53) - 1, "int64", "float64"),
        (1e300, "float64", "float32"),
    ],
)
def test_number_that_the_dtype_lacks_is_named(shared_db: se.Database, number: float, dtype: str, wanted: str) -> None:
    values = np.array([0, 1, number]).astype(dtype) if dtype != "uint64" else np.array([0, 1, number], dtype)
    for data in (values, ([[0, 1, 2]], values)):
        with pytest.raises(se.DataError, match=rf"tensor A, row 2 \(counted from 0\): .* is no {wanted}"):
            shared_db.tensor("A", data, dtype=wanted)
    with pytest.raises(se.DataError, match=rf"tensor A, element \(2, 0\): .* is no {wanted}"):
        shared_db.tensor("A", values[:, None], dtype=wanted)


def test_infinity_has_every_dtype(shared_db: se.Database) -> None:
    shared_db.tensor("A", np.array([np.inf, np.nan]), dtype="float32")
    np.testing.assert_array_equal(read_back(shared_db, "A"), np.array([np.inf, np.nan], np.float32))


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


def test_values_of_a_frame_of_other_types(shared_db: se.Database) -> None:
    for values in (pa.array([3]), pa.array([True]), pa.array([3], pa.decimal128(5, 2))):
        frame = pa.table({"i": [1], "v": values})
        with pytest.raises(se.DataError, match=r"tensor A.*dtype='float64'"):
            shared_db.tensor("A", frame)
        shared_db.tensor("A", frame, dtype="float64")
        np.testing.assert_array_equal(read_back(shared_db, "A"), [0, float(values[0].as_py())])


def test_empty_frame(shared_db: se.Database) -> None:
    shared_db.tensor("A", pd.DataFrame(ROWS)[:0], shape=(2, 3))
    np.testing.assert_array_equal(read_back(shared_db, "A"), np.zeros((2, 3)))
    assert shared_db.tensor("A", pd.DataFrame(ROWS)[:0]).tensor.shape == (0, 0)


def test_frame_of_values_alone_is_a_number(shared_db: se.Database) -> None:
    shared_db.tensor("A", pd.DataFrame({"v": [2.5]}))
    assert read_back(shared_db, "A") == 2.5


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


def test_columns_of_every_source_are_named_alike(shared_db: se.Database) -> None:
    sources: list[object] = [MATRIX, sp.csr_array(MATRIX), (np.array(np.nonzero(MATRIX)), MATRIX[MATRIX != 0])]
    for data in sources:
        stored = shared_db.tensor("A", data, axes="ij", shape=(2, 3))
        assert [axis.name for axis in stored.tensor.axes] == ["i", "j"]
        np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_tensor_gives_way_to_another(shared_db: se.Database) -> None:
    for data in (CUBE, sp.csr_array(MATRIX), MATRIX.astype(np.float32), 5.0, CUBE):
        shared_db.tensor("A", data)
        expected = data.toarray() if sp.issparse(data) else np.asarray(data)
        np.testing.assert_array_equal(read_back(shared_db, "A"), expected)


@dataclass(frozen=True)
class Refused:
    """Data that are no tensor, the error that they get, and what it says."""

    data: object
    error: type[se.SparseEinsumError]
    message: str
    options: dict[str, Any] = field(default_factory=dict)


def entries(*rows: tuple[Any, ...], types: tuple[pa.DataType, ...] = ()) -> pa.Table:
    """A table of rows (i, j, value)."""
    kinds = types or (pa.int64(), pa.int64(), pa.float64())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pa.table(columns, names=["i", "j", "v"])


REFUSED = {
    "NULL index": Refused(
        entries((0, 0, 1.0), (1, None, 1.0), (None, 2, 1.0)), se.DataError, r"row 1 \(counted.*column j is NULL; leave"
    ),
    "NULL value": Refused(
        entries((0, 0, 1.0), (1, 1, 1.0), (1, 2, None)), se.DataError, r"row 2 \(counted.*column v is NULL; leave"
    ),
    "NULL in pandas": Refused(
        pd.DataFrame({"i": [0, 1], "v": [1.0, np.nan]}), se.DataError, r"row 1 \(counted.*column v is NULL; leave"
    ),
    "NULL in polars": Refused(
        pl.DataFrame({"i": [0, None], "v": [1.0, 2.0]}), se.DataError, r"row 1 \(counted.*column i is NULL; leave"
    ),
    "NULL before summing": Refused(
        entries((0, 0, 1.0), (0, 0, None)), se.DataError, r"row 1 .*column v is NULL", {"duplicates": "sum"}
    ),
    "masked array": Refused(
        np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[False, False], [True, False]]),
        se.DataError,
        r"element \(1, 0\): the value is masked; fill",
    ),
    "negative index": Refused(
        ([[0, 1, -2, -1]], [1.0, 2.0, 3.0, 4.0]), se.DataError, r"row 2 \(counted.*index dim_0 is -2.*count from 0"
    ),
    "only negative indices": Refused(([[-3]], [1.0]), se.DataError, r"row 0 .*index dim_0 is -3"),
    "negative index before summing": Refused(
        ([[5, 5, 5, -1]], [1.0] * 4), se.DataError, r"row 3 .*index dim_0 is -1", {"duplicates": "sum"}
    ),
    "index beyond the bound": Refused(
        ([[0, 1, 2], [0, 3, 4]], [1.0, 2.0, 3.0]),
        se.DataError,
        r"row 1 \(counted.*index dim_1 is 3.*axis dim_1 has the bound 3.*larger shape",
        {"shape": (3, 3)},
    ),
    "index beyond 32 bits": Refused(
        ([[0, 1 << 40]], [1.0, 2.0]), se.DataError, rf"row 1 .*index dim_0 is {1 << 40}", {"shape": (3,)}
    ),
    "index beyond 63 bits": Refused(
        (np.array([[2**64 - 1]], np.uint64), [1.0]),
        se.DataError,
        rf"row 0 .*index dim_0 is {2**64 - 1}",
        {"shape": (3,)},
    ),
    "shape smaller than a frame": Refused(
        pd.DataFrame(ROWS),
        se.DataError,
        r"row 2 \(counted.*index dst is 2.*axis dst has the bound 2",
        {"shape": (2, 2)},
    ),
    "duplicate coordinate": Refused(
        entries((0, 1, 1.0), (1, 1, 1.0), (0, 1, 3.0)), se.DataError, r"row 2 .*\(0, 1\).*earlier row.*duplicates='sum'"
    ),
    "duplicate number": Refused(pd.DataFrame({"v": [1.0, 2.0]}), se.DataError, r"row 1 .*earlier row"),
    "string index": Refused(
        pd.DataFrame({"i": ["a", "b"], "v": [1.0, 2.0]}), se.DataError, r"index column i holds .*string; indices must"
    ),
    "float index": Refused(
        pd.DataFrame({"i": [0.0, 1.0], "v": [1.0, 2.0]}), se.DataError, r"index column i holds double; indices must"
    ),
    "bool index": Refused(
        entries((True, 0, 1.0), types=(pa.bool_(), pa.int64(), pa.float64())), se.DataError, "i holds"
    ),
    "value first": Refused(
        pd.DataFrame({"v": [1.0], "i": [0]}),
        se.DataError,
        r"index column v holds double.*value must be the last column",
    ),
    "float coordinates": Refused(
        (np.zeros((1, 2)), [1.0, 2.0]), se.DataError, r"coordinates of dtype float64; they must be whole numbers"
    ),
    "bound beyond 63 bits": Refused(
        pd.DataFrame(ROWS), se.ShapeError, rf"axis src of tensor A has the bound {2**70}", {"shape": (2**70, 3)}
    ),
    "no numbers": Refused(np.array(["a", "b"]), se.DataError, r"tensor A holds str.*no real number"),
    "objects": Refused(np.array([1.0, None]), se.DataError, r"tensor A holds object.*no real number"),
    "complex numbers": Refused(np.array([1j]), se.DataError, r"tensor A holds complex128.*no real number"),
    "complex numbers to convert": Refused(
        sp.csr_array(np.array([[1j]])), se.DataError, r"holds complex128.*no real number", {"dtype": "float64"}
    ),
    "dates": Refused(np.array(["2020-01-01"], "datetime64[D]"), se.DataError, r"tensor A holds datetime64"),
    "strings in a frame": Refused(
        pd.DataFrame({"i": [0], "v": ["x"]}), se.DataError, r"value column v holds .*string.*no real number"
    ),
    "arrays in a frame": Refused(pa.table({"i": [0], "v": [[1.0]]}), se.DataError, r"value column v holds list"),
    "mixed column": Refused(pd.DataFrame({"i": [0, "a"], "v": [1.0, 2.0]}), se.DataError, r"tensor A cannot be read"),
    "unknown dtype": Refused(MATRIX, se.DataError, r"dtype flaot64.*choose float64 or float32", {"dtype": "flaot64"}),
    "dtype of another kind": Refused(MATRIX, se.DataError, r"dtype int64.*choose float64", {"dtype": "int64"}),
    "rows of several lengths": Refused([[1.0, 2.0], [3.0]], se.DataError, r"tensor A is no array"),
    "dictionary": Refused({"a": 1}, se.DataError, r"cannot be made from dict; give a numpy array, a scipy.sparse"),
    "nothing": Refused(None, se.DataError, r"cannot be made from NoneType"),
    "frame without columns": Refused(pd.DataFrame(), se.DataError, r"table without columns; it needs index columns"),
    "two columns of a name": Refused(
        pa.table([[0], [1], [2.0]], names=["i", "i", "v"]), se.DataError, r"two columns named i; rename one"
    ),
    "shape of another rank": Refused(pd.DataFrame(ROWS), se.ShapeError, r"shape \(3,\).*2 axes", {"shape": (3,)}),
    "shape of another array": Refused(
        MATRIX, se.ShapeError, r"given shape \(3, 3\).*data have shape \(2, 3\)", {"shape": (3, 3)}
    ),
    "shape of another sparse matrix": Refused(
        sp.csr_array(MATRIX), se.ShapeError, r"given shape \(2, 4\).*data have shape \(2, 3\)", {"shape": (2, 4)}
    ),
    "negative bound": Refused(
        pd.DataFrame(ROWS), se.ShapeError, r"axis src .*bound -1; it must be", {"shape": (-1, 3)}
    ),
    "bound that is no whole number": Refused(
        pd.DataFrame(ROWS), se.ShapeError, r"shape \(2\.5, 3\); give a whole number", {"shape": (2.5, 3)}
    ),
    "shape that is a number": Refused(pd.DataFrame(ROWS), se.ShapeError, r"shape 3; give a whole number", {"shape": 3}),
    "too few coordinates": Refused(
        (np.zeros((2, 3), int), [1.0]), se.ShapeError, r"shape \(rank, n\) and n values; got \(2, 3\) and \(1,\)"
    ),
    "too few axis names": Refused(MATRIX, se.ShapeError, r"2 axes, but 1 names are given: i", {"axes": ["i"]}),
    "axis name twice": Refused(MATRIX, se.ShapeError, r"axis name twice: i, i", {"axes": ["i", "I"]}),
    "axis without a name": Refused(MATRIX, se.ShapeError, r"axis without a name; name it in axes", {"axes": ["i", ""]}),
    "axis named as the values": Refused(
        MATRIX, se.ShapeError, r"named 'val', which is the column", {"axes": ["Val", "j"]}
    ),
    "index column named as the values": Refused(
        pd.DataFrame({"val": [0], "v": [1.0]}), se.ShapeError, r"named 'val', which is the column"
    ),
    "unknown axis to promote": Refused(
        MATRIX, se.ShapeError, r"no axis x to promote; it has dim_0, dim_1", {"promoted": ["x"]}
    ),
    "entries promoted in part": Refused(
        pd.DataFrame(ROWS), se.DataError, r"all axes promoted; leave promoted out", {"promoted": ["src"]}
    ),
    "another fill": Refused(MATRIX, se.SemanticsError, r"tensor A has fill 1.*only 0 is", {"fill": 1}),
    "fill that is no number": Refused(MATRIX, se.SemanticsError, r"tensor A has fill nan", {"fill": float("nan")}),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_bad_data_are_refused_and_nothing_changes(shared_db: se.Database, case: Refused) -> None:
    shared_db.tensor("A", MATRIX)
    before = contents(shared_db)
    with pytest.raises(case.error, match=case.message) as caught:
        shared_db.tensor("A", case.data, **case.options)
    assert "tensor A" in str(caught.value)
    assert contents(shared_db) == before
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_axis_named_as_the_values_can_be_renamed(shared_db: se.Database) -> None:
    shared_db.tensor("A", pd.DataFrame({"val": [1], "v": [2.0]}), axes=["i"])
    np.testing.assert_array_equal(read_back(shared_db, "A"), [0, 2])


def test_unknown_way_with_duplicates(shared_db: se.Database) -> None:
    with pytest.raises(ValueError, match="duplicates 'mean' is neither 'error' nor 'sum'"):
        shared_db.tensor("A", MATRIX, duplicates="mean")


@pytest.mark.parametrize("name", [*KEYWORDS, "rowid", "value", "key_0", "row", "axis"])
def test_axes_and_index_columns_of_any_name(shared_db: se.Database, name: str) -> None:
    """Keywords, and words that the statistics use themselves."""
    shared_db.tensor("Dense", CUBE[0], axes=[name, "other"])
    shared_db.tensor("Sparse", pd.DataFrame({"other": ROWS["src"], name: ROWS["dst"], "v": ROWS["weight"]}))
    for optimizer in ("dp", "relational", "dense"):
        result = shared_db.run("Y[k, j] = sum(Sparse[k, i] * Dense[i, j])", optimizer=optimizer)["Y"]
        np.testing.assert_allclose(result.to_numpy(), MATRIX @ CUBE[0])


@pytest.mark.parametrize("name", [*KEYWORDS, "values", "force", "views", "main", "temp", "tensors", "val"])
def test_tensors_of_any_name(db: se.Database, name: str) -> None:
    db.tensor(name, MATRIX)
    np.testing.assert_array_equal(read_back(db, name), MATRIX)
    assert list(db.tensors()) == [name]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_quoted(db: se.Database, name: str) -> None:
    """A program cannot spell such names of tensors, but SQL can."""
    db.tensor(name, sp.csr_array(MATRIX), axes=[name, "j"])
    assert db.statistics(name).entries == 3
    quoted = '"' + name.replace('"', '""') + '"'
    assert db.connection.execute(f"SELECT {quoted}, j, val FROM {quoted} ORDER BY ALL").fetchall() == [
        (0, 1, 1.5),
        (1, 0, 2.0),
        (1, 2, -3.0),
    ]
    db.tensor("A", pd.DataFrame({name: [1], "v": [2.0]}))
    np.testing.assert_array_equal(read_back(db, "A"), [0, 2])


def test_tensor_needs_a_name(db: se.Database) -> None:
    with pytest.raises(se.CatalogueError, match="a tensor needs a name"):
        db.tensor("", MATRIX)
    assert contents(db) == {}


def test_names_that_differ_only_in_case(db: se.Database) -> None:
    db.tensor("Edges", MATRIX)
    before = contents(db)
    with pytest.raises(se.CatalogueError, match=r"there is a tensor Edges already.*choose another name"):
        db.tensor("edges", CUBE)
    assert contents(db) == before


@pytest.mark.parametrize("kind", ["TABLE", "VIEW", "TEMPORARY TABLE", "TEMPORARY VIEW"])
@pytest.mark.parametrize("name", ["A", "a"])
def test_tables_of_the_user_are_left_alone(db: se.Database, kind: str, name: str) -> None:
    db.connection.execute(f"CREATE {kind} {name} AS SELECT 42 AS answer")
    before = contents(db)
    with pytest.raises(se.CatalogueError, match=rf"there is a table or view {name} .*choose another name.*from_table"):
        db.tensor("A", MATRIX)
    assert contents(db) == before


def test_tables_in_other_schemas_are_in_no_ones_way(db: se.Database) -> None:
    db.connection.execute("CREATE SCHEMA other; CREATE TABLE other.A AS SELECT 42 AS answer")
    db.tensor("A", MATRIX)
    np.testing.assert_array_equal(read_back(db, "A"), MATRIX)
    assert db.connection.execute("FROM other.A").fetchall() == [(42,)]


def test_tensor_moves_with_the_schema(db: se.Database) -> None:
    db.tensor("A", MATRIX)
    db.connection.execute("CREATE SCHEMA other; USE other; CREATE TABLE B AS SELECT 42 AS answer")
    np.testing.assert_array_equal(read_back(db, "A"), MATRIX)
    assert db.tensor("A", CUBE).relation == "other.A"
    np.testing.assert_array_equal(read_back(db, "A"), CUBE)
    assert [name for name in contents(db) if name.endswith('"A"')] == ['"memory"."other"."A"']


def test_table_of_the_user_in_the_new_schema_is_left_alone(db: se.Database) -> None:
    db.tensor("A", MATRIX)
    db.connection.execute("CREATE SCHEMA other; USE other; CREATE TABLE A AS SELECT 42 AS answer")
    before = contents(db)
    with pytest.raises(se.CatalogueError, match="there is a table or view A"):
        db.tensor("A", CUBE)
    assert contents(db) == before


def test_row_numbers_that_the_user_named_do_not_split_scans(db: se.Database) -> None:
    """Scans of small tables are split by DuckDB's own rowid, which a column of that name hides."""
    tall = np.random.default_rng(0).random((20_000, 4))
    db.tensor("A", tall[::-1], axes=["rowid", "j"])
    db.connection.execute("SET threads = 2")
    np.testing.assert_allclose(db.run("Y[j] = sum(A[i, j])")["Y"].to_numpy(), tall.sum(axis=0))


def test_dense_data_have_no_duplicates_to_add(db: se.Database) -> None:
    array = np.arange(6.0).reshape(2, 3)
    db.tensor("A", array, duplicates="sum")
    np.testing.assert_array_equal(db.run("C[i, j] = A[i, j]")["C"].to_numpy(), array)
