"""Threefry gives its published values, the normal quantile that of scipy; kernels, SQL and numpy agree to the bit."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from reading import engine_of
from scipy import special

import sparseeinsum as se
from sparseeinsum.operators.normal_quantile import normal_quantiles
from sparseeinsum.operators.random_numbers import encrypted, threefry

# Of Random123's file kat_vectors, for threefry2x32 with 20 rounds: counter, key, result.
PUBLISHED = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]
WHOLES = [
    0,
    1,
    -1,
    2,
    7,
    1 << 31,
    1 << 32,
    (1 << 32) - 1,
    (1 << 53) - 1,
    1 << 53,
    (1 << 63) - 1,
    -(1 << 63),
    -(1 << 40),
]
PROBABILITIES = np.concatenate([
    np.random.default_rng(0).random(400),
    2.0 ** -np.arange(1, 1074, 7),
    1 - 2.0 ** -np.arange(1, 54),
    [0.0, 1.0, 0.075, 0.925, 0.5, -1e-9, 1 + 1e-9, np.nan, np.inf, -np.inf],
])  # fmt: skip


def words(pair: tuple[int, int]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    return np.array([pair[0]], np.uint32), np.array([pair[1]], np.uint32)


def as_int64(pair: tuple[int, int]) -> int:
    number = pair[0] << 32 | pair[1]
    return number - (1 << 64) if number >> 63 else number


@pytest.mark.parametrize(("counter", "key", "result"), PUBLISHED)
def test_published_values(counter: tuple[int, int], key: tuple[int, int], result: tuple[int, int]) -> None:
    assert tuple(int(word[0]) for word in encrypted(words(key), words(counter))) == result
    assert threefry(np.int64(as_int64(key)), np.int64(as_int64(counter))) == (result[0] << 32 | result[1]) >> 12


def test_quantiles_are_those_of_scipy() -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(normal_quantiles(PROBABILITIES), special.ndtri(PROBABILITIES), rtol=2e-15)


@pytest.mark.parametrize("number", [0.5, 2.0**53 + 2, -(2.0**60), np.nan, np.inf])
def test_floats_that_are_not_whole_are_no_keys(number: float) -> None:
    assert np.isnan(threefry(np.float64(number), np.float64(3)))
    assert np.isnan(threefry(np.float64(3), np.float64(number)))
    assert threefry(np.float64(-3), np.float64(2.0**53)) == threefry(np.int64(-3), np.int64(2**53))


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_engines_compute_the_same_bits(shared_db: se.Database, dtype: str) -> None:
    wholes = [number for number in WHOLES if dtype == "int64" or abs(number) <= 1 << 53]
    key, counter = (side.ravel() for side in np.meshgrid(np.array(wholes, dtype), np.array(wholes, dtype)))
    if dtype == "float64":
        key, counter = np.append(key, [0.5, np.nan, 1.0]), np.append(counter, [1.0, 2.0, np.inf])
    result = of_rows(shared_db, "threefry(u, v)", key, counter)
    np.testing.assert_array_equal(result, threefry(key, counter))


@pytest.mark.engines("duckdb", "postgresql")
def test_engines_compute_the_same_quantiles(shared_db: se.Database) -> None:
    result = of_rows(shared_db, "normal_quantile(u)", PROBABILITIES, PROBABILITIES)
    np.testing.assert_array_equal(result, normal_quantiles(PROBABILITIES))


def of_rows(db: se.Database, expression: str, u: NDArray[np.generic], v: NDArray[np.generic]) -> NDArray[np.generic]:
    """The values of an expression, which the database computes from two arrays."""
    kind = {"duckdb": {"int64": "BIGINT", "float64": "DOUBLE"}, "postgresql": {"int64": "bigint", "float64": "float8"}}
    cast = kind[engine_of(db).dialect_name][str(u.dtype)]
    query = (
        f"SELECT unnest(tensor_reduce('prod', '{expression}', 'i,i->i', array_agg(CAST(u AS {cast}) ORDER BY place), "
        f"array_agg(CAST(v AS {cast}) ORDER BY place), ARRAY[COUNT(*)])) AS w FROM given"
    )
    with engine_of(db).registered(pa.table({"place": np.arange(u.size), "u": u, "v": v}), "given"):
        return np.asarray(engine_of(db).arrow(query)["w"].to_numpy())
