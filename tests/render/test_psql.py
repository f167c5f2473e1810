"""A plan's SQL, piped into psql unchanged, gives numpy's results with nothing but the extension."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hidden_infinities import HIDDEN_INFINITIES, load_hidden_infinities
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from postgres_server import PostgresServer
from program_cases import Case, may_be_refused
from random_programs import FAMILIES, cases
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.cli import main

pytestmark = pytest.mark.engines("postgresql", reason="psql is its shell")

PROGRAM = """
    T[i, m] = sum(A[i, j] * H[j, m])
    Y[i, n] = relu(sum(T[i, m] * W[m, n]) - 1)
    Z[i] = max(T[i, m] + T[i, m] ^ 2)
"""

DIALECTS = {  # by engine: its names, and a name of the other engine
    "duckdb": (("duckdb", "DuckDB"), "postgres"),
    "postgresql": (("postgres", "PostgreSQL"), "duckdb"),
}


def numbers(text: str, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401  # of the dtype
    """A value that psql printed."""
    if dtype.kind == "b":
        return text == "t"
    if dtype.kind == "c":
        return complex(*map(float, text.strip("{}").split(",")))
    return int(text) if dtype.kind == "i" else float(text)


def results(printed: str) -> list[list[list[str]]]:
    """Cells of the rows of every result that psql printed, without headings and numbers of rows."""
    tables: list[list[list[str]]] = []
    lines = iter(printed.splitlines())
    for _ in lines:  # a heading
        rows = []
        for line in lines:
            if line.startswith("("):
                break
            rows.append(line.split("|"))
        tables.append(rows)
    return tables


def as_array(rows: list[list[str]], like: NDArray[Any], fill: Any) -> NDArray[Any]:  # noqa: ANN401  # a number
    array = np.full_like(like, fill)
    for *keys, value in rows:
        array[tuple(map(int, keys))] = numbers(value, like.dtype)
    return array


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs(postgres: PostgresServer, shared_db: se.Database, family: str) -> None:
    @random_runs(16, "postgresql")
    @given(cases(family, "dp"), st.sampled_from(["cte", "staged"]))
    def run(case: Case, style: str) -> None:
        case.load(shared_db)
        try:
            plan = shared_db.plan(
                case.text, pin=case.pin, outputs=case.outputs, tiles=case.tiles, nonfinite=case.nonfinite
            )
            expected = shared_db.run(plan)
        except se.SparseEinsumError as error:
            assert isinstance(error, se.SemanticsError) or may_be_refused(case, error)
            return
        printed = postgres.psql("shared_db", plan.sql(style, dialect="postgres"))
        for name, rows in zip(plan.outputs, results(printed), strict=True):
            wanted = case.expected[name]
            array = as_array(rows, wanted, expected[name].fill)
            case.expect(name, array)

    run()


@pytest.fixture
def network(db: se.Database) -> dict[str, NDArray[Any]]:
    """A database with the inputs of the program."""
    rng = np.random.default_rng(0)
    tensors = {"A": (rng.random((30, 30)) < 0.1) * 1.0, "H": rng.random((30, 8)), "W": rng.random((8, 4))}
    for name, array in tensors.items():
        db.tensor(name, array, promoted=["dim_0", "dim_1"] if name == "A" else None)
    return tensors


@pytest.mark.parametrize("style", ["cte", "staged"])
def test_output_of_compile(
    postgres: PostgresServer,
    db: se.Database,
    network: dict[str, NDArray[Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    style: str,
) -> None:
    """The command's output, run in a session with its own search_path, gives the result of db.run."""
    path = tmp_path / "program.ein"
    path.write_text(PROGRAM)
    url = postgres.url("db") + "&options=-csearch_path%3Dmain,public"
    assert main(["compile", "--database", url, str(path), "--style", style]) == 0
    rows, maxima = results(postgres.psql("db", capsys.readouterr().out))
    layer = network["A"] @ network["H"]
    expected = np.maximum(layer @ network["W"] - 1, 0)
    np.testing.assert_allclose(as_array(rows, expected, 0), expected)
    np.testing.assert_allclose(as_array(rows, expected, 0), db.run(PROGRAM)["Y"].to_numpy())
    np.testing.assert_allclose(as_array(maxima, expected[:, 0], 0), (layer + layer**2).max(axis=1))


@pytest.mark.parametrize("style", ["cte", "staged"])
@pytest.mark.parametrize("entries", [[], [3]])
def test_infinities_without_a_join_partner_are_detected(
    postgres: PostgresServer, db: se.Database, entries: list[int], style: str
) -> None:
    load_hidden_infinities(db, entries)
    for optimizer in ("dp", "relational", "dense"):
        plan = db.plan(HIDDEN_INFINITIES, optimizer=optimizer, rewrite=False)
        with pytest.raises(AssertionError, match="T turned NaN or infinite"):  # psql's output on stderr
            postgres.psql("db", plan.sql(style))


@pytest.mark.engines("duckdb", "postgresql")
def test_another_dialect_is_refused(db: se.Database, engine: str) -> None:
    db.tensor("A", np.eye(2))
    plan = db.plan("C[i] = sum(A[i, j])")
    names, other = DIALECTS[engine]
    assert {plan.sql(dialect=name) for name in names} == {plan.sql()}
    with pytest.raises(se.PlanError, match=f"dialect is {engine}; for SQL in {other}, make the plan"):
        plan.sql(dialect=other)
