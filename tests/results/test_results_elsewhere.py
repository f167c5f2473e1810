"""Results are taken as they are by Arrow, pandas, polars, DuckDB, xarray and databases, and survive pickling."""

import copy
import pickle
from collections.abc import Callable
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import sparseeinsum as se
from sparseeinsum.operators.dtypes import Number

pytestmark = pytest.mark.engines("duckdb", "postgresql")

VISITS = pd.DataFrame({"who": ["bob", "ann"], "year": [2021, 2019], "n": [3, 4]})
ROWS = [(0, 1, 2.0), (1, 0, 4.0), (1, 2, -6.0)]
DENSE = np.array([[0.0, 2.0, 0.0], [4.0, 0.0, -6.0]])


@pytest.fixture
def result(shared_db: se.Database) -> se.TensorResult:
    shared_db.tensor("A", DENSE / 2)
    return shared_db.run("Y[i, j] = 2 * A[i, j]")["Y"]


def keyed(db: se.Database) -> se.TensorResult:
    """Two axes with natural keys, of dictionaries with other names than the axes; the years are whole numbers."""
    db.tensor("V", VISITS, keys={"who": "person", "year": "years"})
    return db.run("Y[who, year] = 2 * V[who, year]")["Y"]


READERS: dict[str, Callable[[se.TensorResult], pa.Table]] = {
    "Arrow": pa.table,
    "reader": lambda result: pa.RecordBatchReader.from_stream(result).read_all(),
    "polars": lambda result: pl.DataFrame(result).to_arrow(),
    "pandas": lambda result: pa.Table.from_pandas(pd.DataFrame.from_arrow(result)),  # type: ignore[attr-defined]  # new
    "DuckDB": lambda result: duckdb.execute("FROM result").to_arrow_table(),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_readers_of_arrow(result: se.TensorResult, read: Callable[[se.TensorResult], pa.Table]) -> None:
    table = read(result)
    assert table.column_names == ["i", "j", "val"]
    assert sorted(zip(*table.to_pydict().values(), strict=True)) == ROWS


def test_dense_readers(result: se.TensorResult) -> None:
    """Pandas and xarray read an object with numpy's interface as an array, not as a sequence of objects."""
    np.testing.assert_array_equal(pd.DataFrame(result), DENSE)
    np.testing.assert_array_equal(pd.Series(result[1]), DENSE[1])
    np.testing.assert_array_equal(xr.DataArray(result), DENSE)
    np.testing.assert_array_equal(np.stack([result, result]), [DENSE, DENSE])
    np.testing.assert_array_equal(se.einsum("ij->i", result), DENSE.sum(axis=1))


@pytest.mark.parametrize("layout", ["entries", "any"])
@pytest.mark.parametrize(
    ("dtype", "fill"), [("float64", 0), ("float32", np.inf), ("int64", 7), ("bool", True), ("complex64", 1j)]
)
def test_result_becomes_the_same_tensor(shared_db: se.Database, dtype: str, fill: Number, layout: str) -> None:
    """Also where the last indices of an axis have no entry."""
    array = np.full((3, 4), fill, dtype)
    array[1, 2] = 0
    shared_db.tensor("A", ([[1], [2]], array[1, [2]]), axes=["src", "dst"], shape=(3, 4), fill=fill)
    computed = shared_db.run("Y[src, dst] = A[src, dst]", layout=layout)["Y"]
    stored = shared_db.tensor("Z", computed)
    assert stored.tensor.axes == computed.schema.tensor.axes
    assert (stored.tensor.dtype, stored.tensor.fill) == (dtype, fill)
    np.testing.assert_array_equal(shared_db.run("Y[i, j] = Z[i, j]")["Y"], array)


@pytest.mark.parametrize("as_data", [lambda result: result, se.TensorResult.arrow], ids=["result", "arrow"])
def test_natural_keys_keep_their_dictionaries(
    shared_db: se.Database, tmp_path: Path, as_data: Callable[[se.TensorResult], object]
) -> None:
    """Whole numbers that are keys do not become indices."""
    computed = keyed(shared_db)
    shared_db.tensor("Z", as_data(computed))
    assert shared_db.tensors()["Z"].tensor.axes == computed.schema.tensor.axes
    computed.to_parquet(tmp_path / "y.parquet")
    assert shared_db.tensor("Z", tmp_path / "y.parquet").tensor.axes == computed.schema.tensor.axes
    renamed = shared_db.tensor("Z", as_data(computed), axes=["person", "time"], keys={"person": "others"})
    assert [axis.dictionary and axis.dictionary.name for axis in renamed.tensor.axes] == ["others", "years"]


def test_keys_become_coordinates_of_xarray(shared_db: se.Database) -> None:
    array = keyed(shared_db).to_xarray()
    assert (array.dims, array.name) == (("who", "year"), "Y")
    assert array.sel(who="ann", year=2019) == 8
    shared_db.tensor("Z", array.to_series(), keys={"who": "person", "year": "years"})
    np.testing.assert_array_equal(shared_db.run("Y[i, j] = Z[i, j]")["Y"], array)


def test_new_values_of_prepared_programs(shared_db: se.Database) -> None:
    shared_db.tensor("A", DENSE[:, :2])
    shared_db.tensor("X", np.ones(2))
    with shared_db.prepare("Y[i] = sum(A[i, j] * X[j])", inputs=["X"]) as step:
        once = step.run()["Y"]
        np.testing.assert_array_equal(step.run(X=once)["Y"], DENSE[:, :2] @ np.asarray(once))
        shared_db.tensor("B", DENSE)
        longer = shared_db.run("Y[j] = sum(B[i, j])")["Y"]
        with pytest.raises(se.ShapeError, match=r"X is given shape \(3,\), but was prepared with \(2,\)"):
            step.run(X=longer)
        shared_db.tensor("E", ([[0]], [1.0]), shape=(2,), fill=5.0)
        other = shared_db.run("Y[i] = E[i]")["Y"]
        for data in (other, other.arrow()):
            with pytest.raises(se.DataError, match=r"absent entries hold 5.0, but was prepared with the fill 0"):
                step.run(X=data)


def test_copies_and_pickles(shared_db: se.Database) -> None:
    shared_db.tensor("D", pd.DataFrame({"day": [date(2020, 1, 2)], "v": [1.5]}))
    results = shared_db.run("Y[day] = D[day]; S[] = sum(D[day])")
    for again in (pickle.loads(pickle.dumps(results)), copy.deepcopy(results), copy.copy(results)):
        assert repr(again) == repr(results)
        assert again["Y"].keys("day").to_pylist() == [date(2020, 1, 2)]
        assert float(again["S"]) == 1.5
    for value in (shared_db.statistics("D"), shared_db.tensors(), se.program("Y[i] = sum(A[i, j])")):
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value
