"""Tensors that are stored in lists, as in A[I, ~j]: what tables hold, what is read back, and what is refused."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from any_sql import run_sql
from hypothesis import given
from hypothesis import strategies as st
from random_programs import arrays, list_layouts
from random_runs import random_runs
from reading import engine_of, rows_of

import sparseeinsum as se

SPARSE = scipy.sparse.csr_array(([1.0, 2.0, 3.0, 4.0], ([0, 0, 2, 3], [1, 3, 0, 3])), shape=(5, 4))


def table_rows(db: se.Database, name: str) -> list[tuple[object, ...]]:
    return sorted(run_sql(db, f"SELECT * FROM {name}"))


def entries_of(db: se.Database, name: str) -> Any:  # noqa: ANN401  # of any dtype
    labels = ", ".join(f"i{axis}" for axis in range(len(db.tensors()[name].tensor.axes)))
    return db.run(f"Y_[{labels}] = {name}[{labels}]", nonfinite="allow")["Y_"].to_numpy()


@pytest.mark.parametrize(
    ("layout", "rows"),
    [
        ("A[I, ~j]", [(0, [1, 3], [1.0, 2.0]), (2, [0], [3.0]), (3, [3], [4.0])]),
        ("A[~i, J]", [(0, [2], [3.0]), (1, [0], [1.0]), (3, [0, 3], [2.0, 4.0])]),
        ("A[I:2, ~i, ~j]", [(0, [0, 0], [1, 3], [1.0, 2.0]), (1, [0, 1], [0, 3], [3.0, 4.0])]),
        ("A[I:2, ~j, ~i]", [(0, [1, 3], [0, 0], [1.0, 2.0]), (1, [0, 3], [0, 1], [3.0, 4.0])]),
        ("A[I, J:2, ~j]", [(0, 0, [1], [1.0]), (0, 1, [1], [2.0]), (2, 0, [0], [3.0]), (3, 1, [1], [4.0])]),
        ("A[~i, ~j]", [([0, 0, 2, 3], [1, 3, 0, 3], [1.0, 2.0, 3.0, 4.0])]),
    ],
)
def test_rows_of_layouts(db: se.Database, layout: str, rows: list[tuple[object, ...]]) -> None:
    stored = db.tensor("A", SPARSE, axes=["i", "j"], layout=layout)
    assert stored.notation == db.tensors()["A"].notation == layout
    assert table_rows(db, "A") == rows
    assert table_rows(db, "A_entries") == [(0, 1, 1.0), (0, 3, 2.0), (2, 0, 3.0), (3, 3, 4.0)]
    np.testing.assert_array_equal(entries_of(db, "A"), SPARSE.toarray())


def test_layouts_without_lists(db: se.Database) -> None:
    assert db.tensor("A", SPARSE, layout="A[I, j]").decomposition.tiles == (1, 0)
    assert db.tensor("A", SPARSE, layout="A[I:2, J]").decomposition.tiles == (2, 1)


def test_labels_are_the_names_of_axes(db: se.Database) -> None:
    def axes(data: object, layout: str) -> list[str]:
        return [axis.name for axis in db.tensor("A", data, layout=layout).tensor.axes]

    assert axes(SPARSE, "A[SRC, ~dst]") == ["src", "dst"]
    table = pa.table({"i": [0], "j": [2], "val": [1.0]})
    assert axes(table, "A[J:2, ~j, ~i]") == ["i", "j"]
    with pytest.raises(se.ShapeError, match="has labels src, dst; the axes are i, j"):
        axes(table, "A[SRC, ~dst]")


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128", "complex64"])
def test_random_arrays(shared_db: se.Database, dtype: str) -> None:
    """Loaded from arrays and from rows of a table, measured when loaded and by scans: the same as numpy's."""

    @random_runs(20)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=4)))
        fill = np.dtype(dtype).type(data.draw(st.sampled_from([0, 1]))).item()
        array = data.draw(arrays(shape, dtype, fill))
        axes = [f"dim_{axis}" for axis in range(len(shape))]
        layout = data.draw(list_layouts("A", len(shape)))
        shared_db.tensor("A", array, axes=axes, fill=fill, layout=layout)
        np.testing.assert_array_equal(entries_of(shared_db, "A"), array)
        before = shared_db.statistics("A")
        run_sql(shared_db, "UPDATE A SET val = val")
        assert shared_db.statistics("A").entries == before.entries == np.count_nonzero(array != fill)
        assert shared_db.statistics("A").distinct == before.distinct
        np.testing.assert_array_equal(entries_of(shared_db, "A"), array)
        if array.dtype.kind != "c":
            again = data.draw(list_layouts("B", len(shape)))
            shared_db.tensor("B", "A_entries", shape=shape, fill=fill, dtype=dtype, layout=again)
            np.testing.assert_array_equal(entries_of(shared_db, "B"), array)
            rows = table_rows(shared_db, "B")
            shared_db.tensor("B", array, axes=axes, fill=fill, layout=again)
            assert rows == table_rows(shared_db, "B")

    run()


def test_streams_and_sums(db: se.Database) -> None:
    table = pa.table({"i": [2, 0, 0], "j": [1, 1, 1], "w": [1.0, 2.0, 3.0]})
    for data in (table, table.to_reader()):
        with pytest.raises(se.DataError, match="the coordinate"):
            db.tensor("A", data, shape=(3, 2), layout="A[I, ~j]")
        data = table.to_reader() if data is not table else table
        db.tensor("A", data, shape=(3, 2), layout="A[I, ~j]", duplicates="sum")
        assert table_rows(db, "A") == [(0, [1], [5.0]), (2, [1], [1.0])]


def test_natural_keys(db: se.Database) -> None:
    table = pa.table({"src": ["bob", "al"], "dst": ["al", "zoe"], "w": [1.0, 2.0]})
    db.tensor("A", table, keys={"src": "person", "dst": "person"}, layout="A[SRC, ~dst]")
    db.tensor("B", pa.table({"who": ["new"], "v": [1.0]}), keys={"who": "person"})
    rows = rows_of(db.run("Y[src, dst] = 2 * A[src, dst]")["Y"])
    assert sorted(rows) == [("al", "zoe", 4.0), ("bob", "al", 2.0)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("INSERT INTO A VALUES (3, [1], [1.0])", r"i = 3\): an earlier tuple has the same keys"),
        ("UPDATE A SET j = [3, 1] WHERE i = 0", r"i = 0\): the positions j do not ascend"),
        ("UPDATE A SET j = [1, 1] WHERE i = 0", "the positions j do not ascend"),
        ("UPDATE A SET j = [1] WHERE i = 0", "the lists j, val have 1, 2 elements; they must have equally many"),
        ("UPDATE A SET j = [1, 4] WHERE i = 0", "a position is out of range; positions count from 0, j below 4"),
        ("UPDATE A SET j = [-1, 2] WHERE i = 0", "a position is out of range"),
        ("UPDATE A SET j = [1, NULL] WHERE i = 0", "the lists j, val hold NULL"),
        ("UPDATE A SET val = [1.0, NULL] WHERE i = 0", "the lists j, val hold NULL"),
        ("UPDATE A SET j = NULL WHERE i = 0", "one of the lists j, val is NULL"),
        ("UPDATE A SET i = 5 WHERE i = 0", r"i = 5\): a key is NULL or out of range"),
        ("UPDATE A SET i = NULL WHERE i = 0", "a key is NULL or out of range"),
    ],
)
def test_unsound_lists_are_refused(db: se.Database, change: str, problem: str) -> None:
    db.tensor("A", SPARSE, layout="A[I, ~j]")
    db.run("Y[i] = sum(A[i, j])")
    run_sql(db, change)
    with pytest.raises(se.DataError, match=rf"tensor A, tuple \d \(counted from 0; .*{problem}"):
        db.run("Y[i] = sum(A[i, j])")


@pytest.mark.parametrize("layout", ["A[I:2, ~i, ~j]", "A[I:2, ~j, ~i]"])
def test_two_lists_ascend_together(db: se.Database, layout: str) -> None:
    db.tensor("A", SPARSE, layout=layout, axes=["i", "j"])
    run_sql(db, "UPDATE A SET i_in_tile = [1, 0], j = [3, 0] WHERE i = 1")
    with pytest.raises(se.DataError, match=r"i = 1\): the positions .* do not ascend"):
        db.run("Y[i] = sum(A[i, j])")


@pytest.mark.parametrize(
    "change",
    [
        "DROP VIEW A_entries; CREATE TABLE A_entries AS SELECT 0 AS i, 1 AS j, 7.0 AS val",
        "CREATE OR REPLACE VIEW A_entries AS SELECT 0::INT AS i, 1::INT AS j, 7.0::DOUBLE AS val",
        "DROP VIEW A_entries",
    ],
)
@pytest.mark.parametrize("program", ["Y[i] = sum(A[i, j] * X[j])", "Y[i] = max(A[i, j] + X[j])"])
@pytest.mark.parametrize("is_planned_before", [True, False])
def test_a_replaced_view_changes_no_result(db: se.Database, change: str, program: str, is_planned_before: bool) -> None:
    db.tensor("A", SPARSE, axes=["i", "j"], layout="A[I, ~j]")
    db.tensor("X", np.ones(4))
    expected = db.run(program)["Y"].to_numpy()
    plan = db.plan(program)
    run_sql(db, change)
    np.testing.assert_array_equal(db.run(plan if is_planned_before else program)["Y"].to_numpy(), expected)
    assert db.statistics("A").entries == 4


def test_changed_lists_are_read(db: se.Database) -> None:
    db.tensor("A", SPARSE, layout="A[I, ~j]")
    plan = db.plan("Y[i] = sum(A[i, j])")
    run_sql(db, "UPDATE A SET j = [0, 1, 2], val = [1.0, 1.0, 1.0] WHERE i = 0")
    run_sql(db, "INSERT INTO A VALUES (4, CAST([] AS INTEGER[]), CAST([] AS DOUBLE[]))")
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), [3, 0, 3, 4, 0])


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        ("A[I, ~j", "is no layout of tensor A"),
        ("B[I, ~j]", "is no layout of tensor A; .* with the name A"),
        ("A[I, ~I]", "has ~I: a key is in upper case"),
        ("A[I, ~i]", "has the index i as a key and in a list, too"),
        ("A[i, ~j]", r"i would be dense beside ~j; write ~i or I"),
        ("A[I, ~k]", "has labels i, k; the axes are i, j"),
        ("A[I, k]", "has labels i, k; the axes are i, j"),
        ("A[I:0, ~i]", "a tile below 1"),
        ("A[I, I, ~j]", "has I twice"),
        ("A[I, ~j, ~j]", "has ~j: a key is in upper case"),
        ("A[I + 1, ~j]", r"has 'I \+ 1', which is no label"),
        ("A[]", "has labels"),
    ],
)
def test_refused_layouts(db: se.Database, layout: str, problem: str) -> None:
    with pytest.raises(se.ShapeError, match=problem):
        db.tensor("A", SPARSE, axes=["i", "j"], layout=layout)


def test_refused_beside_other_arguments(db: se.Database) -> None:
    with pytest.raises(ValueError, match="leave `promoted` out"):
        db.tensor("A", SPARSE, promoted=["dim_0"], layout="A[I, ~j]")
    with pytest.raises(se.ShapeError, match="leave order out"):
        db.tensor("A", SPARSE, order=["i"], layout="A[I, ~j]")
    with pytest.raises(se.ShapeError, match=r"positions of j up to 4,294,967,296 .* as in J:65536, ~j"):
        db.tensor("A", ([[0], [5]], [1.0]), shape=(2, 1 << 32), layout="A[I, ~j]")
    db.tensor("A", ([[0], [5 << 20]], [1.0]), shape=(2, 1 << 32), layout="A[I, J:65536, ~j]")
    assert rows_of(db.run("Y[j] = sum(A[i, j])")["Y"]) == [(5 << 20, 1.0)]


def test_the_view_has_a_name_of_its_own(db: se.Database) -> None:
    run_sql(db, "CREATE TABLE a_Entries (x INTEGER)")
    with pytest.raises(se.CatalogueError, match=r"there is a table or view (?i:a_entries)"):
        db.tensor("A", SPARSE, layout="A[I, ~j]")
    run_sql(db, "DROP TABLE a_Entries")
    db.tensor("A", SPARSE, layout="A[I, ~j]")
    with pytest.raises(se.CatalogueError, match=r"there is a table or view (?i:a_entries)"):
        db.tensor("A_entries", SPARSE)


def test_tables_and_views_go_with_their_tensor(db: se.Database) -> None:
    def relations() -> list[str]:
        engine = engine_of(db)
        return [table.name.lower() for name in ("A", "A_entries") for table in engine.relations_named(name)]

    db.tensor("A", SPARSE, layout="A[I, ~j]")
    assert relations() == ["a", "a_entries"]
    db.tensor("A", SPARSE, layout="A[I, J:2, ~j]")
    db.tensor("A", "A_entries", shape=(5, 4))
    assert relations() == ["a"]
    np.testing.assert_array_equal(entries_of(db, "A"), SPARSE.toarray())
    db.tensor("A", SPARSE, layout="A[I, ~j]")
    db.tensor_from_table("B", "A_entries", ["i", "j"], "val")
    with pytest.raises(se.CatalogueError, match="is the table that tensor A was loaded into"):
        db.run("Y[i] = sum(A[i, j])", into={"Y": "A"})
    db.drop_tensor("A")
    assert relations() == []


def test_a_state_in_lists_is_refused(db: se.Database) -> None:
    db.tensor("x", np.ones(3), layout="x[~i]")
    with pytest.raises(se.CatalogueError, match=r"the state x is stored in lists, x\[~i\]"):
        db.iterate("next_x[i] = 2 * x[i]", {"x": "next_x"}, steps=2)
