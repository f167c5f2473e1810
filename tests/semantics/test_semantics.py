"""Whatever a join leaves out, results equal those of dense arrays."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from any_sql import run_sql
from hidden_infinities import HIDDEN_INFINITIES, load_hidden_infinities
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]


SIZE = 4
AXES = ("dim_0", "dim_1")
KEYS = (AXES, AXES)
STORED = (KEYS, (("dim_0",), ("dim_1",)), (("dim_1",), AXES), ((), AXES))


def sparse_matrices() -> dict[str, Array]:
    """Most entries are absent, among them a row of U and a column of V."""
    rng = np.random.default_rng(7)
    matrices = {name: np.where(rng.random((SIZE, SIZE)) < 0.4, rng.uniform(-2, 2, (SIZE, SIZE)), 0) for name in "UV"}
    matrices["U"][1] = 0
    matrices["V"][:, 2] = 0
    return matrices


def with_nonfinite_values(*names: str) -> dict[str, Array]:
    """NaN and both infinities, each joined with a zero and with a number."""
    matrices = sparse_matrices()
    for name, other in (("U", "V"), ("V", "U")):
        if name in names:
            matrices[name].flat[:6] = [np.nan, np.inf, -np.inf, np.nan, np.inf, -np.inf]
            matrices[other].flat[:6] = [0, 0, 0, 1.5, -2.5, 0.5]
    return matrices


PLAIN = sparse_matrices()
DATA = {
    "sparse": PLAIN,
    "nothing in U": PLAIN | {"U": np.zeros((SIZE, SIZE))},
    "nothing in V": PLAIN | {"V": np.zeros((SIZE, SIZE))},
    "dense": {name: array + 3 for name, array in PLAIN.items()},
    "not finite in U": with_nonfinite_values("U"),
    "not finite in V": with_nonfinite_values("V"),
}


def load(db: se.Database, inputs: dict[str, Array], stored: tuple[tuple[str, ...], ...]) -> None:
    for (name, array), promoted in zip(inputs.items(), stored, strict=True):
        db.tensor(name, array, promoted=promoted)


def pins_of(text: str) -> Iterator[dict[str, tuple[str, ...]]]:
    """Every choice of promoted labels for the last EinSum."""
    einsum = se.program(text).einsums[-1]
    for chosen in product([False, True], repeat=len(einsum.labels)):
        yield {einsum.output.tensor: tuple(label for label, is_in in zip(einsum.labels, chosen, strict=True) if is_in)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("W[i, j] = U[i, j] * V[i, j]", ""),
        ("W[i, j] = U[i, j] + V[i, j]", "where U or V is absent the expression depends on the other operand"),
        ("W[i, j] = U[i, j] * (V[i, j] + 1)", "where V is absent the expression depends on the other operand"),
        ("W[i] = max(U[i, j])", "max counts 0.0 for every pair of tuples left out"),
        ("W[i, j] = 1 / U[i, j]", "W: a run ends where it turns NaN or infinite (nonfinite='allow' lets it go on)"),
    ],
)
def test_explain_says_why_absent_values_count(shared_db: se.Database, text: str, reason: str) -> None:
    load(shared_db, PLAIN, KEYS)
    explained = shared_db.plan(text, optimizer="relational").explain()
    assert reason in explained
    for other in ("depends on the other operand", "for every pair", "turns NaN"):
        assert (other in explained) == (other in reason)


@pytest.mark.parametrize(
    ("text", "join"),
    [
        ("W[i, j] = U[i, j] * V[i, j]", "JOIN"),
        ("W[i, j] = U[i, j] + V[i, j]", "FULL JOIN"),
        ("W[i, j] = U[i, j] * (V[i, j] + 1)", "LEFT JOIN"),
        ("W[i, j] = (U[i, j] + 1) * V[i, j]", "RIGHT JOIN"),
    ],
)
def test_join_in_sql(shared_db: se.Database, text: str, join: str) -> None:
    load(shared_db, PLAIN, KEYS)
    lines = [line.strip() for line in shared_db.plan(text, optimizer="relational").sql().splitlines()]
    assert [line.partition(" main.")[0] for line in lines if "JOIN" in line] == [join]


# Expressions whose results change if absent tuples are left out, and some whose results do not.
PROGRAMS: list[tuple[str, Callable[[Array, Array], Array]]] = [
    ("L[] = sum((U[i, j] - V[i, j]) ^ 2)", lambda u, v: np.sum((u - v) ** 2)),
    ("W[i, j] = exp(U[i, j])", lambda u, v: np.exp(u)),
    ("W[i] = sum(exp(U[i, j]))", lambda u, v: np.exp(u).sum(axis=1)),
    ("W[i, j] = sigmoid(U[i, j])", lambda u, v: 1 / (1 + np.exp(-u))),
    ("W[i, j] = log(U[i, j])", lambda u, v: np.log(u)),
    ("W[i] = max(U[i, j])", lambda u, v: u.max(axis=1)),
    ("W[j] = min(U[i, j])", lambda u, v: u.min(axis=0)),
    ("W[i] = max(0 - abs(U[i, j]))", lambda u, v: -np.abs(u).min(axis=1)),
    ("W[i] = prod(U[i, j])", lambda u, v: u.prod(axis=1)),
    ("W[i] = prod(U[i, j] + 1)", lambda u, v: (u + 1).prod(axis=1)),
    ("W[i] = max(U[i, j] * V[i, j])", lambda u, v: (u * v).max(axis=1)),
    ("W[i] = min(U[i, j] + V[j, i])", lambda u, v: (u + v.T).min(axis=1)),
    ("W[i, j] = U[i, j] / V[i, j]", lambda u, v: u / v),
    ("W[i, j] = U[i, j] / V[j, i]", lambda u, v: u / v.T),
    ("W[i] = sum(U[i, j] / V[i, j])", lambda u, v: (u / v).sum(axis=1)),
    ("W[i] = max(U[i, j] / V[i, j])", lambda u, v: (u / v).max(axis=1)),
    ("W[i, j] = 1 / (U[i, j] + V[i, j])", lambda u, v: 1 / (u + v)),
    ("W[i, j] = U[i, j] ^ V[i, j]", lambda u, v: u**v),
    ("W[i, j] = U[i, j] + V[i, j]", lambda u, v: u + v),
    ("W[i, j] = U[i, j] + V[j, i]", lambda u, v: u + v.T),
    ("W[i] = sum(U[i, j] + V[i, j])", lambda u, v: (u + v).sum(axis=1)),
    ("W[i, k] = sum(U[i, j] - V[j, k])", lambda u, v: (u[:, :, None] - v[None]).sum(axis=1)),
    ("W[i, k] = max(U[i, j] + V[j, k])", lambda u, v: (u[:, :, None] + v[None]).max(axis=1)),
    ("W[i, k] = prod(U[i, j] * V[j, k])", lambda u, v: (u[:, :, None] * v[None]).prod(axis=1)),
    ("W[i, j] = max(U[i, j], V[i, j])", lambda u, v: np.maximum(u, v)),
    ("W[i] = sum(U[i, j] * exp(V[j, i]))", lambda u, v: (u * np.exp(v.T)).sum(axis=1)),
    ("W[i, j] = U[i, j] * V[i, j]", lambda u, v: u * v),
    ("W[i, k] = sum(U[i, j] * V[j, k])", lambda u, v: (u[:, :, None] * v[None]).sum(axis=1)),
    ("L[] = sum(U[i, j] * V[i, j])", lambda u, v: np.sum(u * v)),
    ("D[i] = exp(U[i, i])", lambda u, v: np.exp(np.diag(u))),
]


@pytest.mark.parametrize(("text", "expected"), PROGRAMS, ids=[text for text, _ in PROGRAMS])
def test_exact_in_every_decomposition(
    shared_db: se.Database, text: str, expected: Callable[[Array, Array], Array]
) -> None:
    for data, stored in zip(DATA.values(), (*STORED, KEYS, KEYS), strict=True):
        load(shared_db, data, stored)
        with np.errstate(all="ignore"):
            wanted = expected(data["U"], data["V"])
        for pin in pins_of(text):
            (result,) = shared_db.run(text, pin=pin, nonfinite="allow").values()
            np.testing.assert_allclose(result.to_numpy(), wanted, rtol=1e-12, atol=1e-12)
            if np.isfinite(wanted).all():
                (result,) = shared_db.run(text, pin=pin).values()
                np.testing.assert_allclose(result.to_numpy(), wanted, rtol=1e-12, atol=1e-12)
            elif all(np.isfinite(array).all() for array in data.values()):
                with pytest.raises(se.EngineError, match=r"[A-Z] turned NaN or infinite"):
                    shared_db.run(text, pin=pin)


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
@pytest.mark.parametrize("stored", STORED)
def test_exact_through_several_statements(
    shared_db: se.Database, stored: tuple[tuple[str, ...], ...], optimizer: str
) -> None:
    """Infinite and filled results of exp and / count for later statements, too."""
    text = """
        T[i, j] = exp(800 * U[i, j])        # 1 where U is absent, infinite where it is large
        P[i, j] = T[i, j] * V[i, j]
        Q[i, j] = U[i, j] / V[i, j]
        R[i] = sum(Q[i, j] * U[i, j])
        M[i] = max(T[i, j] - 2)
        Z[] = sum(M[i])
    """
    load(shared_db, PLAIN, stored)
    with np.errstate(all="ignore"):
        expected = evaluate_program(se.program(text), PLAIN)
    assert np.isnan(expected["P"]).any()
    assert np.isnan(expected["R"]).any()
    results = shared_db.run(text, optimizer=optimizer, outputs=["T", "Q", "M"], nonfinite="allow")
    assert set(results) == {"T", "P", "Q", "R", "M", "Z"}
    for name, result in results.items():
        np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=1e-12)


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
@pytest.mark.parametrize("entries", [[], [3]])
def test_infinities_without_a_join_partner_are_detected(db: se.Database, optimizer: str, entries: list[int]) -> None:
    load_hidden_infinities(db, entries)
    with pytest.raises(se.EngineError, match="T turned NaN or infinite"):
        db.run(HIDDEN_INFINITIES, optimizer=optimizer, rewrite=False)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_beside_absent_zeros(shared_db: se.Database, value: float, dtype: str) -> None:
    u, v = np.zeros((2, 3), dtype), np.zeros((3, 2), dtype)
    u[0, 1] = value
    v[0, 0] = 1
    for pin in pins_of("W[i, k] = sum(U[i, j] * V[j, k])"):
        load(shared_db, {"U": u, "V": v}, KEYS)
        result = shared_db.run("W[i, k] = sum(U[i, j] * V[j, k])", pin=pin)["W"].to_numpy()
        np.testing.assert_array_equal(result, [[np.nan, np.nan], [0, 0]])
        assert result.dtype == dtype


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1), (1, 3), (3, 1)])
def test_bounds_of_zero_and_one(shared_db: se.Database, shape: tuple[int, int]) -> None:
    array = -np.ones(shape)
    load(shared_db, {"U": array, "V": array.T}, KEYS)
    rows = shape[0]
    for text, expected in [
        ("W[i] = sum(U[i, j])", array.sum(axis=1)),
        ("W[j] = sum(exp(U[i, j]))", np.exp(array).sum(axis=0)),
        ("W[] = sum(U[i, j] + 1)", np.zeros(())),
        ("W[j, i] = sigmoid(U[i, j])", 1 / (1 + np.exp(-array.T))),
        ("W[i, k] = sum(U[i, j] * V[j, k])", array @ array.T),
        ("W[i, k] = sum(U[i, j] - V[j, k])", np.zeros((rows, rows))),
        ("W[i, j] = U[i, j] + V[j, i]", 2 * array),
        ("W[i, j] = U[i, j] / V[j, i]", np.ones(shape)),
    ]:
        for pin in pins_of(text):
            np.testing.assert_array_equal(shared_db.run(text, pin=pin)["W"].to_numpy(), expected)


@pytest.mark.parametrize(
    ("aggregate", "identity"),
    [
        ("sum", 0),
        ("prod", 1),
        ("max", -np.inf),
        ("min", np.inf),
        ("logsumexp", -np.inf),
        ("any", False),
        ("all", True),
    ],
)
def test_aggregates_of_no_values_are_their_identities(
    shared_db: se.Database, aggregate: str, identity: float | bool
) -> None:
    load(shared_db, {"U": np.zeros((3, 0)), "V": np.zeros((0, 3))}, KEYS)
    text = f"W[i] = {aggregate}(U[i, j]); Z[i, k] = {aggregate}(U[i, j] * V[j, k]); E[j] = {aggregate}(U[i, j])"
    for optimizer in ("dp", "relational", "dense"):
        results = shared_db.run(text, optimizer=optimizer)
        np.testing.assert_array_equal(results["W"].to_numpy(), np.full(3, identity))
        np.testing.assert_array_equal(results["Z"].to_numpy(), np.full((3, 3), identity))
        assert results["E"].to_numpy().shape == (0,)


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_scalars(shared_db: se.Database, value: float) -> None:
    shared_db.tensor("S", np.array(value))
    shared_db.tensor("U", PLAIN["U"], promoted=AXES)
    results = shared_db.run(
        """
        E[] = exp(S[])
        W[i, j] = S[] + U[i, j]
        X[i, j] = U[i, j] / S[]
        Y[i] = max(S[] * U[i, j])
        Z[] = S[] ^ 2 - 1
    """,
        nonfinite="allow",
    )
    with np.errstate(all="ignore"):
        expected = {
            "E": np.exp(value),
            "W": value + PLAIN["U"],
            "X": PLAIN["U"] / value,
            "Y": (value * PLAIN["U"]).max(axis=1),
            "Z": value**2 - 1,
        }
    for name, wanted in expected.items():
        np.testing.assert_allclose(results[name].to_numpy(), wanted, rtol=1e-12)


def test_values_that_are_stored_though_they_are_zero(shared_db: se.Database) -> None:
    """A user's table may store zeros; they count as absent entries do."""
    run_sql(shared_db, "CREATE OR REPLACE TABLE rows (i BIGINT, w DOUBLE)")
    run_sql(shared_db, "INSERT INTO rows VALUES (0, 0), (2, -1)")
    shared_db.tensor_from_table("U", "rows", index=["i"], value="w", shape=(4,))
    results = shared_db.run(
        "M[] = max(U[i]); E[i] = exp(U[i]); S[] = sum(U[i] / U[i]); P[i] = U[i] * U[i]", nonfinite="allow"
    )
    assert results["M"].to_numpy() == 0
    np.testing.assert_allclose(results["E"].to_numpy(), [1, 1, np.exp(-1), 1])
    assert np.isnan(results["S"].to_numpy())
    np.testing.assert_array_equal(results["P"].to_numpy(), [0, 0, 1, 0])
