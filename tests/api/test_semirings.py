"""`se.einsum` computes with joins other than products and aggregates other than sums."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy_einsum import Array, assert_same, einsum_in, filled, stored_with

import sparseeinsum as se

SEMIRINGS: dict[tuple[str, str], Callable[..., Any]] = {
    ("+", "min"): np.min,
    ("+", "max"): np.max,
    ("+", "logsumexp"): np.logaddexp.reduce,
    ("*", "max"): np.max,
    ("*", "min"): np.min,
    ("*", "prod"): np.prod,
    ("max", "min"): np.min,
    ("min", "max"): np.max,
    ("max", "sum"): np.sum,
    ("-", "max"): np.max,
    ("(u - v) ^ 2", "sum"): np.sum,
    ("abs(u - v)", "max"): np.max,
    ("u <= v", "all"): np.all,
    ("u > v", "any"): np.any,
    ("u != v", "sum"): np.sum,
}
JOINS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "(u - v) ^ 2": lambda u, v: (u - v) ** 2,
    "abs(u - v)": lambda u, v: np.abs(u - v),
    "u <= v": np.less_equal,
    "u > v": np.greater,
    "u != v": np.not_equal,
}


@pytest.mark.parametrize("fill", [0.0, 1.0, math.inf, -math.inf])
@pytest.mark.parametrize(("join", "agg"), SEMIRINGS)
@pytest.mark.parametrize("sparse", [False, True])
def test_semirings(shared_db: se.Database, join: str, agg: str, fill: float, sparse: bool) -> None:
    arrays = [np.where(filled(5, 6, seed=at) == 0, fill, filled(5, 6, seed=at)) for at in range(2)]
    operands: list[Any] = [stored_with(array, fill) for array in arrays] if sparse else arrays
    with np.errstate(invalid="ignore"):
        joined = JOINS[join](arrays[0][:, None], arrays[1])
        expected = np.asarray(SEMIRINGS[join, agg](joined, axis=2))
        of_all = np.asarray(SEMIRINGS[join, agg](joined.reshape(-1)))
    options: dict[str, Any] = {"join": join, "agg": agg, "fill": fill}
    assert_same(einsum_in(shared_db, "ij,kj->ik", *operands, **options), expected)
    assert_same(einsum_in(shared_db, "ij,kj->", *operands, **options), of_all)


def test_shortest_paths() -> None:
    """Shortest paths of three edges in a graph; an absent edge has an infinite distance."""
    distances = np.full((6, 6), np.inf)
    for at in range(5):
        distances[at, at + 1] = at + 1.0
    steps = stored_with(distances, np.inf)
    result = se.einsum("ij,jk,kl->il", steps, steps, steps, join="+", agg="min", fill=np.inf)
    expected = np.full((6, 6), np.inf)
    for at in range(3):
        expected[at, at + 3] = 3 * at + 6.0
    np.testing.assert_array_equal(result, expected)


def test_the_likeliest_path_of_a_hidden_markov_model() -> None:
    """Viterbi's algorithm: the greatest sum of logarithms, and the sum over all paths."""
    start, steps, emissions = filled(4), filled(4, 4), filled(4, 4, seed=1)
    joined = start[:, None, None] + steps[:, :, None] + emissions[None]
    call = ("i,ij,jk->k", start, steps, emissions)
    assert_same(se.einsum(*call, join="+", agg="max"), joined.max(axis=(0, 1)))
    assert_same(se.einsum(*call, join="+", agg="logsumexp"), np.log(np.exp(joined).sum(axis=(0, 1))))


def test_sums_of_logarithms_of_large_and_of_no_weights() -> None:
    large = np.array([[1000.0, 1000.0, -1000.0], [-np.inf, -np.inf, -np.inf], [0.0, -np.inf, 710.0]])
    expected = np.logaddexp.reduce(large, axis=1)
    assert_same(se.einsum("ij->i", large, agg="logsumexp"), expected)
    result = se.einsum("ij->i", stored_with(large, -np.inf), agg="logsumexp", fill=-np.inf)
    assert_same(result, expected)


def test_reachability() -> None:
    edges = filled(6, 6) > 0.8
    assert_same(se.einsum("ij,jk->ik", edges, edges), (edges[:, :, None] & edges).any(axis=1))
    result = se.einsum("ij,jk->ik", scipy.sparse.csr_array(edges), edges, join="or", agg="all")
    assert_same(result, (edges[:, :, None] | edges).all(axis=1))


@pytest.mark.parametrize("agg", ["sum", "prod", "max", "min", "any", "all", "logsumexp"])
@pytest.mark.parametrize("fill", [0.0, 2.5, -math.inf])
def test_aggregates_of_one_sparse_operand(shared_db: se.Database, agg: str, fill: float) -> None:
    array = np.where(filled(5, 6) == 0, fill, filled(5, 6))
    numpys = {"logsumexp": np.logaddexp.reduce}
    for subscripts, axes in (("ij->i", 1), ("ij->j", 0), ("ij->", (0, 1))):
        fold = numpys.get(agg) or getattr(np, agg)
        expected = fold(array.reshape(-1)) if axes == (0, 1) else fold(array, axis=axes)
        result = einsum_in(shared_db, subscripts, stored_with(array, fill), agg=agg, fill=fill)
        assert_same(result, np.asarray(expected))


def test_joins_of_several_operands() -> None:
    u, v, w = filled(3), filled(3, seed=1), filled(3, seed=2)
    np.testing.assert_allclose(se.einsum("i,i,i->i", u, v, w, join="where(u < v, w, 2)"), np.where(u < v, w, 2.0))
    np.testing.assert_allclose(se.einsum("i,j,k->", u, v, w, join="+", agg="max"), u.max() + v.max() + w.max())
    np.testing.assert_allclose(se.einsum("i,i,i->", u, v, w, join="u * exp(v - w)"), (u * np.exp(v - w)).sum())
    np.testing.assert_allclose(se.einsum("i->i", u, join="sigmoid(u)"), 1 / (1 + np.exp(-u)))
    np.testing.assert_allclose(se.einsum("i,i->i", u, v + 3, join="/"), u / (v + 3))


def test_other_joins_and_aggregates() -> None:
    u, v = filled(3, 4), filled(4, 5)
    spread_u, spread_v = u[:, :, None], v[None]
    for left, right in [(u, v), (scipy.sparse.csr_array(u), scipy.sparse.csr_array(v))]:
        np.testing.assert_allclose(
            se.einsum("ij,jk->ik", left, right, join="+", agg="min"), (spread_u + spread_v).min(axis=1)
        )
        np.testing.assert_allclose(
            se.einsum("ij,jk->ik", left, right, join="-", agg="max"), (spread_u - spread_v).max(axis=1)
        )
        np.testing.assert_allclose(
            se.einsum("ij,jk->ijk", left, right, join="+"), np.broadcast_to(spread_u + spread_v, (3, 4, 5))
        )
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(se.einsum("ij,jk->ijk", left, right, join="/"), spread_u / spread_v)
            np.testing.assert_allclose(
                se.einsum("ij,jk->ijk", left, right, join="^"), np.broadcast_to(spread_u**spread_v, (3, 4, 5))
            )
        np.testing.assert_allclose(se.einsum("ij->i", left, agg="prod"), u.prod(axis=1))
        np.testing.assert_allclose(se.einsum("ij->j", left, agg="max"), u.max(axis=0))
