"""Products that are computed row by row return all rows where nearly all are expected, and threads share large ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="no other engine keeps arrays in memory")

ROWS = 700
PRODUCT = "C[i, h] = sum[j](A[i, j] * W[j, h])"


def matrix(empty: int, per_row: int = 4) -> sp.csr_array:
    """A sparse matrix, of which so many rows have no entries."""
    rng = np.random.default_rng(6)
    rows = np.repeat(np.arange(empty, ROWS), per_row)
    numbers = rng.random(rows.size) + 0.5, (rows, rng.integers(0, ROWS, rows.size))
    return sp.coo_array(numbers, shape=(ROWS, ROWS)).tocsr()


def weights(width: int) -> NDArray[np.float64]:
    return np.random.default_rng(7).normal(size=(ROWS, width))


@pytest.mark.parametrize("width", [5, 100])
@pytest.mark.parametrize("empty", [0, 3, 300])
@pytest.mark.parametrize("reader", ["C", "log(exp(C[i, h]) + 1)", "C[i, h] + C[i, h] ^ 2"])
def test_rows_without_entries(db: se.Database, width: int, empty: int, reader: str) -> None:
    sparse, dense = matrix(empty), weights(width)
    db.tensor("A", sparse)
    db.tensor("W", dense)
    text = PRODUCT if reader == "C" else f"{PRODUCT}\nR[i, h] = {reader}"
    product = sparse @ dense
    wanted = {
        "C": product,
        "log(exp(C[i, h]) + 1)": np.log(np.exp(product) + 1),
        "C[i, h] + C[i, h] ^ 2": product + product**2,
    }
    result = db.run(text, pin={"C": {"i": 1, "j": 1}})["C" if reader == "C" else "R"]
    np.testing.assert_allclose(result.to_numpy(), wanted[reader], atol=1e-12)


def test_a_later_matrix_may_have_fewer_rows(db: se.Database) -> None:
    dense = weights(5)
    db.tensor("A", matrix(0))
    db.tensor("W", dense)
    prepared = db.prepare(f"{PRODUCT}\nR[i, h] = exp(C[i, h])", inputs=["A"])
    for empty in (0, 5, ROWS):
        result = prepared.run(A=matrix(empty))["R"].to_numpy()
        np.testing.assert_allclose(result, np.exp(matrix(empty) @ dense))


def test_only_products_that_take_a_while_are_shared_by_threads(db: se.Database) -> None:
    db.tensor("A", matrix(0))
    db.tensor("B", matrix(0, per_row=400))
    db.tensor("W", weights(64))
    pin = {"C": {"i": 1, "j": 1}}
    assert "DISTINCT" not in db.plan(PRODUCT, pin=pin).sql()
    assert "DISTINCT" in db.plan(PRODUCT.replace("A[", "B["), pin=pin).sql()


def test_rows_that_are_all_there_need_no_outer_join(db: se.Database) -> None:
    sparse, dense = matrix(0), weights(5)
    others = np.where(np.arange(5) == 2, 0, np.ones((ROWS, 5)))
    db.tensor("A", sparse)
    db.tensor("W", dense)
    db.tensor("V", others, axes=["i", "h"], layout="V[I, h]")
    plan = db.plan(f"{PRODUCT}\nS[i, h] = C[i, h] + V[i, h]", pin={"C": {"i": 1, "j": 1}, "S": {"i": 1}})
    assert "FULL JOIN" not in plan.data.statements.for_run[-1].text
    np.testing.assert_allclose(db.run(plan)["S"].to_numpy(), sparse @ dense + others)
    db.tensor("V", np.where(np.arange(ROWS)[:, None] < 9, 0, others), axes=["i", "h"], layout="V[I, h]")
    later = db.run(f"{PRODUCT}\nS[i, h] = C[i, h] + V[i, h]", pin={"C": {"i": 1, "j": 1}, "S": {"i": 1}})["S"]
    np.testing.assert_allclose(later.to_numpy()[9:], (sparse @ dense + others)[9:])
    np.testing.assert_allclose(later.to_numpy()[:9], (sparse @ dense)[:9])
