"""Runs free the rows of temporary tables when no later statement reads them, and results stay those of numpy."""

import numpy as np
import pytest
import scipy.sparse as sp

import sparseeinsum as se
from sparseeinsum.results import unread_tables

pytestmark = pytest.mark.engines("duckdb", "postgresql")

LAYERS, ROWS, WIDTH = 4, 1200, 500
TABLE_BYTES = 8 * ROWS * WIDTH  # of the result of a layer
IN_USE = {
    "duckdb": "SELECT sum(memory_usage_bytes) FROM duckdb_memory()",
    "postgresql": "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname LIKE 'sparseeinsum%'",
}


def bytes_in_use(db: se.Database) -> int:
    """What tables take at the moment, within the open transaction."""
    ((size,),) = db.connection.execute(IN_USE[db._engine.dialect_name]).fetchall()
    return int(size or 0)


@pytest.mark.parametrize("promoted", [[], ["dim_0"]])
def test_results_that_nothing_reads_any_more_take_no_space(db: se.Database, promoted: list[str]) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, WIDTH))
    w = rng.normal(size=(WIDTH, WIDTH)) / np.sqrt(WIDTH)
    db.tensor("H0", x, promoted=promoted)
    db.tensor("W", w)
    for _ in range(LAYERS):
        x = x + np.tanh(x @ w)
    layers = [f"H{k + 1}[i, h] = H{k}[i, h] + tanh(sum(H{k}[i, f] * W[f, h]))" for k in range(LAYERS)]
    program = "\n".join([*layers, f"low[] = min(H{LAYERS}[i, h])", f"high[] = max(H{LAYERS}[i, h])"])
    before = bytes_in_use(db)
    with db.stream(program, memory_limit=60 * TABLE_BYTES) as stream:
        assert bytes_in_use(db) - before < 1.9 * TABLE_BYTES
        extremes = [stream[name].read_all()["val"][0].as_py() for name in ("low", "high")]
    np.testing.assert_allclose(extremes, [x.min(), x.max()])


def test_programs_that_read_indices_from_no_table(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Argmax of a large product reads every index and the next one."""
    monkeypatch.setattr(unread_tables, "_LARGE_BYTES", 0)
    a = sp.random_array((3000, 3000), density=1e-3, rng=np.random.default_rng(0)).tocsr()
    db.tensor("A", a)
    program = "Y[i, k] = sum(A[i, j] * A[j, k])\nP[i] = argmax[k](Y[i, k])"
    plan = db.plan(program, outputs=["P"])
    assert any(tensor.stored.is_generated for tensor in plan.data.inputs.values())
    assert any(statement.stage is not None for statement in plan.data.statements.for_run)
    for replan in (True, False):
        positions = db.run(plan, replan=replan, progress=False)["P"].to_numpy()
        np.testing.assert_array_equal(positions, np.asarray((a @ a).argmax(axis=1)).ravel())
