"""T and V of stored tensors are numpy's counts, and tuple counts follow the corrected equation 7."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from any_sql import run_sql
from hypothesis import given, settings
from hypothesis import strategies as st
from known_statistics import PAPER_U, PAPER_V, counted, subsets, tiles_of
from numpy.typing import NDArray
from random_runs import examples

import sparseeinsum as se
from sparseeinsum.statistics.estimate import (
    Statistics,
    by_label,
    occupied,
)


class TestMeasured:
    @pytest.mark.parametrize("promoted", subsets(3), ids=str)
    @pytest.mark.parametrize("density", [0.0, 0.05, 0.4, 1.0])
    def test_every_layout_has_the_same_counts(
        self, shared_db: se.Database, promoted: tuple[int, ...], density: float
    ) -> None:
        rng = np.random.default_rng(7)
        array = rng.uniform(-2, 2, (3, 4, 5)) * (rng.random((3, 4, 5)) < density)
        array[1] = 0
        shared_db.tensor("A", array, promoted=[f"dim_{axis}" for axis in promoted])
        assert shared_db.statistics("A") == counted(array)

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("promoted", subsets(2), ids=str)
    def test_nonfinite_values_are_entries_and_negative_zeros_are_not(
        self, shared_db: se.Database, promoted: tuple[int, ...], dtype: str
    ) -> None:
        array = np.array([[np.nan, -0.0, 0.0], [0.0, 0.0, np.inf]], dtype=dtype)
        shared_db.tensor("A", array, promoted=[f"dim_{axis}" for axis in promoted])
        assert shared_db.statistics("A") == Statistics(2, (2, 2), (2, 3))

    @pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 1), (2, 3, 2, 3)], ids=str)
    def test_ranks(self, shared_db: se.Database, shape: tuple[int, ...]) -> None:
        array = np.arange(math.prod(shape), dtype=float).reshape(shape) % 3
        for promoted in subsets(len(shape)):
            shared_db.tensor("A", array, promoted=[f"dim_{axis}" for axis in promoted])
            assert shared_db.statistics("A") == counted(array)

    @pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)], ids=str)
    def test_measuring_stores_no_tables(self, shared_db: se.Database, shape: tuple[int, ...]) -> None:
        for promoted in subsets(len(shape)):
            shared_db.tensor("A", np.zeros(shape), promoted=[f"dim_{axis}" for axis in promoted])
            assert shared_db.statistics("A") == Statistics(0, (0,) * len(shape), shape)

    def test_explicit_zeros_are_tuples_but_no_entries(self, db: se.Database) -> None:
        matrix = sp.coo_array((np.array([0.0, 1, 2]), (np.array([0, 1, 1]), np.array([0, 1, 2]))), shape=(3, 3))
        db.tensor("A", matrix)
        assert run_sql(db, "SELECT count(*) FROM A") == [(3,)]
        assert db.statistics("A") == Statistics(2, (1, 2), (3, 3))

    def test_tables_of_the_user(self, db: se.Database) -> None:
        run_sql(db, "CREATE TABLE e AS FROM (VALUES (0, 0, 0.0), (1, 2, 3.0), (2, 2, 0.0)) t(a, b, w)")
        db.tensor_from_table("Weighted", "e", ["a", "b"], "w", shape=(4, 4))
        db.tensor_from_table("Counted", "e", ["a", "b"], shape=(4, 4))
        assert db.statistics("Weighted") == Statistics(1, (1, 1), (4, 4))
        assert db.statistics("Counted") == Statistics(3, (3, 2), (4, 4))

    def test_measured_each_time(self, db: se.Database) -> None:
        run_sql(db, "CREATE TABLE e (a INTEGER, b INTEGER)")
        db.tensor_from_table("E", "e", ["a", "b"], shape=(4, 4))
        assert db.statistics("E") == Statistics(0, (0, 0), (4, 4))
        run_sql(db, "INSERT INTO e VALUES (3, 1), (3, 2)")
        assert db.statistics("E") == Statistics(2, (1, 2), (4, 4))

    def test_matrices_of_the_paper(self, db: se.Database) -> None:
        db.tensor("U", PAPER_U)
        db.tensor("V", PAPER_V)
        assert db.statistics("U") == Statistics(5, (2, 4), (4, 4))
        assert db.statistics("V") == Statistics(6, (4, 2), (4, 4))


class TestPromoted:
    """Equation 7: the number of tuples with some promoted axes."""

    @pytest.mark.parametrize(
        ("array", "tiles", "tuples"),
        # Section 4: U in rows, V in columns; U in columns, V in single entries.
        [(PAPER_U, (1, 0), 2), (PAPER_V, (0, 1), 2), (PAPER_U, (0, 1), 4), (PAPER_V, (1, 1), 6)],
    )
    def test_relations_that_the_paper_prints(
        self, array: NDArray[np.float64], tiles: tuple[int, ...], tuples: int
    ) -> None:
        assert counted(array).tuples(tiles) == tuples

    def test_between_the_ends(self) -> None:
        # 200 places; 200 (1 - exp(-300 / 200)) of them are taken
        assert Statistics(300, (10, 20, 30), (10, 20, 30)).tuples((1, 1, 0)) == pytest.approx(
            155.373967970314, rel=1e-12
        )
        # 600 places; 600 (1 - exp(-300 / 600)) of them are taken
        assert Statistics(300, (10, 20, 30), (10, 20, 30)).tuples((0, 1, 1)) == pytest.approx(
            236.081604172419, rel=1e-12
        )

    def test_ends_are_exact(self) -> None:
        statistics = Statistics(300, (10, 20, 30), (10, 20, 30))
        assert statistics.tuples((0, 0, 0)) == 1
        assert [statistics.tuples(tiles) for tiles in ((1, 0, 0), (0, 1, 0), (0, 0, 1))] == pytest.approx(
            [10, 20, 30], rel=1e-6
        )
        assert statistics.tuples((1, 1, 1)) == 300

    def test_one_axis_has_as_many_tuples_as_distinct_indices(self) -> None:
        assert occupied(50, 50) == pytest.approx(50 * 0.632120558828558)
        assert Statistics(50, (50, 50, 50), (60, 60, 60)).tuples((1, 0, 0)) == 50

    def test_never_less_than_the_largest_axis(self) -> None:
        # 200 places, of which equation 7 would have 79 taken
        assert Statistics(101, (100, 2, 2), (100, 2, 2)).tuples((1, 1, 0)) == 100

    def test_never_more_than_keys_or_entries(self) -> None:
        assert Statistics(10_000, (10, 10, 100), (10, 10, 100)).tuples((1, 1, 0)) == pytest.approx(100)
        assert Statistics(7, (7, 7, 7), (9, 9, 9)).tuples((1, 1, 0)) == 7

    def test_bounds_by_operands_count(self) -> None:
        most = {frozenset((0, 1)): 120.0}
        assert Statistics(300, (10, 20, 30), (10, 20, 30), most).tuples((1, 1, 0)) == 120

    @pytest.mark.parametrize("tiles", list(itertools.product((0, 1, 4), repeat=2)), ids=str)
    def test_empty_tensors_have_no_tuples(self, tiles: tuple[int, ...]) -> None:
        assert Statistics(0, (0, 0), (9, 9)).tuples(tiles) == 0

    def test_counted_tuples_are_preferred(self) -> None:
        statistics = Statistics(300, (10, 20), (10, 20), counted_tuples={(4, 4): 7.0})
        assert statistics.tuples((4, 4)) == 7
        assert statistics.tuples((4, 5)) == Statistics(300, (10, 20), (10, 20)).tuples((4, 5))

    def test_close_to_the_truth_for_entries_spread_evenly(self) -> None:
        rng = np.random.default_rng(3)
        array = (rng.random((30, 20, 50)) < 0.02).astype(float)
        for promoted in subsets(3)[1:]:
            inside = tuple(axis for axis in range(3) if axis not in promoted)
            assert counted(array).tuples(tiles_of(promoted, 3)) == pytest.approx(
                float(array.any(axis=inside).sum()), rel=0.05
            )


class TestTiled:
    """The number of tuples with tiled axes."""

    @pytest.mark.parametrize(
        ("entries", "tile", "blocks"),
        [
            (40, 1, 40),  # every index a block
            (100, 8, 13),  # all of 100 indices are taken, and the last block is short
            (40, 200, 1),  # one block
            # 10 blocks; 10 (1 - exp(-40 / 10)) of them are taken
            (40, 10, 9.81684361111266),
            (2, 10, 1.81269246922018),
            # at least as many as 99 indices need, where 34 (1 - exp(-99 / 34)) is less
            (99, 3, 33),
        ],
    )
    def test_blocks_of_an_axis(self, entries: int, tile: int, blocks: float) -> None:
        assert Statistics(entries, (entries,), (100,)).blocks(0, tile) == pytest.approx(blocks, rel=1e-12)

    def test_equation_7_over_the_cells_of_blocks(self) -> None:
        statistics = Statistics(300, (100, 200), (100, 200))
        # 10 times 50 blocks; 500 (1 - exp(-300 / 500)) of them are taken
        assert statistics.tuples((10, 4)) == pytest.approx(225.594181953, rel=1e-9)
        # 100 times 50 blocks; 5,000 (1 - exp(-300 / 5,000))
        assert statistics.tuples((1, 4)) == pytest.approx(291.177332079, rel=1e-9)
        assert statistics.tuples((10, 0)) == pytest.approx(10)

    def test_labels_have_tiles(self) -> None:
        operand = by_label(("i", "j"), Statistics(300, (100, 200), (100, 200)))
        assert operand.tuples({"j": 4, "k": 1}) == operand.statistics.tuples((0, 4)) == pytest.approx(50)
        assert operand.distinct({"i": 1, "j": 4, "k": 1}) == {"i": 100, "j": 50}

    @pytest.mark.parametrize("density", [0.01, 0.05, 0.3])
    def test_close_to_the_truth_for_entries_spread_evenly(self, density: float) -> None:
        rng = np.random.default_rng(4)
        array = (rng.random((90, 128)) < density).astype(float)
        for rows, columns in itertools.product((1, 4, 7, 30), repeat=2):
            padded = np.pad(array, ((0, -90 % rows), (0, -128 % columns)))
            blocks = padded.reshape(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
            true = float(blocks.any(axis=(1, 3)).sum())
            assert counted(array).tuples((rows, columns)) == pytest.approx(true, rel=0.1), (rows, columns)

    @settings(max_examples=examples(200))
    @given(st.data())
    def test_larger_tiles_never_mean_more_tuples(self, data: st.DataObject) -> None:
        shape = tuple(data.draw(st.integers(1, 300)) for _ in range(2))
        distinct = tuple(data.draw(st.integers(1, bound)) for bound in shape)
        entries = data.draw(st.integers(max(distinct), math.prod(distinct)))
        statistics = Statistics(entries, distinct, shape)
        tiles = [data.draw(st.integers(1, 40)) for _ in range(2)]
        larger = [tile * data.draw(st.integers(1, 9)) for tile in tiles]
        assert statistics.tuples(larger) <= statistics.tuples(tiles) * (1 + 1e-9)
