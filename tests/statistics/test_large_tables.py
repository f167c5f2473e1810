"""Large tables: estimates from samples are close and decide no result; what results rely on is proven."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from any_sql import run_sql
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from observed_statements import observe_queries

import sparseeinsum as se
from sparseeinsum.errors import DataError
from sparseeinsum.statistics import ascending_runs, kept_samples, large_tables, row_samples, small_tables
from sparseeinsum.statistics.row_samples import distinct_in_all, estimated_counts
from sparseeinsum.storage import measuring

SHAPE = (60, 40)


@pytest.fixture(autouse=True)
def _small_tables_count_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_tables, "LEAST_ROWS", 50)
    monkeypatch.setattr(small_tables, "_MOST_ROWS", 49)
    monkeypatch.setattr(row_samples, "_SAMPLED_ROWS", 100)
    monkeypatch.setattr(row_samples, "_READ_ROWS", 100)
    monkeypatch.setattr(ascending_runs, "_LAST_ROWS", 20)
    monkeypatch.setattr(ascending_runs, "_MOST_RUNS", 5)
    monkeypatch.setattr(ascending_runs, "_MOST_LATE", 5)


def random_matrix(seed: int, density: float = 0.3) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 4, SHAPE).astype(float) * (rng.random(SHAPE) < density)


def create_table(db: se.Database, matrix: NDArray[np.float64], constraint: str = "") -> None:
    """A table of the entries of a matrix, the last ones first."""
    run_sql(db, f"CREATE TABLE edges (i INT, j INT, w DOUBLE PRECISION{constraint})")
    insert(db, [(i, j, matrix[i, j]) for i, j in zip(*np.nonzero(matrix), strict=True)][::-1])


def insert(db: se.Database, rows: list[tuple[int, int, float]]) -> None:
    run_sql(db, f"INSERT INTO edges VALUES {', '.join(f'({i}, {j}, {value})' for i, j, value in rows)}")
    analyze(db)


def analyze(db: se.Database) -> None:
    """Let PostgreSQL know the size of the table, as its autovacuum does with large ones."""
    run_sql(db, "ANALYZE edges")


def all_uses(db: se.Database, plan: se.Plan, program: se.Program) -> list[Callable[[], object]]:
    """All ways to a result, or to SQL that computes it: of an earlier plan, and of one for the data as they are now."""

    def stream() -> None:
        with db.stream(plan):
            pass

    return [
        lambda: db.run(db.plan(program)),
        lambda: db.run(plan),
        lambda: db.run(program),
        lambda: db.run(db.plan(program), into={"Y": "stored_result"}),
        lambda: db.plan(program).sql(),
        lambda: db.plan(program).explain(analyze=True),
        lambda: db.plan(program, top=2),
        stream,
    ]


def define(db: se.Database) -> None:
    db.tensor_from_table("A", "edges", index=["i", "j"], value="w", shape=SHAPE)


PROGRAMS = [
    "Y[i] = sum(A[i, j])",
    "Y[i, k] = sum(A[i, j] * A[k, j])",
    "Y[j] = max(A[i, j])",
    "Y[i, j] = exp(A[i, j])",
    "Y[] = count(A[i, j])",
]
EXPECTED: list[Callable[[NDArray[np.float64]], Any]] = [
    lambda a: a.sum(1),
    lambda a: a @ a.T,
    lambda a: a.max(0),
    np.exp,
    np.count_nonzero,
]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
@pytest.mark.parametrize("constraint", ["", ", PRIMARY KEY (i, j)", ", UNIQUE (j, i)"])
def test_results_are_those_of_numpy(db: se.Database, number: int, constraint: str) -> None:
    matrix = random_matrix(number)
    create_table(db, matrix, constraint)
    define(db)
    plan = db.plan(PROGRAMS[number])
    np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), EXPECTED[number](matrix), rtol=1e-12)
    run_sql(db, "UPDATE edges SET w = w * 2 WHERE i < 20")
    matrix[:20] *= 2
    np.testing.assert_allclose(db.run(PROGRAMS[number])["Y"].to_numpy(), EXPECTED[number](matrix), rtol=1e-12)


def test_no_axis_identifies_rows_by_an_estimate(db: se.Database) -> None:
    create_table(db, np.eye(*SHAPE) * 2)  # no index has two entries
    run_sql(db, "INSERT INTO edges VALUES " + ", ".join(f"({i}, 0, 1.0)" for i in range(40, 60)))
    analyze(db)
    define(db)
    plan = db.plan("Y[i] = sum(A[i, j])")
    assert plan.data.inputs["A"].identifying_axes == frozenset()
    expected = np.where(np.arange(60) < 40, 2.0, 1.0)
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), expected)


@pytest.mark.parametrize(
    ("constraint", "is_proof"),
    [(", PRIMARY KEY (i, j)", True), (", UNIQUE (j, i)", True), (", UNIQUE (i)", True), (", UNIQUE (i, j, w)", False)],
)
def test_only_a_constraint_on_keys_replaces_the_search_for_repetitions(
    db: se.Database, monkeypatch: pytest.MonkeyPatch, constraint: str, is_proof: bool
) -> None:
    matrix = np.zeros(SHAPE)
    matrix[np.arange(60), np.arange(60) % 40] = np.arange(1, 61)
    create_table(db, matrix, constraint)
    statements = observe_queries(db, monkeypatch)
    define(db)
    assert any("coordinates" in text for text in statements) != is_proof
    assert not any("distinct_0" in text for text in statements)


def test_an_ascending_order_replaces_the_search_for_repetitions(
    db: se.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(db, "CREATE TABLE edges (i INT, j INT, w DOUBLE PRECISION)")
    rows = [(i, j, 1.0 + i) for i in range(60) for j in (3, 20)]
    insert(db, rows)
    statements = observe_queries(db, monkeypatch)
    define(db)
    assert not any("coordinates" in text for text in statements)
    run_sql(db, "DELETE FROM edges")
    insert(db, sorted([*rows, (59, 20, 7.0)]))
    with pytest.raises(DataError, match="stands in an earlier row"):
        db.run("Y[i] = sum(A[i, j])")


def test_repeated_coordinates_are_refused(db: se.Database) -> None:
    create_table(db, random_matrix(1))
    define(db)
    program = se.program("Y[i] = sum(A[i, j])")
    plan = db.plan(program)
    run_sql(db, "INSERT INTO edges SELECT * FROM edges WHERE i = 3 AND w > 0")
    for run in all_uses(db, plan, program):
        with pytest.raises(DataError, match="stands in an earlier row"):
            run()


def test_a_constraint_that_is_dropped_proves_nothing_any_more(db: se.Database) -> None:
    create_table(db, random_matrix(2))
    run_sql(db, "CREATE UNIQUE INDEX one_each ON edges (i, j)")
    define(db)
    plan = db.plan("Y[i] = sum(A[i, j])")
    run_sql(db, "DROP INDEX one_each")
    run_sql(db, "INSERT INTO edges SELECT * FROM edges WHERE i = 3 AND w > 0")
    with pytest.raises(DataError, match="stands in an earlier row"):
        db.run(plan)


@pytest.mark.parametrize(
    ("row", "message"), [("(NULL, 1, 1.0)", "is NULL"), ("(60, 1, 1.0)", "has the bound 60"), ("(1, 1, NULL)", "NULL")]
)
def test_unsound_rows_are_refused(db: se.Database, row: str, message: str) -> None:
    create_table(db, random_matrix(3))
    run_sql(db, "DELETE FROM edges WHERE i = 1")
    define(db)
    run_sql(db, f"INSERT INTO edges VALUES {row}")
    with pytest.raises(DataError, match=message):
        db.run("Y[i] = sum(A[i, j])")


def test_a_view_is_measured_exactly(db: se.Database) -> None:
    matrix = random_matrix(4)
    create_table(db, matrix)
    run_sql(db, "CREATE VIEW seen AS SELECT * FROM edges")
    db.tensor_from_table("A", "seen", index=["i", "j"], value="w", shape=SHAPE)
    statistics = db.plan("Y[i] = sum(A[i, j])").data.statistics["A"]
    assert statistics.distinct == (np.any(matrix, 1).sum(), np.any(matrix, 0).sum())


def test_a_table_of_the_same_name_in_another_catalogue_proves_nothing() -> None:
    with se.connect() as db:
        matrix = random_matrix(5)
        create_table(db, matrix, ", PRIMARY KEY (i, j)")
        define(db)
        db.connection.execute("CREATE TEMP TABLE edges AS SELECT * FROM main.edges UNION ALL SELECT * FROM main.edges")
        try:
            result = db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy()
        except DataError:
            return
        np.testing.assert_allclose(result, matrix.sum(1))


@given(
    st.integers(0, 2**32),
    st.sampled_from(["uniform", "power law", "few indices"]),
    st.sampled_from([0.02, 0.1, 0.5, 1.0]),
)
@settings(max_examples=30)
def test_estimates_from_a_sample_are_close(seed: int, kind: str, share: float) -> None:
    rng = np.random.default_rng(seed)
    bound = 2_000
    weights = {
        "uniform": np.ones(bound),
        "power law": 1.0 / np.arange(1, bound + 1),
        "few indices": (np.arange(bound) < 100).astype(float),
    }[kind]
    counts = rng.multinomial(100_000, weights / weights.sum())
    sampled = rng.binomial(counts, share)
    estimated = estimated_counts(sampled, float(counts.sum()))
    assert estimated.total == pytest.approx(counts.sum())
    distinct = (counts > 0).sum()
    assert distinct / (3.0 if kind == "power law" else 1.3) <= estimated.distinct <= 1.3 * distinct
    assert np.all((estimated.present >= 0) & (estimated.present <= 1))
    if share == 1.0:
        assert distinct_in_all(sampled, float(counts.sum())) == (counts > 0).sum()
    others = rng.random(bound)  # the size of a join with another tensor
    assert estimated.entries @ others == pytest.approx(counts @ others, rel=0.2)


def test_large_tables_of_long_axes_are_sampled_too(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    indices = rng.choice(5_000_000, 3_000, replace=False)
    table = pa.table({"i": indices, "j": rng.integers(0, 10, 3_000), "w": np.ones(3_000)})
    run_sql(db, "CREATE TABLE edges (i BIGINT, j BIGINT, w DOUBLE PRECISION)")
    rows = ", ".join(f"({i}, {j}, {w})" for i, j, w in zip(*table.to_pydict().values(), strict=True))
    run_sql(db, f"INSERT INTO edges VALUES {rows}")
    analyze(db)
    db.tensor_from_table("A", "edges", index=["i", "j"], value="w", shape=(5_000_000, 10))
    plan = db.plan("Y[j] = sum(A[i, j])")
    first, second = plan.data.statistics["A"].distinct
    assert 1_500 < first < 3_000
    assert 5 <= second <= 10
    expected = np.bincount(table["j"].to_numpy(), minlength=10)
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), expected)


def load(db: se.Database, matrix: NDArray[np.float64]) -> None:
    """Make the tensor A, an entry a row, sorted, in a table of ours."""
    entries = np.nonzero(matrix)
    db.tensor("A", (np.stack(entries), matrix[entries]), axes=["i", "j"], promoted=["i", "j"], shape=SHAPE)


EDITS = [
    "UPDATE A SET val = val * 2 WHERE i < 20",
    "UPDATE A SET val = 0 WHERE i = 3",
    "UPDATE A SET val = 'NaN' WHERE j = 7",
    "UPDATE A SET val = 'Infinity' WHERE i = 9",
    "UPDATE A SET val = -val WHERE j < 9",
    "DELETE FROM A WHERE i = 11",
    "DELETE FROM A WHERE i < 20; INSERT INTO A VALUES (18, 3, 2.5), (7, 39, -1), (7, 38, 4)",
    "DELETE FROM A WHERE val < 0",
    "DELETE FROM A WHERE i = 59; UPDATE A SET i = 59 WHERE i = 30",
    "UPDATE A SET val = 3",
]


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_tensor_is_planned_for_what_it_is_now(db: se.Database, edit: str) -> None:
    for number, (program, expected) in enumerate(zip(PROGRAMS, EXPECTED, strict=True)):
        load(db, random_matrix(number, 0.5))
        db.run(program)
        run_sql(db, edit)
        run_sql(db, "ANALYZE A")
        matrix = np.zeros(SHAPE)
        rows, columns, values = zip(*run_sql(db, "SELECT i, j, val FROM A"), strict=True)
        matrix[np.array(rows), np.array(columns)] = values
        plan = db.plan(program)
        assert plan.data.statistics["A"].entries == np.count_nonzero(matrix)
        for source in (plan, program):
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(db.run(source)["Y"].to_numpy(), expected(matrix), rtol=1e-12)


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("UPDATE A SET i = NULL WHERE i = 4", "is NULL"),
        ("UPDATE A SET val = NULL WHERE j = 4", "NULL"),
        ("UPDATE A SET j = 40 WHERE j = 4 AND i = 3", "has the bound 40"),
        ("INSERT INTO A VALUES (-1, 3, 1)", "-1"),
        ("INSERT INTO A VALUES (3, 3, 1)", "stands in an earlier row"),
        ("INSERT INTO A VALUES (3, 4, 1), (59, 39, 1), (3, 4, 1)", "stands in an earlier row"),
        ("UPDATE A SET i = 30 WHERE i = 3", "stands in an earlier row"),
    ],
)
def test_a_change_that_makes_a_tensor_unsound_is_refused(db: se.Database, edit: str, message: str) -> None:
    matrix = np.ones(SHAPE)
    matrix[3, 5] = matrix[59, 39] = 0
    load(db, matrix)
    program = se.program(PROGRAMS[0])
    plan = db.plan(program)
    run_sql(db, edit.replace("(3, 4, 1)", "(3, 5, 1)"))
    run_sql(db, "ANALYZE A")
    for run in all_uses(db, plan, program):
        with pytest.raises(DataError, match=message):
            run()


@pytest.mark.engines("duckdb", reason="it knows ranges of columns")
@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE A SET val = 7 WHERE i = 5 AND j = 5",
        "DELETE FROM A WHERE i = 5 AND j = 5",
        "INSERT INTO A VALUES (3, 4, 7)",
    ],
)
def test_a_changed_row_is_no_reason_to_scan_all_others(
    db: se.Database, monkeypatch: pytest.MonkeyPatch, edit: str
) -> None:
    matrix = np.ones(SHAPE)
    matrix[3, 4] = 0
    load(db, matrix)
    db.plan(PROGRAMS[0])
    run_sql(db, edit)
    statements = observe_queries(db, monkeypatch)
    plan = db.plan(PROGRAMS[0])
    assert not [text for text in statements if "coordinates" in text or "greatest_0" in text]
    assert plan.data.inputs["A"].identifying_axes == frozenset()
    for i, j, value in [(5, 5, 7)] if "UPDATE" in edit else [(5, 5, 0)] if "DELETE" in edit else [(3, 4, 7)]:
        matrix[i, j] = value
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), matrix.sum(1))


@pytest.mark.parametrize("constraint", ["", ", PRIMARY KEY (i, j)"])
def test_a_changed_table_is_planned_without_a_look_at_all_rows(
    db: se.Database, monkeypatch: pytest.MonkeyPatch, constraint: str
) -> None:
    """The run looks at all, as it does if another table has changed; rows in no order are hashed instead."""
    run_sql(db, f"CREATE TABLE edges (i INT, j INT, w DOUBLE PRECISION{constraint})")
    matrix = np.zeros(SHAPE)
    matrix[:, [3, 20]] = 2
    insert(db, [(i, j, 2.0) for i in range(60) for j in (3, 20)])
    define(db)
    db.plan(PROGRAMS[0])
    run_sql(db, "CREATE TABLE another (x INT)")
    for i, change in enumerate(("UPDATE edges SET w = 3 WHERE i = 0 AND j = 3", "INSERT INTO another VALUES (1)")):
        run_sql(db, change)
        matrix[0, 3] = 3
        statements = observe_queries(db, monkeypatch)
        plan = db.plan(PROGRAMS[0])
        assert not [text for text in statements if "fingerprint" in text or "LEAD" in text or "coordinates" in text], i
        np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), matrix.sum(1))
        assert not [text for text in statements if "fingerprint" in text]
        assert any("LEAD" in text for text in statements) == (not constraint)


@pytest.mark.parametrize("count", [1, 40])
def test_a_sample_serves_until_many_rows_change(db: se.Database, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(kept_samples, "_BLOCK_ROWS", 4)
    matrix = random_matrix(9, 0.8)
    create_table(db, matrix)
    define(db)
    before = db.plan(PROGRAMS[0]).data
    run_sql(db, f"UPDATE edges SET i = (i + 30) % 60 WHERE i % 30 < {count} AND j < 39")
    shifted = matrix.copy()
    moved = (np.arange(60) % 30 < count)[:, None] & (np.arange(40) < 39)
    shifted[moved] = np.roll(matrix, 30, 0)[moved]
    samples: list[str] = []

    def observed(*arguments: Any) -> kept_samples.KeptSample:  # noqa: ANN401  # of the function
        samples.append("A")
        return kept_samples.take_sample(*arguments)

    monkeypatch.setattr(measuring, "take_sample", observed)
    plan = db.plan(PROGRAMS[0])
    np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), shifted.sum(1))
    assert bool(samples) == (count > 1)
    assert count > 1 or plan.data.alternatives is before.alternatives


def test_a_table_of_the_same_name_is_sampled_anew(db: se.Database) -> None:
    create_table(db, random_matrix(10, 0.5))
    define(db)
    rows = run_sql(db, "SELECT count(*) FROM edges")[0][0]
    assert db.plan(PROGRAMS[0]).data.statistics["A"].distinct[0] > 30
    columns = "CAST(number // 40 AS INT) AS i, CAST(number % 40 AS INT) AS j, CAST(1 AS DOUBLE) AS w"
    run_sql(db, f"CREATE OR REPLACE TABLE edges AS SELECT {columns} FROM range({rows}) AS numbers(number)")
    assert db.plan(PROGRAMS[0]).data.statistics["A"].distinct[0] <= 30


def test_a_column_may_have_the_name_of_row_numbers(db: se.Database) -> None:
    matrix = random_matrix(7)
    create_table(db, matrix)
    run_sql(db, "CREATE TABLE named AS SELECT *, 'no number' AS rowid FROM edges ORDER BY i, j")
    db.tensor_from_table("A", "named", index=["i", "j"], value="w", shape=SHAPE)
    plan = db.plan(PROGRAMS[0])
    assert plan.data.statistics["A"].distinct[0] > 30
    np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), matrix.sum(1))


def test_rows_of_the_open_transaction_count(db: se.Database) -> None:
    matrix = random_matrix(8)
    create_table(db, matrix)
    define(db)
    db.plan(PROGRAMS[0])
    run_sql(db, "BEGIN")
    run_sql(db, "INSERT INTO edges SELECT i, j, -5 FROM edges WHERE i = 3 LIMIT 1")
    plan = db.plan(PROGRAMS[0])
    with pytest.raises(DataError, match="stands in an earlier row"):
        plan.sql()
    run_sql(db, "ROLLBACK")
