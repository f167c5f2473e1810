"""Linear algebra in Python expressions equals numpy's, and malformed expressions are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[np.float64]

RANDOM = np.random.default_rng(7)
ARRAYS: dict[str, Array] = {
    "X": sp.random_array((6, 4), density=0.4, rng=RANDOM).toarray(),
    "Z": RANDOM.normal(size=(6, 4)),
    "U": RANDOM.normal(size=(6, 3)),
    "V": RANDOM.normal(size=(4, 3)),
    "S": RANDOM.normal(size=(4, 4)),
    "p": RANDOM.random(6),
    "w": RANDOM.normal(size=4),
    "c": np.array(2.5),
}
X, Z, U, V, S = map(se.matrix, "XZUVS")
ANY: Any = X  # numpy knows the types of its functions' own operands alone
p, w, c = se.vector("p"), se.vector("w"), se.scalar("c")


def column(array: Array) -> Array:
    return array[:, None]


EXPRESSIONS: dict[str, tuple[Callable[[], se.Matrix], Callable[[dict[str, Array]], Any]]] = {
    "squared distance": (lambda: ((X - U @ V.T) ** 2).sum(), lambda a: ((a["X"] - a["U"] @ a["V"].T) ** 2).sum()),
    "ALS": (lambda: (U @ V.T - X) @ V, lambda a: (a["U"] @ a["V"].T - a["X"]) @ a["V"]),
    "MLR": (lambda: p * X - p * p * X, lambda a: column(a["p"]) * (1 - column(a["p"])) * a["X"]),
    "a product with a vector": (lambda: X @ w, lambda a: a["X"] @ a["w"]),
    "a row vector times a matrix": (lambda: p.T @ X, lambda a: a["p"] @ a["X"]),
    "an outer product": (lambda: p @ w.T, lambda a: np.outer(a["p"], a["w"])),
    "an inner product": (lambda: w.T @ w, lambda a: a["w"] @ a["w"]),
    "a spread row": (lambda: X + w.T, lambda a: a["X"] + a["w"]),
    "a spread column": (lambda: Z / p, lambda a: a["Z"] / column(a["p"])),
    "a scalar": (lambda: c * X - 1, lambda a: a["c"] * a["X"] - 1),
    "sums of rows": (lambda: X.rowsums(), lambda a: a["X"].sum(axis=1)),
    "sums of columns": (lambda: X.colsums(), lambda a: a["X"].sum(axis=0)),
    "sums of a transpose": (lambda: X.T.colsums().T, lambda a: a["X"].sum(axis=1)),
    "a sum of a vector": (lambda: w.sum() + c.sum(), lambda a: a["w"].sum() + a["c"]),
    "a trace": (lambda: (S @ S).trace(), lambda a: np.trace(a["S"] @ a["S"])),
    "functions": (lambda: np.exp(X) + abs(-Z) + Z.relu(), lambda a: np.exp(a["X"]) + abs(a["Z"]) + a["Z"].clip(0)),
    "a function of two": (lambda: np.maximum(ANY, 0.5), lambda a: np.maximum(a["X"], 0.5)),
    "a gradient": (
        lambda: X.T @ ((X @ w).sigmoid() - p),
        lambda a: a["X"].T @ (1 / (1 + np.exp(-a["X"] @ a["w"])) - a["p"]),
    ),
    "comparisons": (lambda: 1 * (Z > 0) - (Z < 0), lambda a: np.sign(a["Z"])),
    "powers of numbers": (
        lambda: 2**Z - (1 - Z) / (1 + Z * Z),
        lambda a: 2 ** a["Z"] - (1 - a["Z"]) / (1 + a["Z"] ** 2),
    ),
    "a named part": (lambda: (p * X).named("Q").T @ (p * X).named("R"), lambda a: (q := column(a["p"]) * a["X"]).T @ q),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_matrices_are_numpys(name: str) -> None:
    build, expected = EXPRESSIONS[name]
    program = se.program({"R1": build()})
    assert program.outputs == ("R1",)
    np.testing.assert_allclose(evaluate_program(program, ARRAYS)["R1"], expected(ARRAYS), rtol=1e-12, atol=1e-12)


def test_programs_of_matrices_run(db: se.Database) -> None:
    for name, array in ARRAYS.items():
        db.tensor(name, array)
    build, expected = EXPRESSIONS["squared distance"]
    gradient, wanted_gradient = EXPRESSIONS["a gradient"]
    results = db.run(se.program({"loss": build(), "g": gradient()}))
    np.testing.assert_allclose(results["loss"].to_numpy(), expected(ARRAYS), rtol=1e-9)
    np.testing.assert_allclose(results["g"].to_numpy(), wanted_gradient(ARRAYS), rtol=1e-9)


def test_unnamed_expressions_are_no_programs(db: se.Database) -> None:
    db.tensor("X", np.eye(3))
    x: Any = se.matrix("X")
    for compute in (db.plan, db.run):
        with pytest.raises(TypeError, match=r"X\[i, j\] is no program; se\.program makes one"):
            compute(x)


def test_a_named_part_becomes_a_result() -> None:
    text = str(se.program({"L": ((U @ V.T).named("M") ** 2).sum()}))
    assert text == "M[i, j] = sum(U[i, k] * V[j, k])\nL[] = sum(M[k, l] ^ 2)"


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(se.SemanticsError, match=r"the first has one column, the second many rows; transpose"):
        p @ X
    with pytest.raises(se.SemanticsError, match="has no trace"):
        w.trace()
    with pytest.raises(TypeError, match="multiply by numbers with"):
        X @ 2  # type: ignore[operator]
    with pytest.raises(TypeError, match="is known once it is computed"):
        bool(X > 0)
    with pytest.raises(TypeError, match="has no values yet"):
        list(X)
    with pytest.raises(TypeError, match="by keyword"):
        np.exp(X, out=None, where=False)


def test_the_papers_rewritings_are_equal() -> None:
    assert se.equivalent(se.program({"L": ((U @ V.T - X) @ V)}), se.program({"L": U @ (V.T @ V) - X @ V}))
    assert se.equivalent(se.program({"L": (U @ V.T).sum()}), se.program({"L": U.colsums() @ V.colsums().T}))
    assert se.equivalent(se.program({"L": p * X - p * p * X}), se.program({"L": p * (1 - p) * X}))
    assert not se.equivalent(se.program({"L": U @ V.T}), se.program({"L": X}))
