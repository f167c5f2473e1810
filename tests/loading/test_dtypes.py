"""Tensors of every dtype and fill read back unchanged, and values convert exactly or are refused."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from reading import column_types, contents, stored_result

import sparseeinsum as se
from sparseeinsum.operators.dtypes import Number

pytestmark = pytest.mark.engines("duckdb", "postgresql")

DTYPES = ["float64", "float32", "int64", "bool", "complex128", "complex64"]
STORED = {
    "float64": "DOUBLE",
    "float32": "FLOAT",
    "int64": "BIGINT",
    "bool": "BOOLEAN",
    "complex128": "DOUBLE[]",
    "complex64": "FLOAT[]",
}
MATRIX = np.array([[0, 1, 0], [1, 0, 1]])


def value_type(db: se.Database, table: str) -> str:
    """SQL type of the column val."""
    return column_types(db, table)["val"]


def assert_stored(db: se.Database, expected: NDArray[Any]) -> None:
    """Assert that the tensor A equals this array in dtype and every bit."""
    stored = db.tensors()["A"].tensor
    result = stored_result(db, "A").to_numpy()
    assert stored.dtype == result.dtype.name == expected.dtype.name
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


ELEMENTS: dict[str, st.SearchStrategy[Any]] = {
    "float64": st.sampled_from([0.0, 1.0, -2.5, 1e300, np.inf, -np.inf, np.nan]),
    "float32": st.sampled_from([0.0, 1.0, -2.5, np.float32(0.1), np.inf, np.nan]),
    "int64": st.sampled_from([0, 1, -3, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "bool": st.booleans(),
    "complex128": st.sampled_from([0, 1, 1j, -2.5 + 1e300j, complex(np.inf, 1), complex(0, np.nan)]),
    "complex64": st.sampled_from([0, 1, 1j, -2.5 + 3j, complex(1, np.inf)]),
}


@st.composite
def stored_arrays(draw: st.DrawFn) -> tuple[NDArray[Any], Any, list[str] | None]:
    """An array of any dtype, a fill that it may hold, and axes to promote."""
    dtype = draw(st.sampled_from(DTYPES))
    elements = ELEMENTS[dtype]
    shape = draw(array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    fill = draw(elements.filter(lambda number: number == number))
    density = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    array = draw(arrays(dtype, shape, elements=elements, fill=st.just(fill) if density < 1 else st.nothing()))
    present = np.random.default_rng(draw(st.integers(0, 9))).random(shape) < density
    array = np.where(present, array, np.array(fill, dtype))
    axes = [f"dim_{position}" for position in range(len(shape))]
    promoted = draw(st.none() | st.lists(st.sampled_from(axes), unique=True) if axes else st.none())
    return array, fill, promoted


@given(stored_arrays())
def test_arrays_of_every_dtype_and_fill_are_read_back(
    shared_db: se.Database, drawn: tuple[NDArray[Any], Any, list[str] | None]
) -> None:
    array, fill, promoted = drawn
    stored = shared_db.tensor("A", array, fill=fill, promoted=promoted)
    assert stored == shared_db.tensors()["A"]
    assert stored.tensor.fill == fill
    assert_stored(shared_db, array)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("promoted", [[], ["dim_0"], ["dim_0", "dim_1"]])
def test_column_of_values(shared_db: se.Database, dtype: str, promoted: list[str]) -> None:
    shared_db.tensor("A", MATRIX.astype(dtype), promoted=promoted)
    element = STORED[dtype].removesuffix("[]")
    assert value_type(shared_db, "A") == (STORED[dtype] if len(promoted) == 2 else f"{element}[]")


def test_parts_of_complex_numbers_alternate(shared_db: se.Database) -> None:
    shared_db.tensor("A", np.array([[1 + 2j, 3], [0, 4j]]), promoted=["dim_0"])
    rows = shared_db.connection.execute("SELECT val FROM A ORDER BY dim_0").fetchall()
    assert rows == [([1, 2, 3, 0],), ([0, 0, 0, 4],)]
    shared_db.tensor("A", np.array([0, 1 + 2j, 0, 0, 0]))
    assert shared_db.connection.execute("SELECT * FROM A").fetchall() == [(1, [1, 2])]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda array: (np.array(np.nonzero(array)), array[np.nonzero(array)]), id="coordinates"),
        pytest.param(sp.csr_array, id="csr"),
        pytest.param(sp.coo_array, id="coo"),
        pytest.param(lambda array: array.tolist(), id="nested lists"),
        pytest.param(lambda array: array.astype(array.dtype.newbyteorder(">")), id="other byte order"),
        pytest.param(lambda array: np.repeat(array, 2, axis=1)[:, ::2], id="not contiguous"),
    ],
)
def test_sources_of_every_dtype(shared_db: se.Database, dtype: str, make: Callable[[Any], object]) -> None:
    array = (MATRIX * (1 + 2j) if dtype.startswith("complex") else MATRIX).astype(dtype)
    shared_db.tensor("A", make(array), dtype=dtype)
    assert_stored(shared_db, array)


@pytest.mark.parametrize("number", [3, True, 2.5, 1 + 2j, np.float32(2.5), np.int8(3), np.bool_(True)])
def test_number_keeps_its_dtype(shared_db: se.Database, number: object) -> None:
    shared_db.tensor("A", number)
    expected = np.asarray(number)
    assert_stored(shared_db, expected.astype("int64") if expected.dtype == "int8" else expected)


@pytest.mark.parametrize(
    ("source_dtype", "expected"),
    [
        *((dtype, "int64") for dtype in ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", ">i4")),
        ("float16", "float32"),
        *((dtype, dtype) for dtype in DTYPES),
    ],
)
def test_dtype_by_default(shared_db: se.Database, source_dtype: str, expected: str) -> None:
    array = MATRIX.astype(source_dtype)
    sources: list[Any] = [array, (np.indices((2, 3)).reshape(2, 6), array.reshape(-1))]
    sources += [sp.coo_array(array)] if source_dtype not in ("float16", ">i4") else []
    for data in sources:
        shared_db.tensor("A", data)
        assert_stored(shared_db, array.astype(expected))


@pytest.mark.parametrize("expected", DTYPES)
@pytest.mark.parametrize(
    "source_dtype", ["int8", "int64", "uint64", "bool", "float16", "float32", "longdouble", "complex64"]
)
def test_numbers_become_the_dtype_asked_for(shared_db: se.Database, source_dtype: str, expected: str) -> None:
    array = MATRIX.astype(source_dtype)
    shared_db.tensor("A", array, dtype=expected)
    assert_stored(shared_db, MATRIX.astype(expected))


@pytest.mark.parametrize("dtype", [float, np.float32, int, bool, complex, np.dtype("complex64")])
def test_dtype_may_be_a_type(shared_db: se.Database, dtype: str) -> None:
    shared_db.tensor("A", MATRIX, dtype=dtype)
    assert_stored(shared_db, MATRIX.astype(dtype))


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (2**53 + 1, "int64", "float64"),
        (2**63 - 1, "int64", "float64"),
        (2**64 - 1, "uint64", "float64"),
        (2**24 + 1, "int32", "float32"),
        (2**31 - 1, "int32", "float32"),
        (-(2**53) - 1, "int64", "float64"),
        (2**53 + 1, "int64", "complex128"),
        (2**24 + 1, "int64", "complex64"),
        (1e300, "float64", "float32"),
        (1e300, "float64", "complex64"),
        (complex(1, 1e300), "complex128", "complex64"),
        (complex(np.inf, -1e300), "complex128", "complex64"),
        (2.5, "float64", "int64"),
        (2.5, "float16", "int64"),
        (2.0**63, "float64", "int64"),
        (-1e300, "float64", "int64"),
        (np.inf, "float32", "int64"),
        (np.nan, "float64", "int64"),
        (np.nan, "float64", "bool"),
        (2**63, "uint64", "int64"),
        (2, "int64", "bool"),
        (0.5, "float32", "bool"),
        (1j, "complex128", "float64"),
        (complex(1, np.nan), "complex64", "float32"),
        (2.5, "complex128", "int64"),
        (2, "complex128", "bool"),
    ],
)
def test_number_that_the_dtype_lacks_is_named(
    shared_db: se.Database, number: object, dtype: str, expected: str
) -> None:
    values = np.array([0, 1, number], dtype)
    before = contents(shared_db)
    for data in (values, ([[0, 1, 2]], values)):
        with pytest.raises(se.DataError, match=rf"tensor A, row 2 \(counted from 0\): .* is no {expected}; .*type"):
            shared_db.tensor("A", data, dtype=expected)
    with pytest.raises(se.DataError, match=rf"tensor A, element \(2, 0\): .* is no {expected}"):
        shared_db.tensor("A", values[:, None], dtype=expected)
    assert contents(shared_db) == before


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (2**53, "int64", "float64"),
        (2**63, "uint64", "float64"),
        (-(2**63), "float64", "int64"),
        (2**31 - 1, "int32", "float64"),
        (2**63 - 1, "uint64", "int64"),
        (0.1, "float64", "float32"),
        (complex(0.1, 0.2), "complex128", "complex64"),
        (complex(np.inf, np.nan), "complex128", "complex64"),
        (np.inf, "float64", "float32"),
        (np.nan, "float64", "complex64"),
        (-3, "complex64", "int64"),
    ],
)
def test_number_that_the_dtype_holds(shared_db: se.Database, number: object, dtype: str, expected: str) -> None:
    shared_db.tensor("A", np.array([0, 1, number], dtype), dtype=expected)
    assert_stored(shared_db, np.array([0, 1, number]).astype(expected))


def test_unsigned_numbers_beyond_int64_are_refused_by_default(shared_db: se.Database) -> None:
    values = np.array([0, 2**63], np.uint64)
    with pytest.raises(se.DataError, match=rf"tensor A, row 1 .*: {2**63} is no int64; .*dtype='float64'"):
        shared_db.tensor("A", values)
    shared_db.tensor("A", values, dtype="float64")
    assert_stored(shared_db, values.astype("float64"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([3]), np.array([0, 3])),
        (pa.array([3], pa.uint8()), np.array([0, 3])),
        (pa.array([True]), np.array([False, True])),
        (pa.array([3.5], pa.float32()), np.array([0, 3.5], np.float32)),
        (pa.array([3.5], pa.float16()), np.array([0, 3.5], np.float32)),
        (pa.array([Decimal("3.25")], pa.decimal128(5, 2)), np.array([0, 3.25])),
        (pa.array([Decimal(2**53 + 1)], pa.decimal128(38, 0)), np.array([0, 2**53 + 1])),
        (pa.array([{"re": 1.5, "im": float("inf")}]), np.array([0, complex(1.5, np.inf)])),
        (
            pa.array([{"re": 1.5, "im": 2}], pa.struct({"re": pa.float32(), "im": pa.float32()})),
            np.array([0, 1.5 + 2j], np.complex64),
        ),
    ],
)
def test_values_of_a_frame(shared_db: se.Database, values: pa.Array, expected: NDArray[Any]) -> None:
    shared_db.tensor("A", pa.table({"i": [1], "v": values}))
    assert_stored(shared_db, expected)


@pytest.mark.parametrize(
    ("number", "kind", "expected", "message"),
    [
        (Decimal(2**63), pa.decimal128(38, 0), None, "is no int64"),
        (Decimal(2**70 + 1), pa.decimal128(38, 0), "float64", "is no float64"),
        (Decimal(2**53 + 1), pa.decimal128(38, 0), "float64", "is no float64"),
        (Decimal("2.5"), pa.decimal128(9, 1), "int64", "is no int64"),
        (Decimal("2.0"), pa.decimal128(9, 1), "bool", "is no bool"),
        (2**64 - 1, pa.uint64(), None, "is no int64"),
        (2.5, pa.float64(), "int64", "is no int64"),
    ],
)
def test_value_of_a_frame_that_the_dtype_lacks(
    shared_db: se.Database, number: object, kind: pa.DataType, expected: str | None, message: str
) -> None:
    frame = pa.table({"i": [0, 1], "v": pa.array([1, number], kind)})
    with pytest.raises(se.DataError, match=rf"tensor A, row 1 \(counted from 0\): .*{message}"):
        shared_db.tensor("A", frame, dtype=expected)


def test_decimals_that_float64_holds(shared_db: se.Database) -> None:
    frame = pa.table({"i": [0, 1], "v": pa.array([Decimal(2**70), Decimal(3)], pa.decimal128(38, 0))})
    shared_db.tensor("A", frame, dtype="float64")
    assert_stored(shared_db, np.array([2.0**70, 3]))
    frame = pa.table({"i": [0, 1], "v": pa.array([Decimal("2.00"), Decimal("3.00")], pa.decimal128(9, 2))})
    shared_db.tensor("A", frame, dtype="int64")
    assert_stored(shared_db, np.array([2, 3]))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("int64", np.array([0, 2**53 + 2, 7])),
        ("float32", np.array([0, 2.0**53, 7], np.float32)),
        ("bool", np.array([False, True, True])),
        ("complex128", np.array([0, 2**53 + 2j, 7])),
        ("complex64", np.array([0, 2 + 2j, 7], np.complex64)),
    ],
)
def test_duplicates_are_summed(shared_db: se.Database, dtype: str, expected: NDArray[Any]) -> None:
    values = {
        "int64": [2**53, 7, 2],
        "float32": [2**53, 7, 0],
        "bool": [True, True, False],
        "complex128": [2**53, 7, 2j],
        "complex64": [2, 7, 2j],
    }[dtype]
    shared_db.tensor("A", ([[1, 2, 1]], np.array(values, dtype)), duplicates="sum")
    assert_stored(shared_db, expected)
    with pytest.raises(se.DataError, match=r"tensor A, row 2 .*coordinate \(1\) stands in an earlier row"):
        shared_db.tensor("A", ([[1, 2, 1]], np.array(values, dtype)))


def test_sums_within_int64_of_parts_beyond_it(shared_db: se.Database) -> None:
    shared_db.tensor("A", ([[0, 0, 0]], [2**63 - 1, 5, -7]), duplicates="sum")
    assert_stored(shared_db, np.array([2**63 - 3]))


def test_summing_no_entries_gives_no_entries(shared_db: se.Database) -> None:
    shared_db.tensor("A", pd.DataFrame({"v": np.array([], float)}), fill=3, duplicates="sum")
    assert_stored(shared_db, np.array(3.0))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "lil", "dok"])
def test_absent_entries_of_a_sparse_matrix_hold_the_fill(shared_db: se.Database, layout: str) -> None:
    shared_db.tensor("A", getattr(sp, f"{layout}_array")(MATRIX.astype(float)), fill=np.inf)
    stored = sp.coo_array(getattr(sp, f"{layout}_array")(MATRIX.astype(float)))
    expected = np.full(MATRIX.shape, np.inf)
    expected[stored.coords] = stored.data
    assert_stored(shared_db, expected)


def test_zeros_that_a_sparse_matrix_stores_are_no_fill(shared_db: se.Database) -> None:
    shared_db.tensor("A", sp.coo_array(([0.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2)), fill=7)
    assert_stored(shared_db, np.array([[7.0, 0], [2, 7]]))


def test_fill_of_entries_and_frames(shared_db: se.Database) -> None:
    expected = np.array([[5.0, 1.5], [5, 5]])
    for data in (([[0, 1], [1, 1]], [1.5, 5.0]), pd.DataFrame({"i": [0, 1], "j": [1, 1], "v": [1.5, 5]})):
        shared_db.tensor("A", data, shape=(2, 2), fill=5)
        assert_stored(shared_db, expected)


def test_entries_that_are_the_fill_are_not_stored(shared_db: se.Database) -> None:
    array = np.full((4, 5), np.inf)
    array[1, 2], array[3, 0] = 0, np.nan
    assert shared_db.tensor("A", array, fill=np.inf).keys == ("dim_0", "dim_1")
    assert shared_db.connection.execute("SELECT COUNT(*) FROM A").fetchall() == [(2,)]
    assert_stored(shared_db, array)
    assert shared_db.tensor("A", array).keys == ("dim_0",)


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("float64", np.float32(0.5)),
        ("int64", np.int8(3)),
        ("int64", 3.0),
        ("bool", 1),
        ("complex64", 2),
        ("float32", True),
    ],
)
def test_fill_becomes_the_dtype(shared_db: se.Database, dtype: str, fill: Number) -> None:
    stored = shared_db.tensor("A", ([[0]], np.array([1], dtype)), shape=(2,), fill=fill)
    assert type(stored.tensor.fill) is type(np.zeros(1, dtype)[0].item())
    assert_stored(shared_db, np.array([1, fill]).astype(dtype))
