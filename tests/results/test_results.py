"""Results of every dtype, layout and fill convert to numpy, scipy, Arrow, pandas and polars."""

import io
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sparse
from numpy.typing import NDArray
from pyarrow import parquet
from reading import read_back, stored_result

import sparseeinsum as se
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.locking import lock_of
from sparseeinsum.language.tensors import DEMOTED, Axis, Decomposition, Tensor
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.results import results
from sparseeinsum.storage.fills import fill_text

pytestmark = pytest.mark.engines("duckdb", "postgresql")

DTYPES = ["float64", "float32", "int64", "bool", "complex128", "complex64"]
ARRAY_TYPES = {"float64": pa.float64(), "float32": pa.float32(), "int64": pa.int64(), "bool": pa.bool_()}
ARRAY_TYPES |= {"complex128": pa.float64(), "complex64": pa.float32()}


Make: TypeAlias = Callable[..., tuple[se.TensorResult, NDArray[Any]]]


def parts(values: NDArray[Any]) -> list[Any]:
    """Values as a database stores them: real and imaginary parts of complex numbers alternate."""
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


def values_of(dtype: str, *numbers: Number) -> NDArray[Any]:
    """Values of a dtype, with imaginary parts where it has them."""
    values = np.array(numbers)
    return (values + 1j * (values != 0) if dtype.startswith("complex") else values).astype(dtype)


def entries(dtype: str, fill: Number = 0) -> tuple[se.TensorResult, NDArray[Any]]:
    """A result with one number a row, and its dense array."""
    values = values_of(dtype, 2, 0, -3)
    expected = np.full((3, 4), fill, dtype)
    expected[[0, 1, 2], [3, 0, 1]] = values
    return make_result({"i": [0, 1, 2], "j": [3, 0, 1]}, values, (), fill), expected


def slices(dtype: str, fill: Number = 0) -> tuple[se.TensorResult, NDArray[Any]]:
    """A result with one array a row, and its dense array."""
    values = np.stack([values_of(dtype, 0, 1, 2, 0), values_of(dtype, 0, 0, 0, 3)])
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
def test_results_of_one_array(dtype: str) -> None:
    values = values_of(dtype, *range(12))
    result = make_result({}, values.reshape(1, 12), (3, 4), 0)
    np.testing.assert_array_equal(result.to_numpy(), values.reshape(3, 4))
    assert result.to_numpy().dtype == dtype


@dtypes
def test_result_without_axes(dtype: str) -> None:
    values = values_of(dtype, 3)
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


@layouts
@dtypes
@pytest.mark.parametrize("fill", [0, 1])
def test_to_sparse(make: Make, dtype: str, fill: int) -> None:
    result, expected = make(dtype, fill)
    array = result.to_sparse()
    assert isinstance(array, sparse.COO)
    assert array.dtype == array.fill_value.dtype == dtype
    assert array.nnz <= result.rows.num_rows * 4
    np.testing.assert_array_equal(array.todense(), expected)


def test_to_sparse_has_any_number_of_axes() -> None:
    tensor = Tensor("Y", tuple(Axis(name, 3) for name in "ijk"))
    rows = pa.table({"i": [0, 2], "j": [1, 1], "k": [2, 0], "val": [1.5, -2.0]})
    array = se.TensorResult(Schema(tensor, Decomposition((1, 1, 1))), rows).to_sparse()
    assert array.shape == (3, 3, 3)
    assert (array[0, 1, 2], array[2, 1, 0], array.nnz) == (1.5, -2.0, 2)
    scalar = se.TensorResult(Schema(Tensor("Y", ()), Decomposition(())), pa.table({"val": [3.0]})).to_sparse()
    assert (scalar.shape, scalar.todense()) == ((), 3.0)


@layouts
@dtypes
def test_torch(make: Make, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is large, and not among what the tests install")
    result, expected = make(dtype)
    tensor = result.torch()
    assert tensor.is_sparse
    assert tensor.is_coalesced()
    assert tensor.dtype == getattr(torch, dtype)
    np.testing.assert_array_equal(tensor.to_dense().numpy(), expected)
    np.testing.assert_array_equal(result.torch(dense=True).numpy(), expected)


def test_a_sparse_tensor_of_torch_has_no_fill_but_0() -> None:
    pytest.importorskip("torch", reason="torch is large, and not among what the tests install")
    result, expected = entries("float64", np.inf)
    with pytest.raises(
        se.SemanticsError, match=r"sparse tensor of torch holds 0 there; take torch\(dense=True\), or to"
    ):
        result.torch()
    np.testing.assert_array_equal(result.torch(dense=True).numpy(), expected)


@layouts
def test_to_xarray(make: Make) -> None:
    result, expected = make("float64", np.inf)
    array = result.to_xarray()
    assert (array.name, array.dims) == ("Y", ("i", "j"))
    np.testing.assert_array_equal(array.to_numpy(), expected)


@pytest.mark.parametrize(
    ("package", "take"),
    [
        ("sparse", se.TensorResult.to_sparse),
        ("torch", se.TensorResult.torch),
        ("xarray", se.TensorResult.to_xarray),
        ("pandas", se.TensorResult.df),
        ("polars", se.TensorResult.pl),
    ],
)
def test_package_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, package: str, take: Callable[[se.TensorResult], object]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # Python treats this as a missing package
    with pytest.raises(se.PackageError, match=f"the package {package} cannot be imported .*pip install {package}"):
        take(entries("float64")[0])


@layouts
@dtypes
@pytest.mark.parametrize("fill", [0, 1])
def test_to_parquet(tmp_path: Path, make: Make, dtype: str, fill: int) -> None:
    result, _ = make(dtype, fill)
    path = tmp_path / "y.parquet"
    for _ in range(2):
        result.to_parquet(path)
        written = parquet.read_table(path)
        assert written.equals(result.arrow())
        metadata = json.loads(written.schema.metadata[b"sparseeinsum"])
        assert metadata == {"name": "Y", "axes": {"i": 3, "j": 4}, "dtype": dtype, "fill": fill_text(result.fill)}
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_stays_when_it_cannot_be_replaced(tmp_path: Path) -> None:
    result, _ = entries("float64")
    folder = tmp_path / "y.parquet"
    folder.mkdir()
    with pytest.raises(OSError, match="directory"):
        result.to_parquet(folder)
    assert list(tmp_path.iterdir()) == [folder]
    with pytest.raises(se.DataError, match=r"there is no folder .*nowhere to write y\.parquet into; make it first"):
        result.to_parquet(tmp_path / "nowhere" / "y.parquet")


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
@pytest.mark.parametrize("says", [{"shape": (3, 4), "fill": 1}, {}])
def test_frames_are_loaded_again(shared_db: se.Database, make: Make, dtype: str, says: dict[str, Any]) -> None:
    """Arrow tables contain shape and fill; other data frames do not."""
    result, expected = make(dtype, 1)
    if says and not dtype.startswith("complex"):
        shared_db.tensor("A", result.df(), **says)
        np.testing.assert_array_equal(stored_result(shared_db, "A").to_numpy(), expected)
    stored = shared_db.tensor("A", result.arrow(), **says)
    assert stored.tensor.dtype == dtype
    assert (stored.tensor.shape, stored.tensor.fill) == ((3, 4), 1)
    np.testing.assert_array_equal(stored_result(shared_db, "A").to_numpy(), expected)


def test_arguments_precede_the_metadata_of_a_frame(shared_db: se.Database) -> None:
    table = entries("float64", 1)[0].arrow()
    assert shared_db.tensor("A", table, shape=(5, 5), fill=2).tensor.shape == (5, 5)
    assert shared_db.tensor("A", table, fill=2).tensor.fill == 2
    assert shared_db.tensor("A", table.select(["j", "i", "val"])).tensor.shape == (4, 3)
    others = shared_db.tensor("A", table.rename_columns(["x", "y", "val"])).tensor
    assert (others.shape, others.fill) == ((3, 4), 0)
    with pytest.raises(se.DataError, match="metadata sparseeinsum of its data say nothing that can be read"):
        shared_db.tensor("A", table.replace_schema_metadata({"sparseeinsum": "{}"}))


@pytest.mark.engines("duckdb", reason="PostgreSQL reads no files")
@layouts
def test_files_are_tensors_again(tmp_path: Path, db: se.Database, make: Make) -> None:
    result, expected = make("float64", np.inf)
    path = tmp_path / "y.parquet"
    result.to_parquet(path)
    assert db.tensor_from_table("A", path, index=["i", "j"], value="val").tensor.fill == np.inf
    np.testing.assert_array_equal(stored_result(db, "A").to_numpy(), expected)
    np.testing.assert_array_equal(read_back(db, "A"), expected)
    db.connection.execute(f"CALL tensor_from_table('B', '{path}', ['j', 'i'], 'val')")
    np.testing.assert_array_equal(read_back(db, "B"), expected.T)


def test_description() -> None:
    first, *_ = str(entries("int64")[0]).splitlines()
    assert first == "<Y[I, J] i: 3 x j: 4 int64, 3 rows, density 0.25>"
    first, *_ = str(slices("float64", np.inf)[0]).splitlines()
    assert first == "<Y[I, j] i: 3 x j: 4 float64, fill inf, 2 rows, density 0.667>"


def test_a_scalar_is_written_as_its_value(db: se.Database) -> None:
    db.tensor("A", np.array([1.5, 2.0]))
    total = db.run("S[] = sum(A[i])")["S"]
    assert (str(total), f"{total:.2f}", f"{total}") == ("3.5", "3.50", "3.5")
    vector = db.run("Y[i] = 2 * A[i]")["Y"]
    assert f"{vector}" == str(vector) == repr(vector)
    with pytest.raises(ValueError, match="format"):
        f"{vector:.2f}"


def test_a_result_is_plain_where_standard_output_lacks_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="cp1252"))
    assert str(entries("int64")[0]).splitlines()[1:3] == ["i  j  val", "0  3    2"]


def test_preview_in_a_terminal() -> None:
    expected = """\
<Y[I, J] i: 3 x j: 4 complex128, 3 rows, density 0.25>
┏━━━┳━━━┳━━━━━━━┓
┃ i ┃ j ┃   val ┃
┡━━━╇━━━╇━━━━━━━┩
│ 0 │ 3 │  2+1j │
│ 2 │ 1 │ -3+1j │
└───┴───┴───────┘"""
    assert repr(entries("complex128")[0]) == expected
    short = slices("float64")[0].preview(rows=2).text()
    assert short.splitlines()[-4:] == ["│ 0 │ 3 │   3 │", "│ 2 │ 1 │   1 │", "└───┴───┴─────┘", "2 of more"]


def test_preview_in_a_notebook() -> None:
    page = entries("int64")[0]._repr_html_()
    assert "&lt;Y[I, J] i: 3 x j: 4 int64, 3 rows, density 0.25&gt;" in page
    assert "<tr><td>1</td><td>0</td><td>0</td></tr>" in page


def test_previews_read_only_the_rows_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first rows of a result are converted, however large it is."""
    monkeypatch.setattr(results, "_PREVIEW_SIZE", 4)
    tensor = Tensor("Y", (Axis("i", 10**6),))
    rows = pa.table({"i": np.arange(10**6)[::-1], "val": np.ones(10**6)})
    preview = repr(se.TensorResult(Schema(tensor, Decomposition((1,))), rows))
    assert "│ 999996 │   1 │" in preview
    assert preview.endswith("4 of 1,000,000 rows")


@pytest.mark.engines("duckdb", reason="nothing is asked of the engine")
def test_other_representations(db: se.Database) -> None:
    assert repr(db) == "<DuckDB database in memory>"
    db.tensor("A", np.eye(2), fill=1)
    assert repr(db.tensors()) == "{'A': <A[DIM_0, dim_1] dim_0: 2 x dim_1: 2 float64, fill 1.0, in main.A>}"
    two = db.run("Y[i] = sum(A[i, j])\nZ[] = sum(A[i, j])")
    assert repr(two) == f"{two['Y']!r}\n\n{two['Z']!r}"
    assert two._repr_html_() == two["Y"]._repr_html_() + two["Z"]._repr_html_()
    assert "<th>expected tuples</th>" in db.plan("Y[i] = sum(A[i, j])")._repr_html_()
    assert se.program("Y[i] = A[i] < 1")._repr_html_() == "<pre>Y[i] = A[i] &lt; 1</pre>"
    assert se.equivalent("Y[i] = A[i] + A[i]", "Y[i] = 2 * A[i]")._repr_html_() == "<pre>equal: 2 * A[i]</pre>"
    page = db.statistics("A")._repr_html_()
    assert "2 entries, density 0.5" in page
    assert "<tr><td>1</td><td>2</td><td>2</td></tr>" in page


def test_database_shows_its_place_and_tensors(db: se.Database, engine: str) -> None:
    """Also while a stream is open, while another thread uses the connection, and after it was closed."""
    assert repr(db).startswith(f"<{'DuckDB database in memory' if engine == 'duckdb' else 'PostgreSQL database '}")
    assert "no tensors yet" in db._repr_html_()
    db.tensor("A", np.arange(6.0).reshape(2, 3))
    row = "<tr><td>A</td><td>dim_0: 2 x dim_1: 3</td><td>float64</td>"
    assert row in db._repr_html_()
    with db.stream("Y[i] = sum(A[i, j])") as results:
        reader = results["Y"]
        assert row in db._repr_html_()
        assert reader.read_all().num_rows == 2
    with ThreadPoolExecutor() as threads, lock_of(db.connection):
        assert "busy; its tensors cannot be listed now" in threads.submit(db._repr_html_).result()
    db.close()
    assert "its tensors cannot be listed" in db._repr_html_()


@pytest.mark.engines("duckdb", reason="PostgreSQL has no files")
def test_database_in_a_file_shows_its_path(tmp_path: Path) -> None:
    path = tmp_path / "graph.duckdb"
    with se.connect(path) as database:
        assert repr(database) == f"<DuckDB database {path}>"
        with se.connect(database.connection.cursor()) as other:
            assert repr(other) == repr(database)


def test_pandas_frame_of_a_result_that_holds_only_the_fill() -> None:
    result = make_result({"i": [1]}, np.zeros((1, 4)), (4,), 0)
    pd.testing.assert_frame_equal(
        result.df(), pd.DataFrame({"i": [], "j": [], "val": []}).astype({"i": "int32", "j": "int32", "val": "float64"})
    )
