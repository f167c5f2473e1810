"""Loops compute what loops of numpy compute; what ends them leaves the state of a whole step."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

NODES = 30
POWER = """
state x
y[i] = sum(A[i, j] * x[j])
size[] = sqrt(sum(y[i] ^ 2))
next_x[i] = y[i] / size[]
"""
HALVING = "state x\nnext_x[i] = x[i] / 2\nloss[] = sum(next_x[i])"


def graph(seed: int = 0, density: float = 0.1) -> np.ndarray:
    return sp.random_array((NODES, NODES), density=density, rng=np.random.default_rng(seed)).toarray()


def value(db: se.Database, name: str) -> np.ndarray:
    """The present values of a tensor, by a program that copies them."""
    labels = ", ".join("ijk"[: len(db.tensors()[name].tensor.axes)])
    return db.run(f"copy[{labels}] = {name}[{labels}]")["copy"].to_numpy()


@pytest.mark.parametrize("commit", [0, np.inf])
@pytest.mark.parametrize("promoted", [[], ["i"], {"i": 8}], ids=["array", "entries", "tiles"])
def test_power_iteration(db: se.Database, promoted: Any, commit: float) -> None:  # noqa: ANN401
    matrix = graph() + graph().T
    db.tensor("A", matrix, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("x", np.ones(NODES), axes=["i"], promoted=promoted)
    result = db.iterate(
        POWER, steps=500, until="abs(size - previous.size) < 1e-13", history=["size"], commit_seconds=commit
    )
    vector, sizes = np.ones(NODES), []
    for _ in range(result.steps):
        vector = matrix @ vector
        sizes.append(np.linalg.norm(vector))
        vector = vector / sizes[-1]
    np.testing.assert_allclose(value(db, "x"), vector, atol=1e-12)
    np.testing.assert_allclose(result.df()["size"], sizes)
    assert result.reason == "condition"
    assert abs(sizes[-1] - sizes[-2]) < 1e-13 <= abs(sizes[-2] - sizes[-3])
    assert repr(result).startswith(f"<{result.steps} steps in ")


def test_pagerank_keeps_a_dense_state_dense(db: se.Database) -> None:
    links = (graph(1) != 0) * 1.0
    moves = links / np.maximum(links.sum(axis=0), 1)
    db.tensor("P", moves, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("R", np.full(NODES, 1 / NODES), axes=["i"], promoted=["i"])
    program = f"next_R[i] = 0.15 / {NODES} + 0.85 * sum(P[i, j] * R[j])\nchange[] = sum(abs(next_R[i] - R[i]))"
    result = db.iterate(program, {"R": "next_R"}, until="change < 1e-12", steps=200)
    ranks = np.full(NODES, 1 / NODES)
    for _ in range(result.steps):
        ranks = 0.15 / NODES + 0.85 * (moves @ ranks)
    assert 10 < result.steps < 200
    np.testing.assert_allclose(value(db, "R"), ranks)


def test_reachability_grows_to_its_fixpoint(db: se.Database) -> None:
    edges = graph(2, 0.05) != 0
    start = np.zeros(NODES, bool)
    start[0] = True
    db.tensor("E", edges, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("R", start, axes=["i"], promoted=["i"])
    result = db.iterate("state R\nnext_R[i] = R[i] or any(E[j, i] and R[j])", until="changed == 0", history=["changed"])
    reached = start
    changes: list[int] = []
    while not changes or changes[-1]:
        following = reached | (edges & reached[:, None]).any(axis=0)
        changes.append(int((following != reached).sum()))
        reached = following
    np.testing.assert_array_equal(value(db, "R"), reached)
    assert result.df()["changed"].tolist() == changes


def test_all_pairs_reachability_of_a_sparse_state(db: se.Database) -> None:
    edges = graph(3, 0.04) != 0
    db.tensor("E", edges, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("R", edges, axes=["i", "j"], promoted=["i", "j"])
    result = db.iterate("state R\nnext_R[i, k] = R[i, k] or any(R[i, j] and R[j, k])", until="changed == 0")
    reached = edges
    for _ in range(result.steps):
        reached = reached | (reached[:, :, None] & reached).any(axis=1)
    assert result.reason == "condition"
    np.testing.assert_array_equal(value(db, "R"), reached)


def test_shortest_paths(db: se.Database) -> None:
    lengths = graph(4, 0.1)
    lengths[lengths == 0] = np.inf
    start = np.full(NODES, np.inf)
    start[0] = 0
    db.tensor("D", lengths, axes=["i", "j"], fill=np.inf, promoted=["i", "j"])
    db.tensor("s", start, axes=["i"], fill=np.inf, promoted=["i"])
    program = "state s\nnext_s[j] = min(s[j], min(s[i] + D[i, j]))"
    result = db.iterate(program, until="changed == 0", steps=NODES + 1)
    distances = start
    for _ in range(result.steps):
        distances = np.minimum(distances, (distances[:, None] + lengths).min(axis=0))
    assert result.reason == "condition"
    np.testing.assert_allclose(value(db, "s"), distances)


def test_connected_components(db: se.Database) -> None:
    edges = graph(5, 0.03) != 0
    edges = edges | edges.T
    db.tensor("E", edges, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("c", np.arange(NODES), axes=["i"])
    db.iterate("state c\nnext_c[i] = max(c[i], max(where(E[i, j], c[j], -1)))", until="changed == 0")
    count, labels = sp.csgraph.connected_components(sp.csr_array(edges))
    greatest = np.array([np.flatnonzero(labels == label).max() for label in range(count)])
    np.testing.assert_array_equal(value(db, "c"), greatest[labels])


def test_k_means(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(center, 0.3, (20, 2)) for center in ([0, 0], [3, 3], [0, 4])])
    centers = points[[0, 20, 40]]
    db.tensor("X", points, axes=["i", "d"])
    db.tensor("C", centers, axes=["k", "d"])
    program = """
    state C
    distance[i, k] = sum((X[i, d] - C[k, d]) ^ 2)
    near[i, k] = distance[i, k] == min(distance[i, l])
    size[k] = sum(where(near[i, k], 1.0, 0.0))
    next_C[k, d] = sum(where(near[i, k], X[i, d], 0)) / size[k]
    """
    result = db.iterate(program, until="changed == 0")
    for _ in range(result.steps):
        near = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        centers = np.array([points[near == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(value(db, "C"), centers)
    assert result.reason == "condition"


def test_adam_reads_the_number_of_the_step(db: se.Database) -> None:
    rng = np.random.default_rng(1)
    features, weights = rng.normal(size=(20, 4)), rng.normal(size=4)
    db.tensor("X", features, axes=["i", "f"])
    db.tensor("y", features @ weights, axes=["i"])
    for name in ("w", "m", "v"):
        db.tensor(name, np.zeros(4), axes=["f"])
    program = """
    state w, m, v
    error[i] = sum(X[i, f] * w[f]) - y[i]
    loss[] = sum(error[i] ^ 2)
    g[f] = 2 * sum(X[i, f] * error[i])
    next_m[f] = 0.9 * m[f] + 0.1 * g[f]
    next_v[f] = 0.999 * v[f] + 0.001 * g[f] ^ 2
    next_w[f] = w[f] - 0.1 * (next_m[f] / (1 - 0.9 ^ (step + 1))) / (sqrt(next_v[f] / (1 - 0.999 ^ (step + 1))) + 1e-8)
    """
    result = db.iterate(program, steps=40, history=["loss"])
    w, m, v, losses = np.zeros(4), np.zeros(4), np.zeros(4), []
    for step in range(40):
        error = features @ w - features @ weights
        losses.append((error**2).sum())
        g = 2 * features.T @ error
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w - 0.1 * (m / (1 - 0.9 ** (step + 1))) / (np.sqrt(v / (1 - 0.999 ** (step + 1))) + 1e-8)
    assert result.reason == "steps"
    np.testing.assert_allclose(result.df()["loss"], losses)
    for name, expected in (("w", w), ("m", m), ("v", v)):
        np.testing.assert_allclose(value(db, name), expected, rtol=1e-6)


def test_alternating_least_squares_by_gradients(db: se.Database) -> None:
    rng = np.random.default_rng(2)
    ratings = graph(6, 0.2)
    left, right = rng.normal(size=(NODES, 3)) / 3, rng.normal(size=(NODES, 3)) / 3
    db.tensor("X", ratings, axes=["r", "c"], promoted=["r", "c"])
    db.tensor("U", left, axes=["r", "k"])
    db.tensor("V", right, axes=["c", "k"])
    program = """
    state U, V
    loss = sum((X - U @ V.T)^2)
    next_U = U - 1e-2 * ((U @ V.T - X) @ V)
    next_V = V - 1e-2 * ((U @ V.T - X).T @ U)
    """
    result = db.iterate(program, steps=10, history=["loss"])
    losses = []
    for _ in range(10):
        error = left @ right.T - ratings
        losses.append((error**2).sum())
        left, right = left - 1e-2 * error @ right, right - 1e-2 * error.T @ left
    np.testing.assert_allclose(result.df()["loss"], losses)
    np.testing.assert_allclose(value(db, "U"), left)
    np.testing.assert_allclose(value(db, "V"), right)
