"""A dbt project with seeds, compiled models, a Python model and a query builds and runs."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import postgres_server
import pytest
from run_dbt import run_commands

from sparseeinsum.cli import main

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("dbt") is None, reason="dbt is not installed: pip install .[dev]"
)

EXAMPLE = Path(__file__).parent / "sample"
LINKS = np.loadtxt(EXAMPLE / "seeds" / "links.csv", delimiter=",", skiprows=1)


def ranks() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Three steps of PageRank by numpy."""
    weights = np.zeros((40, 40))
    weights[LINKS[:, 0].astype(int), LINKS[:, 1].astype(int)] = LINKS[:, 2]
    share = (weights / weights.sum(axis=1, keepdims=True)).T
    scores = np.ones(40)
    for _ in range(3):
        scores = 0.15 + 0.85 * share @ scores
    return scores


def linking() -> dict[int, float]:
    """The weights of the links to each page."""
    return {page: LINKS[LINKS[:, 1] == page, 2].sum() for page in set(LINKS[:, 1])}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The project, with the package beside it."""
    shutil.copytree(EXAMPLE, tmp_path / "web")
    assert main(["build", "dbt", "--output", str(tmp_path / "web" / "packages" / "sparseeinsum")]) == 0
    return tmp_path / "web"


def test_on_duckdb(folder: Path) -> None:
    compiling = ["sparseeinsum", "compile", "--database", "web.duckdb", "web.ein", "--dbt", "."]
    done = run_commands(
        folder,
        ["dbt", "deps"],
        ["dbt", "seed"],
        compiling,
        ["dbt", "build", "--exclude-resource-type", "seed"],
    )
    assert [response.success for response in done] == [True] * 4, [response.messages for response in done]
    built = done[3].messages
    assert {"web_links_is_as_planned", "web_share", "web_rank", "rank_in_python", "linking"} <= built.keys()
    with duckdb.connect(str(folder / "web.duckdb")) as connection:
        for table in ("web_rank", "rank_in_python", "settled"):
            values = connection.execute(f"SELECT val FROM {table} ORDER BY j").fetchnumpy()["val"]
            np.testing.assert_allclose(values, ranks(), rtol=1e-12)
        counted = dict(connection.execute("SELECT j, val FROM linking").fetchall())
    assert counted == linking()


def test_without_the_plugin_dbt_says_what_to_do(folder: Path) -> None:
    without = ["--target", "without_plugin"]
    _, refused = run_commands(folder, ["dbt", "deps", *without], ["dbt", "seed", *without])
    assert not refused.success
    (message,) = (message_text for message_text in refused.messages.values() if "has no functions" in message_text)
    assert "- module: sparseeinsum.dbt_plugin" in message


def test_the_plugin_refuses_a_database_that_was_open_before(tmp_path: Path) -> None:
    code = f"""
import duckdb
connection = duckdb.connect({str(tmp_path / "web.duckdb")!r})
from sparseeinsum.dbt_plugin import Plugin
Plugin("dbt_plugin", {{}}).configure_connection(connection)
"""
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert "its database was opened before `import sparseeinsum`" in finished.stderr


def test_on_postgresql(folder: Path, postgres_python: postgres_server.PostgresServer) -> None:
    """The package creates the extension; models give the results of DuckDB; einsum needs Python in the server."""
    server = postgres_python
    with server.connect() as maintenance:
        maintenance.execute("CREATE DATABASE web")
    compiling = ["sparseeinsum", "compile", "--database", server.url("web"), "web.ein", "--dbt", "."]
    on_postgres = ["--target", "postgres"]
    building = ["dbt", "build", "--exclude-resource-type", "seed", *on_postgres]
    first = [["dbt", "deps"], ["dbt", "seed", *on_postgres], compiling, building]
    *done, refused = run_commands(folder, *first, POSTGRES_HOST=str(server.folder))
    assert all(response.success for response in done), done
    assert {"web_links_is_as_planned", "web_share", "web_rank"} <= refused.messages.keys()
    for model in ("linking", "settled"):
        assert "sparseeinsum install postgres --python" in refused.messages[model]
    with server.connect("web") as connection:
        values = [value for (value,) in connection.execute("SELECT val FROM web_rank ORDER BY j").fetchall()]
        np.testing.assert_allclose(values, ranks(), rtol=1e-12)
        connection.execute("CREATE EXTENSION sparseeinsum_python CASCADE")
        (built,) = run_commands(folder, [*building, "--select", "linking", "settled"], POSTGRES_HOST=str(server.folder))
        assert built.success, built
        assert dict(connection.execute("SELECT j, val FROM linking").fetchall()) == linking()
        settled = [value for (value,) in connection.execute("SELECT val FROM settled ORDER BY j").fetchall()]
        np.testing.assert_allclose(settled, ranks(), rtol=1e-12)


def test_models_for_another_engine(folder: Path) -> None:
    """The SQL for Trino is that of DuckDB, too, as far as this program needs it; tests run before the model."""
    compiling = [
        "sparseeinsum",
        "compile",
        "--database",
        "web.duckdb",
        "--text",
        "Y[i, k] = sum(links[i, j] * links[j, k])",
    ]
    building = ["dbt", "build", "--select", "tag:paths"]
    for_trino = [*compiling, "--dbt", ".", "--name", "paths", "--dialect", "trino"]
    done = run_commands(folder, ["dbt", "deps"], ["dbt", "seed"], for_trino, building)
    assert [response.success for response in done] == [True] * 4, done
    weights, paths = np.zeros((40, 40)), np.zeros((40, 40))
    weights[LINKS[:, 0].astype(int), LINKS[:, 1].astype(int)] = LINKS[:, 2]
    with duckdb.connect(str(folder / "web.duckdb")) as connection:
        rows = connection.execute("SELECT i, k, val FROM paths_y").fetchnumpy()
        paths[rows["i"], rows["k"]] = rows["val"]
        np.testing.assert_allclose(paths, weights @ weights, rtol=1e-12)
        connection.execute("INSERT INTO links VALUES (40, 0, 1)")
    (refused,) = run_commands(folder, building)
    assert not refused.success
    assert "Got 1 result" in refused.messages["paths_links_is_as_planned"]
    with duckdb.connect(str(folder / "web.duckdb")) as connection:  # the model was skipped
        assert connection.execute("SELECT COUNT(*) FROM paths_y").fetchall() == [(np.count_nonzero(paths),)]
