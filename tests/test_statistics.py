"""Statistics: T and V of stored tensors are numpy's counts; estimates are equation 7, mended, and hand-computed."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from any_sql import run_sql
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_statements import draw_statements

import sparseeinsum as se
from sparseeinsum.language.binding import bind
from sparseeinsum.language.lowering import read_program
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.semantics.exactness import JoinKind, Values, evaluate_exactly
from sparseeinsum.semantics.ranges import Range
from sparseeinsum.statistics.estimate import (
    Statistics,
    by_label,
    estimate,
    join_tuples,
    joined_distinct,
    joined_tuples,
    occupied,
)

# The matrices of SparseEinSum, section 4.1.
PAPER_U = np.array([[1.4, 2.2, 0, 2.1], [0, 0, 0, 0], [1.4, 0, 1.1, 0], [0, 0, 0, 0]])
PAPER_V = np.array([[3.2, 0, 1.3, 0], [0, 0, 0.6, 0], [0, 0, 1.2, 0], [1.2, 0, 2.1, 0]])


def counted(array: NDArray[np.float64]) -> Statistics:
    """T and V by numpy."""
    is_entry = array != 0
    others = [tuple(other for other in range(array.ndim) if other != axis) for axis in range(array.ndim)]
    distinct = tuple(float(is_entry.any(axis=axes).sum()) for axes in others)
    return Statistics(float(is_entry.sum()), distinct, array.shape)


def estimated(text: str, **known: Statistics) -> dict[str, Statistics]:
    """Statistics of all tensors of a program; of its inputs they are given."""
    tensors = {
        name: Tensor(name, tuple(Axis(f"dim_{axis}", bound) for axis, bound in enumerate(each.shape)))
        for name, each in known.items()
    }
    graph = bind(read_program(text), tensors)
    evaluations = evaluate_exactly(graph, dict.fromkeys(tensors, Values(Range(-9, 9), has_fill=True))).evaluations
    return estimate(graph, known, evaluations)


def subsets(rank: int) -> list[tuple[int, ...]]:
    return [kept for size in range(rank + 1) for kept in itertools.combinations(range(rank), size)]


def tiles_of(promoted: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return tuple(int(axis in promoted) for axis in range(rank))


class TestMeasured:
    @pytest.mark.parametrize("promoted", subsets(3), ids=str)
    @pytest.mark.parametrize("density", [0.0, 0.05, 0.4, 1.0])
    def test_every_layout_counts_alike(self, shared_db: se.Database, promoted: tuple[int, ...], density: float) -> None:
        rng = np.random.default_rng(7)
        array = rng.uniform(-2, 2, (3, 4, 5)) * (rng.random((3, 4, 5)) < density)
        array[1] = 0
        shared_db.tensor("A", array, promoted=[f"dim_{axis}" for axis in promoted])
        assert shared_db.statistics("A") == counted(array)

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("promoted", subsets(2), ids=str)
    def test_not_finite_is_an_entry_and_negative_zero_is_none(
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
    def test_nothing_is_stored(self, shared_db: se.Database, shape: tuple[int, ...]) -> None:
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

    def test_measured_anew_each_time(self, db: se.Database) -> None:
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
    """Equation 7: tuples of a tensor when some of its axes are promoted."""

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

    def test_one_axis_has_as_many_tuples_as_values_even_where_equation_7_says_fewer(self) -> None:
        assert occupied(50, 50) == pytest.approx(50 * 0.632120558828558)
        assert Statistics(50, (50, 50, 50), (60, 60, 60)).tuples((1, 0, 0)) == 50

    def test_never_less_than_the_largest_axis(self) -> None:
        # 200 places, of which equation 7 would have 79 taken
        assert Statistics(101, (100, 2, 2), (100, 2, 2)).tuples((1, 1, 0)) == 100

    def test_never_more_than_places_or_entries(self) -> None:
        assert Statistics(10_000, (10, 10, 100), (10, 10, 100)).tuples((1, 1, 0)) == pytest.approx(100)
        assert Statistics(7, (7, 7, 7), (9, 9, 9)).tuples((1, 1, 0)) == 7

    def test_what_the_operands_allow_bounds_results(self) -> None:
        most = {frozenset((0, 1)): 120.0}
        assert Statistics(300, (10, 20, 30), (10, 20, 30), most).tuples((1, 1, 0)) == 120

    @pytest.mark.parametrize("tiles", list(itertools.product((0, 1, 4), repeat=2)), ids=str)
    def test_of_nothing(self, tiles: tuple[int, ...]) -> None:
        assert Statistics(0, (0, 0), (9, 9)).tuples(tiles) == 0

    def test_what_was_counted_is_preferred(self) -> None:
        statistics = Statistics(300, (10, 20), (10, 20), measured={(4, 4): 7.0})
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
    """The same of decompositions whose keys are an index divided by a tile."""

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

    def test_equation_7_over_the_places_of_blocks(self) -> None:
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

    @settings(max_examples=200)
    @given(st.data())
    def test_larger_tiles_never_mean_more_tuples(self, data: st.DataObject) -> None:
        shape = tuple(data.draw(st.integers(1, 300)) for _ in range(2))
        distinct = tuple(data.draw(st.integers(1, bound)) for bound in shape)
        entries = data.draw(st.integers(max(distinct), math.prod(distinct)))
        statistics = Statistics(entries, distinct, shape)
        tiles = [data.draw(st.integers(1, 40)) for _ in range(2)]
        larger = [tile * data.draw(st.integers(1, 9)) for tile in tiles]
        assert statistics.tuples(larger) <= statistics.tuples(tiles) * (1 + 1e-9)


class TestJoined:
    def test_join_that_the_introduction_computes(self) -> None:
        """100 million vertices of 1,000 neighbours and 8,192 numbers each: 820 trillion pairs, 6,000 trillion then."""
        vertices, width = 1e8, 8192.0
        first = join_tuples(width * vertices, 1_000 * vertices, {"i": width, "j": vertices}, {"j": vertices, "k": 1e8})
        assert first == 8.192e14
        second = join_tuples(width * vertices, width**2, {"k": vertices, "i": width}, {"i": width, "m": width})
        assert second == pytest.approx(6.7e15, rel=0.01)

    def test_of_vectors_and_scalars_there(self) -> None:
        """The same with the vertices' numbers inside arrays: 100 billion."""
        assert join_tuples(1e8, 1e11, {"j": 1e8}, {"j": 1e8, "k": 1e8}) == 1e11

    def test_without_a_shared_label_it_is_all_pairs(self) -> None:
        assert join_tuples(30, 7, {"i": 30}, {"k": 7}) == 210

    def test_larger_number_of_values_counts(self) -> None:
        assert join_tuples(60, 70, {"j": 6}, {"j": 14}) == 300

    @pytest.mark.parametrize(
        ("kind", "tuples"), [(JoinKind.INNER, 60), (JoinKind.LEFT, 100), (JoinKind.RIGHT, 120), (JoinKind.FULL, 160)]
    )
    def test_tuples_without_a_partner_stay_where_the_join_keeps_them(self, kind: JoinKind, tuples: float) -> None:
        assert joined_tuples(kind, 100, 120, {"i": 200}, {"i": 150}) == tuples

    @pytest.mark.parametrize(
        ("kind", "values"), [(JoinKind.INNER, 5), (JoinKind.LEFT, 9), (JoinKind.RIGHT, 5), (JoinKind.FULL, 9)]
    )
    def test_values_of_a_shared_label(self, kind: JoinKind, values: float) -> None:
        assert joined_distinct(kind, {"i": 9}, {"i": 5}) == {"i": values}


class TestEstimated:
    def test_matrix_product(self) -> None:
        known = {"A": Statistics(500, (100, 200), (100, 200)), "B": Statistics(800, (160, 50), (200, 50))}
        result = estimated("C[i, k] = sum(A[i, j] * B[j, k])", **known)["C"]
        # 500 * 800 / 200 = 2,000 products; 5,000 (1 - exp(-2,000 / 5,000))
        assert result.entries == pytest.approx(1648.39976982180, rel=1e-12)
        assert result.distinct == (100, 50)

    def test_product_of_the_matrices_of_the_paper(self) -> None:
        known = {"U": counted(PAPER_U), "V": counted(PAPER_V)}
        # 5 * 6 / 4 = 7.5 products; 4 (1 - exp(-7.5 / 4)); the product has 4 entries
        result = estimated("W[i, k] = sum(U[i, j] * V[j, k])", **known)["W"]
        assert result.entries == pytest.approx(4 * (1 - math.exp(-7.5 / 4)), rel=1e-12)
        assert counted(PAPER_U @ PAPER_V).entries == 4

    def test_diagonal_times_matrix_keeps_its_entries(self) -> None:
        known = {"D": Statistics(50, (50, 50), (50, 50)), "A": Statistics(100, (50, 50), (50, 50))}
        # 50 * 100 / 50 = 100 products; 2,500 (1 - exp(-100 / 2,500))
        assert estimated("C[i, k] = sum(D[i, j] * A[j, k])", **known)["C"].entries == pytest.approx(98.0264, rel=1e-5)

    def test_elementwise_product(self) -> None:
        known = {"A": Statistics(100, (10, 20), (10, 20)), "B": Statistics(40, (10, 16), (10, 20))}
        # the product of 100 and 40 entries over 10 times 20 places
        assert estimated("C[i, j] = A[i, j] * B[i, j]", **known)["C"] == Statistics(
            20, (10, 16), (10, 20), {frozenset((0,)): 10, frozenset((1,)): 16, frozenset((0, 1)): 20}
        )

    def test_elementwise_sum_has_the_entries_of_both(self) -> None:
        known = {"A": Statistics(100, (10, 20), (10, 20)), "B": Statistics(40, (8, 16), (10, 20))}
        result = estimated("C[i, j] = A[i, j] + B[i, j]", **known)["C"]
        assert (result.entries, result.distinct) == (120, (10, 20))

    def test_what_is_kept_whole_keeps_its_values(self) -> None:
        known = {"A": Statistics(50, (10, 20), (100, 20)), "B": Statistics(100, (100,), (100,))}
        result = estimated("C[i, j] = A[i, j] * (B[i] + 1)", **known)["C"]
        assert (result.entries, result.distinct) == (50, (10, 20))

    def test_sum_over_an_axis(self) -> None:
        known = {"A": Statistics(400, (300, 20), (1000, 20))}
        result = estimated("R[i] = sum(A[i, j])", **known)["R"]
        assert (result.entries, result.distinct) == (300, (300,))

    def test_sum_over_everything_is_one_entry(self) -> None:
        known = {"A": Statistics(2, (2, 1), (1000, 20))}
        assert estimated("R[] = sum(A[i, j])", **known)["R"] == Statistics(1, (), ())

    @pytest.mark.parametrize(
        ("function", "entries"), [("relu", 40), ("exp", 40), ("2 +", 40), ("1 /", 200), ("0 ^", 40)]
    )
    def test_function_makes_dense_where_what_is_absent_has_no_value(self, function: str, entries: float) -> None:
        known = {"A": Statistics(40, (10, 16), (10, 20))}
        result = estimated(f"B[i, j] = {function} (A[i, j])", **known)["B"]
        assert result.entries == entries
        assert result.distinct == ((10, 16) if entries == 40 else (10, 20))

    def test_rows_without_entries_hold_the_fill_of_their_maximum(self) -> None:
        known = {"A": Statistics(4, (2, 3), (10, 20))}
        assert estimated("M[i] = max(A[i, j])", **known)["M"].entries == 2

    def test_diagonal(self) -> None:
        known = {"A": Statistics(500, (50, 40), (50, 50))}
        # every entry is on the diagonal with chance 1 / 50
        assert by_label(("i", "i"), Statistics(500, (50, 40), (50, 50))).statistics == Statistics(10, (10,), (50,))
        assert estimated("D[i] = A[i, i]", **known)["D"].entries == 10

    def test_trace(self) -> None:
        assert estimated("t[] = sum(A[i, i])", A=Statistics(500, (50, 40), (50, 50)))["t"].entries == 1

    def test_of_nothing_is_nothing(self) -> None:
        known = {"A": Statistics(0, (0, 0), (10, 20)), "B": Statistics(100, (20, 5), (20, 5))}
        assert estimated("C[i, k] = sum(A[i, j] * B[j, k])", **known)["C"] == Statistics(0, (0, 0), (10, 5))

    def test_never_less_than_one_entry(self) -> None:
        """As fractions, products of numbers of values would fall with every axis."""
        known = {"A": Statistics(2, (2, 2), (100, 100)), "B": Statistics(3, (3, 3), (100, 100))}
        # two times three entries over three times three places: less than one
        result = estimated("C[i, j] = A[i, j] * B[i, j]", **known)["C"]
        assert (result.entries, result.distinct) == (1, (1, 1))

    def test_operands_tuples_bound_those_of_the_result(self) -> None:
        """Attention: a dense matrix spread by a sparse one has the sparse one's pairs, not evenly spread entries."""
        known = {"Q": Statistics(6400, (100, 64), (100, 64)), "A": Statistics(300, (100, 100), (100, 100))}
        result = estimated("T[i, j, k] = Q[i, k] * A[i, j]", **known)["T"]
        assert result.entries == 300 * 64
        assert result.tuples((1, 1, 0)) == 300
        assert occupied(100 * 100, 300 * 64) > 8_000  # equation 7 alone

    def test_results_of_results(self) -> None:
        known = {"A": Statistics(500, (100, 200), (100, 200)), "B": Statistics(800, (160, 50), (200, 50))}
        text = "C[i, k] = sum(A[i, j] * B[j, k])\nE[i, k] = 1 / C[i, k]\nS[i] = sum(E[i, k])"
        found = estimated(text, **known)
        assert found["E"].entries == 5000
        assert found["S"].entries == 100

    @settings(max_examples=200)
    @given(st.data())
    def test_sizes_are_possible(self, data: st.DataObject) -> None:
        """In any graph, more promoted axes never mean fewer tuples, nor more than there can be."""
        for name, statistics in _random_estimates(data).items():
            shape = statistics.shape
            tuples = {
                frozenset(promoted): statistics.tuples(tiles_of(promoted, len(shape)))
                for promoted in subsets(len(shape))
            }
            assert statistics.entries == 0 or tuples[frozenset()] == 1
            assert not shape or tuples[frozenset(range(len(shape)))] == pytest.approx(statistics.entries)
            assert all(value <= bound for value, bound in zip(statistics.distinct, shape, strict=True))
            for promoted, count in tuples.items():
                most = math.prod(statistics.distinct[axis] for axis in promoted)
                least = max((statistics.distinct[axis] for axis in promoted), default=0)
                assert least - 1e-9 <= count <= min(most, statistics.entries) * (1 + 1e-9) or not promoted, name
                for more, greater in tuples.items():
                    assert not promoted < more or count <= greater * (1 + 1e-9), name


def _random_estimates(data: st.DataObject) -> dict[str, Statistics]:
    """Statistics of the tensors of a random program of two or three statements."""
    bounds = {label: data.draw(st.sampled_from([1, 3, 20, 1000])) for label in "ijk"}
    labels_of = {
        name: data.draw(st.permutations("ijk").map(lambda labels: labels[: data.draw(st.integers(1, 3))]))
        for name in ("A", "B", "C")
    }
    known = {}
    for name, labels in labels_of.items():
        shape = tuple(bounds[label] for label in labels)
        entries = max(1, round(math.prod(shape) * data.draw(st.sampled_from([1, 0.1, 0.001]))))
        known[name] = Statistics(float(entries), tuple(float(min(bound, entries)) for bound in shape), shape)
    return estimated(draw_statements(data, labels_of), **known)


class TestError:
    """Estimates against the truth, for entries spread evenly, as they assume."""

    @staticmethod
    def product(shape: tuple[int, int, int], density: float) -> tuple[float, float, Statistics]:
        """Entries of a product of random matrices as estimated and in truth, and statistics of the first."""
        rng = np.random.default_rng(11)
        rows, inner, columns = shape
        a = (rng.random((rows, inner)) < density).astype(float)
        b = (rng.random((inner, columns)) < density).astype(float)
        known = {"A": counted(a), "B": counted(b)}
        found = estimated("C[i, k] = sum(A[i, j] * B[j, k])", **known)["C"]
        return found.entries, counted(a @ b).entries, counted(a)

    @pytest.mark.parametrize(
        ("shape", "density"),
        [
            ((200, 200, 200), 0.01),
            ((200, 200, 200), 0.05),
            ((200, 200, 200), 0.3),
            ((400, 50, 100), 0.01),
            ((400, 50, 100), 0.1),
            ((30, 500, 60), 0.05),
            ((30, 500, 60), 0.3),
        ],
        ids=str,
    )
    def test_matrix_product_within_a_factor_of_1_3(self, shape: tuple[int, int, int], density: float) -> None:
        found, true, _ = self.product(shape, density)
        assert max(found / true, true / found) < 1.3

    def test_matrices_with_empty_rows_and_columns_are_overestimated(self) -> None:
        """The estimator of joins takes both to have entries in the same rows and columns, where chance picks them."""
        found, true, a = self.product((1000, 1000, 1000), 0.0005)
        chance = a.distinct[1] / 1000
        assert chance < 0.5
        assert found * chance == pytest.approx(true, rel=0.3)

    def test_chain_within_a_factor_of_1_3(self) -> None:
        rng = np.random.default_rng(12)
        arrays = {name: (rng.random((150, 150)) < 0.02).astype(float) for name in "ABC"}
        known = {name: counted(array) for name, array in arrays.items()}
        text = "X[i, k] = sum(A[i, j] * B[j, k])\nY[i, l] = sum(X[i, k] * C[k, l])"
        found = estimated(text, **known)["Y"].entries
        true = counted(arrays["A"] @ arrays["B"] @ arrays["C"]).entries
        assert max(found / true, true / found) < 1.3

    def test_of_results_that_were_computed(self, db: se.Database) -> None:
        """Against the database's own count of a result, through the whole pipeline."""
        rng = np.random.default_rng(13)
        for name in "AB":
            db.tensor(name, sp.random_array((120, 120), density=0.02, rng=rng, format="csr"))
        plan = db.plan("C[i, k] = sum(A[i, j] * B[j, k])")
        true = np.count_nonzero(db.run(plan, progress=False)["C"].to_numpy())
        assert plan.statistics["C"].entries == pytest.approx(true, rel=0.1)
