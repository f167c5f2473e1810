"""Estimates from counts per index are close even where entries crowd at few indices."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from any_sql import run_sql
from evaluated_programs import evaluated
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_runs import examples
from random_statements import draw_statements

import sparseeinsum as se
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics import axis_counts
from sparseeinsum.statistics.axis_counts import AxisCounts, Bins, binned, count_entries, measure_counts, occupied_cells
from sparseeinsum.statistics.estimate import Statistics, join_tuples, occupied
from sparseeinsum.statistics.estimators import Estimator, UniformEstimator
from sparseeinsum.statistics.sketch_estimates import SketchEstimator

Array = NDArray[np.float64]


def counted(array: Array) -> Statistics:
    """T and V by numpy."""
    distinct = tuple(float((axis.entries > 0).sum()) for axis in counts_of(array))
    return Statistics(float(np.count_nonzero(array)), distinct, array.shape)


def counts_of(array: Array) -> tuple[AxisCounts, ...]:
    """Numbers of entries at every index, by numpy."""
    is_entry = array != 0
    others = [tuple(other for other in range(array.ndim) if other != axis) for axis in range(array.ndim)]
    return tuple(
        AxisCounts(is_entry.sum(axis=axes).astype(float), is_entry.any(axis=axes).astype(float)) for axes in others
    )


def measured_counts(db: se.Database, stored: StoredTensor, statistics: Statistics) -> tuple[AxisCounts, ...]:
    return measure_counts({"A": stored}, {"A": statistics}, partial(count_entries, executor=db._engine))["A"]


def estimated(text: str, estimator: Estimator, statistics: dict[str, Statistics]) -> dict[str, Statistics]:
    """Statistics of all tensors of a program."""
    graph, evaluations = evaluated(text, statistics)
    return estimator(graph, statistics, evaluations)


def sketched(text: str, **arrays: Array) -> dict[str, Statistics]:
    """Estimates from the counts of arrays."""
    statistics = {name: counted(array) for name, array in arrays.items()}
    return estimated(text, SketchEstimator({name: counts_of(array) for name, array in arrays.items()}), statistics)


def uniform(text: str, **arrays: Array) -> dict[str, Statistics]:
    """Estimates under the assumption that entries are spread evenly."""
    return estimated(text, UniformEstimator(), {name: counted(array) for name, array in arrays.items()})


def power_law(size: int, seed: int, share: float = 3) -> Array:
    """A matrix whose entries crowd at few rows and few columns."""
    weights = (np.arange(size) + 1.0) ** -0.7
    return (np.random.default_rng(seed).random((size, size)) < share * np.outer(weights, weights)).astype(float)


def evenly(shape: tuple[int, ...], density: float, seed: int) -> Array:
    return (np.random.default_rng(seed).random(shape) < density).astype(float)


class TestMeasured:
    @pytest.mark.parametrize("dtype", ["float64", "bool", "complex64"])
    @pytest.mark.parametrize("promoted", [(), (1,), (0, 2), (0, 1, 2)], ids=str)
    def test_every_layout_has_the_same_counts(
        self, shared_db: se.Database, promoted: tuple[int, ...], dtype: str
    ) -> None:
        array = evenly((4, 5, 6), 0.2, seed=1)
        array[2] = 0
        stored = shared_db.tensor("A", array.astype(dtype), promoted=[f"dim_{axis}" for axis in promoted])
        for actual, expected in zip(measured_counts(shared_db, stored, counted(array)), counts_of(array), strict=True):
            np.testing.assert_array_equal(actual.entries, expected.entries)
            np.testing.assert_array_equal(actual.present, expected.present)

    @pytest.mark.parametrize("array", [np.zeros((3, 4)), np.ones((3, 4)), np.ones(()), np.zeros((3, 0))], ids=str)
    def test_counts_that_statistics_determine_are_not_measured(self, shared_db: se.Database, array: Array) -> None:
        stored = shared_db.tensor("A", array)
        shared_db.connection.execute("DELETE FROM A")
        for actual, expected in zip(measured_counts(shared_db, stored, counted(array)), counts_of(array), strict=True):
            np.testing.assert_array_equal(actual.entries, expected.entries)

    def test_entries_differ_from_the_fill(self, shared_db: se.Database) -> None:
        array = np.where(evenly((6, 7), 0.2, seed=2) > 0, 0.0, 7.0)
        for promoted in ([], ["dim_0"], ["dim_0", "dim_1"]):
            stored = shared_db.tensor("A", array, fill=7, promoted=promoted)
            rows, _ = measured_counts(shared_db, stored, counted(array - 7))
            np.testing.assert_array_equal(rows.entries, (array != 7).sum(axis=1))


class TestCells:
    def test_equal_probabilities_give_equation_7(self) -> None:
        axes = [Bins.from_weights(np.full(bound, 1 / bound), 9) for bound in (30, 40)]
        cells, (rows, columns) = occupied_cells(900, axes)
        assert cells == pytest.approx(occupied(1200, 900), rel=1e-12)
        assert rows.tolist() == pytest.approx([cells / 30] * 30)
        assert columns.tolist() == pytest.approx([cells / 40] * 40)

    def test_different_probabilities(self) -> None:
        rng = np.random.default_rng(3)
        weights = [rng.pareto(1.5, bound) for bound in (50, 60)]
        weights[0][:10] = 0
        shares = [weight / weight.sum() for weight in weights]
        expected = 1 - np.exp(-800 * np.outer(*shares))
        cells, (rows, columns) = occupied_cells(800, [Bins.from_weights(share, 100) for share in shares])
        assert cells == pytest.approx(expected.sum(), rel=1e-3)
        np.testing.assert_allclose(rows, expected.sum(axis=1), rtol=0.1)
        np.testing.assert_allclose(columns, expected.sum(axis=0), rtol=0.1)

    @pytest.mark.parametrize("most", [1, 2, 7, 1000])
    def test_bins_keep_the_sum(self, most: int) -> None:
        weights = np.random.default_rng(4).pareto(1.0, 200)
        bins = Bins.from_weights(weights, most)
        assert len(bins.sizes) <= most
        assert float(bins.sizes @ bins.weights) == pytest.approx(weights.sum())
        assert bins.sizes.sum() == 200

    def test_no_entries(self) -> None:
        cells, (rows, _) = occupied_cells(0, binned([AxisCounts(np.zeros(3), np.zeros(3))] * 2))
        assert (cells, rows.tolist()) == (0, [0, 0, 0])


class TestProducts:
    TEXT = "C[i, k] = sum(A[i, j] * B[j, k])"

    def test_products_with_one_entry_a_row_are_exact(self) -> None:
        """A selection of rows: MNC, section 3."""
        rng = np.random.default_rng(5)
        a = np.zeros((70, 50))
        a[np.arange(70), rng.integers(0, 20, 70)] = 1
        b = power_law(50, seed=6)
        estimate = sketched(self.TEXT, A=a, B=b)["C"]
        assert estimate.entries == pytest.approx(np.count_nonzero(a @ b), rel=1e-12)
        assert uniform(self.TEXT, A=a, B=b)["C"].entries != pytest.approx(estimate.entries, rel=0.1)

    def test_products_of_full_rows_and_columns_are_exact(self) -> None:
        """Pairs of one inner index fall into different cells: a full column times a full row fills all cells."""
        a, b = np.zeros((30, 9)), np.zeros((9, 40))
        a[:, [2, 3]] = b[[2, 3], :] = 1
        assert sketched(self.TEXT, A=a, B=b)["C"].entries == pytest.approx(1200)
        assert uniform(self.TEXT, A=a, B=b)["C"].entries < 1100

    def test_indices_that_the_other_side_lacks(self) -> None:
        """Entries at few indices: the sketch knows how many meet, the uniform estimate assumes that all do."""
        a, b = evenly((400, 400), 0.001, seed=7), evenly((400, 400), 0.001, seed=8)
        true = np.count_nonzero(a @ b)
        assert sketched(self.TEXT, A=a, B=b)["C"].entries == pytest.approx(true, rel=0.05)
        assert uniform(self.TEXT, A=a, B=b)["C"].entries > 1.5 * true

    @pytest.mark.parametrize("seed", range(3))
    def test_square_and_cube_of_a_power_law(self, seed: int) -> None:
        a = power_law(400, seed)
        text = "B[i, k] = sum(A[i, j] * A[j, k])\nC[i, l] = sum(B[i, k] * A[k, l])"
        estimates, plain = sketched(text, A=a), uniform(text, A=a)
        for name, true in (("B", np.count_nonzero(a @ a)), ("C", np.count_nonzero(a @ a @ a))):
            assert estimates[name].entries == pytest.approx(true, rel=0.15)
            assert max(plain[name].entries / true, true / plain[name].entries) > 1.2

    def test_pairs_that_crowd_at_few_indices(self) -> None:
        """Most pairs meet at the hubs of a graph, which the sketch of inputs shows exactly."""
        a, b = power_law(300, 1), power_law(300, 2)
        skew = sketched(self.TEXT, A=a, B=b)["C"].skew
        u, v = counted(a), counted(b)
        evenly = join_tuples(u.entries, v.entries, {"j": u.distinct[1]}, {"j": v.distinct[0]})
        assert skew == {"j": pytest.approx(float(a.sum(axis=0) @ b.sum(axis=1)) / evenly)}
        assert skew["j"] > 2
        assert uniform(self.TEXT, A=a, B=b)["C"].skew == {}

    def test_pairs_of_entries_spread_evenly_do_not_crowd(self) -> None:
        a, b = evenly((100, 300), 0.3, 3), evenly((300, 100), 0.3, 4)
        assert sketched(self.TEXT, A=a, B=b)["C"].skew == {"j": pytest.approx(1, rel=0.01)}

    def test_distinct_indices_of_a_chain(self) -> None:
        arrays = {name: evenly((500, 500), 0.002, seed) for seed, name in enumerate("ABC", 9)}
        estimates = sketched("X[i, k] = sum(A[i, j] * B[j, k])\nY[i, l] = sum(X[i, k] * C[k, l])", **arrays)
        for name, true in (("X", arrays["A"] @ arrays["B"]), ("Y", arrays["A"] @ arrays["B"] @ arrays["C"])):
            assert estimates[name].entries == pytest.approx(np.count_nonzero(true), rel=0.1)
            assert estimates[name].distinct == pytest.approx(counted(true).distinct, rel=0.1)


class TestElementwise:
    def test_product(self) -> None:
        a, b = power_law(300, 11), power_law(300, 12)
        estimate = sketched("C[i, j] = A[i, j] * B[i, j]", A=a, B=b)["C"]
        assert estimate.entries == pytest.approx(np.count_nonzero(a * b), rel=0.5)
        assert uniform("C[i, j] = A[i, j] * B[i, j]", A=a, B=b)["C"].entries < np.count_nonzero(a * b) / 3

    def test_sum(self) -> None:
        a, b = evenly((80, 90), 0.02, 13), np.zeros((80, 90))
        b[:5] = 1
        estimate = sketched("C[i, j] = A[i, j] + B[i, j]", A=a, B=b)["C"]
        assert estimate.entries == pytest.approx(np.count_nonzero(a + b), rel=0.05)
        assert estimate.distinct == pytest.approx(counted(a + b).distinct, rel=0.05)

    def test_scaled_rows_keep_their_entries(self) -> None:
        a, b = power_law(200, 14), np.ones(200)
        b[100:] = 0
        estimate = sketched("C[i, j] = A[i, j] * B[i]", A=a, B=b)["C"]
        assert estimate.entries == pytest.approx(np.count_nonzero(a * b[:, None]), rel=1e-9)
        assert estimate.distinct[0] == counted(a * b[:, None]).distinct[0]

    def test_operands_kept_whole_keep_their_counts(self) -> None:
        a = power_law(100, 15)
        estimates = sketched("C[i, j] = A[i, j] * (B[i] + 1)\nD[i] = sum(C[i, j])", A=a, B=np.ones(100))
        assert estimates["C"].entries == np.count_nonzero(a)
        assert estimates["D"].entries == counted(a).distinct[0]


class TestOthers:
    def test_aggregates_of_one_operand(self) -> None:
        a = power_law(150, 16)
        estimates = sketched("R[i] = sum(A[i, j])\nS[j] = sum(A[i, j])\nT[] = sum(A[i, j])", A=a)
        assert (estimates["R"].entries, estimates["S"].entries) == counted(a).distinct
        assert estimates["T"] == Statistics(1, (), ())

    def test_diagonal(self) -> None:
        a = power_law(400, 17)
        true, entries = np.count_nonzero(np.diag(a)), sketched("D[i] = A[i, i]", A=a)["D"].entries
        assert uniform("D[i] = A[i, i]", A=a)["D"].entries < entries / 1.5 < true

    def test_tuples_of_some_axes(self) -> None:
        weights = (np.arange(40) + 1.0) ** -1.2
        chances = 9 * weights[:, None, None] * weights[:, None] * weights
        a = (np.random.default_rng(18).random((40, 40, 40)) < chances).astype(float)
        plain, estimates = uniform("B[i, j, k] = 2 * A[i, j, k]", A=a), sketched("B[i, j, k] = 2 * A[i, j, k]", A=a)
        for axis, tiles in enumerate([(0, 1, 1), (1, 0, 1), (1, 1, 0)]):
            true = np.count_nonzero(a.any(axis=axis))
            assert plain["B"].tuples(tiles) > 1.4 * true
            for name in "AB":
                assert estimates[name].tuples(tiles) == pytest.approx(true, rel=0.15)

    def test_results_of_empty_tensors_are_empty(self) -> None:
        estimate = sketched("C[i, k] = sum(A[i, j] * B[j, k])", A=np.zeros((3, 4)), B=np.ones((4, 5)))["C"]
        assert estimate == Statistics(0, (0, 0), (3, 5))

    def test_axes_that_are_too_long_are_taken_to_be_even(self, monkeypatch: pytest.MonkeyPatch) -> None:
        arrays = {"A": power_law(50, 19), "B": power_law(50, 20)}
        monkeypatch.setattr(axis_counts, "LARGEST_BOUND", 49)
        assert sketched(TestProducts.TEXT, **arrays)["C"] == uniform(TestProducts.TEXT, **arrays)["C"]

    @pytest.mark.parametrize("rank", [6, 16, 40])
    def test_many_axes(self, rank: int) -> None:
        """There are too many axes to count cells; the first index of every axis has most entries."""
        counted_axis = AxisCounts(np.array([75.0, 25.0]), np.ones(2))
        statistics = dict.fromkeys("AB", Statistics(100, (2,) * rank, (2,) * rank))
        labels = [f"x{axis}" for axis in range(rank)]
        others = ["y", *labels[1:]]
        text = f"C[{', '.join(labels)}] = sum(A[{', '.join(labels)}] * B[{', '.join(others)}])"
        estimate = estimated(text, SketchEstimator(dict.fromkeys("AB", (counted_axis,) * rank)), statistics)["C"]
        assert 1 <= estimate.entries <= 100
        assert len(estimate.distinct) == rank

    def test_evenly_spread_entries_give_nearly_the_uniform_estimate(self) -> None:
        statistics = {"A": Statistics(500, (100, 200), (100, 200)), "B": Statistics(800, (200, 50), (200, 50))}
        estimate = estimated(TestProducts.TEXT, SketchEstimator({}), statistics)["C"]
        assert estimate.entries == pytest.approx(
            estimated(TestProducts.TEXT, UniformEstimator(), statistics)["C"].entries, rel=0.01
        )

    @settings(max_examples=examples(100))
    @given(st.data())
    def test_sizes_are_possible(self, data: st.DataObject) -> None:
        """In any graph, promoting more axes never gives fewer tuples, nor more than possible."""
        for name, statistics in _random_estimates(data).items():
            all_tiles = list(itertools.product((0, 1), repeat=len(statistics.shape)))
            tuples = {tiles: statistics.tuples(tiles) for tiles in all_tiles}
            assert tuples[all_tiles[-1]] == pytest.approx(statistics.entries)
            assert all(
                value <= bound + 1e-9 for value, bound in zip(statistics.distinct, statistics.shape, strict=True)
            )
            for tiles, count in tuples.items():
                values = [value for value, tile in zip(statistics.distinct, tiles, strict=True) if tile]
                assert max(values, default=0) * (1 - 1e-9) <= count, name
                assert count <= min(math.prod(values), statistics.entries) * (1 + 1e-9) or not values, name
                for more, greater in tuples.items():
                    is_more = all(first <= second for first, second in zip(tiles, more, strict=True))
                    assert not is_more or count <= greater * (1 + 1e-9), (name, tiles, more)


def _random_estimates(data: st.DataObject) -> dict[str, Statistics]:
    """Statistics of the tensors of a random program of three statements on random arrays."""
    bounds = {label: data.draw(st.sampled_from([1, 3, 12])) for label in "ijk"}
    labels_of = {name: data.draw(st.permutations("ijk"))[: data.draw(st.integers(1, 3))] for name in "ABC"}
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    arrays = {}
    for name, labels in labels_of.items():
        shape = tuple(bounds[label] for label in labels)
        array = (rng.random(shape) < rng.random(shape) ** data.draw(st.sampled_from([0.3, 1, 6]))).astype(float)
        array.flat[0] = 1
        arrays[name] = array
    return sketched(draw_statements(data, labels_of), **arrays)


@pytest.mark.engines("duckdb", "postgresql")
def test_relations_of_arrays_without_tuples_have_no_entries(db: se.Database) -> None:
    """The planner counts results, too, which may turn out empty although their size was estimated."""
    db.tensor("A", np.ones((2, 3)), axes=["i", "j"], promoted=["i"])
    run_sql(db, "DELETE FROM a")
    stored = db.tensors()["A"]
    for axis, bound in zip(count_entries({"A": stored}, db._engine)["A"], (2, 3), strict=True):
        np.testing.assert_array_equal(axis.entries, np.zeros(bound))
        assert axis.total == axis.distinct == 0
