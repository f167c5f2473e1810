"""A state keeps its layout and its values, whatever layout it has in the tables of a loop."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseeinsum as se
from sparseeinsum.algebra.array_chains import ArrayChains
from sparseeinsum.engines import retries
from sparseeinsum.pipeline.loops import loop, loop_setup
from sparseeinsum.pipeline.loops.loop_setup import _PlannedStep
from sparseeinsum.plans.plan_statements import PlanStatements
from sparseeinsum.rewrite import algebraic, equal_formulas, formula_search
from sparseeinsum.rewrite.saturation import egraph

pytestmark = pytest.mark.engines("duckdb", "postgresql")

ADAM = """
state W, M
error[i, j] = W[i, j] - T[i, j]
next_M[i, j] = 0.9 * M[i, j] + 0.1 * error[i, j]
next_W[i, j] = W[i, j] - 0.5 * next_M[i, j]
loss[] = sum(error[i, j] ^ 2)
"""
SHAPE = (12, 5)


def start() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.normal(size=SHAPE), rng.normal(size=SHAPE)


def descend(weights: np.ndarray, target: np.ndarray, means: np.ndarray, steps: int) -> tuple[Any, Any, list[float]]:
    losses = []
    for _ in range(steps):
        error = weights - target
        losses.append(float((error**2).sum()))
        means = 0.9 * means + 0.1 * error
        weights = weights - 0.5 * means
    return weights, means, losses


def layouts_of_tables(monkeypatch: pytest.MonkeyPatch) -> list[_PlannedStep]:
    """What loops choose from now on; they take the layout with the fewest tuples, whatever it costs."""
    chosen: list[_PlannedStep] = []
    cheapest = loop_setup._Setup.cheapest

    def kept(self: loop_setup._Setup) -> _PlannedStep:
        chosen.append(cheapest(self))
        return chosen[-1]

    monkeypatch.setattr(loop_setup._Setup, "cheapest", kept)
    monkeypatch.setattr(_PlannedStep, "seconds", property(lambda self: sum(state.most_rows for state in self.tables)))
    return chosen


@pytest.mark.parametrize("optimizer", ["dp", "dense", "relational"])
@pytest.mark.parametrize("tiles", [(1, 1), (1, 0), (4, 2), (0, 0)], ids=["ij", "i", "tiles", "array"])
@pytest.mark.parametrize("axes", [("i", "j"), ("dim_0", "dim_1")])
def test_states_in_any_layout(
    db: se.Database,
    axes: tuple[str, str],
    tiles: tuple[int, int],
    optimizer: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The axes of a state may have other names than those of its next value, which other statements read, too."""
    promoted = {axis: tile for axis, tile in zip(axes, tiles, strict=True) if tile}
    weights, target = start()
    chosen = layouts_of_tables(monkeypatch)
    db.tensor("W", weights, axes=axes, promoted=promoted)
    db.tensor("M", np.zeros(SHAPE), axes=axes, promoted=promoted)  # without rows
    db.tensor("T", target, axes=["i", "j"])
    before = db.tensors()
    results = [
        db.iterate(ADAM, steps=3, history=["loss"], optimizer=optimizer, commit_seconds=0),
        db.iterate(ADAM, steps=7, history=["loss"], optimizer=optimizer, resume=True),
    ]
    weights, means, losses = descend(weights, target, np.zeros(SHAPE), 7)
    np.testing.assert_allclose(results[-1].df()["loss"], losses)
    np.testing.assert_allclose(db.run("C[i, j] = W[i, j]")["C"].to_numpy(), weights)
    np.testing.assert_allclose(db.run("C[i, j] = M[i, j]")["C"].to_numpy(), means)
    assert [db.tensors()[name].decomposition for name in "WM"] == [before[name].decomposition for name in "WM"]
    if optimizer == "dense":
        assert all(state.most_rows == 1 for planned in chosen for state in planned.tables)


@pytest.mark.parametrize(
    ("dtype", "text", "following"),
    [
        ("bool", "S[i, j] or S[j, i]", lambda s: s | s.T),
        ("int64", "S[i, j] + 2 * S[j, i]", lambda s: s + 2 * s.T),
        ("float32", "S[i, j] + 2 * S[j, i]", lambda s: s + 2 * s.T),
        ("complex128", "1j * S[i, j] + conj(S[j, i])", lambda s: 1j * s + s.T.conj()),
    ],
)
def test_states_of_any_dtype(
    db: se.Database, dtype: str, text: str, following: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts_of_tables(monkeypatch)
    values = np.random.default_rng(2).integers(0, 3, (6, 6)).astype(dtype)
    db.tensor("S", values, axes=["i", "j"], promoted=["i", "j"])
    db.iterate(f"state S\nnext_S[i, j] = {text}", steps=3, optimizer="dense", into={"S": "kept"})
    for _ in range(3):
        values = following(values)
    np.testing.assert_allclose(db.run("C[i, j] = kept[i, j]")["C"].to_numpy(), values)


@pytest.mark.parametrize("fill", [0.0, 1.0, np.inf])
def test_states_with_a_fill(db: se.Database, fill: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state whose rows are not all stored has rows for what is not the fill alone."""
    layouts_of_tables(monkeypatch)
    entries: Any = [[0, 3], [1, 4]], [5.0, 7.0]
    db.tensor("S", entries, axes=["i", "j"], shape=(6, 6), fill=fill)
    db.iterate("state S\nnext_S[i, j] = max(S[i, j], S[j, i])", steps=1, optimizer="dense", nonfinite="allow")
    values = np.full((6, 6), fill)
    values[[0, 3], [1, 4]] = [5, 7]
    expected = np.maximum(values, values.T)
    np.testing.assert_array_equal(db.run("C[i, j] = S[i, j]", nonfinite="allow")["C"].to_numpy(), expected)
    ((rows,),) = db.connection.execute("SELECT count(*) FROM S").fetchall()
    assert rows == (expected != fill).sum()


@pytest.mark.engines("duckdb", reason="the same on PostgreSQL")
def test_a_state_that_begins_with_zeros_is_planned_for_later_steps(
    db: se.Database, caplog: pytest.LogCaptureFixture
) -> None:
    """A dense state, as steps compute it, has one plan; none in later steps."""
    rng = np.random.default_rng(4)
    weights, target = rng.normal(size=(60, 40)), rng.normal(size=(60, 40))
    db.tensor("W", weights, axes=["i", "j"], promoted=["i"])
    db.tensor("M", np.zeros(weights.shape), axes=["i", "j"], promoted=["i", "j"])
    db.tensor("T", target, axes=["i", "j"], promoted=["i"])
    with caplog.at_level("INFO", logger="sparseeinsum"):
        db.iterate(ADAM, steps=6, history=["loss"])
    assert sum(record.getMessage().startswith("planned next_M") for record in caplog.records) == 1
    expected, means, _ = descend(weights, target, np.zeros(weights.shape), 6)
    np.testing.assert_allclose(db.run("C[i, j] = W[i, j]")["C"].to_numpy(), expected)
    np.testing.assert_allclose(db.run("C[i, j] = M[i, j]")["C"].to_numpy(), means)


FACTORS = """
state U
loss[] = sum((X[i, j] - sum(U[i, k] * V[j, k])) ^ 2)
next_U[i, k] = 0.5 * U[i, k]
"""


@pytest.mark.engines("duckdb", reason="the same on PostgreSQL")
def test_plans_of_a_loop_share_the_search_for_equal_formulas(
    db: se.Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Plans for several layouts of the state compare the same formulas."""
    for module in (algebraic, formula_search):
        monkeypatch.setattr(module, "LEAST_SECONDS", 0.0)
    searched: list[object] = []

    def saturate(*arguments: Any) -> object:  # noqa: ANN401  # those of the original
        searched.append(arguments)
        return egraph.saturate(*arguments)

    monkeypatch.setattr(equal_formulas, "saturate", saturate)
    rng = np.random.default_rng(4)
    observed, left, right = rng.normal(size=(30, 20)), rng.normal(size=(30, 2)), rng.normal(size=(20, 2))
    db.tensor("X", observed)
    left[0] = 0  # a sparse state is planned as it is stored, and in arrays
    db.tensor("U", left, promoted=["dim_0", "dim_1"])
    db.tensor("V", right)
    with caplog.at_level("INFO", logger="sparseeinsum"):
        result = db.iterate(FACTORS, steps=2, history=["loss"])
    assert sum(record.getMessage().startswith("planned loss") for record in caplog.records) == 2
    assert len(searched) == 1
    expected = [float(((observed - scale * left @ right.T) ** 2).sum()) for scale in (1, 0.5)]
    np.testing.assert_allclose(result.df()["loss"], expected)


@pytest.mark.engines("duckdb", reason="the same on PostgreSQL")
def test_a_plan_for_present_values_stays_where_one_for_all_values_is_slower(
    db: se.Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Entries alone are divided by a number that is not 0; by one that may be 0, all elements are."""
    sparse = sp.random_array((2000, 2000), density=0.001, rng=np.random.default_rng(4))
    db.tensor("A", sparse)
    db.tensor("s", np.array(2.0))
    program = "state s\ntotal[] = sum(A[i, j] / s[])\nnext_s[] = 0.5 * s[]"
    with caplog.at_level("INFO", logger="sparseeinsum"):
        result = db.iterate(program, steps=3, history=["total"])
    assert sum(record.getMessage().startswith("planned") for record in caplog.records) == 2
    np.testing.assert_allclose(result.df()["total"], sparse.sum() / np.array([2.0, 1.0, 0.5]))


def test_a_state_that_is_read_only_as_its_next_value(db: se.Database) -> None:
    """What is computed of the next value of a state changes in every step, also if no step reads the state itself."""
    db.tensor("U", np.zeros((3, 2)))
    db.tensor("V", np.ones((3, 2)))
    program = """
        state U, V
        next_U[i, k] = 2 * V[i, k]
        total[i] = sum(next_U[i, k])
        next_V[i, k] = next_U[i, k] + total[i]
    """
    wanted = np.ones((3, 2))
    for _ in range(5):
        wanted = 2 * wanted + (2 * wanted).sum(axis=1, keepdims=True)
    db.iterate(program, steps=5)
    np.testing.assert_allclose(db.run("R[i, k] = V[i, k]")["R"].to_numpy(), wanted)


CHAINED = """
state x, y
next_x[i] = sum(A[i, j] * x[j])
z[i] = next_x[i] + 1
next_y[i] = 0.5 * y[i] + z[i] - next_x[i] ^ 2
"""


@pytest.mark.parametrize("chains", [False, True], ids=["two tables", "one row"])
def test_later_steps_may_compute_a_shared_row_otherwise(
    db: se.Database, monkeypatch: pytest.MonkeyPatch, chains: bool
) -> None:
    """States that share the row of a table stay there when the plan of a later step computes them one by one."""
    size = 80
    rng = np.random.default_rng(6)
    matrix, x, y = np.diag(rng.random(size)), rng.random(size), rng.random(size)
    db.tensor("A", matrix, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("x", x, axes=["i"], promoted=[])
    db.tensor("y", y, axes=["i"], promoted=[])
    run, done = retries.in_own_snapshot, []

    def growing(engine: Any, work: Any) -> Any:  # noqa: ANN401
        result = run(engine, work)
        done.append(1)
        if len(done) == 2:
            if not chains:
                without = property(lambda plan: ArrayChains((), plan.definitions))
                monkeypatch.setattr(PlanStatements, "_chained", without)
            insert = f"INSERT INTO A SELECT i, j, 0.01 FROM {numbers('i')}, {numbers('j')} WHERE i <> j"
            db.connection.execute(insert)
        return result

    def numbers(name: str) -> str:
        return f"(SELECT * FROM generate_series(0, {size - 1})) AS {name}({name})"

    monkeypatch.setattr(loop, "in_own_snapshot", growing)
    db.iterate(CHAINED, steps=5)
    for step in range(5):
        grown = matrix if step < 2 else np.where(np.eye(size, dtype=bool), matrix, 0.01)
        x = grown @ x
        y = 0.5 * y + x + 1 - x**2
    results = db.run("u[i] = x[i]\nv[i] = y[i]")
    np.testing.assert_allclose(results["u"].to_numpy(), x, rtol=1e-12)
    np.testing.assert_allclose(results["v"].to_numpy(), y, rtol=1e-12)
