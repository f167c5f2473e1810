"""Data of every supported package read back as that package shows them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sparse
import xarray as xr
from any_sql import run_sql
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import dataset, parquet
from reading import contents, read_back

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

MATRIX = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4)
SPARSE_CUBE = np.where(CUBE % 7 == 3, CUBE, 0.0)
ROWS = {"src": [0, 1, 1], "dst": [1, 0, 2], "weight": [1.5, 2.0, -3.0]}  # MATRIX as a frame
FRAME = pd.DataFrame(ROWS)


def axes_of(db: se.Database, name: str = "A") -> list[str]:
    return [axis.name for axis in db.tensors()[name].tensor.axes]


# ---- rows in memory


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(FRAME.set_index(["src", "dst"]), id="two levels"),
        pytest.param(FRAME.set_index("src"), id="one level"),
        pytest.param(FRAME.set_index(["src", "dst"])["weight"], id="series"),
        pytest.param(FRAME.set_index(pd.Index([7, 5, 9])), id="labels without a name are no column"),
        pytest.param(FRAME.astype({"src": "category", "dst": "category", "weight": "category"}), id="categories"),
        pytest.param(FRAME.astype({"src": "UInt16", "dst": "Int64", "weight": "Float64"}), id="extension types"),
        pytest.param(FRAME.astype({"src": "int32[pyarrow]", "weight": "double[pyarrow]"}), id="types of Arrow"),
    ],
)
def test_pandas(shared_db: se.Database, frame: pd.DataFrame) -> None:
    shared_db.tensor("A", frame)
    assert axes_of(shared_db) == ["src", "dst"]
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_pandas_series_of_a_plain_index(shared_db: se.Database) -> None:
    shared_db.tensor("A", pd.Series([1, 0, 5]))
    assert axes_of(shared_db) == ["dim_0"]
    np.testing.assert_array_equal(read_back(shared_db, "A"), [1, 0, 5])
    shared_db.tensor("A", pd.Series([True, False], index=[3, 1]))
    np.testing.assert_array_equal(read_back(shared_db, "A"), [False, False, False, True])


@pytest.mark.parametrize(
    "column",
    [pl.Series([1.0, 0.0, 2.5]), pa.array([1.0, 0.0, 2.5]), pa.chunked_array([[1.0], [0.0, 2.5]])],
    ids=["polars", "arrow", "chunks"],
)
def test_column_alone_is_an_array(shared_db: se.Database, column: object) -> None:
    shared_db.tensor("A", column)
    np.testing.assert_array_equal(read_back(shared_db, "A"), [1.0, 0.0, 2.5])


def test_columns_by_name(shared_db: se.Database) -> None:
    frame = FRAME.assign(label=["x", "y", "z"])[["label", "weight", "dst", "src"]]
    shared_db.tensor("A", frame, index=["src", "dst"], value="weight")
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)
    shared_db.tensor("A", frame, index=["src", "dst"])  # every row counts as 1
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX != 0)
    assert shared_db.tensors()["A"].tensor.dtype == "float64"
    shared_db.tensor("A", FRAME[["weight", "src", "dst"]], value="weight")
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


# ---- rows that stream


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Two rows at a time."""
    yield from pa.table(ROWS)[:rows].to_batches(2)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: pl.LazyFrame(ROWS), id="lazy polars"),
        pytest.param(lambda: pl.LazyFrame(ROWS).filter(pl.col("weight") != 0), id="lazy query"),
        pytest.param(lambda: pa.RecordBatchReader.from_batches(pa.table(ROWS).schema, batches(3)), id="reader"),
        pytest.param(lambda: pa.table(ROWS).to_batches()[0], id="batch"),
        pytest.param(lambda: dataset.dataset(pa.table(ROWS)), id="data set"),
        pytest.param(lambda: dataset.dataset(pa.table(ROWS)).scanner(), id="scanner"),
        pytest.param(lambda: duckdb.from_arrow(pa.table(ROWS)), id="relation of another database"),
        pytest.param(lambda: list(batches(3)), id="list of batches"),
        pytest.param(lambda: tuple(batches(3)), id="two batches are no pair"),
        pytest.param(lambda: batches(3), id="generator of batches"),
        pytest.param(lambda: iter([FRAME[:1], FRAME[1:].astype({"src": "int8"})]), id="iterator of frames"),
        pytest.param(lambda: [pl.LazyFrame(ROWS)[:2], pa.table(ROWS)[2:].select([2, 1, 0])], id="list of two kinds"),
    ],
)
def test_stream(shared_db: se.Database, make: Callable[[], object]) -> None:
    shared_db.tensor("A", make())
    assert axes_of(shared_db) == ["src", "dst"]
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_stream_takes_the_arguments_of_tables(shared_db: se.Database) -> None:
    reader = pa.table({"n": [9, 9, 9], **ROWS}).to_reader(2)
    stored = shared_db.tensor(
        "A", reader, ["x", "y"], (4, 5), 7, "float32", {"x": 2, "y": 2}, index=["src", "dst"], value="weight"
    )
    assert stored.decomposition.tiles == (2, 2)
    expected = np.full((4, 5), 7, np.float32)
    expected[np.nonzero(MATRIX)] = MATRIX[np.nonzero(MATRIX)]
    np.testing.assert_array_equal(read_back(shared_db, "A"), expected)


@settings(max_examples=25)
@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(-9, 9)), max_size=30),
    batch=st.integers(1, 7),
    sums=st.booleans(),
    is_given_shape=st.booleans(),
)
@pytest.mark.engines("duckdb", reason="batches are checked before any engine sees them")
def test_stream_is_as_its_table(
    shared_db: se.Database, rows: list[tuple[int, int, int]], batch: int, sums: bool, is_given_shape: bool
) -> None:
    columns = [pa.array([row[place] for row in rows], pa.int64()) for place in range(3)]
    table = pa.table(columns, names=["i", "j", "v"])
    options: dict[str, Any] = {"duplicates": "sum" if sums else "error", "shape": (5, 4) if is_given_shape else None}

    def loaded(data: object) -> object:
        try:
            stored = shared_db.tensor("A", data, **options)
        except se.DataError as error:
            return str(error)
        return stored.tensor, shared_db.connection.execute("SELECT * FROM A").fetchall()

    assert loaded(table.to_reader(batch)) == loaded(table)


@pytest.mark.parametrize(
    ("rows", "message", "options"),
    [
        ({"i": [0, 1, None], "v": [1.0, 2.0, 3.0]}, r"row 2 \(counted from 0\): the column i is NULL", {}),
        ({"i": [0, 1, 2], "v": [1.0, 2.0, None]}, r"row 2 .*column v is NULL", {}),
        ({"i": [0, 1, -2], "v": [1.0, 2.0, 3.0]}, r"row 2 .*index i is -2", {}),
        ({"i": [0, 1, 5], "v": [1.0, 2.0, 3.0]}, r"row 2 .*index i is 5, but axis i has the bound 3", {"shape": (3,)}),
        ({"i": [5, 1, 5], "v": [1.0, 2.0, 3.0]}, r"row 2 .*coordinate \(5\).*earlier row", {}),
        ({"i": [0, 1, 2], "v": [1.0, 2.0, 0.5]}, r"row 2 .*0.5 is no int64", {"dtype": "int64"}),
        ({"i": [0, 1, 2**63 - 1], "v": [1.0, 2.0, 0.5]}, rf"row 2 .*index i is {2**63 - 1}", {}),
        ({"i": [b"a", b"b", b"c"], "v": [1.0, 2.0, 0.5]}, r"index column i holds binary", {}),
        ({"i": [0, 1, 2], "v": [1.0, 2.0, 0.5]}, r"no column w; .*i, v", {"value": "w"}),
        ({"i": [1, 1, 1], "v": [2**62, 5, 2**62]}, r"add up to 9.*no int64", {"duplicates": "sum"}),
    ],
)
def test_bad_streams_are_refused_without_a_change(
    shared_db: se.Database, rows: dict[str, list[Any]], message: str, options: dict[str, Any]
) -> None:
    shared_db.tensor("A", MATRIX)
    before = contents(shared_db)
    with pytest.raises(se.DataError, match=message):
        shared_db.tensor("A", pa.table(rows).to_reader(2), **options)
    assert contents(shared_db) == before
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_keys_of_a_list_of_frames(shared_db: se.Database) -> None:
    frames = [pd.DataFrame({"who": pd.Categorical([name]), "v": [number]}) for name, number in (("ann", 1), ("bob", 2))]
    shared_db.tensor("A", frames, keys={"who": "people"})
    assert shared_db.run("Y[who] = A[who]")["Y"].df().to_dict("list") == {"who": ["ann", "bob"], "val": [1, 2]}


def test_lists_without_rows_are_arrays(shared_db: se.Database) -> None:
    """A list of series or of tuples is nested sequences, as in numpy."""
    rows = [0.0, 1.5], [2.0, 2.5]
    for make in (tuple, pl.Series, pa.array):
        nested = [make(row) for row in rows]
        shared_db.tensor("A", nested)
        np.testing.assert_array_equal(read_back(shared_db, "A"), rows)
    assert shared_db.tensor("A", []).tensor.shape == (0,)


# ---- NaN and NULL


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda values: values, id="numpy"),
        pytest.param(lambda values: sp.coo_array((values, (np.arange(3),)), shape=(3,)), id="scipy"),
        pytest.param(lambda values: pd.DataFrame({"i": range(3), "v": values}), id="pandas"),
        pytest.param(lambda values: pd.DataFrame({"i": range(3), "v": values.astype("float32")}), id="pandas, float32"),
        pytest.param(lambda values: pd.Series(values), id="pandas series"),
        pytest.param(lambda values: pl.DataFrame({"i": range(3), "v": values}), id="polars"),
        pytest.param(lambda values: pl.LazyFrame({"i": range(3), "v": values}), id="lazy polars"),
        pytest.param(lambda values: pa.table({"i": range(3), "v": values}), id="Arrow"),
        pytest.param(lambda values: duckdb.from_arrow(pa.table({"i": range(3), "v": values})), id="DuckDB"),
        pytest.param(lambda values: xr.DataArray(values, dims=["i"]), id="xarray"),
    ],
)
def test_nan_is_a_value(shared_db: se.Database, make: Callable[[NDArray[Any]], object]) -> None:
    values = np.array([1.0, np.nan, 0.5])
    shared_db.tensor("A", make(values))
    np.testing.assert_array_equal(read_back(shared_db, "A"), values)
    assert shared_db.statistics("A").entries == 3


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(pd.DataFrame({"i": [0, 1], "v": pd.array([1.0, None], "Float64")}), id="pandas, Float64"),
        pytest.param(pd.DataFrame({"i": [0, 1], "v": pd.array([1.0, None], "double[pyarrow]")}), id="pandas, Arrow"),
        pytest.param(pd.DataFrame({"i": [0, 1], "v": pd.array([1, None], "Int64")}), id="pandas, Int64"),
        pytest.param(pd.DataFrame({"i": [0, 1], "v": pd.array([1.0, np.nan], object)}), id="pandas, objects"),
        pytest.param(pd.DataFrame({"v": ["a", np.nan], "w": [1.0, 2.0]}), id="pandas, texts"),
        pytest.param(pd.DataFrame({"v": [pd.Timestamp("2020"), pd.NaT], "w": [1.0, 2.0]}), id="pandas, times"),
        pytest.param(pl.DataFrame({"i": [0, 1], "v": [1.0, None]}), id="polars"),
        pytest.param(pa.table({"i": [0, 1], "v": [1.0, None]}), id="Arrow"),
        pytest.param(duckdb.sql("SELECT unnest([0, 1]) AS i, unnest([1, NULL]) AS v"), id="DuckDB"),
    ],
)
def test_null_is_no_value(shared_db: se.Database, frame: object) -> None:
    with pytest.raises(se.DataError, match=r"row 1 \(counted from 0\): the column v is NULL; leave such rows out"):
        shared_db.tensor("A", frame)


# ---- streams that fail


def test_errors_of_a_stream_are_reported(shared_db: se.Database) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from batches(2)
        raise RuntimeError("the source is gone")

    with pytest.raises(se.DataError, match=r"tensor A cannot be read.*the source is gone$"):
        shared_db.tensor("A", pa.RecordBatchReader.from_batches(pa.table(ROWS).schema, broken()))
    shared_db.tensor("A", MATRIX)
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_shape_of_another_rank_than_a_stream(shared_db: se.Database) -> None:
    with pytest.raises(se.ShapeError, match=r"shape \(3,\), but data of 2 index columns"):
        shared_db.tensor("A", pa.table(ROWS).to_reader(), shape=(3,))


# ---- relations and files


@pytest.mark.parametrize("relation", ["edges", "main.edges", "EDGES"])
def test_table_is_copied(edges: se.Database, relation: str) -> None:
    edges.tensor("A", relation, shape=(3, 3))
    assert axes_of(edges) == ["src", "dst"]
    run_sql(edges, "DROP TABLE edges")
    np.testing.assert_array_equal(read_back(edges, "A"), [[0, 1.5, 0], [0, 0, 0], [2.5, -1, 0]])


def test_rows_of_the_table_that_is_replaced(edges: se.Database) -> None:
    edges.tensor("A", "edges", shape=(3, 3))
    edges.tensor("A", "A", index=["DST", "src"], value="val", shape=(3, 3))
    np.testing.assert_array_equal(read_back(edges, "A"), [[0, 0, 2.5], [1.5, 0, -1], [0, 0, 0]])


def test_number_of_rows(edges: se.Database) -> None:
    edges.tensor("A", "edges", index=[], duplicates="sum")
    assert read_back(edges, "A") == 3
    with pytest.raises(se.DataError, match=r"row 1 .*the coordinate \(\) stands in an earlier row"):
        edges.tensor("A", "edges", index=[])


def test_view_is_copied(edges: se.Database) -> None:
    run_sql(edges, "CREATE VIEW backwards AS SELECT w, dst + 1 AS i, src AS j FROM edges ORDER BY w")
    edges.tensor("A", "backwards", index=["j", "i"], value="w", dtype="float32", axes=["I", "J"])
    np.testing.assert_array_equal(read_back(edges, "A"), [[0, 0, 1.5], [0, 0, 0], [0, 2.5, -1]])
    assert axes_of(edges) == ["i", "j"]
    edges.tensor("A", "backwards", axes=["i", "j"], index=["i", "j"])  # names the other way round than in the view
    np.testing.assert_array_equal(read_back(edges, "A"), [[0, 0, 0], [0, 0, 1], [1, 0, 1]])


def test_copy_takes_a_layout_and_sums(edges: se.Database) -> None:
    run_sql(edges, "CREATE TABLE twice AS SELECT src, dst, src > 0 AS is_set FROM edges")
    run_sql(edges, "INSERT INTO twice SELECT src, dst, FALSE FROM edges")
    with pytest.raises(se.DataError, match=r"row 3 .*\(0, 1\) stands in an earlier row"):
        edges.tensor("A", "twice")
    for promoted in (None, ["src"]):
        edges.tensor("A", "twice", duplicates="sum", promoted=promoted)
        np.testing.assert_array_equal(read_back(edges, "A"), [[False, False], [False, False], [True, True]])


def test_bad_relations_are_refused(edges: se.Database) -> None:
    run_sql(edges, "CREATE TABLE bad AS SELECT * FROM edges")
    run_sql(edges, "INSERT INTO bad VALUES (1, 1, NULL)")
    before = contents(edges)
    with pytest.raises(se.DataError, match=r"row 3 .*the value w is NULL"):
        edges.tensor("A", "bad", duplicates="sum")
    with pytest.raises(se.DataError, match=r"row 1 .*index src is 2, but axis src has the bound 2"):
        edges.tensor("A", "edges", shape=(2, 2))
    with pytest.raises(se.CatalogueError, match="no table, view or file nothing"):
        edges.tensor("A", "nothing")
    with pytest.raises(se.CatalogueError, match=r"absent\.parquet"):
        edges.tensor("A", "absent.parquet")
    with pytest.raises(se.DataError, match="no column dest; did you mean dst"):
        edges.tensor("A", "edges", value="dest")
    assert contents(edges) == before


@pytest.mark.engines("duckdb", reason="a relation of a database of its own; those of others are streams")
def test_relation_of_this_database(edges: se.Database) -> None:
    run_sql(edges, "CREATE TEMPORARY TABLE scale AS SELECT 2 AS factor")
    relation = edges.connection.sql("SELECT src, dst, w * factor AS w FROM edges, scale")
    edges.tensor("A", relation, shape=(3, 3))
    np.testing.assert_array_equal(read_back(edges, "A"), [[0, 3, 0], [0, 0, 0], [5, -2, 0]])
    edges.tensor("A", relation.filter("w < 0"), index=["src"])
    np.testing.assert_array_equal(read_back(edges, "A"), [0, 0, 1])


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "csv.gz"])
def test_file(shared_db: se.Database, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"it's edges.{ending}"
    quoted = str(path).replace("'", "''")
    with duckdb.connect() as connection:
        connection.register("frame", pa.table(ROWS))
        connection.execute(f"COPY frame TO '{quoted}'")
    for source in (path, str(path), str(tmp_path / f"*.{ending}")):
        shared_db.tensor("A", source)
        np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)
    shared_db.tensor("A", path, index=["dst"], value="weight", shape=(5,))
    np.testing.assert_array_equal(read_back(shared_db, "A"), [2, 1.5, -3, 0, 0])


def test_bad_files_are_refused(shared_db: se.Database, tmp_path: Path) -> None:
    parquet.write_table(pa.table({"i": [0, None], "v": [1.0, 2.0]}), tmp_path / "null.parquet")
    with pytest.raises(se.DataError, match=r"row 1 .*i is NULL"):
        shared_db.tensor("A", tmp_path / "null.parquet")
    (tmp_path / "no.parquet").write_text("no Parquet")
    with pytest.raises(se.CatalogueError, match=r"no\.parquet"):
        shared_db.tensor("A", tmp_path / "no.parquet")


# ---- arrays


@pytest.mark.engines("duckdb", reason="they are entries before any engine sees them")
@pytest.mark.parametrize(
    ("make", "fill"), [(sparse.COO, 0.0), (sparse.COO, np.inf), (sparse.GCXS, 3.0), (sparse.DOK, 3.0)]
)
def test_pydata_sparse(shared_db: se.Database, make: Callable[[Any], Any], fill: float) -> None:
    dense = np.where(SPARSE_CUBE == 0, fill, SPARSE_CUBE)
    array = make(sparse.COO.from_numpy(dense, fill_value=fill))
    stored = shared_db.tensor("A", array)
    assert stored.tensor.fill == fill
    assert stored.keys == ("dim_0", "dim_1", "dim_2")
    np.testing.assert_array_equal(read_back(shared_db, "A"), dense)
    assert shared_db.tensor("A", array, fill=fill).tensor.fill == fill
    with pytest.raises(se.DataError, match=r"given the fill 1, but its data have the fill"):
        shared_db.tensor("A", array, fill=1)


@pytest.mark.engines("duckdb", reason="they are entries before any engine sees them")
def test_pydata_sparse_of_other_ranks_and_dtypes(shared_db: se.Database) -> None:
    for dense in (np.array([0, 0, 7]), np.array([[0, 2j], [0, 0]]), np.array([[False, True]]), np.zeros((2, 0))):
        shared_db.tensor("A", sparse.COO.from_numpy(dense))
        np.testing.assert_array_equal(read_back(shared_db, "A"), dense)
    with pytest.raises(se.ShapeError, match="fill NaN"):
        shared_db.tensor("A", sparse.COO.from_numpy(np.array([np.nan, 1]), fill_value=np.nan))


def test_xarray(shared_db: se.Database) -> None:
    shared_db.tensor("A", xr.DataArray(CUBE, dims=["Year", "month", "site"], coords={"month": [0, 1, 2]}))
    assert axes_of(shared_db) == ["year", "month", "site"]
    np.testing.assert_array_equal(read_back(shared_db, "A"), CUBE)
    shared_db.tensor("A", xr.DataArray(sparse.COO.from_numpy(SPARSE_CUBE), dims=["a", "b", "c"]), axes="ijk")
    assert axes_of(shared_db) == ["i", "j", "k"]
    np.testing.assert_array_equal(read_back(shared_db, "A"), SPARSE_CUBE)


def test_coordinates_of_xarray_are_not_lost(shared_db: se.Database) -> None:
    for coordinates in ([2019, 2020], ["a", "b"], [1, 0]):
        array = xr.DataArray(MATRIX, dims=["year", "site"], coords={"year": coordinates})
        with pytest.raises(se.DataError, match=r"coordinates on the dimension year.*drop_vars\('year'\)"):
            shared_db.tensor("A", array)
    with pytest.raises(se.DataError, match=r"to_series\(\), whose .*with keys={'year': 'a name'}\)"):
        shared_db.tensor("A", array)
    shared_db.tensor("A", array.assign_coords(year=[2021, 2019]).to_series(), keys={"year": "years"})
    sums = shared_db.run("T[y] = sum(A[y, s])")["T"].df().sort_values("y")
    assert sums.values.tolist() == [[2019, -1.0], [2021, 1.5]]
    shared_db.tensor("A", array.drop_vars("year"))
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)
    with pytest.raises(se.DataError, match=r"dataset of xarray, which has rain; choose"):
        shared_db.tensor("A", xr.Dataset({"rain": array}))


def test_memory_map(shared_db: se.Database, tmp_path: Path) -> None:
    np.save(tmp_path / "cube.npy", CUBE)
    shared_db.tensor("A", np.load(tmp_path / "cube.npy", mmap_mode="r"))
    np.testing.assert_array_equal(read_back(shared_db, "A"), CUBE)


class Convertible:
    """An object with numpy's array interface, as those of other libraries."""

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[np.float64]:
        return MATRIX


def test_array_interfaces_are_arrays(shared_db: se.Database) -> None:
    shared_db.tensor("A", Convertible())
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)


def test_arrays_have_no_columns_to_choose(shared_db: se.Database) -> None:
    with pytest.raises(se.DataError, match=r"index or value columns, but an array of numpy.* has none"):
        shared_db.tensor("A", MATRIX, index=["i", "j"])
    with pytest.raises(se.DataError, match="the column src for two things; name every column once"):
        shared_db.tensor("A", FRAME, index=["src", "src"])
    with pytest.raises(se.DataError, match=r"index='src' is one text; give a list"):
        shared_db.tensor("A", FRAME, index="src")
