"""Loops over random state, in random layouts, compute what numpy computes step by step."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparseeinsum as se
from sparseeinsum.errors import ShapeError
from sparseeinsum.semantics.dense import evaluate_program

pytestmark = pytest.mark.engines("duckdb", "postgresql")

NODES = 4
VECTORS = (
    "x[i] + sum(A[i, j] * x[j])",
    "max(A[i, j] * x[j])",
    "min(x[i], min(A[i, j] + x[j]))",
    "x[i] * A[i, i]",
    "where(x[i] > 1, x[i] - 1, x[i] + 2)",
    "-x[i]",
    "x[i] * (step + 1) - step",
    "sum(A[j, i] * x[j])",
    "abs(x[i]) - sum(x[j])",
)
MATRICES = (
    "x[i, j] + sum(A[i, k] * x[k, j])",
    "x[j, i]",
    "A[i, j] * x[i, j]",
    "max(x[i, k] * x[k, j])",
    "x[i, j] * 2 - A[i, j]",
    "where(A[i, j] != 0, x[j, i] + 1, x[i, j])",
)
TRUTHS = ("x[i] or any(A[i, j] and x[j])", "not x[i]", "x[i] and all(A[i, j] or x[j])")
NUMBERS = (-2, -1, 0, 0, 0, 1, 2)


@st.composite
def loops(draw: st.DrawFn) -> tuple[str, np.ndarray, np.ndarray, Any, int | None, int]:
    """A formula, the state before, a matrix, key columns of the state, its fill if it is sparse, and how many steps."""
    dtype = draw(st.sampled_from(("float64", "int64", "bool")))
    rank = 1 if dtype == "bool" else draw(st.sampled_from((1, 2)))
    formulas = TRUTHS if dtype == "bool" else VECTORS if rank == 1 else MATRICES
    entries = st.sampled_from(NUMBERS)
    size = NODES**rank
    state = np.array(draw(st.lists(entries, min_size=size, max_size=size))).reshape((NODES,) * rank).astype(dtype)
    numbers = draw(st.lists(entries, min_size=NODES**2, max_size=NODES**2))
    axes = ["i", "j"][:rank]
    promoted: Any = draw(st.sampled_from(([], axes, axes[:1], dict.fromkeys(axes[:1], 3))))
    fill = draw(st.sampled_from((None, 0, 1)))
    matrix = np.array(numbers).reshape(NODES, NODES).astype(dtype)
    return draw(st.sampled_from(formulas)), state, matrix, promoted, fill, draw(st.integers(1, 4))


@settings(max_examples=10)
@given(case=loops(), commit=st.sampled_from((0.0, 1.0)))
def test_random_loops(shared_db: se.Database, case: Any, commit: float) -> None:  # noqa: ANN401
    formula, state, matrix, promoted, fill, steps = case
    axes = ["i", "j"][: state.ndim]
    if fill is None:
        shared_db.tensor("x", state, axes=axes, promoted=promoted)
    else:
        where = np.nonzero(state != fill)
        shared_db.tensor("x", (where, state[where]), axes=axes, shape=state.shape, promoted=promoted, fill=fill)
    shared_db.tensor("A", matrix, axes=["a", "b"], promoted=["a", "b"])
    program = se.program(f"state x\nnext_x[{', '.join(axes)}] = {formula}")
    try:
        result = shared_db.iterate(program, steps=steps, history=["changed"], commit_seconds=commit)
    except ShapeError as error:
        assert "fill" in str(error)
        stores_fill = fill is None and not shared_db.tensors()["x"].decomposition.is_scalar  # arrays have all elements
        assert not stores_fill
        return
    expected, changes = state, []
    for step in range(steps):
        following = evaluate_program(program, {"x": expected, "A": matrix, "step": np.array(step)})["next_x"]
        changes.append(int((following != expected).sum()))
        expected = following
    labels = ", ".join(axes)
    np.testing.assert_allclose(shared_db.run(f"copy[{labels}] = x[{labels}]")["copy"].to_numpy(), expected)
    assert result.df()["changed"].tolist() == changes
