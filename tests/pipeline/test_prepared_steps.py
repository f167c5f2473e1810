"""Loops prepare their statements once, and leave the settings of the database as they were."""

import re
from typing import Any

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.engines.duckdb.duckdb_engine import DuckDBEngine
from sparseeinsum.errors import StepError
from sparseeinsum.pipeline.loops import loop, state_tables
from sparseeinsum.pipeline.loops.prepared_statements import PreparedStatements

DESCENT = """
state w
error[n] = sum(X[n, f] * w[f]) - y[n]
loss[] = sum(error[n] ^ 2)
next_w[f] = w[f] - 0.002 * sum(X[n, f] * error[n])
"""


def load(db: se.Database) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(50, 3))
    db.tensor("X", samples, axes=["n", "f"])
    db.tensor("y", samples @ [2, -1, 0.5], axes=["n"], promoted=["n"])
    db.tensor("w", np.ones(3), axes=["f"], promoted=["f"])
    return samples, samples @ [2, -1, 0.5]


def losses(samples: np.ndarray, targets: np.ndarray, steps: int) -> list[float]:
    """The losses before every step, by numpy."""
    weights, values = np.ones(3), []
    for _ in range(steps):
        error = samples @ weights - targets
        values.append(error @ error)
        weights = weights - 0.002 * samples.T @ error
    return values


@pytest.mark.parametrize("bytes_removed", [32e6, 500.0], ids=["kept tables", "tables made anew"])
def test_statements_are_prepared_once(bytes_removed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_tables, "_MOST_REMOVED", bytes_removed)
    prepared: list[str] = []
    prepare = DuckDBEngine.prepared_write

    def counted(self: DuckDBEngine, name: str, statement: str) -> Any:  # noqa: ANN401
        prepared.append(statement)
        return prepare(self, name, statement)

    monkeypatch.setattr(DuckDBEngine, "prepared_write", counted)
    with se.connect() as db:
        expected = losses(*load(db), 40)
        result = db.iterate(DESCENT, steps=40, history=["loss"], commit_seconds=np.inf)
        np.testing.assert_allclose(result.df()["loss"], expected, rtol=1e-9)
    if bytes_removed == 32e6:
        assert len(prepared) <= 2 * len(set(prepared))  # again after the step that created tables
    else:
        assert len(prepared) > 2 * len(set(prepared))


@pytest.mark.parametrize("optimizes", ["true", "false"])
def test_the_setting_of_the_optimizer_is_restored(optimizes: str) -> None:
    def setting(db: se.Database) -> object:
        return db.connection.execute("SELECT current_setting('enable_optimizer')").fetchone()[0]

    with se.connect() as db:
        load(db)
        db.connection.execute(f"SET enable_optimizer = {optimizes}")
        db.iterate(DESCENT, steps=3)
        assert setting(db) is (optimizes == "true")
        with pytest.raises(StepError):
            db.iterate("state w\nnext_w[f] = exp(exp(w[f])) * 10", steps=9)
        assert setting(db) is (optimizes == "true")


DIFFUSION = """
state w
total[i] = sum(A[i, j])
share[i, j] = A[i, j] / total[i]
before[i] = sum(share[j, i] * w[j])
after[i] = sum(share[i, j] * w[j])
next_w[i] = 0.5 * before[i] + 0.5 * after[i]
loss[] = sum(w[i] ^ 2)
"""


@pytest.mark.parametrize("changes", [False, True], ids=["tables that stay", "tables that change"])
def test_what_is_the_same_in_every_step_is_computed_once(changes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is computed again if a table that it reads may have changed."""
    written: list[str] = []
    write = PreparedStatements.write

    def counted(self: PreparedStatements, statement: str) -> int:
        written.append(statement)
        return write(self, statement)

    matrix = np.random.default_rng(1).uniform(1, 2, (4, 4))
    weights, expected = np.arange(1.0, 5.0), []
    with se.connect() as db:
        rows = [(i, j, matrix[i, j]) for i in range(4) for j in range(4)]
        if changes:
            db.connection.execute("CREATE TABLE edges (i INT, j INT, value DOUBLE)")
            db.connection.executemany("INSERT INTO edges VALUES (?, ?, ?)", rows)
            db.tensor_from_table("A", "edges", ["i", "j"], "value", shape=(4, 4))
        else:
            db.tensor("A", matrix, promoted=["dim_0", "dim_1"])
        db.tensor("w", weights, promoted=["dim_0"])

        def change(self: object) -> None:
            if changes:
                db.connection.execute("UPDATE edges SET value = value + 1 WHERE i = 0 AND j = 2")

        monkeypatch.setattr(PreparedStatements, "write", counted)
        monkeypatch.setattr(loop._Loop, "_show", change)
        result = db.iterate(DIFFUSION, steps=6, history=["loss"])
    for _ in range(6):
        expected.append(weights @ weights)
        share = matrix / matrix.sum(axis=1, keepdims=True)
        weights = 0.5 * (share.T @ weights) + 0.5 * (share @ weights)
        matrix[0, 2] += changes
    np.testing.assert_allclose(result.df()["loss"], expected, rtol=1e-9)
    computed = [statement for statement in written if re.search(r"INSERT INTO \S+_(total|share) ", statement)]
    assert bool(computed) == changes, computed
