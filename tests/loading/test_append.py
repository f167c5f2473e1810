"""Entries that are added to stored tensors are read with those that were there, or a message names what is wrong."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from any_sql import run_sql
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_programs import arrays, list_layouts
from random_runs import random_runs
from reading import rows_of

import sparseeinsum as se

SPARSE = scipy.sparse.csr_array(([1.0, 2.0, 3.0, 4.0], ([0, 0, 2, 3], [1, 3, 0, 3])), shape=(5, 4))
MORE = scipy.sparse.csr_array(([5.0, 6.0, 7.0], ([0, 2, 4], [2, 3, 0])), shape=(5, 4))
LAYOUTS = (None, "A[I, ~j]")


def values_of(db: se.Database, name: str) -> NDArray[Any]:
    labels = ", ".join(f"i{axis}" for axis in range(len(db.tensors()[name].tensor.axes)))
    return db.run(f"Y_[{labels}] = {name}[{labels}]", nonfinite="allow")["Y_"].to_numpy()


def test_entries(db: se.Database) -> None:
    db.tensor("A", SPARSE, axes=["i", "j"])
    plan = db.plan("Y[i] = sum(A[i, j])")
    assert db.append("A", MORE).notation == "A[I, J]"
    np.testing.assert_array_equal(values_of(db, "A"), (SPARSE + MORE).toarray())
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), (SPARSE + MORE).sum(axis=1))


def test_only_lists_that_get_entries_are_written(db: se.Database) -> None:
    db.tensor("A", SPARSE, layout="A[I, ~j]", axes=["i", "j"])
    db.append("A", pa.table({"i": [4, 0, 0], "j": [0, 2, 0], "w": [7.0, 5.0, 8.0]}))
    assert run_sql(db, "SELECT * FROM A ORDER BY i") == [
        (0, [0, 1, 2, 3], [8.0, 1.0, 5.0, 2.0]),
        (2, [0], [3.0]),
        (3, [3], [4.0]),
        (4, [0], [7.0]),
    ]
    assert db.append("A", np.zeros((5, 4))).notation == "A[I, ~j]"
    assert run_sql(db, "SELECT COUNT(*) FROM A") == [(4,)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128"])
def test_random_appends(shared_db: se.Database, dtype: str) -> None:
    """A tensor in any layout that gets entries twice is that of all of them, whatever kind of data brings them."""

    @random_runs(10)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=3)))
        fill = np.dtype(dtype).type(data.draw(st.sampled_from([0, 1]))).item()
        array = data.draw(arrays(shape, dtype, fill))
        axes = [f"dim_{axis}" for axis in range(len(shape))]
        layout = data.draw(st.one_of(st.none(), list_layouts("A", len(shape))))
        turns = np.array(data.draw(st.lists(st.integers(0, 2), min_size=array.size, max_size=array.size))).reshape(
            shape
        )
        parts = [np.where(turns == turn, array, fill).astype(dtype) for turn in range(3)]
        first = np.nonzero(parts[0] != fill)
        shared_db.tensor("A", (first, parts[0][first]), axes=axes, shape=shape, fill=fill, layout=layout)
        for part in parts[1:]:
            places = np.nonzero(part != fill)
            kind = data.draw(st.sampled_from(["array", "entries", "stream"]))
            table = {name: places[axis] for axis, name in enumerate(axes)} | {"val": part[places]}
            if kind == "stream" and array.dtype.kind != "c":
                shared_db.append("A", pa.table(table).to_reader())
            else:
                shared_db.append("A", part if kind == "array" else (places, part[places]))
        np.testing.assert_array_equal(values_of(shared_db, "A"), array)
        if dtype in ("float64", "int64"):
            places = np.nonzero(array != fill)
            shared_db.append("A", (places, array[places]), duplicates="sum")
            np.testing.assert_array_equal(values_of(shared_db, "A"), np.where(array == fill, fill, 2 * array))

    run()


def test_refused_entries_change_nothing(db: se.Database) -> None:
    for layout in LAYOUTS:
        check_refusals(db, layout)


def check_refusals(db: se.Database, layout: str | None) -> None:
    db.tensor("A", SPARSE, axes=["i", "j"], layout=layout)

    def refused(problem: str, data: object, error: type[Exception] = se.DataError, **options: Any) -> None:  # noqa: ANN401
        with pytest.raises(error, match=problem):
            db.append("A", data, **options)
        np.testing.assert_array_equal(values_of(db, "A"), SPARSE.toarray())

    refused(r"has an entry at i 0, j 3 already, .* duplicates='sum'", ([[1, 0], [1, 3]], [1.0, 2.0]))
    refused("the coordinate", ([[1, 1], [1, 1]], [1.0, 2.0]))
    refused("5", ([[5], [0]], [1.0]))
    refused("float64|number", ([[1], [0]], ["text"]))
    refused("shape", scipy.sparse.csr_array((5, 5)), se.ShapeError)
    refused(
        "has the axes i, j, and the data j, i; name the columns",
        pa.table({"j": [0], "i": [0], "w": [1.0]}),
        se.ShapeError,
    )
    refused("neither 'error' nor 'sum'", SPARSE, ValueError, duplicates="replace")
    db.append("A", pa.table({"j": [0], "i": [4], "w": [1.0]}), index=["i", "j"])
    assert db.run("Y[] = A[4, 0]")["Y"].item() == 1


def test_refused_tensors(db: se.Database) -> None:
    db.tensor("A", np.ones((2, 2)))
    with pytest.raises(se.ShapeError, match=r"A\[DIM_0, dim_1\] is stored in arrays, .* load it with another layout"):
        db.append("A", ([[0], [1]], [1.0]))
    with pytest.raises(se.CatalogueError, match="there is no tensor B"):
        db.append("B", SPARSE)
    db.connection.execute("CREATE TABLE edges (i INT, j INT)")
    db.tensor_from_table("E", "edges", ["i", "j"], shape=(2, 2))
    with pytest.raises(se.CatalogueError, match="which was not loaded; add rows to it in SQL"):
        db.append("E", ([[0], [1]], [1.0]))


def test_natural_keys(db: se.Database) -> None:
    keys = {"src": "person", "dst": "person"}
    for layout in (None, "A[SRC, ~dst]"):
        db.tensor("A", pa.table({"src": ["bob"], "dst": ["al"], "w": [1.0]}), keys=keys, layout=layout)
        db.append("A", pa.table({"src": ["bob", "zoe"], "dst": ["zoe", "al"], "w": [2.0, 3.0]}))
        rows = rows_of(db.run("Y[src, dst] = 2 * A[src, dst]")["Y"])
        assert sorted(rows) == [("bob", "al", 2.0), ("bob", "zoe", 4.0), ("zoe", "al", 6.0)]


def test_rows_of_another_table(db: se.Database) -> None:
    for layout in LAYOUTS:
        db.tensor("A", SPARSE, axes=["i", "j"], layout=layout)
        db.run("More[i, j] = 2 * A[i, j]", into={"More": "more"})
        db.append("A", "more", duplicates="sum")
        np.testing.assert_array_equal(values_of(db, "A"), 3 * SPARSE.toarray())
