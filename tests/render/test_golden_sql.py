"""The SQL of the paper's examples equals the reviewed texts, and each text runs.

`UPDATE_GOLDEN=1 pytest tests/render/test_golden_sql.py` writes the files again; read the difference.
"""

import itertools
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from golden_files import check_golden_file
from indexing import compress_wherever_possible, index_wherever_possible
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.api.examples import (
    attention_inputs,
    attention_program,
    attention_reference,
    citation_graph,
    gcn_inputs,
    gcn_reference,
)
from sparseeinsum.api.graphs import GCN

GOLDEN = Path(__file__).parent / "golden"
PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
DECOMPOSITIONS = [
    "".join(labels) for count in range(4) for labels in itertools.combinations("ijk", count)
]  # labels to promote


def check_golden(name: str, text: str) -> None:
    """Compare with the golden file, or write it."""
    check_golden_file(GOLDEN / f"{name}.sql", text)


def check_result(db: se.Database, text: str, expected: NDArray[np.float64]) -> None:
    """Run SQL statement by statement, as a user by hand; the rows of the last are entries of the output."""
    for statement in text.split(";\n")[:-1]:
        rows = db.connection.execute(statement).fetchall()
    result = np.zeros_like(expected)
    for *keys, value in rows:
        result[tuple(keys)] = value
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.engines("duckdb", reason="its own SQL")
@pytest.mark.parametrize("promoted", DECOMPOSITIONS)
def test_matrix_product(db: se.Database, promoted: str) -> None:
    rng = np.random.default_rng(0)
    left, right = sp.csr_array(sp.random_array((3, 4), density=0.5, rng=rng)), rng.uniform(size=(4, 5))
    db.tensor("A", left)
    db.tensor("B", right)
    text = db.plan(PRODUCT, pin={"C": promoted}).sql()
    check_golden(f"matrix_product_{promoted or 'none'}", text)
    check_result(db, text, np.asarray(left @ right))


@pytest.mark.engines("duckdb", reason="its own SQL")
def test_convolution(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    image, weights = sp.csr_array(sp.random_array((5, 6), density=0.5, rng=rng)), rng.uniform(size=(2, 3))
    db.tensor("X", image)
    db.tensor("W", weights)
    program = "Y[y, x] = sum(X[y + r, x + s] * W[r, s])"
    text = db.plan(program, optimizer="relational", rewrite=False).sql()
    check_golden("convolution", text)
    windows = np.lib.stride_tricks.sliding_window_view(image.toarray(), (2, 3))
    check_result(db, text, np.einsum("yxrs,rs->yx", windows, weights))


@pytest.mark.engines("duckdb", reason="its own SQL")
@pytest.mark.parametrize("style", ["cte", "staged"])
def test_gcn(db: se.Database, style: str) -> None:
    inputs = gcn_inputs(citation_graph())
    for name, matrix in inputs.items():
        db.tensor(name, matrix)
    text = db.plan(GCN, rewrite=False).sql(style)
    check_golden(f"gcn_{style}", text)
    check_result(db, text, gcn_reference(inputs))


@pytest.mark.engines("duckdb", reason="its own SQL")
def test_attention(db: se.Database) -> None:
    inputs = attention_inputs(citation_graph())
    program = attention_program(1024)
    for name, matrix in inputs.items():
        db.tensor(name, matrix)
    text = db.plan(program).sql()
    check_golden("attention_cte", text)
    check_result(db, text, attention_reference(inputs).toarray())


@pytest.mark.engines("duckdb", reason="its own SQL")
def test_a_product_by_index(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    left, right = sp.csr_array(sp.random_array((3, 4), density=0.5, rng=rng)), rng.uniform(size=(4, 5))
    db.tensor("A", left)
    db.tensor("B", right)
    index_wherever_possible(monkeypatch)
    text = db.plan(PRODUCT, pin={"C": "ij"}).sql()
    check_golden("matrix_product_indexed", text)
    check_result(db, text, np.asarray(left @ right))


@pytest.mark.engines("duckdb", reason="its own SQL")
def test_a_product_row_by_row(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    left, right = sp.csr_array(sp.random_array((30, 4), density=0.5, rng=rng)), rng.uniform(size=(4, 5))
    db.tensor("A", left)
    db.tensor("B", right)
    compress_wherever_possible(monkeypatch)
    text = db.plan(PRODUCT, pin={"C": "ij"}).sql()
    check_golden("matrix_product_compressed", text)
    check_result(db, text, np.asarray(left @ right))


@pytest.mark.engines("duckdb", reason="its own SQL")
def test_a_sparse_product_row_by_row(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    operands = {"A": (2, 30, 4), "B": (2, 4, 6)}
    arrays = {name: np.where(rng.random(shape) < 0.5, np.inf, 1.0) for name, shape in operands.items()}
    for name, array in arrays.items():
        db.tensor(name, array, fill=np.inf, promoted=["dim_0", "dim_1", "dim_2"])
    compress_wherever_possible(monkeypatch)
    text = db.plan("C[b, i, k] = min(A[b, i, j] + B[b, j, k])", pin={"C": "bijk"}).sql()
    check_golden("shortest_paths_compressed", text)
    left, right = arrays["A"][:, :, :, None], arrays["B"][:, None]
    expected = (left + right).min(axis=2)
    result = np.full(expected.shape, np.inf)
    for b, i, k, value in db.connection.execute(text.rstrip(";")).fetchall():
        result[b, i, k] = value
    np.testing.assert_array_equal(result, expected)


@pytest.mark.engines("postgresql", reason="its own SQL")
def test_gcn_in_postgresql(db: se.Database) -> None:
    inputs = gcn_inputs(citation_graph())
    for name, matrix in inputs.items():
        db.tensor(name, matrix)
    text = db.plan(GCN, rewrite=False).sql()
    check_golden("gcn_cte_postgresql", text)
    check_result(db, text, gcn_reference(inputs))


@pytest.mark.engines("postgresql", reason="its own SQL")
@pytest.mark.parametrize("promoted", ["i", "jk", "ijk"])
def test_matrix_product_in_postgresql(db: se.Database, promoted: str) -> None:
    left, right = np.eye(3, 4), np.arange(20.0).reshape(4, 5)
    db.tensor("A", left)
    db.tensor("B", right)
    text = db.plan(PRODUCT, pin={"C": promoted}).sql()
    check_golden(f"matrix_product_{promoted}_postgresql", text)
    check_result(db, text, left @ right)


@pytest.mark.engines("duckdb", reason="its own SQL")
def test_natural_keys(db: se.Database) -> None:
    """Keys of a table are looked up where it is read; in the last SELECT they replace indices."""
    db.connection.execute("CREATE TABLE trust AS FROM (VALUES ('ann', 'bob', 0.5), ('bob', 'cid', 2.0)) AS t(a, b, w)")
    db.tensor_from_table("T", "trust", ["a", "b"], "w", dtype="float64", keys={"a": "person", "b": "person"})
    text = db.plan("Y[i, k] = sum(T[i, j] * T[j, k])", optimizer="relational").sql()
    check_golden("natural_keys", text)
    assert db.connection.execute(text).fetchall() == [("ann", "cid", 1.0)]
