"""Programs built of Python expressions compute what numpy computes with arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se

Array = NDArray[Any]

RNG = np.random.default_rng(5)
ARRAYS: dict[str, Array] = {
    "A": RNG.normal(size=(3, 4)),
    "B": np.where(RNG.random((4, 2)) < 0.5, RNG.normal(size=(4, 2)), 0),
    "P": RNG.uniform(0.5, 2, size=(3, 4)),
    "F": np.where(RNG.random((3, 4)) < 0.5, RNG.normal(size=(3, 4)), 1).astype("float32"),
    "N": RNG.integers(-3, 4, size=(3, 4)),
    "M": RNG.random((3, 4)) < 0.5,
    "Z": RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4)),
    "V": RNG.normal(size=4),
    "C": np.array(2.5),
}
FILLS = {"F": 1.0}
STORED: dict[str, tuple[str, ...]] = {"B": ("dim_0", "dim_1"), "F": ("dim_0", "dim_1"), "N": ("dim_1",), "M": ()}

A, B, P, F, N, M, Z, V, C = map(se.tensor, ARRAYS)
a, b, p, f, n, m, z, v, c = ARRAYS.values()
A_ij, F_ij, N_ij, M_ij, Z_ij, V_j = A["i", "j"], F["i", "j"], N["i", "j"], M["i", "j"], Z["i", "j"], V["j"]
P_ij: Any = P["i", "j"]  # numpy's annotations know no expressions
ANY_ij: Any = A_ij
MASK_ij: Any = M_ij


@pytest.fixture
def db(shared_db: se.Database) -> se.Database:
    if not shared_db.tensors():
        for name, array in ARRAYS.items():
            shared_db.tensor(name, array, fill=FILLS.get(name, 0), promoted=STORED.get(name))
    return shared_db


# Expressions of labels i and j, and their values.
ELEMENTWISE: list[tuple[Any, Callable[[], Any]]] = [
    (A_ij + F_ij, lambda: a + f),
    (A_ij - V_j * 2, lambda: a - v * 2),
    (3 - A_ij, lambda: 3 - a),
    (A_ij / P_ij, lambda: a / p),
    (1 / P_ij, lambda: 1 / p),
    (A_ij**2, lambda: a**2),
    (2**A_ij, lambda: 2**a),
    (A_ij % 2 + 5 % (A_ij**2 + 1), lambda: a % 2 + 5 % (a**2 + 1)),
    (P_ij ** A["i", "j"], lambda: p**a),
    (-A_ij, lambda: -a),
    (abs(A_ij), lambda: abs(a)),
    (N_ij * 2 + 1, lambda: n * 2 + 1),
    (N_ij / 2, lambda: n / 2),
    (N_ij**2 - N_ij, lambda: n**2 - n),
    (A_ij * C[()], lambda: a * c),
    ((A_ij > 0) & (N_ij <= 1), lambda: (a > 0) & (n <= 1)),
    ((A_ij < V_j) | M_ij, lambda: (a < v) | m),
    (~M_ij, lambda: ~m),
    (N_ij == 1, lambda: n == 1),
    (N_ij != V_j, lambda: n != v),
    (np.float64(1) >= A_ij, lambda: a <= 1),
    (se.where(A_ij > 0, A_ij, 0.0), lambda: np.where(a > 0, a, 0.0)),
    (np.where(ANY_ij > V_j, ANY_ij, P_ij), lambda: np.where(a > v, a, p)),
    (np.maximum(ANY_ij, 0), lambda: np.maximum(a, 0)),
    (np.minimum(ANY_ij, P_ij), lambda: np.minimum(a, p)),
    (np.exp(ANY_ij), lambda: np.exp(a)),
    (np.log(P_ij), lambda: np.log(p)),
    (np.sqrt(P_ij), lambda: np.sqrt(p)),
    (np.tanh(ANY_ij) * np.sign(ANY_ij), lambda: np.tanh(a) * np.sign(a)),
    (np.add(ANY_ij, 1), lambda: a + 1),
    (np.logical_and(ANY_ij, MASK_ij), lambda: np.logical_and(a, m)),
    (np.float32(2) * F_ij, lambda: np.float32(2) * f),
    (F_ij.relu(), lambda: np.maximum(f, 0)),
    (F_ij.sigmoid(), lambda: 1 / (1 + np.exp(-f))),
    (Z_ij.conj() * 1j, lambda: z.conj() * 1j),
    (np.abs(Z_ij), lambda: abs(z)),
    (Z_ij + N_ij, lambda: z + n),
    (A_ij / se.bound("j"), lambda: a / 4),
    (A_ij / se.bound("A", 0), lambda: a / 3),
    (A_ij * se.index("i") + se.index("j"), lambda: a * np.arange(3)[:, None] + np.arange(4)),
    (se.where(se.index("i") >= se.index("j"), A_ij, 0.0), lambda: np.tril(a)),
    (A_ij * se.ones("j"), lambda: a),
    (A_ij.softmax("j"), lambda: np.exp(a) / np.exp(a).sum(1, keepdims=True)),
    (A_ij.log_softmax("j"), lambda: a - np.log(np.exp(a).sum(1, keepdims=True))),
    (A_ij - A["i", "k"].mean("k"), lambda: a - a.mean(1, keepdims=True)),
    (A_ij.layer_norm("j", eps=0.1), lambda: (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 0.1)),
    (P["i", "k"].sum("k") * V_j, lambda: np.outer(p.sum(1), v)),
]

# Expressions of label i alone.
FOLDED: list[tuple[Any, Callable[[], Any]]] = [
    (A_ij.sum("j"), lambda: a.sum(1)),
    (A_ij.sum(), lambda: a.sum(1)),
    (F_ij.sum("j"), lambda: f.sum(1)),
    (N_ij.sum("j"), lambda: n.sum(1)),
    (M_ij.sum("j"), lambda: m.sum(1)),
    (Z_ij.sum("j"), lambda: z.sum(1)),
    (P_ij.prod("j"), lambda: p.prod(1)),
    (F_ij.max("j"), lambda: f.max(1)),
    (N_ij.min("j"), lambda: n.min(1)),
    ((N_ij > 2).any("j"), lambda: (n > 2).any(1)),
    ((F_ij > 0).all("j"), lambda: (f > 0).all(1)),
    (A_ij.logsumexp("j"), lambda: np.log(np.exp(a).sum(1))),
    (A_ij.mean("j"), lambda: a.mean(1)),
    (A_ij.var("j"), lambda: a.var(1)),
    (A_ij.norm("j"), lambda: np.linalg.norm(a, axis=1)),
    (A_ij @ V_j, lambda: a @ v),
    (A_ij @ B["j", "k"] @ se.tensor("B")["l", "k"] @ V["l"], lambda: a @ b @ b.T @ v),
    (((A_ij - F_ij) ** 2).sum("j"), lambda: ((a - f) ** 2).sum(1)),
    ((A_ij * V_j).max("j") - A_ij.min("j"), lambda: (a * v).max(1) - a.min(1)),
    ((N_ij.one_hot("k") * V["k"]).sum("j", "k"), lambda: ((n[:, :, None] == np.arange(4)) * v).sum((1, 2))),
    (A["i", "i2"].sum("i2") * A_ij.sum("j"), lambda: a.sum(1) ** 2),
]

CASES = [(expression["i", "j"], value) for expression, value in ELEMENTWISE] + [
    (expression["i"], value) for expression, value in FOLDED
]


def assert_same(result: se.TensorResult, expected: Any) -> None:  # noqa: ANN401  # an array or number
    actual = result.to_numpy()
    assert (actual.shape, actual.dtype) == (np.shape(expected), expected.dtype)
    tolerance = 1e-5 if expected.dtype in (np.float32, np.complex64) else 1e-12
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
@pytest.mark.parametrize(("built", "value"), CASES, ids=[repr(built) for built, _ in CASES])
def test_expressions(db: se.Database, built: Any, value: Callable[[], Any], optimizer: str) -> None:  # noqa: ANN401  # not exported
    program = se.program({"Y": built})
    assert_same(db.run(program, optimizer=optimizer)["Y"], value())


@pytest.mark.parametrize(("built", "value"), CASES[::3], ids=[repr(built) for built, _ in CASES[::3]])
def test_printed_programs_run(db: se.Database, built: Any, value: Callable[[], Any]) -> None:  # noqa: ANN401  # not exported
    assert_same(db.run(str(se.program({"Y": built})))["Y"], value())


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
def test_a_program_of_several_statements(db: se.Database, optimizer: str) -> None:
    hidden, scores, best = map(se.tensor, ("Hidden", "Scores", "Best"))
    hidden["i", "k"] = np.maximum(ANY_ij @ B["j", "k"] + 0.1, 0)
    scores["i", "k"] = hidden["i", "k"].softmax("k")
    best["i"] = scores["i", "k"].max("k")
    results = db.run(se.program(scores, best), optimizer=optimizer, outputs=["Hidden", "Scores"])
    hidden_wanted = np.maximum(a @ b + 0.1, 0)
    scores_wanted = np.exp(hidden_wanted) / np.exp(hidden_wanted).sum(1, keepdims=True)
    assert_same(results["Hidden"], hidden_wanted)
    assert_same(results["Scores"], scores_wanted)
    assert_same(results["Best"], scores_wanted.max(1))


def test_declared_results_have_their_own_labels(db: se.Database) -> None:
    spread = se.tensor("Spread", {"k": 2, "j": 4, "l": 3})
    spread["k", "j", "l"] = V_j * (se.index("k") + 1)
    expected = np.broadcast_to((v * np.array([[1], [2]]))[:, :, None], (2, 4, 3))
    assert_same(db.run(se.program(spread))["Spread"], expected)


def test_labels_promoted_by_hand(db: se.Database) -> None:
    result = db.run(se.program({"Y": (A["i", "J"] * 2)["i", "J"]}))["Y"]
    assert result.notation == "Y[i, J]"
    assert_same(result, a * 2)


def test_declared_inputs_are_compared_with_stored_tensors(db: se.Database) -> None:
    declared = se.tensor("A", {"x": 3, "y": 5})
    with pytest.raises(se.ShapeError, match="A"):
        db.run(se.program({"Y": declared["i", "j"]["i", "j"]}))
