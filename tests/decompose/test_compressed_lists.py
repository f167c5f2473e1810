"""Plans that read operands straight from lists give numpy's results; whether they do follows from the layout."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from indexing import compress_wherever_possible, compressed_steps
from numpy.typing import NDArray
from random_programs import arrays, list_layouts
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]
PROGRAMS = (
    "T[i, m] = sum(A[i, j] * H[j, m])",
    "T[j, m] = sum(A[i, j] * G[i, m])",
    "T[i, j, m] = sum(E[i, j, k] * K[k, m])",
    "T[j, i, m] = sum(E[i, j, k] * K[k, m])",
    "T[i, m] = sum(E[i, j, k] * D[k, j, m])",
    "T[i, k] = sum(A[i, j] * C[j, k])",
    "T[k, i] = sum(A[i, j] * C[j, k])",
    "T[i, n] = sum(E[i, j, k] * L[k, j, n])",
    "T[i, n] = max(E[i, j, k] + L[k, j, n])",
    "T[i] = sum(A[i, j])",
    "T[i, j] = A[i, j] + 1",
)
BOUNDS = {"i": 7, "j": 9, "k": 3, "m": 4, "n": 5}
LISTED = {"A": "ij", "C": "jk", "E": "ijk", "L": "kjn"}
ARRAYS = {"D": "kjm", "G": "im", "H": "jm", "K": "km"}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_random_layouts(shared_db: se.Database, engine: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compress_wherever_possible(monkeypatch)
    read_from_lists = set()

    @random_runs(60)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        text = data.draw(st.sampled_from(PROGRAMS))
        fill = np.dtype(dtype).type(data.draw(st.sampled_from([0, 0, 1]))).item()
        inputs = {}
        for name, labels in (LISTED | ARRAYS).items():
            if f"{name}[" not in text:
                continue
            inputs[name] = data.draw(arrays(tuple(BOUNDS[label] for label in labels), dtype, fill))
            if name in LISTED:
                axes = [f"dim_{axis}" for axis in range(len(labels))]
                layout = data.draw(list_layouts(name, len(labels)))
                shared_db.tensor(name, inputs[name], axes=axes, fill=fill, layout=layout)
            else:
                shared_db.tensor(name, inputs[name], fill=fill, promoted=[f"dim_{n}" for n in range(len(labels) - 1)])
        plan = shared_db.plan(text)
        expected = evaluate_program(se.program(text), inputs)["T"]
        result = shared_db.run(plan)["T"].to_numpy()
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-3 if dtype == "float32" else 1e-9)
        if compressed_steps(plan):
            read_from_lists.add(not reads_entries(plan))

    run()
    if engine == "duckdb":  # of several lists, a row or a position is computed entry by entry
        assert read_from_lists == {True, False}


def matrices() -> tuple[scipy.sparse.csr_array, Array]:
    rng = np.random.default_rng(5)
    matrix = scipy.sparse.random_array((4000, 3000), density=0.005, rng=rng)
    return scipy.sparse.csr_array(matrix), rng.normal(size=(3000, 16))


def reads_entries(plan: se.Plan) -> bool:
    return 'UNNEST("val") AS val' in plan.sql()


@pytest.mark.parametrize(
    ("layout", "program", "transposed"),
    [
        ("A[I, ~j]", "Y[i, m] = sum(A[i, j] * H[j, m])", False),
        ("A[I, J:512, ~j]", "Y[i, m] = sum(A[i, j] * H[j, m])", False),
        ("A[I:64, ~i, ~j]", "Y[i, m] = sum(A[i, j] * H[j, m])", False),
        ("A[~i, J]", "Y[i, m] = sum(A[i, j] * H[j, m])", False),
        ("A[~j, I]", "Y[i, m] = sum(A[j, i] * H[j, m])", True),
    ],
)
def test_products_with_arrays_read_lists(
    db: se.Database, engine: str, layout: str, program: str, transposed: bool
) -> None:
    matrix, array = matrices()
    db.tensor("A", matrix.T if transposed else matrix, layout=layout)
    db.tensor("H", array, promoted=["dim_0"])
    plan = db.plan(program)
    has_rows = engine == "duckdb" or layout in ("A[I, ~j]", "A[~j, I]")  # PostgreSQL has no other lists by row
    assert reads_entries(plan) != has_rows
    assert "is ordered by i from lists in memory" in str(plan.explain())
    again = db.load_plan(plan.to_json())
    assert reads_entries(again) != has_rows
    for saved in (plan, again):
        np.testing.assert_allclose(db.run(saved)["Y"].to_numpy(), matrix @ array)
    assert reads_entries(db.plan(program, optimizer="relational"))


def test_both_operands_of_a_sparse_product(db: se.Database) -> None:
    matrix, _ = matrices()
    db.tensor("A", matrix, layout="A[I, ~j]")
    plan = db.plan("Y[i, k] = sum(A[i, j] * A[k, j])")
    product = db.run(plan)["Y"].to_scipy()
    expected = matrix @ matrix.T
    assert abs(product - expected).max() <= 1e-12 * abs(expected).max()
    assert compressed_steps(plan)
    assert not reads_entries(plan)


def test_entries_of_lists_are_named(db: se.Database) -> None:
    db.tensor("A", matrices()[0], layout="A[I, ~j]")
    assert "entries of A are read out of lists, one row an entry" in str(db.plan("Y[i] = sum(A[i, j])").explain())
