"""The database counts non-empty blocks as numpy does, however a tensor is stored."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from any_sql import run_sql
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.language.tensors import Axis, Decomposition, StoredTensor, Tensor
from sparseeinsum.statistics.block_counts import measure_blocks

TILINGS = list(itertools.product((0, 1, 2, 3, 100), repeat=3))


def blocks(array: NDArray[np.generic], tiles: tuple[int, ...], fill: float = 0) -> float:
    """Number of non-empty blocks, counted by numpy."""
    indices = np.argwhere(array != fill)
    keys = [indices[:, axis] // tile for axis, tile in enumerate(tiles) if tile]
    return float(len(np.unique(np.stack(keys, axis=1), axis=0))) if keys else float(len(indices) > 0)


def few_entries(shape: tuple[int, ...], seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return rng.uniform(1, 2, shape) * (rng.random(shape) < 0.1)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128"])
@pytest.mark.parametrize("promoted", [(), (1,), (0, 2), (0, 1, 2)], ids=str)
def test_every_layout_and_dtype(shared_db: se.Database, promoted: tuple[int, ...], dtype: str) -> None:
    array = few_entries((5, 4, 7)).astype(dtype)
    stored = shared_db.tensor("A", array, promoted=[f"dim_{axis}" for axis in promoted])
    expected = {tiles: blocks(array, tiles) for tiles in TILINGS}
    assert measure_blocks(stored, TILINGS, shared_db._engine) == expected
    assert len(set(expected.values())) > 10


def test_either_part_makes_a_complex_number_an_entry(shared_db: se.Database) -> None:
    array = np.array([[1j, 0, 1, 1 + 1j], [0, 0, 0, 0]])
    stored = shared_db.tensor("A", array)
    assert measure_blocks(stored, [(1, 1), (1, 2)], shared_db._engine) == {(1, 1): 3, (1, 2): 2}


@pytest.mark.parametrize("fill", [7.0, math.inf])
def test_entries_differ_from_the_fill(shared_db: se.Database, fill: float) -> None:
    array = np.where(few_entries((6, 9)) > 0, 0.0, fill)
    for promoted in ([], ["dim_0"], ["dim_0", "dim_1"]):
        stored = shared_db.tensor("A", array, fill=fill, promoted=promoted)
        assert measure_blocks(stored, [(2, 2)], shared_db._engine) == {(2, 2): blocks(array, (2, 2), fill)}


@pytest.mark.parametrize("tiles", [(2, 3), (4, 1), (0, 4), (100, 2)], ids=str)
def test_stored_in_tiles(shared_db: se.Database, tiles: tuple[int, int]) -> None:
    """The last tile of an axis and its arrays are shorter than the others."""
    array = few_entries((5, 7), seed=1)
    keys = [f"key_{axis}" for axis, tile in enumerate(tiles) if tile]
    run_sql(shared_db, f"CREATE OR REPLACE TABLE tiled ({' BIGINT, '.join(keys)} BIGINT, val DOUBLE[])")
    extents = [tile or bound for tile, bound in zip(tiles, array.shape, strict=True)]
    for row, column in itertools.product(*(range(0, bound, step) for bound, step in zip((5, 7), extents, strict=True))):
        inside = array[row : row + extents[0], column : column + extents[1]].ravel().tolist()
        tile_numbers = [start // tile for start, tile in zip((row, column), tiles, strict=True) if tile]
        places = ", ".join("?" * (len(tile_numbers) + 1))
        run_sql(shared_db, f"INSERT INTO tiled VALUES ({places})", [*tile_numbers, inside])
    tensor = Tensor("A", (Axis("i", 5), Axis("j", 7)))
    stored = StoredTensor(tensor, Decomposition(tiles), "tiled", tuple(keys), "val", casts=False, is_owned=False)
    tilings = list(itertools.product((0, 1, 2, 3), repeat=2))
    assert measure_blocks(stored, tilings, shared_db._engine) == {sides: blocks(array, sides) for sides in tilings}


def test_clustered_entries_have_fewer_blocks_than_estimated(shared_db: se.Database) -> None:
    rng = np.random.default_rng(2)
    array = np.kron(rng.random((20, 20)) < 0.1, np.ones((16, 16))).astype(float)
    shared_db.tensor("A", sp.csr_array(array))
    true = blocks(array, (16, 16))
    assert shared_db.statistics("A").tuples((16, 16)) > 5 * true
    statistics = shared_db.statistics("A", tilings=[(16, 16), (32, 32)])
    assert statistics.tuples((16, 16)) == true
    assert statistics.counted_tuples == {tiles: blocks(array, tiles) for tiles in ((16, 16), (32, 32))}


def test_invalid_tiles(shared_db: se.Database) -> None:
    shared_db.tensor("A", np.ones((3, 4)), axes=["row", "column"])
    for tiles in ([2], [2, -1]):
        with pytest.raises(se.PlanError, match=r"no tiles of A; give each axis \(row, column\) one, or 0 to demote"):
            shared_db.statistics("A", tilings=[tiles])


def test_scalars_and_empty_tensors(shared_db: se.Database) -> None:
    for value in (0.0, 3.0):
        stored = shared_db.tensor("A", np.array(value))
        assert measure_blocks(stored, [()], shared_db._engine) == {(): float(value > 0)}
    empty = shared_db.tensor("A", np.zeros((3, 0)))
    assert measure_blocks(empty, [(0, 0), (2, 2)], shared_db._engine) == {(0, 0): 0, (2, 2): 0}
    assert measure_blocks(empty, [], shared_db._engine) == {}


def test_coordinates_larger_than_any_number(shared_db: se.Database) -> None:
    run_sql(shared_db, f"CREATE OR REPLACE TABLE far AS SELECT {1 << 40} AS a, {1 << 41} AS b")
    run_sql(shared_db, f"INSERT INTO far VALUES ({1 << 40}, {1 << 41} + 9), (5, 0)")
    stored = shared_db.tensor_from_table("A", "far", ["a", "b"], shape=(1 << 42, 1 << 42))
    assert measure_blocks(stored, [(1, 1), (1, 16), (1, 8)], shared_db._engine) == {(1, 1): 3, (1, 16): 2, (1, 8): 3}
