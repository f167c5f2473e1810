"""Dbt models for engines without our functions give numpy's results on any data that their tests let pass."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
import yaml
from golden_files import check_golden_file
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from program_cases import Case, scale_of
from random_programs import LARGEST, cases
from render_dbt import PlainFiles, new_project, render_plain
from test_dbt_models import other as other_values

import sparseeinsum as se
from bench.dialects import Comparison, Verdict, tables_of
from bench.other_engines import OtherEngine
from sparseeinsum.cli import main
from sparseeinsum.render.plain_sql.engines import OTHER_DIALECTS
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]

GOLDEN = Path(__file__).parent / "golden"
BY_ENTRY = {"dim_0": 1, "dim_1": 1}
PROGRAM = """
    T[i, k] = max(sum(A[i, j] * H[j, k]), 0)
    Y[i, k] = T[i, k] / (1 + sum(T[l, k]))
    Z[i] = sum(N[i, j] * N[i, j])
    S[] = max(A[i, j])
"""
GENERATOR = np.random.default_rng(0)
INPUTS = {
    "A": np.where(GENERATOR.random((3, 4)) < 0.5, GENERATOR.normal(size=(3, 4)), 0),
    "N": np.arange(-4, 8).reshape(3, 4),
    "H": GENERATOR.normal(size=(4, 2)),
}
ROWS = [(0, 0, 1.5), (1, 2, 3.0), (2, 1, -2.0)]
WRONG: dict[str, tuple[tuple[int | None, int | None, float | None], str]] = {
    "NULL index": ((None, 1, 1.0), "rows whose key src is NULL"),
    "negative index": ((-1, 1, 1.0), "rows whose index src is no whole number from 0 to 2"),
    "index beyond the bound": ((0, 3, 1.0), "rows whose index dst is no whole number from 0 to 2"),
    "two rows of an index": ((1, 2, 4.0), "indices that have several rows"),
    "NULL value": ((2, 2, None), "rows whose value w is NULL"),
    "infinite value": ((2, 2, np.inf), "values w that are not from -1e+300 to 1e+300"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return new_project(tmp_path / "project")


@pytest.fixture
def own() -> se.Database:
    """The database in which plans are made."""
    database = se.connect()
    for name, array in INPUTS.items():
        database.tensor(name, array, promoted=BY_ENTRY)
    database.connection.execute("CREATE TABLE edges (src BIGINT, dst BIGINT, w DOUBLE)")
    database.connection.executemany("INSERT INTO edges VALUES (?, ?, ?)", ROWS)
    database.tensor_from_table("E", "edges", index=["src", "dst"], value="w", shape=(3, 3))
    return database


def written(db: se.Database, plan: se.Plan, project: Path, dialect: str) -> PlainFiles:
    db.write_dbt(plan, project, "prog", dialect=dialect)
    return render_plain(project, "prog", dialect)


def by_output(plan: se.Plan, files: PlainFiles) -> dict[str, str]:
    return {name: files.models[f"prog_{name.lower()}"] for name in plan.outputs}


def edges_of(rows: list[Any]) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)]
    types = (pa.int64(), pa.int64(), pa.float64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(arrays, names=["src", "dst", "w"])


def test_results_are_numpys(own: se.Database, project: Path, other: tuple[str, OtherEngine]) -> None:
    dialect, engine = other
    plan = own.plan(PROGRAM, optimizer="relational")
    files = written(own, plan, project, dialect)
    results = evaluate_program(se.program(PROGRAM), INPUTS)

    def is_close(name: str, actual: Array) -> None:
        np.testing.assert_allclose(actual, results[name], rtol=1e-9, atol=1e-12)

    comparison = Comparison(plan, tables_of(own, plan), {name: results[name] for name in plan.outputs}, is_close)
    outcome = comparison.of_queries(engine, by_output(plan, files))
    assert outcome.verdict == Verdict.EQUAL, outcome.reason
    assert set(files.tests) == {"prog_a_is_as_planned", "prog_n_is_as_planned", "prog_h_is_as_planned"}
    assert [engine.rows(test) for test in files.tests.values()] == [[], [], []]


@pytest.mark.parametrize("change", WRONG)
def test_the_test_of_an_input_names_what_is_wrong(
    own: se.Database, project: Path, other: tuple[str, OtherEngine], change: str
) -> None:
    dialect, engine = other
    if dialect == "clickhouse" and change.startswith("NULL"):
        pytest.skip("columns of ClickHouse hold no NULL by default")
    files = written(own, own.plan("Y[i] = sum(E[i, j])", optimizer="relational"), project, dialect)
    row, problem = WRONG[change]
    engine.load("edges", edges_of(ROWS))
    assert engine.rows(files.tests["prog_e_is_as_planned"]) == []
    engine.load("edges", edges_of([*ROWS, row]))
    assert engine.rows(files.tests["prog_e_is_as_planned"]) == [(problem, 1)]


def test_models_are_right_beyond_the_values_of_planning(
    own: se.Database, project: Path, other: tuple[str, OtherEngine]
) -> None:
    """The sums of integers fit into int64 as planned; larger ones pass the test, so the model must notice."""
    dialect, engine = other
    own.tensor("L", np.array([1, 2, 3]), promoted={"dim_0": 1})
    plan = own.plan("Y[] = sum(L[i])", optimizer="relational")
    files = written(own, plan, project, dialect)
    for values, verdict in (([2**62, -5, 7], Verdict.EQUAL), ([2**62, 2**62, 2**62], Verdict.STOPPED)):
        table = pa.table({"dim_0": [0, 1, 2], "val": values})
        expected = np.array(sum(values) if verdict == Verdict.EQUAL else 0)
        comparison = Comparison(plan, {"L": table}, {"Y": expected}, partial(check_equal, expected))
        assert comparison.of_queries(engine, by_output(plan, files)).verdict == verdict
        assert engine.rows(files.tests["prog_l_is_as_planned"]) == []


def check_equal(expected: Array, name: str, actual: Array) -> None:
    np.testing.assert_array_equal(actual, expected, err_msg=name)


@pytest.mark.parametrize("family", ["float64", "mixed"])
def test_random_models_are_right_or_their_tests_fail(
    other: tuple[str, OtherEngine], project: Path, family: str
) -> None:
    """Models of random programs, on the data of planning and on other data."""
    dialect, engine = other

    @settings(max_examples=5, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(cases(family, "relational"))
        with se.connect() as database:
            load(database, case, case.inputs)
            try:
                plan = database.plan(case.text, "relational", outputs=case.outputs, nonfinite=case.nonfinite)
                files = written(database, plan, project, dialect)
            except se.SparseEinsumError:
                return
            comparison = compared(database, plan, case, case.inputs)
            if comparison is not None:
                lacks_nan = dialect == "sqlite" and any(np.isnan(array).any() for array in case.inputs.values())
                assert passes(engine, comparison, files) or lacks_nan, files.tests
            inputs = {name: data.draw(other_values(array, case.fills[name])) for name, array in case.inputs.items()}
            load(database, case, inputs)
            comparison = compared(database, plan, case, inputs)
            if comparison is not None:
                passes(engine, comparison, files)

    check()


def load(database: se.Database, case: Case, inputs: dict[str, Array]) -> None:
    """Store inputs with one row for each entry."""
    for name, array in inputs.items():
        promoted = {f"dim_{axis}": 1 for axis in range(array.ndim)}
        database.tensor(name, array, fill=case.fills[name], promoted=promoted)


def compared(database: se.Database, plan: se.Plan, case: Case, inputs: dict[str, Array]) -> Comparison | None:
    """The comparison of models with numpy; None if the numbers are too large for one."""
    with np.errstate(all="ignore"):
        expected = evaluate_program(se.program(case.text), inputs)
    arrays = (*inputs.values(), *expected.values())
    if scale_of(arrays) > LARGEST:
        return None
    is_single = any(array.dtype in (np.float32, np.complex64, np.bool_) for array in arrays)
    tolerance = scale_of(arrays) * (2e-4 if is_single else 1e-9)

    def is_close(name: str, actual: Array) -> None:
        np.testing.assert_allclose(actual, expected[name], rtol=0, atol=tolerance, err_msg=name)

    return Comparison(plan, tables_of(database, plan), {name: expected[name] for name in plan.outputs}, is_close)


def passes(engine: OtherEngine, comparison: Comparison, files: PlainFiles) -> bool:
    """Whether the tests of a program pass; then its models must not be wrong."""
    for name, table in comparison.tables.items():
        engine.load(name, table)
    if any(engine.rows(test) for test in files.tests.values()):
        return False
    outcome = comparison.of_queries(engine, by_output(comparison.plan, files))
    assert outcome.verdict != Verdict.WRONG, outcome.reason
    return True


@pytest.mark.parametrize("dialect", OTHER_DIALECTS)
def test_files_are_as_reviewed(own: se.Database, project: Path, dialect: str) -> None:
    own.connection.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.pays AS "
        "FROM (VALUES ('ann', 'bob', 2.0::DOUBLE), ('bob', 'cem', 3.0)) AS t(payer, payee, w)"
    )
    keys = {"payer": "people", "payee": "people"}
    own.tensor_from_table("P", "shop.pays", index=["payer", "payee"], value="w", keys=keys)
    plan = own.plan("D[j] = sum(P[i, j] ^ 2)\nY[i] = sum(A[i, j] / (1 + N[i, j] ^ 2))", optimizer="relational")
    paths = own.write_dbt(plan, project, "prog", dialect=dialect.upper())
    text = "\n".join(f"-- {path.relative_to(project).as_posix()}\n{path.read_text()}" for path in paths)
    check_golden_file(GOLDEN / f"{dialect}.txt", text)
    files = render_plain(project, "prog", dialect)
    for query in (*files.models.values(), *files.tests.values()):
        assert sqlglot.parse_one(query, read=dialect).sql(dialect) != ""


class TestReferences:
    """How models refer to what they read."""

    def parse(self, project: Path, tables: dict[str, str]) -> None:
        """A manifest of models of another database, by their names, each with the name of its table."""
        nodes = {
            f"model.p.{name}": {
                "resource_type": "model", "database": "lake", "schema": f"of_{name}", "alias": table, "name": name
            }
            for name, table in tables.items()
        }  # fmt: skip
        (project / "target").mkdir(exist_ok=True)
        (project / "target" / "manifest.json").write_text(json.dumps({"nodes": nodes, "sources": {}}))

    def test_models_of_the_name_of_a_table_are_read(self, own: se.Database, project: Path) -> None:
        self.parse(project, {"stg_edges": "EDGES", "more": "others"})
        own.write_dbt(own.plan("Y[i] = sum(E[i, j])", optimizer="relational"), project, "prog", dialect="spark")
        assert "FROM {{ ref('stg_edges') }} AS `u`" in (project / "models" / "prog" / "prog_y.sql").read_text()
        assert not (project / "models" / "prog" / "sources.yml").exists()

    def test_several_of_a_name_are_refused(self, own: se.Database, project: Path) -> None:
        self.parse(project, {"old": "edges", "new": "edges"})
        with pytest.raises(se.SparseEinsumError, match=r"several tables edges: ref\('old'\) and ref\('new'\)"):
            own.write_dbt(own.plan("Y[i] = sum(E[i, j])", optimizer="relational"), project, "prog", dialect="spark")

    def test_models_that_dbt_has_not_read_are_refused(self, own: se.Database, project: Path) -> None:
        (project / "models").mkdir()
        (project / "models" / "edges.sql").write_text("SELECT 1")
        with pytest.raises(se.SparseEinsumError, match=r"may be created by models.edges.sql, .*run `dbt parse`"):
            own.write_dbt(own.plan("Y[i] = sum(E[i, j])", optimizer="relational"), project, "prog", dialect="spark")

    def test_files_and_temporary_tables_are_refused(self, own: se.Database, project: Path, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        own.connection.execute(f"COPY (SELECT 1 AS i, 2.5 AS val) TO '{path}'")
        own.tensor_from_table("F", path, index=["i"], value="val", shape=(3,))
        with pytest.raises(se.SparseEinsumError, match=r"F is in the file .*a.parquet', which models for another"):
            own.write_dbt(own.plan("Y[i] = 2 * F[i]", optimizer="relational"), project, "prog", dialect="trino")
        own.connection.execute("CREATE TEMPORARY TABLE t AS SELECT 1 AS i, 2.0 AS val")
        own.tensor_from_table("B", "t", index=["i"], value="val")
        with pytest.raises(se.SparseEinsumError, match="B is in the temporary table"):
            own.write_dbt(own.plan("Y[i] = B[i] + 1", optimizer="relational"), project, "prog", dialect="trino")

    def test_a_table_in_the_default_schema_is_in_that_of_the_target(self, own: se.Database, project: Path) -> None:
        own.write_dbt(own.plan("Y[i] = sum(E[i, j])", optimizer="relational"), project, "prog", dialect="bigquery")
        (source,) = yaml.safe_load((project / "models" / "prog" / "sources.yml").read_text())["sources"]
        assert source["schema"] == "{{ target.schema }}"
        assert "database" not in source


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--dialect", "sparc"], "there is no dialect 'sparc'; did you mean 'spark'?"),
        (["--dialect", "postgres"], "make the plan on such a database"),
        (["--dialect", "spark", "--optimizer", "dense"], "which other engines do not have"),
    ],
)
def test_the_command_line(
    project: Path, tmp_path: Path, arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "web.duckdb")
    with se.connect(path) as database:
        database.tensor("A", INPUTS["A"], promoted=BY_ENTRY)
    text = "Y[i] = sum(A[i, j])"
    compiling = ["compile", "-d", path, "--text", text, "--dbt", str(project), "--name", "prog"]
    assert main([*compiling, "--dialect", "Spark"]) == 0
    before = (project / "models" / "prog" / "prog_y.sql").read_text()
    assert re.search("`u`.`dim_0` AS `i`", before)
    assert main([*compiling, *arguments]) == 1
    assert reason in capsys.readouterr().err
    assert (project / "models" / "prog" / "prog_y.sql").read_text() == before
    assert main(compiling) == 0  # the models of its own engine replace those of another
    assert {path.name for path in (project / "tests" / "prog").iterdir()} == {"prog_a_is_as_planned.sql"}
    assert "is_as_planned" not in before and (project / "macros" / "prog.sql").exists()
