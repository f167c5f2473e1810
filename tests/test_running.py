"""Running: results in every form, into tables whole or not at all, and failures that leave the database as it was."""

import re
import threading
from collections.abc import Callable, Mapping

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from any_sql import run_sql
from numpy.typing import NDArray
from planned_memory import limit_for
from reading import assert_usable, column_types, contents, engine_of, read_back

import sparseeinsum as se

A = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
B = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 6.0]])
PRODUCT = "Y[i, k] = sum(A[i, j] * B[j, k])"
SHARED = "T[i, k] = sum(A[i, j] * B[j, k])\nY[i] = sum(T[i, k])\nZ[k] = max(T[i, k])"  # T goes to a temporary table


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    """A database with one sparse and one dense tensor."""
    db.tensor("A", sp.csr_array(A))
    db.tensor("B", B)
    return db


@pytest.fixture
def unchanging(shared_db: se.Database) -> se.Database:
    """The same for tests that change nothing."""
    shared_db.tensor("A", sp.csr_array(A))
    shared_db.tensor("B", B)
    return shared_db


LAYOUTS = {
    "entries": (PRODUCT, {}),
    "any": (PRODUCT, {"layout": "any"}),
    "dense": (PRODUCT, {"layout": "any", "optimizer": "dense"}),
    "promoted by hand": ("Y[i, K] = sum(A[i, j] * B[j, K])", {}),
}


@pytest.mark.parametrize(("program", "options"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_forms_of_a_result(unchanging: se.Database, program: str, options: Mapping[str, str]) -> None:
    result = unchanging.run(program, **options)["Y"]  # type: ignore[arg-type]  # options by name
    rows = [(0, 0, 5.0), (1, 0, 6.0), (1, 1, 24.0)]  # what is not the fill
    np.testing.assert_array_equal(result.to_numpy(), A @ B)
    assert isinstance(result.to_scipy(), sp.csr_array)
    np.testing.assert_array_equal(result.to_scipy().toarray(), A @ B)
    assert result.to_scipy().nnz == 3
    assert list(result.df().columns) == ["i", "k", "val"]
    assert sorted(result.df().itertuples(index=False, name=None)) == rows
    assert isinstance(result.arrow(), pa.Table)
    assert result.arrow().column_names == ["i", "k", "val"]
    assert isinstance(result.pl(), pl.DataFrame)
    assert sorted(result.pl().rows()) == rows
    assert (result.name, result.shape, result.fill) == ("Y", (2, 2), 0)


def test_columns_are_labels_in_the_order_of_the_left_side(unchanging: se.Database) -> None:
    frame = unchanging.run("Y[target, Source] = sum(A[Source, j] * B[j, target])")["Y"].df()
    assert list(frame.columns) == ["target", "source", "val"]
    assert sorted(frame.itertuples(index=False, name=None)) == [(0, 0, 5.0), (0, 1, 6.0), (1, 1, 24.0)]


@pytest.mark.parametrize(
    ("program", "options", "expected"),
    [
        (PRODUCT, {}, "<Y[I, K] i: 2 x k: 2 float64, "),
        (PRODUCT, {"layout": "any", "optimizer": "dense"}, "<Y[i, k] i: 2 x k: 2 float64, 1 rows>"),
        ("Y[i, K] = sum(A[i, j] * B[j, K])", {}, "<Y[i, K] i: 2 x k: 2 float64, 2 rows>"),
        ("Y[] = sum(A[i, j])", {}, "<Y[] scalar float64, 1 rows>"),
    ],
)
def test_result_says_what_it_is(
    unchanging: se.Database, program: str, options: Mapping[str, str], expected: str
) -> None:
    result = unchanging.run(program, **options)["Y"]  # type: ignore[arg-type]  # options by name
    assert repr(result).startswith(expected)
    assert result.notation == expected[1 : expected.index("]") + 1]


def test_rows_of_a_result_promoted_by_hand_hold_arrays(unchanging: se.Database) -> None:
    rows = unchanging.run("Y[I, k] = sum(A[I, j] * B[j, k])")["Y"].rows
    assert rows.column_names == ["i", "val"]
    assert sorted(rows.to_pylist(), key=lambda row: row["i"]) == [{"i": 0, "val": [5, 0]}, {"i": 1, "val": [6, 24]}]


def test_scalar_result(unchanging: se.Database) -> None:
    result = unchanging.run("Y[] = sum(A[i, j])")["Y"]
    assert result.to_numpy().shape == ()
    assert result.to_numpy() == 10
    assert result.df().to_dict("list") == {"val": [10]}
    assert result.arrow().to_pylist() == result.pl().to_dicts() == [{"val": 10}]


@pytest.mark.parametrize("program", ["Y[] = sum(A[i, j])", "Y[i] = sum(A[i, j])", "Y[i, j, k] = A[i, j] * B[j, k]"])
def test_only_matrices_go_to_scipy(unchanging: se.Database, program: str) -> None:
    result = unchanging.run(program)["Y"]
    with pytest.raises(se.ShapeError, match=rf"Y has {len(result.shape)} axes; a scipy.sparse matrix has 2"):
        result.to_scipy()


def test_result_without_entries(unchanging: se.Database) -> None:
    result = unchanging.run("Y[i, k] = 0 * sum(A[i, j] * B[j, k])", optimizer="dense")["Y"]  # which leaves fills out
    assert (len(result.df()), list(result.df().columns), result.to_scipy().nnz) == (0, ["i", "k", "val"], 0)
    np.testing.assert_array_equal(result.to_numpy(), np.zeros((2, 2)))


def test_results_are_what_nothing_reads(unchanging: se.Database) -> None:
    assert list(unchanging.run(SHARED)) == ["Y", "Z"]


def test_outputs_are_returned_too(unchanging: se.Database) -> None:
    results = unchanging.run(SHARED, outputs=["T", "Y"])
    assert list(results) == ["T", "Y", "Z"]
    np.testing.assert_array_equal(results["T"].to_numpy(), A @ B)
    assert list(unchanging.run(unchanging.plan(SHARED, outputs=["T"]))) == ["T", "Y", "Z"]


@pytest.mark.parametrize("name", ["X", "A", "t"])
def test_unknown_outputs(unchanging: se.Database, name: str) -> None:
    with pytest.raises(se.PlanError, match=f"the program computes no {name}; it computes T, Y, Z"):
        unchanging.plan(SHARED, outputs=[name])


def test_result_may_have_the_name_of_a_tensor_that_is_not_read(loaded: se.Database) -> None:
    np.testing.assert_array_equal(loaded.run("B[i] = sum(A[i, j])")["B"].to_numpy(), A.sum(axis=1))
    np.testing.assert_array_equal(read_back(loaded, "B"), B)


def test_progress_goes_to_standard_error(unchanging: se.Database, capfd: pytest.CaptureFixture[str]) -> None:
    unchanging.run(SHARED, progress=True)
    unchanging.run(SHARED)
    assert capfd.readouterr().out == ""


def test_plan_runs_again(unchanging: se.Database) -> None:
    plan = unchanging.plan(SHARED)
    for _ in range(2):
        np.testing.assert_array_equal(unchanging.run(plan)["Z"].to_numpy(), (A @ B).max(axis=0))


def test_pinned_labels_are_promoted(unchanging: se.Database) -> None:
    plan = unchanging.plan(SHARED, pin={"T": ["I"], "Y": []})
    assert plan.notation()[:2] == ["T[I, k] = sum(A[I, j] * B[j, k])", "Y[i] = sum(T[i, k])"]
    np.testing.assert_array_equal(unchanging.run(plan)["Y"].to_numpy(), (A @ B).sum(axis=1))


def test_best_plans_come_first(unchanging: se.Database) -> None:
    plans = unchanging.plan(PRODUCT, top=5)
    assert [plan.cost for plan in plans] == sorted(plan.cost for plan in plans)
    assert len({tuple(plan.notation()) for plan in plans}) == 5
    assert plans[0].notation() == unchanging.plan(PRODUCT).notation()
    for plan in plans:
        np.testing.assert_array_equal(unchanging.run(plan)["Y"].to_numpy(), A @ B)
    assert len(unchanging.plan(PRODUCT, top=1)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "exact"}, "no optimizer 'exact'; choose one of dp, cover, greedy, relational, dense"),
        ({"optimizer": "gredy"}, "no optimizer 'gredy'; did you mean 'greedy'"),
        ({"layout": "rows"}, "layout 'rows' is neither 'entries' nor 'any'"),
        ({"pin": {"X": ["i"]}}, "the program computes no X; it computes Y"),
        ({"pin": {"A": ["i"]}}, "the program computes no A; it computes Y"),
        ({"pin": {"Y": ["i", "z"]}}, "Y has no label z to promote; it has i, k, j"),
        ({"memory_limit": "plenty"}, "memory_limit: 'plenty' is no size; write it as in 4GB"),
        ({"memory_limit": 0}, r"needs a memory_limit of at least [\d,]+ bytes, more than the 0 given"),
        ({"memory_limit": "-1GB"}, "more than the -1,000,000,000 given"),
    ],
)
def test_plans_that_there_are_not(unchanging: se.Database, options: Mapping[str, object], message: str) -> None:
    with pytest.raises(se.PlanError, match=message):
        unchanging.plan(PRODUCT, **options)  # type: ignore[call-overload]  # options by name
    with pytest.raises(se.PlanError, match=message):
        unchanging.run(PRODUCT, **options)  # type: ignore[arg-type]  # options by name


@pytest.mark.parametrize("top", [0, -1])
def test_at_least_one_plan(unchanging: se.Database, top: int) -> None:
    with pytest.raises(se.PlanError, match=f"top is {top}; ask for at least one plan"):
        unchanging.plan(PRODUCT, top=top)


def test_memory_limit_is_kept(shared_db: se.Database) -> None:
    """The limits that errors ask for end in one that is enough, and a byte less is not."""
    square = np.ones((64, 64))
    shared_db.tensor("A", square)
    program = "Y[i, k] = sum(A[i, j] * A[j, k])"
    asked: int | None = limit_for(shared_db, 100_000)
    while asked is not None:
        needed, asked = asked, _asked_limit(shared_db, program, asked)
        assert asked is None or asked > needed
    assert needed >= 2 * square.nbytes
    assert _asked_limit(shared_db, program, needed - 1) == needed
    assert shared_db.plan(program, optimizer="dense", memory_limit=needed).notation() == [program]


def _asked_limit(db: se.Database, program: str, limit: int) -> int | None:
    """The limit that the error asks for which a plan of whole arrays ends in; None where there is such a plan."""
    try:
        db.plan(program, optimizer="dense", memory_limit=limit)
    except se.PlanError as error:
        found = re.search(
            r"a memory_limit of (?:at least )?([\d,]+) bytes.*raise memory_limit or promote more", str(error)
        )
        assert found is not None
        return int(found[1].replace(",", ""))
    return None


@pytest.mark.parametrize("limit", ["100MB", "0.5 GiB", 10**8, 1e8])
def test_sizes_are_texts_or_numbers(unchanging: se.Database, limit: str) -> None:
    assert unchanging.plan(PRODUCT, memory_limit=limit).notation() == unchanging.plan(PRODUCT).notation()


def test_result_goes_into_a_table(loaded: se.Database) -> None:
    results = loaded.run(SHARED, into={"Y": "row sums"})
    assert list(results) == ["Z"]
    assert list(column_types(loaded, '"row sums"')) == ["i", "val"]
    assert run_sql(loaded, 'FROM "row sums" ORDER BY i') == [(0, 5), (1, 30)]
    assert list(loaded.tensors()) == ["A", "B"]


def test_table_is_replaced_whole(loaded: se.Database) -> None:
    run_sql(loaded, "CREATE TABLE scores AS SELECT 42 AS answer")
    loaded.run(PRODUCT, into={"Y": "scores"})
    assert list(column_types(loaded, "scores")) == ["i", "k", "val"]
    loaded.run("Y[i] = sum(A[i, j])", into={"Y": "main.SCORES"})
    assert run_sql(loaded, "FROM scores ORDER BY i") == [(0, 3), (1, 7)]


@pytest.mark.parametrize("table", ["select", "values", '"my table"', "other.scores", 'other."group"'])
def test_names_of_tables(loaded: se.Database, table: str) -> None:
    run_sql(loaded, "DROP SCHEMA IF EXISTS other CASCADE; CREATE SCHEMA other")
    loaded.run("Y[i] = sum(A[i, j])", into={"Y": table})
    quoted = table if '"' in table or "." in table else f'"{table}"'
    assert run_sql(loaded, f"FROM {quoted} ORDER BY i") == [(0, 3), (1, 7)]


def test_names_of_tables_are_no_sql(loaded: se.Database) -> None:
    loaded.run("Y[] = sum(A[i, j])", into={"Y": "t; DROP TABLE A"})
    assert run_sql(loaded, 'FROM "t; DROP TABLE A"') == [(10,)]
    np.testing.assert_array_equal(read_back(loaded, "A"), A)


def test_table_keeps_the_layout_asked_for(loaded: se.Database) -> None:
    loaded.run("Y[I, k] = sum(A[I, j] * B[j, k])", into={"Y": "scores"})
    assert run_sql(loaded, "FROM scores ORDER BY i") == [(0, [5, 0]), (1, [6, 24])]


def test_table_of_the_user_that_the_program_reads_may_be_replaced(db: se.Database) -> None:
    """A step of an iteration: the new ranks take the place of the old."""
    run_sql(db, "CREATE TABLE ranks AS SELECT n::INTEGER AS i, 1.0::DOUBLE AS val FROM range(2) AS r(n)")
    db.tensor_from_table("R", "ranks", ["i"], "val", shape=(2,))
    db.tensor("M", np.array([[0.0, 2.0], [3.0, 0.0]]))
    db.run("N[i] = sum(M[i, j] * R[j])", into={"N": "ranks"})
    np.testing.assert_array_equal(read_back(db, "R"), [2, 3])
    db.run("N[i] = sum(M[i, j] * R[j])", into={"N": "ranks"})
    np.testing.assert_array_equal(read_back(db, "R"), [6, 6])


@pytest.mark.parametrize(
    ("into", "error", "message"),
    [
        ({"X": "scores"}, se.PlanError, "the plan returns no X to put into the table scores; it returns Y, Z"),
        ({"T": "scores"}, se.PlanError, "the plan returns no T to put into the table scores; it returns Y, Z"),
        ({"Y": "scores", "Z": "Scores"}, se.PlanError, "Y and Z are both to go into the table Scores; give each one"),
        ({"Y": "A"}, se.CatalogueError, "A is the table that tensor A was loaded into; choose another table for Y"),
        ({"Y": "main.a"}, se.CatalogueError, r"main\.a is the table that tensor A was loaded into"),
        ({"Y": '"B"'}, se.CatalogueError, '"B" is the table that tensor B was loaded into'),
        ({"Y": "sparseeinsum.tensors"}, se.CatalogueError, "is where tensors are recorded; choose another table for Y"),
        ({"Y": ""}, se.CatalogueError, "'' names no table"),
        ({"Y": "scores", "Z": "nowhere.scores"}, se.EngineError, r'nowhere"? does not exist(.|\n)*in the statement'),
        ({"Y": "scores", "Z": "scores_view"}, se.EngineError, "(?i:view)"),
    ],
)
def test_old_tables_stay_when_a_run_fails(
    loaded: se.Database, into: Mapping[str, str], error: type[se.SparseEinsumError], message: str
) -> None:
    run_sql(loaded, "CREATE TABLE scores AS SELECT 42 AS answer; CREATE VIEW scores_view AS SELECT 42 AS answer")
    before = contents(loaded)
    for program in (SHARED, loaded.plan(SHARED)):
        with pytest.raises(error, match=message):
            loaded.run(program, into=into)
        assert contents(loaded) == before
    assert_usable(loaded)


@pytest.mark.engines("duckdb", reason="the name of the database is DuckDB's")
def test_tables_by_the_name_of_their_database(loaded: se.Database) -> None:
    both = {"Y": "scores", "Z": "memory.main.scores"}
    message = "Y and Z are both to go into the table memory"
    test_old_tables_stay_when_a_run_fails(loaded, both, se.PlanError, message)
    loaded.connection.execute("DROP TABLE scores; DROP VIEW scores_view")
    message = r"memory\.A is the table that tensor A was loaded into"
    test_old_tables_stay_when_a_run_fails(loaded, {"Y": "memory.A"}, se.CatalogueError, message)


@pytest.mark.engines("duckdb", reason="PostgreSQL has savepoints")
@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda db: db.run(PRODUCT), id="program"),
        pytest.param(lambda db: db.tensor("C", A), id="load"),
        pytest.param(lambda db: db.tensor_from_table("C", "mine", ["x"]), id="refer"),
    ],
)
def test_transaction_of_the_user_stays_alive(loaded: se.Database, work: Callable[[se.Database], object]) -> None:
    plan = loaded.plan(PRODUCT)
    run_sql(loaded, "BEGIN; CREATE TABLE mine AS SELECT 42 AS x")
    before = contents(loaded)
    for refused in (work, lambda db: db.run(plan)):
        with pytest.raises(se.EngineError, match=r"this connection has an open transaction.*commit or roll back first"):
            refused(loaded)
    assert loaded.plan(PRODUCT).notation() == plan.notation()
    assert contents(loaded) == before
    run_sql(loaded, "COMMIT")
    assert run_sql(loaded, "FROM mine") == [(42,)]
    work(loaded)


@pytest.mark.engines("duckdb", reason="PostgreSQL has savepoints")
def test_failed_transaction_of_the_user(loaded: se.Database) -> None:
    run_sql(loaded, "BEGIN")
    with pytest.raises(Exception, match="nowhere"):
        run_sql(loaded, "FROM nowhere")
    with pytest.raises(se.EngineError, match="please ROLLBACK"):
        loaded.run(PRODUCT)
    run_sql(loaded, "ROLLBACK")
    np.testing.assert_array_equal(loaded.run(PRODUCT)["Y"].to_numpy(), A @ B)


@pytest.mark.engines("duckdb", reason="the setting is DuckDB's")
def test_statement_that_fails_leaves_nothing_behind(db: se.Database) -> None:
    """Too little memory for a matrix that is shared by two results, and so goes to a temporary table."""
    square = np.random.default_rng(0).random((400, 400))
    db.tensor("A", square)
    plan = db.plan("T[i, k] = sum(A[i, j] * A[j, k])\nY[i] = sum(T[i, k])\nZ[i] = max(T[i, k])")
    before = contents(db)
    run_sql(db, "SET memory_limit = '8MB'")
    with pytest.raises(se.EngineError, match=r"(?s)Out of Memory Error.*in the statement:.*") as caught:
        db.run(plan)
    assert caught.value.statement is not None
    run_sql(db, "SET memory_limit = '1GB'")
    assert contents(db) == before
    np.testing.assert_allclose(db.run(plan)["Z"].to_numpy(), (square @ square).max(axis=1))
    assert contents(db) == before


def test_interrupted_run_leaves_nothing_behind(db: se.Database) -> None:
    db.tensor("A", np.ones((700, 700)))
    plan = db.plan("T[i, k] = sum(A[i, j] * A[j, k])\nY[i] = sum(T[i, k])\nZ[i] = max(T[i, k])", optimizer="relational")
    before = contents(db)
    is_over = threading.Event()
    stop = db.connection.interrupt if engine_of(db).dialect == "duckdb" else db.connection.cancel

    def interrupt() -> None:
        while not is_over.wait(0.2):  # once might be before the statement starts
            stop()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(se.EngineError, match=r"INTERRUPT|canceling statement due to user request"):
            db.run(plan)
    finally:
        is_over.set()
        thread.join()
    assert contents(db) == before
    assert_usable(db)


def test_table_that_vanishes_between_plan_and_run(loaded: se.Database) -> None:
    plan = loaded.plan(SHARED)
    run_sql(loaded, "DROP TABLE B")
    before = contents(loaded)
    with pytest.raises(se.CatalogueError, match=r"tensor B can no longer be read from main\.[Bb].*define"):
        loaded.run(plan, into={"Y": "scores"})
    assert contents(loaded) == before
    loaded.tensor("B", B)
    np.testing.assert_array_equal(loaded.run(plan)["Y"].to_numpy(), (A @ B).sum(axis=1))


def test_user_table_in_the_way_of_a_temporary_one(loaded: se.Database) -> None:
    run_sql(loaded, 'CREATE TEMPORARY TABLE "sparseeinsum_T" AS SELECT 42 AS answer')
    before = contents(loaded)
    with pytest.raises(se.EngineError, match='"sparseeinsum_T" already exists'):
        loaded.run(SHARED)
    assert contents(loaded) == before


def test_new_values_give_new_results(loaded: se.Database) -> None:
    plan = loaded.plan(PRODUCT)
    run_sql(loaded, "UPDATE A SET val = -val WHERE dim_0 = 1")
    run_sql(loaded, "INSERT INTO A VALUES (0, 2, 7)")
    changed = np.array([[1.0, 2.0, 7.0], [0.0, -3.0, -4.0]])
    np.testing.assert_array_equal(loaded.run(plan)["Y"].to_numpy(), changed @ B)
    loaded.tensor("B", 2 * B)
    np.testing.assert_array_equal(loaded.run(plan)["Y"].to_numpy(), changed @ (2 * B))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_that_turn_non_finite_are_refused(loaded: se.Database, value: float) -> None:
    plan = loaded.plan(PRODUCT)
    changed = B.copy()
    changed[0, 1] = value
    loaded.tensor("B", changed)
    with pytest.raises(se.EngineError, match="tensor B has changed since the plan was made; plan again"):
        loaded.run(plan)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(loaded.run(PRODUCT)["Y"].to_numpy(), A @ changed)


@pytest.mark.parametrize(
    ("data", "promoted"),
    [
        pytest.param(np.ones((3, 5)), None, id="another shape"),
        pytest.param(B.astype(np.float32), None, id="another dtype"),
        pytest.param(B, ["dim_0", "dim_1"], id="another decomposition"),
    ],
)
def test_tensor_defined_anew_needs_a_new_plan(
    loaded: se.Database, data: NDArray[np.float64], promoted: list[str] | None
) -> None:
    plan = loaded.plan(PRODUCT)
    loaded.tensor("B", data, promoted=promoted)
    with pytest.raises(se.EngineError, match="tensor B was defined anew since the plan was made; plan again"):
        loaded.run(plan)
    np.testing.assert_array_equal(loaded.run(PRODUCT)["Y"].to_numpy(), A @ data)


@pytest.mark.engines("duckdb", reason="cursors are DuckDB's connections")
def test_two_threads_on_two_cursors(loaded: se.Database) -> None:
    plan = loaded.plan(SHARED)
    results: list[list[float]] = []

    def work() -> None:
        with se.connect(loaded.connection.cursor()) as database:
            for turn in range(5):
                found = database.run(plan if turn % 2 else SHARED)
                results.append(found["Z"].to_numpy().tolist())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(A @ B).max(axis=0).tolist()] * 10


@pytest.mark.engines("duckdb", reason="cursors are DuckDB's connections")
def test_run_sees_what_others_have_committed(loaded: se.Database) -> None:
    other = loaded.connection.cursor()
    other.execute("BEGIN; DELETE FROM A WHERE dim_0 = 0")
    np.testing.assert_array_equal(loaded.run("Y[i] = sum(A[i, j])")["Y"].to_numpy(), [3, 7])
    other.execute("COMMIT")
    np.testing.assert_array_equal(loaded.run("Y[i] = sum(A[i, j])")["Y"].to_numpy(), [0, 7])


@pytest.mark.engines("duckdb", reason="cursors are DuckDB's connections")
def test_conflict_of_two_writers(loaded: se.Database) -> None:
    other = loaded.connection.cursor()
    other.execute("BEGIN; CREATE TABLE scores AS SELECT 42 AS answer")
    with pytest.raises(se.EngineError, match=r"(?i)conflict"):
        loaded.run(PRODUCT, into={"Y": "scores"})
    other.execute("COMMIT")
    assert run_sql(loaded, "FROM scores") == [(42,)]
    loaded.run("Y[i] = sum(A[i, j])", into={"Y": "scores"})
    assert run_sql(loaded, "FROM scores ORDER BY i") == [(0, 3), (1, 7)]
