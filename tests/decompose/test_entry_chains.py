"""EinSums over the entries of a sparse matrix that products read are computed as arrays, and give numpy's results."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_runs import random_runs
from test_sparse_matmul import multiply_everywhere

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle")

ROWS, COLUMNS, WIDTH = 7, 9, 3
PINS: Mapping[str, Any] = {"D": ("i", "f"), "H": (), "G": ()}
PRODUCTS = """
H[i, h] = sum(D[i, f] * W[f, h])
G[f, h] = sum(D[i, f] * H[i, h])
"""
# EinSums over the entries of X, with row vectors r and z, column vectors c and b, of truth values, and a number s.
CHAINS = (
    "D[i, f] = X[i, f] * r[i] / s[]",
    "D[i, f] = where(X[i, f] > 0, X[i, f] * c[f], 0)",
    "E[i, f] = X[i, f] * b[f]\nD[i, f] = E[i, f] * (r[i] + 1)",
    "D[i, f] = X[i, f] * (threefry(index(i), index(f)) * 2.0 ^ -52 < 0.5)",
    "E[i, f] = sqrt(abs(X[i, f]))\nD[i, f] = E[i, f] * X[i, f] * z[i]",
    "D[i, f] = X[i, f] ^ 2 * (index(f) - index(i))",
    "D[i, f] = X[i, f] * (1 + X[i, f])",
    "D[i, f] = Y[f, i] * r[i]",
)
FACTORS = ("r[i]", "z[i]", "c[f]", "b[f]", "s[]", "index(i)", "(index(f) - 2)", "abs(X[i, f])", "(r[i] < c[f])")
SUMMANDS = ("X[i, f]", "abs(X[i, f])", "X[i, f] * r[i]", "Y[f, i] * c[f]", "relu(X[i, f])")


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `multiply_everywhere`."""
    multiply_everywhere(monkeypatch)


def arrays(seed: int, density: float, dtype: str) -> dict[str, NDArray[Any]]:
    """Tensors of random whole numbers, some of them 0."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, (ROWS, COLUMNS)) * (rng.random((ROWS, COLUMNS)) < density)
    return {
        "X": x.astype(dtype),
        "Y": x.T.astype(dtype),
        "W": rng.integers(-4, 5, (COLUMNS, WIDTH)).astype(float),
        "r": rng.integers(-4, 5, ROWS).astype(float),
        "z": rng.integers(0, 2, ROWS).astype(float),
        "c": rng.integers(-4, 5, COLUMNS).astype("float32"),
        "b": rng.integers(0, 2, COLUMNS).astype(bool),
        "s": np.array(2.0),
    }


def store(db: se.Database, values: Mapping[str, NDArray[Any]]) -> None:
    """Load the tensors; matrices as entries, z without those that are 0, other vectors whole."""
    for name, array in values.items():
        is_sparse = name in ("X", "Y", "z")
        db.tensor(name, scipy.sparse.coo_array(array) if is_sparse else array)


def check(db: se.Database, plan: se.Plan, text: str, values: Mapping[str, NDArray[Any]]) -> None:
    """Run twice, since entries stay in memory for the second run, and compare with numpy."""
    expected = evaluate_program(se.program(text + PRODUCTS), values)
    for _ in range(2):
        for name, result in db.run(plan, progress=False).items():
            np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=1e-5, atol=1e-9)


def is_over_entries(plan: se.Plan) -> bool:
    """Whether a run computes an array of an element for every entry."""
    return any("tensor_entries(" in statement.text for statement in plan.data.statements.for_run)


@pytest.mark.parametrize("text", CHAINS)
def test_chains_are_computed_as_arrays(shared_db: se.Database, text: str) -> None:
    values = arrays(0, 0.4, "float64")
    store(shared_db, values)
    plan = shared_db.plan(text + PRODUCTS, outputs=["H", "G"], pin=PINS, layout="any")
    assert is_over_entries(plan)
    check(shared_db, plan, text, values)


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Up to three EinSums over the entries of X, or of its transpose, the last of which computes D."""
    lines, before = [], draw(st.sampled_from(SUMMANDS))
    for number in range(draw(st.sampled_from((1, 1, 2, 2, 3)))):
        term = " * ".join((before, *draw(st.lists(st.sampled_from(FACTORS), min_size=1, max_size=2))))
        summand = draw(st.sampled_from(("", *SUMMANDS)))
        lines.append(f"E{number}[i, f] = {term}{' - ' if summand else ''}{summand}")
        before = f"E{number}[i, f]"
    return "\n".join((*lines, f"D[i, f] = {before} / s[]"))


def test_random_chains_are_numpys(shared_db: se.Database) -> None:
    chosen = []

    @random_runs(120)
    @given(
        chains(),
        st.integers(0, 1000),
        st.sampled_from((0.0, 0.1, 0.5, 1.0)),
        st.sampled_from(("float64", "float32", "int64")),
        st.sampled_from((["H", "G"], ["H"], ["H", "G"], ["H"], ["H", "G", "D"])),
    )
    def run(text: str, seed: int, density: float, dtype: str, outputs: list[str]) -> None:
        values = arrays(seed, density, dtype)
        store(shared_db, values)
        pins = {name: keys for name, keys in PINS.items() if name in ("D", *outputs)}
        plan = shared_db.plan(text + PRODUCTS, outputs=outputs, pin=pins, layout="any")
        chosen.append(is_over_entries(plan))
        check(shared_db, plan, text, values)

    run()
    assert sum(chosen) > len(chosen) / 12


def test_values_that_turn_infinite_are_detected(db: se.Database) -> None:
    values = arrays(0, 0.4, "float64")
    values["r"] = np.full(ROWS, 1e308)
    store(db, values)
    plan = db.plan("D[i, f] = X[i, f] * r[i] * 100" + PRODUCTS, outputs=["H", "G"], pin=PINS, layout="any")
    assert is_over_entries(plan)
    with pytest.raises(se.EngineError, match=r"D.* turned NaN or infinite"):
        db.run(plan, progress=False)


def test_changed_entries_are_read(db: se.Database) -> None:
    """Those in memory are of the table as it was in an earlier run."""
    values = arrays(0, 0.4, "float64")
    store(db, values)
    plan = db.plan(CHAINS[0] + PRODUCTS, outputs=["H", "G"], pin=PINS, layout="any")
    check(db, plan, CHAINS[0], values)
    db.connection.execute("DELETE FROM X WHERE dim_0 = 1")
    db.connection.execute("UPDATE X SET val = val + 9 WHERE dim_1 = 2")
    values["X"][:, 2] += 9 * (values["X"][:, 2] != 0)
    values["X"][1] = 0
    check(db, plan, CHAINS[0], values)
