"""EinSums over single arrays are computed in one row of one statement, with numpy's results."""

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

RNG = np.random.default_rng(0)
ARRAYS: dict[str, NDArray[Any]] = {
    "A": RNG.normal(size=(6, 5)),
    "B": RNG.normal(size=(5, 4)),
    "c": RNG.normal(size=4),
    "s": np.array(2.0),
}
LAYERS = """
T[i, k] = sum(A[i, j] * B[j, k])
R[i, k] = relu(T[i, k] - 0.5)
y[i] = sum(R[i, k] * c[k])
"""


def stored(db: se.Database, arrays: Mapping[str, NDArray[Any]] = ARRAYS) -> None:
    for name, array in arrays.items():
        db.tensor(name, array)


def check(db: se.Database, text: str, arrays: Mapping[str, NDArray[Any]] = ARRAYS) -> se.Plan:
    """Run a program without keys, and compare its results with numpy's; return the plan."""
    program = se.program(text)
    plan = db.plan(program, optimizer="dense", layout="any")
    expected = evaluate_program(program, {name: arrays[name] for name in program.inputs})
    for _ in range(2):
        results = db.run(plan, progress=False)
        for name, result in results.items():
            np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=1e-12, atol=1e-12)
    return plan


def stages(plan: se.Plan) -> list[tuple[str, ...]]:
    """The results in each temporary table of a run."""
    return [statement.stored for statement in plan.data.statements.for_run if statement.stage is not None]


def test_one_output_takes_one_statement(db: se.Database) -> None:
    stored(db)
    plan = check(db, LAYERS)
    assert stages(plan) == []
    (statement,) = plan.data.statements.for_run
    assert statement.text.count("JOIN") == 2  # of the three tensors that it reads
    assert statement.text.count("tensor_matmul(") == 2


def test_several_outputs_share_what_is_computed(db: se.Database) -> None:
    """One table has a column for each."""
    stored(db)
    plan = check(db, f"{LAYERS}\nz[] = sum(y[i] ^ 2)\nU[i, k] = T[i, k] / s[]\nq[i] = y[i] - z[]\nn[k] = sum(U[i, k])")
    assert stages(plan) == [("q", "n")]
    (_, *returned) = plan.data.statements.for_run
    assert [statement.stage for statement in returned] == [None, None]


def test_outputs_that_share_nothing_take_statements_of_their_own(db: se.Database) -> None:
    stored(db)
    assert stages(check(db, f"{LAYERS}\nmore[] = s[] + 1\nsquare[] = more[] * more[]")) == []


def test_keys_between_arrays_divide_chains(db: se.Database) -> None:
    """What reads arrays through a table of keys is computed after it."""
    stored(db)
    text = f"{LAYERS}\nM[i] = max(T[i, k])\nD[i, k] = T[i, k] - M[i]\nE[i, k] = exp(D[i, k])\nZ[i] = sum(E[i, k])"
    program = se.program(text)
    plan = db.plan(program, pin={"T": (), "M": ("i",), "D": (), "E": (), "Z": (), "R": (), "y": ()}, layout="any")
    expected = evaluate_program(program, {name: ARRAYS[name] for name in program.inputs})
    for name, result in db.run(plan, progress=False).items():
        np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=1e-12)


@pytest.mark.parametrize("fill", [0, 3])
def test_absent_tuples_hold_the_fill(db: se.Database, fill: int) -> None:
    """A table of one array or number may lack its tuple."""
    arrays = {"A": np.full((3, 2), float(fill)), "s": np.array(float(fill)), "B": np.ones((2, 2))}
    for name, array in arrays.items():
        db.tensor(name, array, fill=fill if name != "B" else 0, promoted=())
    check(db, "T[i, k] = sum(A[i, j] * B[j, k])\nU[i, k] = T[i, k] + s[]\nv[] = sum(U[i, k] * s[])", arrays)


def test_long_chains_are_cut(db: se.Database) -> None:
    """Engines limit how deep SELECTs are nested."""
    db.tensor("x0", np.linspace(0, 1, 3))
    text = "\n".join(f"x{n}[i] = cos(x{n - 1}[i]) + {n}" for n in range(1, 150)) + "\ny[] = sum(x149[i] * x10[i])"
    program = se.program(text)
    plan = db.plan(program, optimizer="dense", rewrite=False, layout="any")
    expected = evaluate_program(program, {"x0": np.linspace(0, 1, 3)})["y"]
    np.testing.assert_allclose(db.run(plan, progress=False)["y"].to_numpy(), expected, rtol=1e-12)


def test_a_value_that_turns_infinite_ends_the_run(db: se.Database) -> None:
    """Also where only the fill of it would be read."""
    db.tensor("a", np.array([1e200, 2.0]))
    text = "b[i] = a[i] * a[i]\nc[i] = where(a[i] > 3, 1, b[i])\nd[] = sum(c[i])"
    with pytest.raises(se.EngineError, match="b turned NaN or infinite"):
        db.run(db.plan(text, optimizer="dense", rewrite=False), progress=False)


@pytest.mark.engines("duckdb", reason="PostgreSQL has no function that returns an array of numbers")
def test_indices_are_written_as_a_range(db: se.Database) -> None:
    stored(db)
    plan = check(db, "T[i, k] = A[i, k] * (index(i) + 1) - index(k)\nu[] = sum(T[i, k] ^ 2)")
    assert "RANGE(6)" in plan.sql()


def test_sparse_operands_are_ordered_once(db: se.Database) -> None:
    """For products with a matrix and with its transpose, which are computed with arrays in one statement."""
    x, w = RNG.normal(size=(3000, 400)), RNG.normal(size=(400, 8))
    x[RNG.random(x.shape) < 0.99] = 0
    db.tensor("X", scipy.sparse.coo_array(x))
    db.tensor("W", w)
    text = """
        D[i, f] = X[i, f] * exp(-X[i, f])
        H[i, h] = relu(sum(D[i, f] * W[f, h]))
        loss[] = sum(H[i, h] ^ 2)
        G[f, h] = sum(D[i, f] * H[i, h])"""
    program = se.program(text)
    pins = {"D": ("i", "f"), "H": (), "loss": (), "G": ()}
    plan = db.plan(program, pin=pins, layout="any")
    sql = "\n".join(statement.text for statement in plan.data.statements.for_run)
    expected = evaluate_program(program, {"X": x, "W": w})
    for name, result in db.run(plan, progress=False).items():
        np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=1e-12, atol=1e-12)
    assert "tensor_sparse_matmul(" in sql
    assert "tensor_sparse_matmul_transposed(" in sql
    *before, last = stages(plan)
    assert last == ("loss", "G")
    if isinstance(db.connection, duckdb.DuckDBPyConnection):  # PostgreSQL has a table of D in place of its chain
        assert before == []
        assert sql.count("tensor_compressed(") == 1


def test_runs_are_explained_and_planned_again(db: se.Database) -> None:
    stored(db)
    text = f"{LAYERS}\nz[] = sum(y[i] ^ 2)\nq[i] = y[i] - z[]"
    plan = db.plan(text, optimizer="dense", layout="any")
    assert "T[i, k]" in str(plan.explain(analyze=True))
    prepared = db.prepare(text, inputs=["c"])
    for seed in range(3):
        c = np.random.default_rng(seed).normal(size=4)
        expected = evaluate_program(se.program(text), ARRAYS | {"c": c})
        for name, result in prepared.run(c=c).items():
            np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=1e-12)


def test_loops_compute_a_step_in_one_row(db: se.Database) -> None:
    """State of arrays, of which each step computes several."""
    db.tensor("W", np.ones((4, 3)))
    db.tensor("M", np.zeros((4, 3)))
    x = RNG.normal(size=(5, 4))
    db.tensor("X", x)
    text = """
        state W, M
        P[i, k] = tanh(sum(X[i, j] * W[j, k]))
        loss[] = sum(P[i, k] ^ 2)
        G[j, k] = sum(X[i, j] * P[i, k])
        next_M[j, k] = 0.5 * M[j, k] + G[j, k]
        next_W[j, k] = W[j, k] - 0.1 * next_M[j, k]"""
    result = db.iterate(text, steps=6, history=["loss"], progress=False)
    w, m, losses = np.ones((4, 3)), np.zeros((4, 3)), []
    for _ in range(6):
        p = np.tanh(x @ w)
        losses.append((p**2).sum())
        m = 0.5 * m + x.T @ p
        w = w - 0.1 * m
    np.testing.assert_allclose(result.history["loss"], losses, rtol=1e-12)
    np.testing.assert_allclose(db.run("V[j, k] = W[j, k]")["V"].to_numpy(), w, rtol=1e-12)
