"""Operands kept in memory are read by index correctly, and chosen where that is cheaper."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from half_filled_tensors import DTYPES, half_filled, plan_with_numpys_result
from indexing import index_wherever_possible, indexed_steps

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle")


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans use indexed access wherever they can, and group by hash tables."""
    index_wherever_possible(monkeypatch)


# EinSums, the promoted labels, and the operand that can then be read by index.
PROGRAMS = {
    "matrix product": ("T[i, m] = sum(A[i, j] * H[j, m])", "ij", 1),
    "the other way round": ("T[i, m] = sum(H[j, m] * A[i, j])", "ij", 0),
    "transposed": ("T[m, j] = sum(A[i, j] * G[i, m])", "ij", 1),
    "rows scaled": ("T[i, j, m] = A[i, j] * H[j, m]", "ij", 1),
    "rows added": ("T[i, j, m] = A[i, j] + H[j, m]", "ij", 1),
    "rows divided": ("T[i, j, m] = H[j, m] / (2 + A[i, j] ^ 2)", "ij", 0),
    "greatest": ("T[i, m] = max(A[i, j] * H[j, m])", "ij", 1),
    "distances": ("T[i, m] = sum((A[i, j] - H[j, m]) ^ 2)", "ij", 1),
    "two keys": ("T[i, m] = sum(C[i, j, m] * B[i, j, k])", "ij", None),
    "three axes": ("T[i, m] = sum(A[i, j] * D[j, m, k])", "ij", 1),
    "keys behind": ("T[i, m] = sum(A[i, j] * F[m, j])", "ij", 1),
    "products of rows": ("T[i, j] = sum(C[i, j, m] * H[j, m])", "ij", 1),
    "both keys": ("T[i, m] = sum(A[i, j] * C[i, j, m])", "ij", 1),
}
BOUNDS = {"i": 7, "j": 9, "k": 3, "m": 4}
TENSORS = {"A": "ij", "H": "jm", "G": "im", "B": "ijk", "C": "ijm", "D": "jmk", "F": "mj"}
NODES = 800


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fill", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_numpys(shared_db: se.Database, name: str, fill: int, dtype: str, everywhere: None) -> None:
    text, keys, index = PROGRAMS[name]
    plan = plan_with_numpys_result(shared_db, text, keys, half_filled(TENSORS, BOUNDS, dtype, fill), fill)
    is_plain = dtype in ("float64", "float32") or (dtype == "complex128" and fill == 0)
    if is_plain and index is not None:
        assert indexed_steps(plan) == {"T": index}
    if "T" in indexed_steps(plan):
        assert "tensor_row(" in plan.sql()
        assert " ON " not in plan.sql()


@pytest.mark.parametrize("shape", [(0, 4), (5, 0), (5, 4)])
def test_empty_operands(db: se.Database, shape: tuple[int, int], everywhere: None) -> None:
    """All entries of an operand are absent, or an axis has bound 0."""
    a, h = np.ones((3, shape[0])), np.zeros(shape)
    db.tensor("A", a)
    db.tensor("H", scipy.sparse.coo_array(h), promoted=("dim_0",))
    plan = db.plan("T[i, m] = sum(A[i, j] * H[j, m])\nS[i, j, m] = A[i, j] + H[j, m]", pin={"T": "ij", "S": "ij"})
    results = db.run(plan, progress=False)
    np.testing.assert_array_equal(results["T"].to_numpy(), a @ h)
    np.testing.assert_array_equal(results["S"].to_numpy(), a[:, :, None] + h)


def test_a_row_that_turns_infinite_is_detected(db: se.Database, everywhere: None) -> None:
    db.tensor("A", np.eye(3))
    db.tensor("H", np.full((3, 2), 1e308))
    text = "T[i, m] = sum(10 * A[i, j] * H[j, m])"
    with pytest.raises(se.EngineError, match="turned NaN or infinite"):
        db.run(db.plan(text), progress=False)


@pytest.fixture
def graph(db: se.Database) -> se.Database:
    """A sparse matrix A, ordered by rows, and dense matrices H, Q and K."""
    rng = np.random.default_rng(0)
    db.tensor("A", scipy.sparse.random_array((NODES, NODES), density=0.2, rng=rng))
    for name, width in (("H", 16), ("Q", 16), ("K", 16)):
        db.tensor(name, rng.random((NODES, width)))
    return db


def test_chosen_where_it_pays(graph: se.Database) -> None:
    plan = graph.plan("T[i, m] = sum(A[i, j] * H[j, m])", pin={"T": "ij"})
    assert indexed_steps(plan) == {"T": 1}
    assert "T: H is kept in memory as one array and read at j, without a join" in plan.explain()


def test_scores_of_sparse_attention_need_no_join(graph: se.Database) -> None:
    plan = graph.plan("S[i, j] = sum(A[i, j] * Q[i, k] * K[j, k])")
    assert len(indexed_steps(plan)) == 2
    assert " ON " not in plan.sql()


@pytest.mark.parametrize("optimizer", ["relational", "dense"])
def test_baselines_join(graph: se.Database, optimizer: str) -> None:
    plan = graph.plan("T[i, m] = sum(A[i, j] * H[j, m])", optimizer=optimizer)
    assert indexed_steps(plan) == {}


def test_arrays_beyond_memory_are_joined(graph: se.Database) -> None:
    """An array of 10 MB may take a quarter of the memory."""
    rng = np.random.default_rng(1)
    graph.tensor("V", scipy.sparse.random_array((NODES, 20_000), density=0.02, rng=rng))
    graph.tensor("W", rng.random((20_000, 64)))
    graph.connection.execute("SET threads = 2")
    for limit, indexed in (("100MB", {"T": 1}), ("30MB", {})):
        graph.connection.execute(f"SET memory_limit = '{limit}'")
        assert indexed_steps(graph.plan("T[i, m] = sum(V[i, j] * W[j, m])", pin={"T": "ij"})) == indexed


def test_a_saved_plan_indexes_again(graph: se.Database, tmp_path: Path) -> None:
    plan = graph.plan("T[i, m] = sum(A[i, j] * H[j, m])", pin={"T": "ij"})
    plan.save(tmp_path / "plan.json")
    again = graph.load_plan(tmp_path / "plan.json")
    assert indexed_steps(again) == indexed_steps(plan) == {"T": 1}
    assert again.sql() == plan.sql()


def test_the_order_of_rows_is_measured(graph: se.Database) -> None:
    text = "T[{0}, m] = max(A[i, j] * H[{1}, m])"
    rows_first, back = text.format("i", "j"), text.format("j", "i")

    def costs() -> list[float]:
        return [graph.plan(program, pin={"T": "ij"}, layout="any").cost for program in (rows_first, back)]

    by_rows = costs()
    assert by_rows[0] < by_rows[1]
    rows, columns, values = graph.connection.execute("SELECT * FROM A").fetchnumpy().values()
    graph.tensor("A", (np.stack([rows, columns]), values), shape=(NODES, NODES), order=["dim_1", "dim_0"])
    by_columns = costs()
    assert by_columns[1] == pytest.approx(by_rows[0], rel=0.05)
    assert by_columns[0] > by_rows[0]
    graph.connection.execute("CREATE OR REPLACE TABLE A AS SELECT * FROM A ORDER BY hash(rowid)")
    assert costs() == pytest.approx([by_columns[0], by_rows[1]], rel=0.05)


@pytest.mark.parametrize("order", [("dim_0", "dim_1"), ("dim_1", "dim_0"), ("dim_1",), ()])
@pytest.mark.parametrize("promoted", [None, ("dim_0", "dim_1"), {"dim_0": 2, "dim_1": 3}])
def test_rows_are_stored_in_order(db: se.Database, order: tuple[str, ...], promoted: Any) -> None:  # noqa: ANN401
    rng = np.random.default_rng(0)
    at = np.array([divmod(place, 9) for place in rng.permutation(63)]).T
    values = rng.random(63)
    db.tensor("A", (at, values), shape=(7, 9), promoted=promoted, order=order)
    keys = db.connection.execute("SELECT dim_0, dim_1 FROM A").fetchall()
    wanted = order or ("dim_0", "dim_1") if promoted is None or order else None
    if wanted is not None:
        places = [("dim_0", "dim_1").index(axis) for axis in wanted]
        ordered = [tuple(key[place] for place in places) for key in keys]
        assert ordered == sorted(ordered)
    expected = np.zeros((7, 9))
    expected[tuple(at)] = values
    result = db.run("T[i, j] = A[i, j] + 0 * A[i, j]")["T"].to_numpy()
    np.testing.assert_array_equal(result, expected)


def test_only_keys_order_rows(db: se.Database) -> None:
    with pytest.raises(se.ShapeError, match="A has no key column dim_1 to order its rows by; it has dim_0"):
        db.tensor("A", np.ones((3, 4)), order=["dim_1"])
