"""Chains over single arrays that are in memory are computed in tiles of rows, with numpy's results."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.algebra.array_chains import ArrayChain
from sparseeinsum.render import row_tiles
from sparseeinsum.render.row_tiles import RowTiles
from sparseeinsum.render.sources import SelectSource
from sparseeinsum.semantics.dense import evaluate_program

pytestmark = pytest.mark.engines(
    "duckdb", reason="statements of PostgreSQL have no functions that read arrays by handle"
)

RNG = np.random.default_rng(0)
ATTENTION = """
S[h, i, j] = sum(Q[h, i, d] * K[h, j, d]) / 4
P[h, i, j] = softmax[j](S[h, i, j])
O[h, i, d] = sum(P[h, i, j] * V[h, j, d])"""
LAYERS = """
T[i, k] = relu(sum(A[i, j] * B[j, k]) + c[k])
Y[i, m] = sum(T[i, k] * D[k, m])"""


@pytest.fixture
def tilings(monkeypatch: pytest.MonkeyPatch) -> list[RowTiles]:
    """The tiles of all chains that a test computes in tiles, which may be small."""
    monkeypatch.setattr(row_tiles, "_TILE_BYTES", 128)
    monkeypatch.setattr(row_tiles, "_LEAST_TILES", 2)
    monkeypatch.setattr(row_tiles, "_MOST_COPIED", np.inf)
    tilings: list[RowTiles] = []
    search = RowTiles.of

    def recorded(chain: ArrayChain, sources: Sequence[SelectSource | None]) -> RowTiles | None:
        tiles = search(chain, sources)
        tilings.extend([] if tiles is None else [tiles])
        return tiles

    monkeypatch.setattr(RowTiles, "of", recorded)
    return tilings


def arrays_of(**shapes: Sequence[int]) -> dict[str, NDArray[Any]]:
    return {name: RNG.normal(size=shape) for name, shape in shapes.items()}


def check(db: se.Database, text: str, arrays: dict[str, NDArray[Any]], rtol: float = 1e-12) -> None:
    """Run a program until its operands are in memory, and compare its results with numpy's."""
    for name, array in arrays.items():
        db.tensor(name, array)
    program = se.program(text)
    plan = db.plan(program, pin=dict.fromkeys(re.findall(r"^(\w+)\[", text, re.MULTILINE), ()), layout="any")
    expected = evaluate_program(program, {name: arrays[name] for name in program.inputs})
    for _ in range(3):
        for name, result in db.run(plan, replan=False, progress=False).items():
            np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=rtol, atol=rtol)


def test_tiles_have_one_head_and_some_tokens(db: se.Database, tilings: list[RowTiles]) -> None:
    check(db, ATTENTION, arrays_of(Q=(2, 12, 3), K=(2, 8, 3), V=(2, 8, 3)))
    assert {(tiles.lengths, tiles.together, tiles.count) for tiles in tilings} == {((2, 12), 2, 12)}
    assert set(tilings[0].leading.values()) == {1, 2}


def test_layers_share_their_weights(db: se.Database, tilings: list[RowTiles]) -> None:
    check(db, LAYERS, arrays_of(A=(14, 5), B=(5, 8), c=(8,), D=(8, 3)))
    assert {(tiles.lengths, tiles.together) for tiles in tilings} == {((14,), 2)}
    assert sorted(tilings[0].leading.values()) == [0, 0, 0, 1]


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes(db: se.Database, tilings: list[RowTiles], dtype: str) -> None:
    arrays = {name: array.astype(dtype) for name, array in arrays_of(A=(12, 5), B=(5, 8), C=(8, 3)).items()}
    text = "T[i, k] = sum(A[i, j] * B[j, k]) * 2\nY[i, m] = sum(T[i, k] * C[k, m]) + 1"
    check(db, text, arrays, rtol=1e-5 if dtype == "float32" else 1e-12)
    assert tilings


def test_truths_and_fills(db: se.Database, tilings: list[RowTiles]) -> None:
    text = "T[i, k] = sum(A[i, j] * B[j, k])\nM[i, k] = T[i, k] > 0\nY[i, k] = where(M[i, k], T[i, k], -1) + A0[i, k]"
    for name, array in (arrays := arrays_of(A=(12, 5), B=(5, 8), A0=(12, 8))).items():
        array[RNG.random(array.shape) < 0.5] = 0
        db.tensor(name, array)
    check(db, text, arrays)
    assert tilings


@pytest.mark.parametrize(
    "text",
    [
        "T[i, k] = sum(A[i, j] * B[j, k])\nY[i, k] = cumsum[i](T[i, k])\nZ[i, k] = Y[i, k] * T[i, k]",
        "T[i, k] = sum(A[i, j] * B[j, k])\nm[k] = max(T[i, k])\nZ[i, k] = T[i, k] - m[k]",
        "T[i, k] = sum(A[i, j] * B[j, k])\nZ[k, i] = T[i, k] + 1",
        "T[i, k] = sum(A[i, j] * A[k, j])\nZ[i, k] = sum(T[i, l] * T[k, l])",
        "T[i, k] = sum(A[i, j] * A[k, j])\nZ[i, k] = T[i, k] + T[k, i]",
    ],
    ids=["scanned", "aggregated", "transposed", "squared", "symmetric"],
)
def test_what_mixes_rows_is_computed_as_a_whole(db: se.Database, tilings: list[RowTiles], text: str) -> None:
    check(db, text, arrays_of(A=(12, 5), B=(5, 12)))
    assert not tilings


def test_a_scan_within_rows_is_computed_in_tiles(db: se.Database, tilings: list[RowTiles]) -> None:
    text = "T[i, k] = sum(A[i, j] * B[j, k])\nY[i, k] = cumsum[k](T[i, k])\nZ[i, k] = Y[i, k] * T[i, k]"
    check(db, text, arrays_of(A=(12, 5), B=(5, 12)))
    assert tilings


def test_results_that_a_later_statement_reads(db: se.Database, tilings: list[RowTiles]) -> None:
    """A chain whose result is stored in a table is stacked from tiles there."""
    check(
        db, f"{LAYERS}\nm[j] = max(Y[i, j])\nN[i, j] = Y[i, j] - m[j]", arrays_of(A=(14, 5), B=(5, 8), c=(8,), D=(8, 3))
    )


def test_a_result_of_several_statements_without_rows(db: se.Database, tilings: list[RowTiles]) -> None:
    db.tensor("A", np.zeros((12, 5)), promoted=("dim_0",))
    check(db, LAYERS, {"A": np.zeros((12, 5)), **arrays_of(B=(5, 8), c=(8,), D=(8, 3))})


def test_small_chains_are_computed_as_a_whole(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[RowTiles | None] = []
    search = RowTiles.of

    def recorded(chain: ArrayChain, sources: Sequence[SelectSource | None]) -> RowTiles | None:
        searched.append(search(chain, sources))
        return searched[-1]

    monkeypatch.setattr(RowTiles, "of", recorded)
    check(db, ATTENTION, arrays_of(Q=(2, 12, 3), K=(2, 8, 3), V=(2, 8, 3)))
    assert set(searched) == {None}


def test_large_results_are_written_where_they_stay(db: se.Database) -> None:
    """The client reads the tiles in one place."""
    arrays = arrays_of(A=(4000, 40), B=(40, 300), c=(300,), D=(300, 40))
    check(db, LAYERS, arrays, rtol=1e-10)
    step = db.prepare(LAYERS, inputs=["c"])
    for factor in (1, 2, 3):
        expected = evaluate_program(se.program(LAYERS), arrays | {"c": factor * arrays["c"]})["Y"]
        (result,) = step.run(c=factor * arrays["c"]).values()
        np.testing.assert_allclose(result.to_numpy(copy=False), expected, rtol=1e-10, atol=1e-10)


@settings(max_examples=15)
@given(
    lengths=st.tuples(st.integers(1, 3), st.integers(1, 13), st.integers(1, 6), st.integers(1, 4)),
    tile_bytes=st.sampled_from([8, 64, 512]),
)
def test_random_lengths(lengths: tuple[int, ...], tile_bytes: int) -> None:
    h, i, j, d = lengths
    with pytest.MonkeyPatch.context() as patch, se.connect() as db:
        patch.setattr(row_tiles, "_TILE_BYTES", tile_bytes)
        patch.setattr(row_tiles, "_LEAST_TILES", 1)
        patch.setattr(row_tiles, "_MOST_COPIED", np.inf)
        check(db, ATTENTION, arrays_of(Q=(h, i, d), K=(h, j, d), V=(h, j, d)))
