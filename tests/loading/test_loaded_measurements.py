"""What loading finds in the values is what scans of the table find, and it counts until the table changes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from observed_statements import observe_queries
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.axis_counts import count_entries
from sparseeinsum.statistics.measure import measure
from sparseeinsum.statistics.order import ascending_axes
from sparseeinsum.storage.measuring import count_changed, measure_all

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL does not record changes yet")

LAYOUTS: list[Any] = [None, ["i"], ["j"], ["i", "j"], {"i": 2}, {"j": 3}, {"i": 2, "j": 3}, []]
SPECIAL: dict[str, list[Any]] = {
    "float64": [np.inf, -np.inf, np.nan, -0.0, 1e300],
    "float32": [np.inf, np.nan],
    "int64": [-(2**63), 2**62],
}


@st.composite
def arrays(draw: st.DrawFn) -> tuple[NDArray[Any], float]:
    """An array of any dtype but complex, and its fill."""
    dtype = draw(st.sampled_from(["float64", "float32", "int64", "bool"]))
    shape = draw(st.integers(0, 6)), draw(st.integers(0, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    fills: list[float] = [0, 1] if dtype in ("int64", "bool") else [0, 1, np.inf]
    fill = draw(st.sampled_from(fills))
    values = rng.integers(-3, 4, shape).astype(dtype)
    values = np.where(rng.random(shape) < draw(st.sampled_from([0.0, 0.2, 1.0])), values, np.asarray(fill, dtype))
    if values.size and draw(st.booleans()):
        values.flat[0] = draw(st.sampled_from(SPECIAL.get(dtype, [True])))
    return values, fill


def check(db: se.Database, stored: StoredTensor) -> None:
    scanned = measure(stored, db._engine)
    measured = measure_all({"A": stored}, db._engine)["A"]
    assert measured.measurement.tuples == scanned.tuples
    assert (measured.statistics, measured.values) == (scanned.statistics, scanned.values)
    assert measured.statistics.counted_tuples == scanned.statistics.counted_tuples
    assert type(measured.values.entries.low) is type(scanned.values.entries.low)
    if measured.measurement.ascending is not None:
        assert measured.measurement.ascending == ascending_axes({"A": stored}, db._engine)["A"]
    if not measured.statistics.entries:
        return  # nothing counts the entries of an empty tensor
    counts = count_changed({"A": measured.row_version}, db._engine)["A"]
    for axis, expected in zip(counts, count_entries({"A": stored}, db._engine)["A"], strict=True):
        np.testing.assert_array_equal(axis.entries, expected.entries)
        np.testing.assert_array_equal(axis.present, expected.present)


def test_arrays_and_entries_in_any_layout(db: se.Database) -> None:
    @random_runs(60)
    @given(arrays(), st.sampled_from(LAYOUTS), st.booleans())
    def run(drawn: tuple[NDArray[Any], float], promoted: Any, is_sparse: bool) -> None:  # noqa: ANN401
        array, fill = drawn
        data: Any = array
        if is_sparse and fill == 0 and array.dtype != bool:
            data = sp.coo_array(array)
        db.tensor("A", data, axes=["i", "j"], promoted=promoted, fill=fill)
        check(db, db.tensors()["A"])

    run()


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8"])
def test_entries_that_store_the_fill(db: se.Database, shuffled: bool, dtype: str) -> None:
    rows, columns = np.array([0, 0, 2, 3], dtype), np.array([1, 3, 0, 2], dtype)
    values = np.array([1.5, 0.0, -2.0, 0.0])
    order = np.array([2, 0, 3, 1]) if shuffled else np.arange(4)
    data = ((rows[order], columns[order]), values[order])
    db.tensor("A", data, shape=(4, 5), axes=["i", "j"])
    check(db, db.tensors()["A"])


@pytest.mark.parametrize("bounds", [(2**21, 40), (3, 2**40)])
def test_axes_of_many_indices(db: se.Database, bounds: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    coordinates = np.unique(np.stack([rng.integers(0, bound, 500) for bound in bounds]), axis=1)
    db.tensor("A", (tuple(coordinates), rng.random(coordinates.shape[1])), shape=bounds, axes=["i", "j"])
    stored = db.tensors()["A"]
    scanned, measured = measure(stored, db._engine), measure_all({"A": stored}, db._engine)["A"]
    assert (measured.statistics, measured.values) == (scanned.statistics, scanned.values)
    assert max(measured.statistics.distinct) == len(np.unique(coordinates[np.argmax(bounds)]))


def test_the_first_plan_does_not_scan_what_was_loaded(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.tensor("A", np.eye(5), axes=["i", "j"], promoted=["i", "j"])
    db.tensor("X", np.ones(5), axes=["j"])
    statements = observe_queries(db, monkeypatch)
    db.plan("Y[i] = sum(A[i, j] * X[j])")
    assert not [text for text in statements if "main.X" in text or ("main.A" in text and "LAG" not in text)]
    db.connection.execute("UPDATE A SET val = 7 WHERE i = 0")
    assert db.plan("Y[i] = sum(A[i, j] * X[j])").data.inputs["A"].values.entries.high == 7
    assert any("main.A" in text and "LAG" not in text for text in statements)


def test_a_tensor_that_is_loaded_again(db: se.Database) -> None:
    for value in (1.0, 5.0, 2.0):
        db.tensor("A", np.full((3, 3), value), axes=["i", "j"])
        check(db, db.tensors()["A"])
        assert db.plan("Y[] = sum(A[i, j])").data.inputs["A"].values.entries.low == value


def test_databases_of_one_connection_that_have_equal_tables(tmp_path: Path) -> None:
    """Either has changed once, by change number 1."""
    with se.connect(tmp_path / "other.duckdb") as other:
        other.tensor("A", np.full((3, 3), np.inf), axes=["i", "j"])
    with se.connect() as db:
        db.tensor("A", np.eye(3), axes=["i", "j"])
        assert db.run("Y[] = max(A[i, j])")["Y"].to_numpy() == 1
        db.connection.execute(f"ATTACH '{tmp_path / 'other.duckdb'}' AS other")
        db.connection.execute("USE other")
        check(db, db.tensors()["A"])
        assert db.plan("Y[] = max(A[i, j])").data.inputs["A"].values.entries.high == np.inf
        assert db.run("Y[] = max(A[i, j])")["Y"].to_numpy() == np.inf


def test_a_loading_that_is_undone(db: se.Database) -> None:
    db.tensor("A", np.eye(3), axes=["i", "j"])
    with pytest.raises(se.DataError):
        db.tensor("A", ((np.array([0, 0]), np.array([1, 1])), np.array([1.0, 2.0])), shape=(3, 3), axes=["i", "j"])
    check(db, db.tensors()["A"])
    assert db.run("Y[] = sum(A[i, j])")["Y"].to_numpy() == 3
