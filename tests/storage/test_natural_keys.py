"""Texts, dates, UUIDs and gapped numbers index tensors, by dictionaries that tensors share."""

import datetime
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from any_sql import run_sql
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import engine_of, rows_of

import sparseeinsum as se
from sparseeinsum.pipeline.plan_options import plan_options
from sparseeinsum.pipeline.storing import store_program

pytestmark = pytest.mark.engines("duckdb", "postgresql")

FRIENDS = pd.DataFrame({"src": ["bob", "al", "zoe"], "dst": ["al", "zoe", "bob"], "w": [1.0, 2.0, 3.0]})
PERSON = {"src": "person", "dst": "person"}


@pytest.fixture
def friends(db: se.Database) -> se.Database:
    """A database with a tensor of who knows whom."""
    db.tensor("A", FRIENDS, keys=PERSON)
    return db


def test_results_have_the_keys_of_the_data(friends: se.Database) -> None:
    result = friends.run("Y[i, k] = sum(A[i, j] * A[j, k])")["Y"]
    assert rows_of(result) == [("al", "bob", 6.0), ("bob", "zoe", 2.0), ("zoe", "al", 3.0)]
    assert result.keys("i").to_pylist() == result.keys("K").to_pylist() == ["al", "bob", "zoe"]
    dense = np.zeros((3, 3))
    dense[[1, 0, 2], [0, 2, 1]] = [1, 2, 3]
    np.testing.assert_array_equal(result.to_numpy(), dense @ dense)
    assert result.pl().schema["i"] == pl.String
    assert result.arrow().column_names == ["i", "k", "val"]


def test_later_keys_are_appended_to_the_dictionary(friends: se.Database) -> None:
    friends.tensor("X", pd.DataFrame({"who": ["new", "al"], "v": [10.0, 20.0]}), keys={"who": "PERSON"})
    assert friends.dictionary("person").to_pylist() == ["al", "bob", "zoe", "new"]
    assert friends.dictionaries()["person"].size == 4
    assert friends.tensors()["A"].tensor.shape == (4, 4)
    assert rows_of(friends.run("Z[i] = sum(A[i, j] * X[j])")["Z"]) == [("bob", 20.0)]
    friends.tensor("A", FRIENDS[:1], keys=PERSON)  # a dictionary keeps keys that no tensor uses
    assert friends.tensors()["A"].tensor.shape == (4, 4)


DAYS = [datetime.date(2021, 3, 1), datetime.date(1815, 12, 10)]
TIMES = [datetime.datetime(2020, 5, 17, 12, 30, 1, 250), datetime.datetime(1969, 1, 1)]
ZONED = [moment.replace(tzinfo=datetime.UTC) for moment in TIMES]
UUIDS = [uuid.UUID(int=1 << 127), uuid.UUID(int=7)]


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("TEXT", ["b", "a"]),
        ("TEXT", ["", 'ß"quoted", it\'s\n\\N\t\N{SNOWMAN}']),
        ("TEXT", ["x" * 5_000_000, "y" * 10_000]),
        ("DATE", DAYS),
        ("TIMESTAMP", TIMES),
        ("TIMESTAMPTZ", ZONED),
        ("UUID", UUIDS),
        ("BIGINT", [1 << 62, -17]),
    ],
    ids=lambda keys: keys if isinstance(keys, str) else type(keys[0]).__name__,
)
def test_keys_of_every_type_come_back(db: se.Database, kind: str, keys: list[Any]) -> None:
    column = pa.array(keys) if kind != "UUID" else pa.array([key.bytes for key in keys], pa.uuid())
    db.tensor("A", pa.table({"i": column, "v": [1.5, 2.5]}), keys={"i": "things"})
    assert db.dictionaries()["things"].dictionary.key_type == kind
    result = db.run("Y[i] = 2 * A[i]")["Y"].arrow()
    assert sorted(zip(*(values.to_pylist() for values in result.columns), strict=True)) == sorted(
        zip(keys, [3.0, 5.0], strict=True)
    )
    assert db.dictionary("things").to_pylist() == sorted(keys)


@pytest.mark.engines("duckdb", reason="what is asked before a database is")
@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"who": pd.Categorical(["b", "a", "b"], ["unused", "b", "a"]), "k": [0, 0, 1], "v": [1, 2, 3]}),
        pl.DataFrame({"who": pl.Series(["b", "a", "b"], dtype=pl.Categorical), "k": [0, 0, 1], "v": [1, 2, 3]}),
        pa.table({"who": pa.array(["b", "a", "b"]).dictionary_encode(), "k": [0, 0, 1], "v": [1, 2, 3]}),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_categories_are_their_values(db: se.Database, frame: object) -> None:
    db.tensor("A", frame)
    assert db.dictionary("who").to_pylist() == ["a", "b"]
    assert rows_of(db.run("Y[i] = sum(A[i, k])")["Y"]) == [("a", 2), ("b", 4)]


@pytest.mark.parametrize("as_table", [False, True])
def test_keys_of_streams(db: se.Database, as_table: bool) -> None:
    batches = [pa.record_batch({"who": who, "k": k, "v": [1.5] * len(who)}) for who, k in STREAMED]
    data = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    if as_table:
        db.tensor("A", pa.table(data.read_all()), keys={"k": "numbers"})
        run_sql(db, "CREATE TABLE copied (who TEXT, k BIGINT, v DOUBLE PRECISION)")
        db.run("T[i, k] = A[i, k]", into={"T": "stored"})
        run_sql(db, "INSERT INTO copied SELECT * FROM stored")
    stored = db.tensor("B", "copied" if as_table else data, keys={"who": "person", "k": "ks"}, shape=(None, None))
    assert stored.tensor.shape == (3, 3)
    assert not stored.holds_keys
    assert db.dictionary("person").to_pylist() == ["al", "bob", "zoe"]
    assert rows_of(db.run("Y[i] = sum(B[i, k])")["Y"]) == [("al", 1.5), ("bob", 3.0), ("zoe", 1.5)]
    rows = rows_of(db.run("Y[i, k] = B[i, k]")["Y"])
    assert rows == [("al", -5, 1.5), ("bob", -5, 1.5), ("bob", 9, 1.5), ("zoe", 12, 1.5)]


STREAMED = [(["bob", "al"], [-5, -5]), (["zoe", "bob"], [12, 9])]


def test_rows_of_streams_are_named(db: se.Database) -> None:
    batches = [pa.record_batch({"i": pa.array([key], pa.string()), "v": [1.0]}) for key in ("a", "b", None, "a")]
    data = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    with pytest.raises(se.DataError, match=r"row 2 .*the column i is NULL"):
        db.tensor("A", data)
    data = pa.RecordBatchReader.from_batches(batches[0].schema, [batches[0], batches[1], batches[3]])
    with pytest.raises(se.DataError, match="stands in an earlier row"):
        db.tensor("A", data)
    assert db.dictionaries() == {}


@pytest.mark.engines("duckdb", reason="what is asked before a database is")
def test_integers_are_keys_if_the_user_says_so(db: se.Database) -> None:
    frame = pd.DataFrame({"id": [1000, 7, -3], "k": [0, 1, 1], "v": [1.0, 2.0, 3.0]})
    stored = db.tensor("A", frame, keys={"ID": "customers"})
    assert stored.tensor.shape == (3, 2)
    assert rows_of(db.run("Y[i] = sum(A[i, k])")["Y"]) == [(-3, 3.0), (7, 2.0), (1000, 1.0)]


def test_arrays_have_the_order_of_a_dictionary(friends: se.Database) -> None:
    friends.tensor("X", np.array([1.0, 10.0, 100.0]), keys={"dim_0": "person"})
    friends.tensor("F", np.arange(6.0).reshape(3, 2), axes=["who", "f"], keys={"who": "person"})
    assert rows_of(friends.run("Z[i] = sum(A[i, j] * X[j])")["Z"]) == [("al", 200.0), ("bob", 1.0), ("zoe", 30.0)]
    assert rows_of(friends.run("Z[i] = sum(F[i, f])")["Z"]) == [("al", 1.0), ("bob", 5.0), ("zoe", 9.0)]
    friends.tensor("B", FRIENDS.replace("zoe", "mia"), keys=PERSON)  # arrays store no keys
    assert friends.tensors()["F"].tensor.shape == (4, 2)


@pytest.mark.engines("duckdb", reason="what is asked before a database is")
def test_indices_in_programs_are_positions_in_the_dictionary(friends: se.Database) -> None:
    loops = pd.concat([FRIENDS, FRIENDS[:1].assign(src="al", w=2.0)], ignore_index=True)
    friends.tensor("A", loops, keys=PERSON)
    results = friends.run(
        "Y[i] = sum(A[i, j] * index(j))\nD[i] = 2 * A[i, i]\nH[i, k] = one_hot[k](index(i)) * A[i, k]"
    )
    assert rows_of(results["Y"]) == [("al", 4.0), ("zoe", 3.0)]
    assert rows_of(results["D"]) == [("al", 4.0)]
    assert rows_of(results["H"]) == [("al", "al", 2.0)]


@pytest.mark.engines("duckdb", reason="what is asked before a database is")
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"who": "animal"},
            r"label j of Z has keys of the dictionary person, of type TEXT, in A \(axis dst\), but keys "
            r"of the dictionary animal.* in X \(axis who\); give both axes one dictionary with keys=",
        ),
        (None, r"label j of Z has keys of the dictionary person.*, but keys of the dictionary who"),
    ],
)
def test_labels_have_one_dictionary(friends: se.Database, keys: dict[str, str] | None, message: str) -> None:
    friends.tensor("X", pd.DataFrame({"who": ["al"], "v": [1.0]}), keys=keys)
    with pytest.raises(se.ShapeError, match=message):
        friends.plan("Z[i] = sum(A[i, j] * X[j])")


@pytest.mark.engines("duckdb", reason="what is asked before a database is")
def test_labels_have_keys_or_plain_indices(friends: se.Database) -> None:
    friends.tensor("X", np.ones(3))
    with pytest.raises(se.ShapeError, match=r"keys of the dictionary person.*, but plain indices in X \(axis dim_0\)"):
        friends.plan("Z[i] = sum(A[i, j] * X[j])")


@pytest.mark.engines("duckdb", reason="what is asked before a database is")
@pytest.mark.parametrize(
    ("column", "keys", "error", "message"),
    [
        ([1.5, 2.0], {"i": "d"}, se.DataError, "the index column i holds double; indices must be whole"),
        ([1.5, float("nan")], None, se.DataError, "the index column i holds double"),
        ([None, "a"], None, se.DataError, r"row 0 .*the column i is NULL; leave such rows out"),
        ([1, 2], {"i": "person"}, se.DataError, "tensor B has keys of type BIGINT for the dictionary person, "
                                                "whose keys are of type TEXT; name another dictionary"),
        (["a", "b"], {"j": "person"}, se.ShapeError, "tensor B has no axis j to give keys; it has i"),
        (["a", "b"], {"i": ""}, se.ShapeError, "tensor B is given keys '' for axis i"),
        (["a", "a"], None, se.DataError, r"row 1 .*the coordinate \(0\) stands in an earlier row"),
        ([1 << 63, 1], {"i": "d"}, se.DataError, "a key of i would change"),
        (pd.to_datetime(["2020-01-01"] * 2).as_unit("ns") + pd.Timedelta(1, "ns"), None, se.DataError, "would change"),
    ],
)  # fmt: skip
def test_invalid_keys_are_refused(
    friends: se.Database, column: object, keys: dict[str, str] | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        friends.tensor("B", pd.DataFrame({"i": column, "v": [1.0, 2.0]}), keys=keys)
    assert list(friends.tensors()) == ["A"]
    assert list(friends.dictionaries()) == ["person"]


@pytest.mark.engines("duckdb", reason="what is asked before a database is")
def test_shapes_are_those_of_dictionaries(db: se.Database) -> None:
    assert db.tensor("A", FRIENDS, shape=(None, 3), keys=PERSON).tensor.shape == (3, 3)
    with pytest.raises(se.ShapeError, match=r"given the bound 4 for axis 1 .*, whose dictionary has 3 keys; give None"):
        db.tensor("A", FRIENDS, shape=(3, 4), keys=PERSON)
    with pytest.raises(se.ShapeError, match=r"has shape \(2,\), but the dictionary of axis 0 .*has 3 keys"):
        db.tensor("X", np.ones(2), keys={"dim_0": "person"})
    with pytest.raises(se.CatalogueError, match="there is no dictionary animal in this database; known are person"):
        db.tensor("X", np.ones(2), keys={"dim_0": "animal"})


def test_dictionaries_inside_arrays_do_not_grow(friends: se.Database) -> None:
    friends.tensor("X", pd.DataFrame({"who": ["al"], "v": [1.0]}), keys={"who": "person"}, promoted=[])
    with pytest.raises(
        se.CatalogueError, match="tensor B has keys that the dictionary person lacks, and tensor X holds"
    ):
        friends.tensor("B", FRIENDS.replace("zoe", "mia"), keys=PERSON)
    assert rows_of(friends.run("Z[i] = sum(A[i, j] * X[j])")["Z"]) == [("bob", 1.0)]
    friends.tensor("X", pd.DataFrame({"who": ["mia"], "v": [1.0]}), keys={"who": "person"}, promoted={"who": 2})
    assert friends.tensors()["X"].tensor.shape == (4,)


def test_unused_dictionaries_are_dropped(friends: se.Database) -> None:
    with pytest.raises(se.CatalogueError, match="tensor A has keys of the dictionary person, which must stay"):
        friends.drop_dictionary("Person")
    friends.tensor("A", np.eye(2))
    friends.drop_dictionary("Person")
    assert friends.dictionaries() == {}
    with pytest.raises(se.CatalogueError, match="there is no dictionary person in this database; there are none"):
        friends.dictionary("person")


def test_empty_tensors(db: se.Database) -> None:
    db.tensor("A", FRIENDS[:0].astype({"src": str, "dst": str}), keys=PERSON)
    assert db.tensors()["A"].tensor.shape == (0, 0)
    results = db.run("Y[i] = sum(A[i, j])\nS[] = sum(A[i, j])")
    assert rows_of(results["Y"]) == []
    assert results["S"].to_numpy() == 0
    db.tensor("B", FRIENDS, keys=PERSON)
    assert db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy().tolist() == [0, 0, 0]


def test_tables_of_results_hold_keys(friends: se.Database) -> None:
    friends.run("Y[i, k] = sum(A[i, j] * A[j, k])", into={"Y": "twice"})
    assert sorted(run_sql(friends, "SELECT i, k, val FROM twice")) == [
        ("al", "bob", 6.0),
        ("bob", "zoe", 2.0),
        ("zoe", "al", 3.0),
    ]
    with pytest.raises(se.CatalogueError, match=r"tensor_from_table\('twice', .*, keys=\{'i': 'i', 'k': 'k'\}"):
        friends.run("S[] = sum(twice[i, k])")
    friends.tensor_from_table("T", "twice", ["i", "k"], "val", keys={"i": "person", "k": "person"})
    assert rows_of(friends.run("Z[i, j] = A[i, j] + T[i, j]")["Z"]) == sorted(
        [("al", "zoe", 2.0), ("bob", "al", 1.0), ("zoe", "bob", 3.0), *rows_of(friends.run("Y[i, j] = T[i, j]")["Y"])]
    )
    with pytest.raises(se.CatalogueError, match="belongs to the catalogue"):
        friends.run("Y[i] = sum(A[i, j])", into={"Y": "sparseeinsum.dictionary_person"})


def test_the_sql_of_a_plan_returns_keys(friends: se.Database) -> None:
    plan = friends.plan("Y[i] = sum(A[i, j] * A[j, k])")
    for style in ("cte", "staged"):
        *before, last = plan.sql(style).strip().removesuffix(";").split(";\n\n")
        for statement in before:
            run_sql(friends, statement)
        assert sorted(run_sql(friends, last)) == [("al", 6.0), ("bob", 2.0), ("zoe", 3.0)]


@pytest.mark.engines("duckdb", reason="what is asked before a database is")
def test_saved_plans_name_dictionaries(friends: se.Database) -> None:
    text = friends.plan("Y[i] = sum(A[i, j])").to_json()
    assert rows_of(friends.run(friends.load_plan(text))["Y"]) == [("al", 2.0), ("bob", 1.0), ("zoe", 3.0)]
    friends.tensor("A", FRIENDS)  # dictionaries of its own
    with pytest.raises(se.PlanError, match=r"the plan was made for dictionaries .*person.* of tensor A"):
        friends.load_plan(text)


def test_a_plan_is_refused_once_its_dictionary_grows(friends: se.Database) -> None:
    plan = friends.plan("Y[i] = sum(A[i, j])")
    assert rows_of(friends.run(plan)["Y"]) == [("al", 2.0), ("bob", 1.0), ("zoe", 3.0)]
    friends.tensor("X", pd.DataFrame({"who": ["mia"], "v": [1.0]}), keys={"who": "person"})
    with pytest.raises(se.EngineError, match="tensor A was defined anew since the plan was made; plan again"):
        friends.run(plan)


@pytest.fixture(params=["0.1.0", "0.2.0", "0.3.0"])
def earlier(request: pytest.FixtureRequest, db: se.Database) -> se.Database:
    """A database with a catalogue of an earlier version: 0.1 named relations as SQL, and knew no owners."""
    script = Path(__file__).parent / "earlier_versions" / f"catalogue_{request.param}.sql"
    for statement in script.read_text().strip().split(";\n"):
        run_sql(db, statement)
    return db


def test_tensors_of_earlier_versions_are_dropped(earlier: se.Database) -> None:
    earlier.drop_tensor("X")
    assert run_sql(earlier, 'SELECT COUNT(*) FROM "From"') == [(1,)]
    earlier.drop_tensor("Friends")
    assert earlier.tensors() == {}
    earlier.drop_dictionary("person")
    assert earlier.dictionaries() == {}


def test_a_catalogue_of_an_earlier_version(earlier: se.Database) -> None:
    """It is read unchanged; the first change upgrades it."""
    db = earlier
    program = "Y[i] = sum(Friends[i, j] * X[j])"
    before = {"al": 8.0, "bob": 1.0, "zoe": 3.0}
    assert list(db.tensors()) == ["Friends", "X"]
    assert db.dictionaries()["person"].size == 3
    assert dict(rows_of(db.run(program)["Y"])) == before
    db.tensor("B", FRIENDS, keys=PERSON)
    assert list(db.tensors()) == ["B", "Friends", "X"]
    assert dict(rows_of(db.run(program)["Y"])) == before
    db.tensor("C", pd.DataFrame({"who": ["mia"], "v": [1.0]}), keys={"who": "person"})
    assert db.dictionaries()["person"].size == 4
    db.drop_tensor("Friends")
    db.drop_tensor("X")
    assert run_sql(db, 'SELECT COUNT(*) FROM "From"') == [(1,)]
    with pytest.raises(se.CatalogueError, match="no table, view or file friends"):
        db.tensor_from_table("F", "friends", ["src"])


@pytest.mark.engines("postgresql", reason="functions of its extension alone store results as tensors")
def test_results_that_become_tensors(friends: se.Database) -> None:
    """The function einsum creates them in psql."""
    engine = engine_of(friends)
    program = "Y[i, k] = sum(A[i, j] * A[j, k])\nD[I, k] = A[I, k]"
    store_program(se.program(program), engine, plan_options(), replaces=False)
    assert friends.tensors()["Y"].holds_keys
    assert sorted(run_sql(friends, "SELECT i, k, val FROM Y"))[0] == ("al", "bob", 6.0)
    assert len(run_sql(friends, "SELECT i, val FROM D")) == 3  # columns k are demoted
    assert rows_of(friends.run("S[i] = sum(Y[i, k] * D[k, j])")["S"]) == [("al", 6.0), ("bob", 6.0), ("zoe", 6.0)]
    store_program(se.program("Y[i] = sum(A[i, j])"), engine, plan_options(), replaces=True)
    assert rows_of(friends.run("Z[i] = Y[i]")["Z"]) == [("al", 2.0), ("bob", 1.0), ("zoe", 3.0)]
    with pytest.raises(se.CatalogueError, match="tensor D holds that dictionary inside arrays"):
        friends.tensor("X", pd.DataFrame({"who": ["mia"], "v": [1.0]}), keys={"who": "person"})
    friends.drop_tensor("D")
    friends.tensor("X", pd.DataFrame({"who": ["mia"], "v": [1.0]}), keys={"who": "person"})
    assert friends.run("Z[i] = Y[i] + X[i]")["Z"].to_numpy().tolist() == [2, 1, 3, 1]


@pytest.mark.engines("postgresql", reason="transactions of DuckDB's that meet fail, and those of PostgreSQL wait")
def test_two_sessions_extend_a_dictionary_at_once(friends: se.Database, postgres_urls: dict[str, str]) -> None:
    def load(number: int) -> None:
        frame = pd.DataFrame({"who": [f"{key}" for key in range(number, 300 + number)], "v": 1.0})
        with se.connect(postgres_urls["db"]) as other:
            other.connection.execute("SET search_path = main, public")
            for _ in range(3):
                other.tensor(f"X{number}", frame, keys={"who": "person"})

    with ThreadPoolExecutor() as pool:
        list(pool.map(load, range(4)))
    people = friends.dictionary("person").to_pylist()
    assert sorted(people) == sorted({"al", "bob", "zoe", *(str(key) for key in range(303))})
    assert friends.dictionaries()["person"].size == len(people)
    result = friends.run("Y[i] = X0[i] + X3[i]")["Y"]
    assert dict(rows_of(result)) == {str(key): 2.0 if 3 <= key < 300 else 1.0 for key in range(303)}


_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3)
_KEYS = [
    st.sampled_from(["a", "A", "ä", "b", "", " ", "'", '"', "NULL", "\\N"]) | _TEXTS,
    st.dates(datetime.date(1000, 1, 1)),
    st.integers(-(1 << 63), (1 << 63) - 1),
]
_VALUES = st.integers(-4, 4).map(float)


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame, list[pd.DataFrame]]:
    """Two matrices that share the keys of an axis, in the parts in which they are loaded."""
    left, inner, right = (
        draw(st.lists(draw(st.sampled_from(_KEYS)), min_size=1, max_size=5, unique=True)) for _ in "ijk"
    )

    def frame(first: list[Any], second: list[Any], names: list[str]) -> pd.DataFrame:
        places = st.tuples(st.sampled_from(first), st.sampled_from(second))
        entries = draw(st.dictionaries(places, _VALUES, min_size=1, max_size=8))
        return pd.DataFrame([(*place, value) for place, value in entries.items()], columns=[*names, "v"])

    first, second = frame(left, inner, ["i", "j"]), frame(inner, right, ["j", "k"])
    return first, second, [first[: draw(st.integers(1, len(first)))]]


@settings(max_examples=6)
@given(pair=_pairs(), from_tables=st.booleans())
def test_random_products(
    shared_db: se.Database, pair: tuple[pd.DataFrame, pd.DataFrame, list[pd.DataFrame]], from_tables: bool
) -> None:
    first, second, parts = pair
    for name in ("A", "B"):
        shared_db.tensor(name, np.ones(1))
    for name in shared_db.dictionaries():
        shared_db.drop_dictionary(name)
    keys = {"i": "left", "j": "inner", "k": "right"}
    for name, frame in (("A", parts[0]), ("B", second), ("A", first)):
        of_frame = {axis: keys[axis] for axis in frame.columns[:-1]}
        shared_db.tensor(name, frame, keys=of_frame)
        if from_tables:
            labels = ", ".join(of_frame)
            shared_db.run(f"Y[{labels}] = {name}[{labels}]", into={"Y": f"table_{name}"})
            shared_db.tensor_from_table(name, f"table_{name}", list(of_frame), "val", keys=of_frame)
    merged = first.merge(second, on="j")
    merged["val"] = merged.v_x * merged.v_y
    expected = {key: value for key, value in merged.groupby(["i", "k"]).val.sum().items() if value}
    results = shared_db.run("C[i, k] = sum(A[i, j] * B[j, k])\nM[i] = max(A[i, j])")
    assert {(i, k): value for i, k, value in rows_of(results["C"]) if value} == expected
    size = shared_db.dictionaries()["inner"].size
    greatest = {i: max(rows.v.max(), 0 if len(rows) < size else -np.inf) for i, rows in first.groupby("i")}
    assert {i: value for i, value in rows_of(results["M"]) if value} == {
        i: value for i, value in greatest.items() if value
    }
