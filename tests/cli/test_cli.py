"""Every command prints, writes and refuses what its documentation says."""

import io
import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.api import calibration
from sparseeinsum.api.examples import citation_graph
from sparseeinsum.cli import main
from sparseeinsum.pipeline import run_options

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A file with two tensors."""
    path = str(tmp_path / "graph.duckdb")
    with se.connect(path) as db:
        db.tensor("A", np.array([[1.0, 0.0], [2.0, 3.0]]))
        db.tensor("B", np.array([[4.0, 0.0], [5.0, 6.0]]))
    return path


def test_run_shows_results_in_order(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--database", database, "--text", PRODUCT]) == 0
    printed = capsys.readouterr().out
    assert printed == (
        "<C[I, K] i: 2 x k: 2 float64, 3 rows, density 0.75>\ni  k  val\n0  0    4\n1  0   23\n1  1   18\n"
    )


def test_explain_shows_the_algebra(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-d", database, "-t", PRODUCT, "-o", "relational", "--algebra"]) == 0
    printed = capsys.readouterr().out
    assert "aggregation by <0, 2>, sum" in printed
    assert "join on <1> = <0>, u * v" in printed


def test_run_keeps_results_in_tables(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-d", database, "-t", PRODUCT, "--into", "C=scores", "--rows", "1"]) == 0
    assert capsys.readouterr() == ("", "C is in scores\n")
    with duckdb.connect(database) as connection:
        assert connection.execute("SELECT * FROM scores ORDER BY ALL").fetchall() == [(0, 0, 4), (1, 0, 23), (1, 1, 18)]


def test_run_adds_to_tables_and_writes_files(database: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    command = ["run", "-d", database, "-t", PRODUCT, "--into"]
    assert main([*command, "C=added", "--append"]) == main([*command, f"C={path}"]) == 0
    assert main([*command, "C=added", "--append"]) == 1
    assert "the table added has a row at i 0, k 0 already" in capsys.readouterr().err
    with duckdb.connect(database) as connection:
        assert connection.execute("FROM added ORDER BY ALL").fetchall() == [(0, 0, 4), (1, 0, 23), (1, 1, 18)]
        assert connection.execute(f"FROM '{path}' ORDER BY ALL").fetchall() == [(0, 0, 4), (1, 0, 23), (1, 1, 18)]
    assert main(["run", "-d", database, "-t", PRODUCT, "--append"]) == 2
    assert "name them, as in --into Y=scores" in capsys.readouterr().err


def test_run_with_no_replan_keeps_its_plan(
    database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(*_: object) -> None:
        raise se.EngineError("looked")

    monkeypatch.setattr(run_options, "replan", looked)
    text = f"{PRODUCT}\nD[i, k] = C[i, k] + C[k, i]"
    command = ["run", "-d", database, "-t", text, "--optimizer", "relational"]
    assert main([*command, "--no-replan"]) == 0
    assert main(command) == 1
    assert "looked" in capsys.readouterr().err


def test_program_comes_from_file_or_standard_input(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "product.ein"
    path.write_text(PRODUCT)
    assert main(["compile", "-d", database, str(path)]) == 0
    from_file = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO(PRODUCT))
    assert main(["compile", "-d", database, "-"]) == 0
    assert capsys.readouterr().out == from_file
    with duckdb.connect(database) as connection:
        rows = connection.execute(from_file).fetchall()
    assert sorted(rows) == [(0, 0, 4), (1, 0, 23), (1, 1, 18)]


def test_compile_staged(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = f"{PRODUCT}\nD[i] = sum(C[i, k])\nE[i, k] = C[i, k] * D[i]"
    assert main(["compile", "-d", database, "-t", program, "--style", "staged", "-o", "relational"]) == 0
    assert "CREATE TEMPORARY TABLE C AS" in capsys.readouterr().out


def test_explain(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-d", database, "-t", PRODUCT, "-o", "relational", "--analyze"]) == 0
    printed = capsys.readouterr().out
    assert "C[I, K] = sum(A[I, J] * B[J, K])" in printed
    assert "C(i INT, k INT, val DOUBLE)" in printed
    assert "actual" in printed
    assert "C: returned" in printed


def test_explain_prints_json(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-d", database, "-t", PRODUCT, "-o", "relational", "--analyze", "--format", "json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["einsums"][0]["notation"] == "C[I, K] = sum(A[I, J] * B[J, K])"
    assert explained["einsums"][0]["actual"]["tuples"] == 3


def test_plans_are_saved_and_run(database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "product.plan.json")
    assert main(["explain", "-d", database, "-t", PRODUCT, "-o", "relational", "--save", path]) == 0
    first, errors = capsys.readouterr()
    assert "product.plan.json" in errors
    assert main(["run", "-d", database, "--plan", path, "--into", "C=scores"]) == 0
    with duckdb.connect(database) as connection:
        assert connection.execute("SELECT * FROM scores ORDER BY ALL").fetchall() == [(0, 0, 4), (1, 0, 23), (1, 1, 18)]
    for command in ("explain", "compile"):
        capsys.readouterr()
        assert main([command, "-d", database, "-p", path]) == 0
        assert "C[I, K] = sum(A[I, J] * B[J, K])" in capsys.readouterr().out
    assert "C[I, K] = sum(A[I, J] * B[J, K])" in first


def test_explain_draws_a_page(database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.html"
    assert main(["explain", "-d", database, "-t", PRODUCT, "--html", str(path), "--analyze"]) == 0
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert "plan.html" in errors
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "actual" in page


def test_explain_says_why_tuples_are_made_present(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-d", database, "-t", "Y[i, j] = 1 / A[i, j]", "-o", "relational"]) == 0
    assert (
        "Y: every tuple of A must be present, because no fill can represent what is absent" in capsys.readouterr().out
    )


def test_tiles_are_searched(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    for tiles in ("auto", "2,3"):
        assert main(["run", "-d", database, "-t", PRODUCT, "--tiles", tiles]) == 0
    with pytest.raises(SystemExit):
        main(["run", "-d", database, "-t", PRODUCT, "--tiles", "big"])
    assert "big is neither auto nor whole numbers" in capsys.readouterr().err


def test_load_and_drop(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text("weight,src,dst\n1.5,0,1\n-3,1,2\n2,1,0\n")
    load = ["load", "-d", "new.duckdb"]
    assert main([*load, "A", "edges.csv", "--value", "weight"]) == 0
    assert capsys.readouterr().out == "tensor A[src: 2, dst: 3] fill 0.0 dtype float64: 3 entries in main.A\n"
    load_options = [
        "--index",
        "src",
        "--duplicates",
        "sum",
        "--dtype",
        "float32",
        "--fill=-inf",
        "--shape",
        "4",
        "--axes",
        "i",
    ]
    assert main([*load, "B", "edges.csv", "--value", "weight", *load_options]) == 0
    assert capsys.readouterr().out == "tensor B[i: 4] fill -inf dtype float32: 2 entries in main.B\n"
    assert main([*load, "C", "A", "--index", "src,dst", "--no-copy", "--shape", "3,3"]) == 0
    assert capsys.readouterr().out == "tensor C[src: 3, dst: 3] fill 0.0 dtype float64: 3 entries in main.A\n"
    assert main(["drop", "-d", "new.duckdb", "B", "C"]) == 0
    assert capsys.readouterr().out == "B is dropped, with its table main.B\nC is dropped\n"
    with se.connect("new.duckdb") as db:
        assert list(db.tensors()) == ["A"]
        np.testing.assert_array_equal(db.run("Y[i, j] = A[i, j]")["Y"].to_numpy(), [[0, 1.5, 0], [2, 0, -3]])


def test_load_natural_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("knows.csv").write_text("who,whom,weight\nada,bob,1.5\ncy,ada,2\n")
    for how in ([], ["--no-copy", "--index", "who,whom", "--value", "weight"]):
        assert main(["load", "-d", "new.duckdb", "K", "knows.csv", "--keys", "who=person,whom=person", *how]) == 0
        assert main(["run", "-d", "new.duckdb", "-t", "T[i, j] = sum(K[i, k] * K[k, j])"]) == 0
        assert capsys.readouterr().out.endswith(" i    j  val\ncy  bob    3\n")
    with pytest.raises(SystemExit):
        main(["load", "-d", "new.duckdb", "K", "knows.csv", "--keys", "person"])
    assert "person is not AXIS=DICTIONARY,..., as in" in capsys.readouterr().err


def test_load_that_fails_leaves_no_new_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text("src,dst\n0,1\n-1,2\n")
    assert main(["load", "-d", "new.duckdb", "A", "edges.csv", "--index", "src,dst"]) == 1
    assert "row 1 (counted from 0): the index src is -1" in capsys.readouterr().err
    assert not Path("new.duckdb").exists()
    assert main(["load", "-d", "new.duckdb", "A", "edges.csv", "--index", "dst"]) == 0
    assert main(["load", "-d", "new.duckdb", "A", "edges.csv", "--index", "src"]) == 1
    assert Path("new.duckdb").exists()


@pytest.mark.parametrize(
    ("load_options", "message"),
    [(["--shape", "3,x"], "3,x is not a list of whole numbers"), (["--fill", "none"], "none is not a number")],
)
def test_invalid_options_of_load(load_options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["load", "-d", "new.duckdb", "A", "edges.csv", *load_options])
    assert message in capsys.readouterr().err


def test_stats(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", "-d", database, "A"]) == 0
    printed = capsys.readouterr().out
    title, _, row = (line.split() for line in printed.splitlines())
    assert title == ["Tensors", "of", database]
    assert row[:4] == ["A", "main.A", "3", "0.75"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "-d", "{}", "-t", "C[i, k] = sum(A[i, j] * Z[j, k])"], "there is no tensor Z in this database"),
        (["run", "-d", "{}", "-t", "C[i] = A[i, j]"], "line 1, column 1"),
        (["run", "-d", "{}", "nowhere.ein"], "nowhere.ein"),
        (["run", "-d", "absent.duckdb", "-t", PRODUCT], "there is no database file absent.duckdb"),
        (["run", "-d", "{}", "-t", PRODUCT, "--into", "X=y"], "the plan returns no X"),
        (["run", "-d", "{}", "-t", PRODUCT, "-m", "lots"], "'lots' is no size"),
        (["run", "-d", "{}", "--plan", "p.json"], "there is no plan file p.json"),
        (["explain", "-d", "{}", "-t", PRODUCT, "--save", "{}/plan.json"], "plan.json"),
        (["explain", "-d", "{}", "-t", PRODUCT, "--html", "{}/plan.html"], "plan.html"),
        (["stats", "-d", "{}", "Z"], "there is no tensor Z"),
        (["drop", "-d", "{}", "Z"], "there is no tensor Z"),
        (["drop", "-d", "absent.duckdb", "A"], "there is no database file absent.duckdb"),
        (["load", "-d", "{}", "E", "absent.csv"], "absent.csv"),
        (["load", "-d", "{}", "E", "absent"], "there is no table, view or file absent"),
        (["load", "-d", "{}", "E", "A", "--value", "v"], "no column v; they have dim_0, val"),
        (["demo", "--data", "absent.npz"], "absent.npz"),
    ],
)
def test_errors_are_one_message(
    database: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([argument.format(database) for argument in arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("sparseeinsum: ")
    assert message in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "-d", "{}"], "give exactly one of a program file"),
        (["run", "-d", "{}", "-t", PRODUCT, "--into", "C"], "RESULT=TABLE"),
        (["run", "-d", "{}", "-t", PRODUCT, "--plan", "p.json"], "--text and --plan"),
        (["run", "-d", "{}", "--plan", "p.json", "-m", "1GB"], "--memory-limit is an option of planning"),
        (["compile", "-d", "{}", "--plan", "p.json", "--no-indexes"], "--no-indexes is an option of planning"),
        (["run", "-d", "{}", "--plan", "p.json", "--no-rewrite"], "--no-rewrite is an option of planning"),
        (["explain", "-d", "{}", "--plan", "p.json", "--tiles", "64"], "--tiles is an option of planning"),
        (["load", "-d", "{}", "E", "A", "--no-copy"], "--no-copy needs the index columns"),
        (["load", "-d", "{}", "E", "A", "--no-copy", "--index", "i", "--duplicates", "sum"], "leave out one"),
        (["run", "-d", "{}", "-t", PRODUCT, "--format", "csv", "--rows", "3"], "csv has all rows"),
        (["run", "-d", "{}", "-t", PRODUCT, "--output", "c.txt"], "--output c.txt needs a format"),
        (["run", "-d", "{}", "-t", PRODUCT, "--into", "C=c", "--result", "C"], "C goes into c; leave out"),
        (["run", "-d", "{}", "-t", PRODUCT, "--into", "C=c", "-f", "csv"], "all go into tables"),
        (["explain", "-d", "{}", "-t", PRODUCT, "--algebra", "--format", "json"], "leave it out, or --algebra"),
    ],
)
def test_options_that_do_not_go_together(
    database: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([argument.format(database) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sparseeinsum: ")
    assert message in error


@pytest.mark.parametrize(
    "command", ["load", "run", "explain", "compile", "shell", "stats", "drop", "calibrate", "demo"]
)
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"example: sparseeinsum {command}" in " ".join(capsys.readouterr().out.split())


def test_calibrate_stores_constants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name, number in {"_BEST": 2, "_OTHERS": 6, "_RUNS": 1}.items():  # rough constants are enough
        monkeypatch.setattr(calibration, name, number)
    assert main(["calibrate"]) == 0
    printed = capsys.readouterr().out
    assert "C_xfer" in printed
    assert "left out" in printed
    (stored_file,) = tmp_path.rglob("calibration-duckdb.json")
    constants = json.loads(stored_file.read_text())["constants"]
    assert len(constants) == 8
    assert all(0 < value < 0.1 for value in constants.values())


def test_demo_on_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = citation_graph(nodes=60, edges=200, features=30, entries=400)
    adjacency, features = graph.adjacency.tocoo(), graph.features.tocoo()
    np.savez(
        tmp_path / "small.npz",
        num_nodes=60,
        num_features=30,
        src=adjacency.row,
        dst=adjacency.col,
        feat_row=features.row,
        feat_col=features.col,
        feat_val=features.data,
    )
    assert main(["demo", "--data", str(tmp_path / "small.npz"), "--repeat", "1"]) == 0
    printed = capsys.readouterr().out
    assert "small: 60 nodes, 200 edges, 30 features (400 set)" in printed
    assert "T3[" in printed
    assert "relational" in printed
    assert "dense" in printed
