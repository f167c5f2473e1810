"""Results: rows of every dtype, layout and fill as numpy, scipy, Arrow, pandas and polars."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from reading import stored_result

import sparseeinsum as se
from sparseeinsum.algebra.operators import Schema
from sparseeinsum.language.dtypes import Number
from sparseeinsum.language.tensors import DEMOTED, Axis, Decomposition, Tensor

pytestmark = pytest.mark.engines("duckdb", "postgresql")

DTYPES = ["float64", "float32", "int64", "bool", "complex128", "complex64"]
ARRAY_TYPES = {"float64": pa.float64(), "float32": pa.float32(), "int64": pa.int64(), "bool": pa.bool_()}
ARRAY_TYPES |= {"complex128": pa.float64(), "complex64": pa.float32()}


Make: TypeAlias = Callable[..., tuple[se.TensorResult, NDArray[Any]]]


def parts(values: NDArray[Any]) -> list[Any]:
    """Values as a database holds them: parts of complex numbers alternate."""
    return [part for value in values for part in ((value.real, value.imag) if values.dtype.kind == "c" else (value,))]


def make_result(
    keys: dict[str, list[int]], values: NDArray[Any], inside: tuple[int, ...], fill: Number
) -> se.TensorResult:
    """A result Y[i: 3, j: 4] whose rows have these keys and values."""
    dtype = values.dtype.name
    tensor = Tensor("Y", (Axis("i", 3), Axis("j", 4)), dtype, fill)
    decomposition = Decomposition(tuple(1 if axis.name in keys else DEMOTED for axis in tensor.axes))
    kind = ARRAY_TYPES[dtype]
    if inside or values.dtype.kind == "c":
        column = pa.array([parts(np.atleast_1d(row)) for row in values], pa.list_(kind))
    else:
        column = pa.array(parts(values), kind)
    indices = [pa.array(column, pa.int32()) for column in keys.values()]
    return se.TensorResult(Schema(tensor, decomposition), pa.table([*indices, column], names=[*keys, "val"]))


def made(dtype: str, *numbers: Number) -> NDArray[Any]:
    """Values of a dtype, with imaginary parts where it has them."""
    values = np.array(numbers)
    return (values + 1j * (values != 0) if dtype.startswith("complex") else values).astype(dtype)


def entries(dtype: str, fill: Number = 0) -> tuple[se.TensorResult, NDArray[Any]]:
    """A result with a number a row, and the array that it is."""
    values = made(dtype, 2, 0, -3)
    expected = np.full((3, 4), fill, dtype)
    expected[[0, 1, 2], [3, 0, 1]] = values
    return make_result({"i": [0, 1, 2], "j": [3, 0, 1]}, values, (), fill), expected


def slices(dtype: str, fill: Number = 0) -> tuple[se.TensorResult, NDArray[Any]]:
    """A result with an array a row, and the array that it is."""
    values = np.stack([made(dtype, 0, 1, 2, 0), made(dtype, 0, 0, 0, 3)])
    expected = np.full((3, 4), fill, dtype)
    expected[[2, 0]] = values
    return make_result({"i": [2, 0]}, values, (4,), fill), expected


layouts = pytest.mark.parametrize("make", [entries, slices])
dtypes = pytest.mark.parametrize("dtype", DTYPES)


@layouts
@dtypes
@pytest.mark.parametrize("fill", [0, 1])
def test_to_numpy(make: Make, dtype: str, fill: int) -> None:
    result, expected = make(dtype, fill)
    array = result.to_numpy()
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, expected)


@dtypes
def test_one_array_holds_everything(dtype: str) -> None:
    values = made(dtype, *range(12))
    result = make_result({}, values.reshape(1, 12), (3, 4), 0)
    np.testing.assert_array_equal(result.to_numpy(), values.reshape(3, 4))
    assert result.to_numpy().dtype == dtype


@dtypes
def test_result_without_axes(dtype: str) -> None:
    values = made(dtype, 3)
    kind = pa.list_(ARRAY_TYPES[dtype]) if dtype.startswith("complex") else ARRAY_TYPES[dtype]
    column = pa.array([parts(values)] if dtype.startswith("complex") else parts(values), kind)
    result = se.TensorResult(Schema(Tensor("Y", (), dtype), Decomposition(())), pa.table({"val": column}))
    assert result.to_numpy() == values[0]
    assert result.to_numpy().dtype == dtype
    assert result.df()["val"].tolist() == [values[0]]


@dtypes
@pytest.mark.parametrize("keys", [{"i": [], "j": []}, {"i": []}])
def test_result_without_rows(dtype: str, keys: dict[str, list[int]]) -> None:
    result = make_result(keys, np.empty(0, dtype), () if len(keys) == 2 else (4,), 1)
    np.testing.assert_array_equal(result.to_numpy(), np.ones((3, 4), dtype))
    assert result.to_numpy().dtype == dtype
    assert result.df().shape == (0, 3)


@layouts
@dtypes
def test_to_scipy(make: Make, dtype: str) -> None:
    result, expected = make(dtype)
    matrix = result.to_scipy()
    assert isinstance(matrix, sp.csr_array)
    assert matrix.dtype == dtype
    assert matrix.nnz == np.count_nonzero(expected)
    np.testing.assert_array_equal(matrix.toarray(), expected)


@pytest.mark.parametrize(("dtype", "fill"), [("float64", np.inf), ("bool", True), ("int64", 3), ("complex128", 1j)])
def test_scipy_has_no_fill_but_0(dtype: str, fill: Number) -> None:
    result, _ = entries(dtype, fill)
    with pytest.raises(se.SemanticsError, match=r"Y holds .* wherever no row .* take to_numpy\(\), or arrow\(\)"):
        result.to_scipy()


def test_nan_is_an_entry() -> None:
    result = make_result({"i": [0, 1]}, np.array([[np.nan, 0, np.inf, 0], [0, 0, 0, 0]]), (4,), 0)
    assert result.to_scipy().nnz == 2
    assert result.df().to_numpy().tolist()[1] == [0, 2, np.inf]
    assert np.isnan(result.to_numpy()[0, 0])


@layouts
@pytest.mark.parametrize(("dtype", "fill"), [("float64", 0), ("int64", 3), ("bool", True), ("bool", False)])
def test_frames(make: Make, dtype: str, fill: Number) -> None:
    result, expected = make(dtype, fill)
    table, frame, polars = result.arrow(), result.df(), result.pl()
    assert table.column_names == list(frame.columns) == polars.columns == ["i", "j", "val"]
    assert table.schema.field("val").type == ARRAY_TYPES[dtype]
    assert frame["val"].dtype == dtype
    assert isinstance(polars, pl.DataFrame)
    for columns in (table.to_pydict(), frame.to_dict("list"), polars.to_dict(as_series=False)):
        dense = np.full((3, 4), fill, dtype)
        dense[columns["i"], columns["j"]] = columns["val"]
        np.testing.assert_array_equal(dense, expected)


@layouts
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("fill", [0, 1j, complex(np.inf, 0)])
def test_frames_of_complex_numbers(make: Make, dtype: str, fill: complex) -> None:
    result, expected = make(dtype, fill)
    kind = ARRAY_TYPES[dtype]
    table, frame, polars = result.arrow(), result.df(), result.pl()
    assert table.schema.field("val").type == pa.struct({"re": kind, "im": kind})
    assert frame["val"].dtype == dtype
    dense = np.full((3, 4), fill, dtype)
    dense[frame["i"], frame["j"]] = frame["val"]
    np.testing.assert_array_equal(dense, expected)
    for rows in (table.to_pylist(), polars.to_dicts()):
        assert [complex(row["val"]["re"], row["val"]["im"]) for row in rows] == frame["val"].tolist()


@layouts
@dtypes
def test_frames_are_loaded_again(shared_db: se.Database, make: Make, dtype: str) -> None:
    result, expected = make(dtype, 1)
    stored = shared_db.tensor("A", result.arrow(), shape=(3, 4), fill=1)
    assert stored.tensor.dtype == dtype
    np.testing.assert_array_equal(stored_result(shared_db, "A").to_numpy(), expected)


def test_description() -> None:
    assert repr(entries("int64")[0]) == "<Y[I, J] i: 3 x j: 4 int64, 3 rows>"
    assert repr(slices("float64", np.inf)[0]) == "<Y[I, j] i: 3 x j: 4 float64, fill inf, 2 rows>"


def test_pandas_frame_of_a_result_that_holds_only_the_fill() -> None:
    result = make_result({"i": [1]}, np.zeros((1, 4)), (4,), 0)
    pd.testing.assert_frame_equal(
        result.df(), pd.DataFrame({"i": [], "j": [], "val": []}).astype({"i": "int32", "j": "int64", "val": "float64"})
    )
