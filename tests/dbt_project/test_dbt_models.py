"""Plans as dbt models give numpy's results on any data, or name the assumption that no longer holds."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pytest
import yaml
from any_sql import run_sql
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from program_cases import Case, scale_of
from random_programs import LARGEST, arrays, cases
from reading import engine_of
from render_dbt import new_project, render, run

import sparseeinsum as se
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.cli import main
from sparseeinsum.results.results import TensorResult
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]

EXAMPLES = 15
PREFIXES = {"duckdb": "duckdb", "postgresql": "postgres"}
RIGHT = {
    "unchanged": ("SELECT 1", [1.5, 0, 1.5]),
    "inserted": ("INSERT INTO edges VALUES (1, 2, 9)", [1.5, 9, 1.5]),
    "deleted": ("DELETE FROM edges WHERE src = 0", [0, 0, 1.5]),
    "emptied": ("DELETE FROM edges", [0, 0, 0]),
    "updated": ("UPDATE edges SET w = w * -1000", [-1500, 0, -1500]),
    "explicit zero": ("INSERT INTO edges VALUES (1, 2, 0)", [1.5, 0, 1.5]),
}
WRONG = {
    "NULL value": ("INSERT INTO edges VALUES (1, 1, NULL)", "rows whose value w is NULL: 1"),
    "NULL index": ("INSERT INTO edges VALUES (NULL, 1, 1)", "rows whose index src is NULL: 1"),
    "duplicate": ("INSERT INTO edges VALUES (2, 0, 7)", "rows whose index an earlier row has: 1"),
    "beyond the bound": ("INSERT INTO edges VALUES (3, 0, 7)", "the index src is 3, but its bound is 3"),
    "negative": ("INSERT INTO edges VALUES (0, -1, 7)", "the index dst is -1, but indices count from 0"),
    "NaN": ("UPDATE edges SET w = CAST('nan' AS DOUBLE) WHERE src = 0", "(?i)the value w is nan, but values must be"),
    "infinity": (
        "UPDATE edges SET w = CAST('-inf' AS DOUBLE) WHERE src = 0",
        "(?i)the value w is -inf.*, but values",
    ),
    "narrower values": ("ALTER TABLE edges ALTER w TYPE FLOAT", "(?i)the columns have the types .*(FLOAT|real)"),
    "fractions for indices": ("ALTER TABLE edges ALTER src TYPE DOUBLE", "(?i)the columns have the types .*DOUBLE"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return new_project(tmp_path / "project")


def build(db: se.Database, project: Path, name: str = "prog") -> None:
    """Run the models on the current tables."""
    run(render(project, name, PREFIXES[engine_of(db).dialect_name]), db.connection.execute)


def result(db: se.Database, plan: se.Plan, name: str) -> Array:
    """The result of a model as an array."""
    schema = delivered_relation(plan.data.decomposed, name).schema
    columns = ", ".join([*schema.keys, "val"])
    rows = engine_of(db).arrow(f'SELECT {columns} FROM "prog_{name.lower()}"')
    return TensorResult(schema, rows).to_numpy()


class TestChangedTables:
    """Models of a table that changes after compiling: they read the new rows, or name what the plan lacks."""

    @pytest.mark.engines("duckdb", "postgresql")
    @pytest.mark.parametrize("change", RIGHT)
    def test_read_as_it_is(self, edges: se.Database, project: Path, change: str) -> None:
        plan = compiled(edges, project)
        run_sql(edges, RIGHT[change][0])
        build(edges, project)
        np.testing.assert_array_equal(result(edges, plan, "Y"), RIGHT[change][1])

    @pytest.mark.engines("duckdb", "postgresql")
    @pytest.mark.parametrize("change", WRONG)
    def test_refused_in_words(self, edges: se.Database, project: Path, change: str) -> None:
        compiled(edges, project)
        build(edges, project)
        before = run_sql(edges, "SELECT * FROM prog_y ORDER BY 1")
        run_sql(edges, WRONG[change][0])
        with pytest.raises((duckdb.Error, psycopg.Error)) as caught:
            edges.connection.execute(render(project, "prog", PREFIXES[engine_of(edges).dialect_name])["prog_y"].text)
        assert "tensor E is not as it was when prog was compiled: " in str(caught.value)
        assert re.search(WRONG[change][1], str(caught.value))
        if engine_of(edges).dialect_name == "duckdb":  # else the connection's transaction is none
            assert run_sql(edges, "SELECT * FROM prog_y ORDER BY 1") == before

    def test_missing_tuples_that_a_plan_needs_are_errors(self, db: se.Database, project: Path) -> None:
        """A plan for a matrix without absent entries fills nothing in, so it fails once an entry is absent."""
        db.tensor("A", np.arange(1.0, 7).reshape(2, 3))
        plan = db.plan("Y[i] = max(A[i, j] - 10)", optimizer="relational")
        db.write_dbt(plan, project, "prog")
        build(db, project)
        np.testing.assert_array_equal(result(db, plan, "Y"), [-7, -4])
        run_sql(db, "DELETE FROM A WHERE dim_0 = 1")
        with pytest.raises(
            (duckdb.Error, psycopg.Error), match=r"of 2 rows that are needed there are 1|of 6 indices that need"
        ):
            build(db, project)

    def test_bounds_of_values_are_as_wide_as_possible(self, db: se.Database, project: Path) -> None:
        db.tensor("A", np.array([[1.0, 0.5], [0, 2]]))
        plan = db.plan("Y[i] = sum(A[i, j] * A[j, i])")
        db.write_dbt(plan, project, "prog")
        db.tensor("A", np.array([[-1e60, 0.5], [3, 2]]))
        build(db, project)
        np.testing.assert_allclose(result(db, plan, "Y"), [1e120, 5.5])
        db.tensor("A", np.array([[1e200, 0.5], [3, 2]]))
        with pytest.raises((duckdb.Error, psycopg.Error), match=r"val is 1e.200, but values must be from -1e.150 to"):
            build(db, project)


def compiled(db: se.Database, project: Path) -> se.Plan:
    """Sums of the rows of a table of edges, as models."""
    db.tensor_from_table("E", "edges", index=["src", "dst"], value="w", shape=(3, 3))
    plan = db.plan("Y[i] = sum(E[i, j])")
    db.write_dbt(plan, project, "prog")
    return plan


class TestOtherTables:
    def test_natural_keys(self, db: se.Database, project: Path) -> None:
        """Keys are looked up when a model is built, and come back; keys that no dictionary has are refused."""
        run_sql(db, "CREATE TABLE pays AS FROM (VALUES ('ann', 'bob', 2.0), ('bob', 'cem', 3.0)) AS t(payer, payee, w)")
        db.tensor_from_table(
            "P", "pays", index=["payer", "payee"], value="w", keys={"payer": "people", "payee": "people"}
        )
        plan = db.plan("Y[j] = sum(P[i, j])")
        db.write_dbt(plan, project, "prog")
        build(db, project)
        assert run_sql(db, "SELECT j, val FROM prog_y ORDER BY j") == [("bob", 2.0), ("cem", 3.0)]
        run_sql(db, "INSERT INTO pays VALUES ('eve', 'bob', 1)")
        with pytest.raises(
            (duckdb.Error, psycopg.Error), match="key payer is NULL, or not in the dictionary people: 1"
        ):
            build(db, project)

    @pytest.mark.engines("duckdb", reason="PostgreSQL reads no files")
    def test_files(self, db: se.Database, project: Path, tmp_path: Path) -> None:
        path = tmp_path / "it's.parquet"
        run_sql(db, f"COPY (SELECT 1 AS i, 2.5 AS val) TO '{str(path).replace(chr(39), chr(39) * 2)}'")
        db.tensor_from_table("A", path, index=["i"], value="val", shape=(3,))
        plan = db.plan("Y[i] = A[i] * 2")
        db.write_dbt(plan, project, "prog")
        build(db, project)
        np.testing.assert_array_equal(result(db, plan, "Y"), [0, 5, 0])

    def test_results_that_others_read_are_models_of_their_own(self, db: se.Database, project: Path) -> None:
        db.tensor("A", np.array([[1.0, 0, 2], [0, 0, 3]]))
        plan = db.plan("T[i, k] = sum(A[i, j] * A[k, j])\nY[i, l] = sum(T[i, k] * T[l, k])", outputs=["T"])
        db.write_dbt(plan, project, "prog")
        names = {path.stem for path in (project / "models" / "prog").glob("*.sql")}
        assert names == {"prog_t", "prog_t_staged", "prog_y"}
        build(db, project)
        gram = np.array([[5.0, 6], [6, 9]])
        np.testing.assert_array_equal(result(db, plan, "T"), gram)
        np.testing.assert_array_equal(result(db, plan, "Y"), gram @ gram.T)

    def test_passes_are_hooks(self, db: se.Database, project: Path) -> None:
        """A result that needs too much memory at once is inserted into the model's table in passes."""
        rng = np.random.default_rng(0)
        left, right = rng.normal(size=(600, 300)), rng.normal(size=(300, 4000))
        db.tensor("A", left)
        db.tensor("B", right)
        plan = db.plan("C[I, k] = sum(A[I, J] * B[J, k])", memory_limit="80MB", pin={"C": ["i", "j"]})
        assert "passes" in plan.notation()[0]
        db.write_dbt(plan, project, "prog")
        models = render(project, "prog", "duckdb")
        assert any(model.settings.get("post_hook") for model in models.values())
        build(db, project)
        np.testing.assert_allclose(result(db, plan, "C"), left @ right, atol=1e-9)

    def test_plans_within_little_memory_are_as_general(self, db: se.Database, project: Path) -> None:
        """Absent tuples of operands are filled in, also in data that comes after the plan; on DuckDB in a model."""
        rng = np.random.default_rng(0)
        left, right = rng.random((1200, 1000)), rng.random((1200, 1000))
        db.tensor("A", left, promoted=["dim_0"])
        db.tensor("B", right, promoted=["dim_0"])
        db.connection.execute("DELETE FROM A WHERE dim_0 = 7; DELETE FROM B WHERE dim_0 = 8")
        plan = db.plan("y[i] = sum(exp(A[i, j]) + B[i, j])", memory_limit="80MB", pin={"y": ["i"]})
        assert "every tuple present" in plan.sql("staged")
        is_stored = "CREATE TEMPORARY TABLE B_by_dim_0" in plan.sql("staged").replace('"', "")
        assert is_stored == (engine_of(db).dialect_name == "duckdb")
        db.write_dbt(plan, project, "prog")
        db.tensor("A", -5 * left, promoted=["dim_0"])
        db.tensor("B", 5 * right, promoted=["dim_0"])
        build(db, project)
        np.testing.assert_allclose(result(db, plan, "y"), (np.exp(-5 * left) + 5 * right).sum(axis=1))


class TestFiles:
    """The files of a user's project before and after compiling."""

    @pytest.fixture
    def database(self, tmp_path: Path) -> str:
        path = str(tmp_path / "web.duckdb")
        with se.connect(path) as db:
            db.tensor("A", np.eye(3))
            db.connection.execute("CREATE SCHEMA raw; CREATE TABLE raw.links AS SELECT 1 AS i, 2 AS j, 1.0 AS w")
            db.tensor_from_table("L", "raw.links", index=["i", "j"], value="w", shape=(3, 3))
        return path

    def compile(self, database: str, project: Path, text: str, name: str = "prog") -> int:
        return main(["compile", "-d", database, "-t", text, "--dbt", str(project), "--name", name])

    def test_sources_have_schemas(self, database: str, project: Path) -> None:
        assert self.compile(database, project, "Y[i] = sum(A[i, j] * L[j, k])") == 0
        sources = yaml.safe_load((project / "models" / "prog" / "sources.yml").read_text())["sources"]
        assert [(source["name"], source["schema"], source["tables"][0]["name"]) for source in sources] == [
            ("prog_main", "main", "A"),
            ("prog_raw", "raw", "links"),
        ]

    def test_nodes_have_the_names_of_the_manifest(self, database: str, project: Path) -> None:
        (project / "models").mkdir()
        (project / "models" / "A.sql").write_text("SELECT 1")
        nodes = {
            "model.p.A": {"resource_type": "model", "database": "web", "schema": "main", "alias": "a", "name": "A"}
        }
        sources = {
            "source.p.raw.links": {
                "source_name": "web", "name": "hyperlinks", "database": "web", "schema": "raw", "identifier": "links",
                "original_file_path": "models/raw.yml",
            }
        }  # fmt: skip
        (project / "target").mkdir()
        (project / "target" / "manifest.json").write_text(json.dumps({"nodes": nodes, "sources": sources}))
        assert self.compile(database, project, "Y[i] = sum(A[i, j] * L[j, k])") == 0
        text = (project / "macros" / "prog.sql").read_text()
        assert "{{ ref('A') }}" in text and "{{ source('web', 'hyperlinks') }}" in text
        assert not (project / "models" / "prog" / "sources.yml").exists()

    def test_compiling_again_replaces_its_own_files_only(self, database: str, project: Path) -> None:
        shared = "T[i, k] = sum(A[i, j] * L[j, k])\nY[i, l] = sum(T[i, k] * T[l, k])"
        assert self.compile(database, project, shared) == 0
        folder = project / "models" / "prog"
        assert (folder / "prog_t.sql").exists()
        (folder / "notes.sql").write_text("SELECT 'of the user'")
        assert self.compile(database, project, "Y[i] = sum(A[i, j])") == 0
        assert {path.name for path in folder.iterdir()} == {"prog_y.sql", "notes.sql", "schema.yml", "sources.yml"}
        assert {path.name for path in (project / "tests" / "prog").iterdir()} == {"prog_a_is_as_planned.sql"}

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("models/prog/prog_y.sql", "prog_y.sql was not generated by sparseeinsum"),
            ("models/other/PROG_Y.sql", r"has a model PROG_Y already, in models.other.PROG_Y.sql"),
            ("seeds/A.csv", r"main.A may be created by seeds.A.csv, .*run `dbt parse`"),
        ],
    )
    def test_files_of_the_user_are_left(
        self, database: str, project: Path, path: str, reason: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (project / path).parent.mkdir(parents=True)
        (project / path).write_text("of the user")
        assert self.compile(database, project, "Y[i] = sum(A[i, j])") == 1
        assert re.search(reason, capsys.readouterr().err)
        assert (project / path).read_text() == "of the user"
        assert not (project / "macros").exists()

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (None, "is not a dbt project, because it has no dbt_project.yml"),
            ("name: [", "dbt_project.yml cannot be read"),
            ("- a list", "is not a mapping of settings"),
            ("model-paths: models", "model-paths of dbt_project.yml is 'models', which is not a list"),
        ],
    )
    def test_no_project(
        self, database: str, tmp_path: Path, content: str | None, reason: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        if content is not None:
            (tmp_path / "dbt_project.yml").write_text(content)
        assert self.compile(database, tmp_path, "Y[i] = sum(A[i, j])") == 1
        assert reason in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "status", "reason"),
        [
            (["--text", "Y[i] = sum(B[i, j])", "--dbt", "{}", "--name", "p"], 1, "there is no tensor B"),
            (
                ["--text", "Y[i] = sum(A[i, j])", "--dbt", "{}"],
                2,
                "the models need a name, because the program is from no file; add it, as in --name",
            ),
            (["--text", "Y[i] = sum(A[i, j])", "--dbt", "{}", "--name", "1st"], 1, "'1st' cannot be the prefix"),
            (["--text", "Y[i] = sum(A[i, j])", "--name", "p"], 2, "--name is for dbt models; it needs --dbt"),
            (["--text", "Y[i] = sum(A[i, j])", "--dbt", "{}", "--style", "cte"], 2, "--style is for printed SQL"),
        ],
    )
    def test_bad_requests(
        self,
        database: str,
        project: Path,
        arguments: list[str],
        status: int,
        reason: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert main(["compile", "-d", database, *(argument.format(project) for argument in arguments)]) == status
        assert reason in capsys.readouterr().err

    def test_temporary_tables_are_refused(self, db: se.Database, project: Path) -> None:
        db.connection.execute("CREATE TEMPORARY TABLE t AS SELECT 1 AS i, 2.0 AS val")
        db.tensor_from_table("A", "t", index=["i"], value="val")
        with pytest.raises(se.SparseEinsumError, match=r"A is in the temporary table .*t, which models"):
            db.write_dbt(db.plan("Y[i] = A[i] + 1"), project, "prog")

    def test_the_package_replaces_only_an_earlier_one(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        package = tmp_path / "packages" / "sparseeinsum"
        for _ in range(2):
            assert main(["build", "dbt", "--output", str(package)]) == 0
        assert f"- local: {package}" in capsys.readouterr().out
        (tmp_path / "notes.txt").write_text("of the user")
        assert main(["build", "dbt", "--output", str(tmp_path)]) == 1
        assert "has other files than those of the package" in capsys.readouterr().err


class TestAnyProgram:
    """Random programs, data and storage; then other data in the same tables."""

    @pytest.mark.engines("duckdb", "postgresql")
    @pytest.mark.usefixtures("operators_are_free")
    def test_models_are_right_or_refuse(self, shared_db: se.Database, tmp_path: Path) -> None:
        project = new_project(tmp_path / "project")
        outcomes: set[tuple[str, str]] = set()

        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
        @given(st.data())
        def check(data: st.DataObject) -> None:
            family = data.draw(st.sampled_from(["float64", "int64", "complex", "mixed"]))
            case = data.draw(cases(family, data.draw(st.sampled_from(["dp", "greedy", "relational", "dense"]))))
            if re.search(
                r"/ [A-Z]", case.text
            ):  # of sums that are 0 but for rounding, numpy's result is as good as any
                return
            case.load(shared_db)
            try:
                plan = case.plan(shared_db)
            except se.SparseEinsumError:
                return
            shared_db.write_dbt(plan, project, "prog")
            outcomes.add(("same", outcome(shared_db, project, plan, case, case.inputs)))
            inputs = {name: data.draw(other(array, case.fills[name])) for name, array in case.inputs.items()}
            for name, value in case.tables.items():
                if value is None:
                    fill = case.fills[name]
                    inputs[name] = np.where(inputs[name] == fill, fill, 1).astype(inputs[name].dtype)
            replace(case, inputs=inputs).load(shared_db)
            outcomes.add(("other", outcome(shared_db, project, plan, case, inputs)))

        check()
        assert ("same", "not as planned") not in outcomes
        assert outcomes >= {("same", "right"), ("other", "right"), ("other", "not as planned")}


@st.composite
def other(draw: st.DrawFn, array: Array, fill: Any) -> Array:  # noqa: ANN401  # a number
    """Other values for an array: maybe larger, negative, NaN, or absent."""
    drawn: Array = draw(arrays(array.shape, str(array.dtype), fill))
    scale = draw(st.sampled_from([1, 1, 1, -1, 100]))
    scaled = drawn if array.dtype.kind == "b" else (drawn * scale).astype(array.dtype)
    if scaled.size and array.dtype.kind == "f" and draw(st.integers(0, 7)) == 0:
        scaled.flat[0] = draw(st.sampled_from([np.nan, np.inf]))
    return scaled


def outcome(db: se.Database, project: Path, plan: se.Plan, case: Case, inputs: dict[str, Array]) -> str:
    """Build the models and compare them with numpy, unless they refuse."""
    with np.errstate(all="ignore"):
        expected = evaluate_program(se.program(case.text), inputs)
    compared = (*inputs.values(), *expected.values())
    if scale_of(compared) > LARGEST:
        return "too large to compare"
    try:
        build(db, project)
    except (duckdb.Error, psycopg.Error) as error:
        (reason,) = re.findall(r"not as it was|turned NaN|[Oo]verflow", str(error))[:1]
        return "not as planned" if reason == "not as it was" else str(reason)
    is_single = any(array.dtype in (np.float32, np.complex64, np.bool_) for array in compared)
    for name in plan.outputs:
        tolerance = 0 if expected[name].dtype.kind in "bi" else scale_of(compared) * (2e-4 if is_single else 1e-9)
        np.testing.assert_allclose(result(db, plan, name), expected[name], rtol=0, atol=tolerance, err_msg=name)
    return "right"
