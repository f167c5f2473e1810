"""Random numbers in programs depend on their keys alone: every plan, engine and thread draws the same bits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import sparseeinsum as se
from sparseeinsum.operators.normal_quantile import normal_quantiles
from sparseeinsum.operators.random_numbers import threefry

Array = NDArray[Any]

DRAWS = """
U[i, j] = uniform(7, 3, i: {m}, j: {n})
N[i, j] = normal(7, step[], i: {m}, j: {n})
B[i, j] = bernoulli(P[i, j], 7, i, j)
"""
PLANS: list[dict[str, Any]] = [
    {"optimizer": "dp"},
    {"optimizer": "relational"},
    {"optimizer": "dense"},
    {"optimizer": "greedy"},
    {"rewrite": False},
    {"tiles": [2, 3]},
]


def bits(*keys: int | Array) -> Array:
    """The random bits of keys, folded one after the other."""
    folded: Array = np.zeros((), np.int64)
    for key in keys:
        folded = threefry(folded, np.asarray(key, np.int64))
    return folded


def uniform(*keys: int | Array) -> Array:
    return bits(*keys) / 2.0**52


def normal(*keys: int | Array) -> Array:
    return normal_quantiles((bits(*keys) + 0.5) / 2.0**52)


def draws(m: int, n: int, step: int, probability: Array) -> dict[str, Array]:
    """What the statements of DRAWS draw, by numpy."""
    i, j = np.arange(m)[:, None], np.arange(n)
    return {
        "U": uniform(7, 3, i, j),
        "N": normal(7, step, i, j),
        "B": uniform(7, i, j) < probability,
    }


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("options", PLANS, ids=str)
def test_every_plan_draws_the_same(shared_db: se.Database, options: dict[str, Any]) -> None:
    m, n, step = 5, 7, 1 << 40
    probability = np.random.default_rng(0).random((m, n))
    shared_db.tensor("P", probability)
    shared_db.tensor("step", np.array(step))
    results = shared_db.run(DRAWS.format(m=m, n=n), **options)
    for name, expected in draws(m, n, step, probability).items():
        np.testing.assert_array_equal(results[name].to_numpy(), expected)


@pytest.mark.engines("duckdb", reason="sets the threads of DuckDB")
@pytest.mark.parametrize("threads", [1, 4])
def test_threads_draw_the_same(db: se.Database, threads: int) -> None:
    db.connection.execute(f"SET threads = {threads}")
    result = db.run("Y[I, j] = normal(1, I: 3000, j: 40)")["Y"].to_numpy()
    np.testing.assert_array_equal(result, normal(1, np.arange(3000)[:, None], np.arange(40)))


@settings(max_examples=20)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
    st.integers(1, 4),
    st.integers(1, 4),
    st.permutations(["i", "j"]),
)
def test_any_keys(shared_db: se.Database, numbers: list[int], m: int, n: int, order: list[str]) -> None:
    labels = ", ".join(f"{label}: {size}" for label, size in zip(order, (m, n), strict=True))
    text = f"Y[{', '.join(order)}] = uniform({''.join(f'{number}, ' for number in numbers)}{labels})"
    expected = uniform(*numbers, np.arange(m)[:, None], np.arange(n))
    np.testing.assert_array_equal(shared_db.run(text)["Y"].to_numpy(), expected)


def test_keys_may_be_parameters_and_values_of_tensors(shared_db: se.Database) -> None:
    shared_db.tensor("id", np.array([30, -4, 30, 2**60]))
    text = "param seed; Y[i] = uniform(seed, id[i], 5)"
    result = shared_db.run(text, parameters={"seed": 9})["Y"].to_numpy()
    np.testing.assert_array_equal(result, uniform(9, np.array([30, -4, 30, 2**60]), 5))
    assert result[0] == result[2]


def test_python_expressions_draw_the_same(shared_db: se.Database) -> None:
    shared_db.tensor("P", np.random.default_rng(0).random((3, 2)))
    program = se.program({
        "U": se.uniform(7, se.index("i", 3))["i"],
        "N": (se.tensor("P")["i", "j"] + se.normal(7, "i", "j"))["i", "j"],
        "B": se.bernoulli(se.tensor("P")["i", "j"], 7, "j", "i")["j", "i"],
    })  # fmt: skip
    text = """
        U[i] = uniform(7, i: 3)
        N[i, j] = P[i, j] + normal(7, i, j)
        B[j, i] = bernoulli(P[i, j], 7, j, i)
    """
    drawn, expected = shared_db.run(program), shared_db.run(text)
    for name in ("U", "N", "B"):
        np.testing.assert_array_equal(drawn[name].to_numpy(), expected[name].to_numpy())


def test_a_key_of_sums_of_values(shared_db: se.Database) -> None:
    shared_db.tensor("M", np.array([[1, 2], [3, 4]]))
    result = shared_db.run("Y[i] = uniform(1, sum[j](M[i, j])) + max[k](uniform(2, i, k: 3))")["Y"].to_numpy()
    second = uniform(2, np.arange(2)[:, None], np.arange(3)).max(1)
    np.testing.assert_array_equal(result, uniform(1, np.array([3, 7])) + second)


@pytest.mark.parametrize(
    ("text", "cdf", "mean", "variance"),
    [
        ("Y[i] = uniform(11, 2, i: 20000)", stats.uniform.cdf, 1 / 2, 1 / 12),
        ("Y[i] = normal(11, 2, i: 20000)", stats.norm.cdf, 0, 1),
    ],
)
def test_distributions(
    shared_db: se.Database, text: str, cdf: Callable[..., float], mean: float, variance: float
) -> None:
    sample = shared_db.run(text)["Y"].to_numpy()
    assert stats.kstest(sample, cdf).pvalue > 0.01
    assert abs(sample.mean() - mean) < 4 * np.sqrt(variance / sample.size)
    assert abs(sample.var() / variance - 1) < 4 * np.sqrt(2 / sample.size)
    assert abs(np.corrcoef(sample[1:], sample[:-1])[0, 1]) < 4 / np.sqrt(sample.size)


def test_seeds_and_steps_are_independent(shared_db: se.Database) -> None:
    texts = [f"Y[i] = normal({seed}, {step}, i: 5000)" for seed, step in ((1, 1), (1, 2), (2, 1), (2, 2))]
    samples = np.array([shared_db.run(text)["Y"].to_numpy() for text in texts])
    correlations = np.corrcoef(samples) - np.eye(len(samples))
    assert np.abs(correlations).max() < 4 / np.sqrt(5000)


def test_bernoulli_is_as_frequent_as_its_probability(shared_db: se.Database) -> None:
    share = shared_db.run("Y[] = mean(1.0 * bernoulli(0.3, 5, i: 20000))")["Y"].to_numpy()
    assert abs(share - 0.3) < 4 * np.sqrt(0.21 / 20000)
    assert (
        shared_db.run("Y[] = sum(bernoulli(0, 5, i: 500)); Z[] = sum(bernoulli(1, 5, i: 500))")["Z"].to_numpy() == 500
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Y[i] = uniform(0.5, i: 3)", "0.5 is a key of uniform, but keys are whole numbers"),
        ("Y[i] = uniform(9223372036854775808, i: 3)", "keys are whole numbers from -2"),
        ("Y[i] = bernoulli(0.5)", "bernoulli has no key; give it a seed and labels"),
        ("Y[i] = uniform[i](1, i: 3)", "found ':'"),
        ("Y[i] = uniform[j](1, A[i])", "uniform takes its labels as keys"),
        ("Y[i] = uniform(1, i)", r"index\(i\) has no bound"),
        ("Y = A + uniform(1, i: 3)", "has labels, and the left side none"),
        ("Y = A + uniform(1, 2)", "uniform needs labels"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(se.ParseError, match=message):
        se.program(text)


def test_keys_of_floats_are_refused(shared_db: se.Database) -> None:
    shared_db.tensor("F", np.array([1.5, 2.0]))
    with pytest.raises(se.SparseEinsumError, match="NaN"):
        shared_db.run("Y[i] = uniform(1, F[i])")
