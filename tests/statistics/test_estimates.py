"""Estimates of T and V equal hand-computed values, and are close for evenly spread entries."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from known_statistics import PAPER_U, PAPER_V, counted, estimated, subsets, tiles_of
from random_runs import examples
from random_statements import draw_statements

import sparseeinsum as se
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.estimate import (
    Statistics,
    by_label,
    join_tuples,
    joined_distinct,
    joined_tuples,
    occupied,
)


class TestJoined:
    def test_join_that_the_introduction_computes(self) -> None:
        """100 million vertices of 1,000 neighbours and 8,192 numbers each: 820 trillion pairs, then 6,000 trillion."""
        vertices, width = 1e8, 8192.0
        first = join_tuples(width * vertices, 1_000 * vertices, {"i": width, "j": vertices}, {"j": vertices, "k": 1e8})
        assert first == 8.192e14
        second = join_tuples(width * vertices, width**2, {"k": vertices, "i": width}, {"i": width, "m": width})
        assert second == pytest.approx(6.7e15, rel=0.01)

    def test_join_of_the_introduction_with_vectors(self) -> None:
        """The numbers of a vertex are one array: 100 billion pairs."""
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
        statistics = {"A": Statistics(500, (100, 200), (100, 200)), "B": Statistics(800, (160, 50), (200, 50))}
        result = estimated("C[i, k] = sum(A[i, j] * B[j, k])", **statistics)["C"]
        # 500 * 800 / 200 = 2,000 products; 5,000 (1 - exp(-2,000 / 5,000))
        assert result.entries == pytest.approx(1648.39976982180, rel=1e-12)
        assert result.distinct == (100, 50)

    def test_product_of_the_matrices_of_the_paper(self) -> None:
        statistics = {"U": counted(PAPER_U), "V": counted(PAPER_V)}
        # 5 * 6 / 4 = 7.5 products; 4 (1 - exp(-7.5 / 4)); the product has 4 entries
        result = estimated("W[i, k] = sum(U[i, j] * V[j, k])", **statistics)["W"]
        assert result.entries == pytest.approx(4 * (1 - math.exp(-7.5 / 4)), rel=1e-12)
        assert counted(PAPER_U @ PAPER_V).entries == 4

    def test_diagonal_times_matrix_keeps_its_entries(self) -> None:
        statistics = {"D": Statistics(50, (50, 50), (50, 50)), "A": Statistics(100, (50, 50), (50, 50))}
        # 50 * 100 / 50 = 100 products; 2,500 (1 - exp(-100 / 2,500))
        assert estimated("C[i, k] = sum(D[i, j] * A[j, k])", **statistics)["C"].entries == pytest.approx(
            98.0264, rel=1e-5
        )

    def test_elementwise_product(self) -> None:
        statistics = {"A": Statistics(100, (10, 20), (10, 20)), "B": Statistics(40, (10, 16), (10, 20))}
        # the product of 100 and 40 entries over 10 times 20 places
        assert estimated("C[i, j] = A[i, j] * B[i, j]", **statistics)["C"] == Statistics(
            20, (10, 16), (10, 20), {frozenset((0,)): 10, frozenset((1,)): 16, frozenset((0, 1)): 20}
        )

    def test_elementwise_sum_has_the_entries_of_both_operands(self) -> None:
        statistics = {"A": Statistics(100, (10, 20), (10, 20)), "B": Statistics(40, (8, 16), (10, 20))}
        result = estimated("C[i, j] = A[i, j] + B[i, j]", **statistics)["C"]
        assert (result.entries, result.distinct) == (120, (10, 20))

    def test_operands_kept_whole_keep_their_distinct_counts(self) -> None:
        statistics = {"A": Statistics(50, (10, 20), (100, 20)), "B": Statistics(100, (100,), (100,))}
        result = estimated("C[i, j] = A[i, j] * (B[i] + 1)", **statistics)["C"]
        assert (result.entries, result.distinct) == (50, (10, 20))

    def test_sum_over_an_axis(self) -> None:
        statistics = {"A": Statistics(400, (300, 20), (1000, 20))}
        result = estimated("R[i] = sum(A[i, j])", **statistics)["R"]
        assert (result.entries, result.distinct) == (300, (300,))

    def test_sum_over_all_labels_is_one_entry(self) -> None:
        statistics = {"A": Statistics(2, (2, 1), (1000, 20))}
        assert estimated("R[] = sum(A[i, j])", **statistics)["R"] == Statistics(1, (), ())

    @pytest.mark.parametrize(
        ("function", "entries"), [("relu", 40), ("exp", 40), ("2 +", 40), ("1 /", 200), ("0 ^", 40)]
    )
    def test_functions_without_a_value_at_the_fill_make_dense_results(self, function: str, entries: float) -> None:
        statistics = {"A": Statistics(40, (10, 16), (10, 20))}
        result = estimated(f"B[i, j] = {function} (A[i, j])", **statistics)["B"]
        assert result.entries == entries
        assert result.distinct == ((10, 16) if entries == 40 else (10, 20))

    def test_rows_without_entries_hold_the_fill_of_their_maximum(self) -> None:
        statistics = {"A": Statistics(4, (2, 3), (10, 20))}
        assert estimated("M[i] = max(A[i, j])", **statistics)["M"].entries == 2

    def test_diagonal(self) -> None:
        statistics = {"A": Statistics(500, (50, 40), (50, 50))}
        # every entry is on the diagonal with chance 1 / 50
        assert by_label(("i", "i"), Statistics(500, (50, 40), (50, 50))).statistics == Statistics(10, (10,), (50,))
        assert estimated("D[i] = A[i, i]", **statistics)["D"].entries == 10

    def test_trace(self) -> None:
        assert estimated("t[] = sum(A[i, i])", A=Statistics(500, (50, 40), (50, 50)))["t"].entries == 1

    def test_results_of_empty_tensors_are_empty(self) -> None:
        statistics = {"A": Statistics(0, (0, 0), (10, 20)), "B": Statistics(100, (20, 5), (20, 5))}
        assert estimated("C[i, k] = sum(A[i, j] * B[j, k])", **statistics)["C"] == Statistics(0, (0, 0), (10, 5))

    def test_never_less_than_one_entry(self) -> None:
        """As fractions, products of distinct counts would shrink with every axis."""
        statistics = {"A": Statistics(2, (2, 2), (100, 100)), "B": Statistics(3, (3, 3), (100, 100))}
        # two times three entries over three times three places: less than one
        result = estimated("C[i, j] = A[i, j] * B[i, j]", **statistics)["C"]
        assert (result.entries, result.distinct) == (1, (1, 1))

    def test_operands_tuples_bound_those_of_the_result(self) -> None:
        """Attention: a dense matrix joined with a sparse one has the sparse one's pairs, not evenly spread entries."""
        statistics = {"Q": Statistics(6400, (100, 64), (100, 64)), "A": Statistics(300, (100, 100), (100, 100))}
        result = estimated("T[i, j, k] = Q[i, k] * A[i, j]", **statistics)["T"]
        assert result.entries == 300 * 64
        assert result.tuples((1, 1, 0)) == 300
        assert occupied(100 * 100, 300 * 64) > 8_000  # equation 7 alone

    def test_results_of_results(self) -> None:
        statistics = {"A": Statistics(500, (100, 200), (100, 200)), "B": Statistics(800, (160, 50), (200, 50))}
        text = "C[i, k] = sum(A[i, j] * B[j, k])\nE[i, k] = 1 / C[i, k]\nS[i] = sum(E[i, k])"
        results = estimated(text, **statistics)
        assert results["E"].entries == 5000
        assert results["S"].entries == 100

    @settings(max_examples=examples(200))
    @given(st.data())
    def test_sizes_are_possible(self, data: st.DataObject) -> None:
        """In any graph, promoting more axes never gives fewer tuples, nor more than possible."""
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
    statistics = {}
    for name, labels in labels_of.items():
        shape = tuple(bounds[label] for label in labels)
        entries = max(1, round(math.prod(shape) * data.draw(st.sampled_from([1, 0.1, 0.001]))))
        statistics[name] = Statistics(float(entries), tuple(float(min(bound, entries)) for bound in shape), shape)
    return estimated(draw_statements(data, labels_of), **statistics)


class TestError:
    """Errors of estimates for evenly spread entries, as they assume."""

    @staticmethod
    def product(shape: tuple[int, int, int], density: float) -> tuple[float, float, Statistics]:
        """Entries of a product of random matrices, estimated and actual, and statistics of the left matrix."""
        rng = np.random.default_rng(11)
        rows, inner, columns = shape
        a = (rng.random((rows, inner)) < density).astype(float)
        b = (rng.random((inner, columns)) < density).astype(float)
        statistics = {"A": counted(a), "B": counted(b)}
        estimate = estimated("C[i, k] = sum(A[i, j] * B[j, k])", **statistics)["C"]
        return estimate.entries, counted(a @ b).entries, counted(a)

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
        entries, true, _ = self.product(shape, density)
        assert max(entries / true, true / entries) < 1.3

    def test_matrices_with_empty_rows_and_columns_are_overestimated(self) -> None:
        """The estimate assumes that both have entries at the same indices; random ones have not."""
        entries, true, a = self.product((1000, 1000, 1000), 0.0005)
        chance = a.distinct[1] / 1000
        assert chance < 0.5
        assert entries * chance == pytest.approx(true, rel=0.3)

    def test_chain_within_a_factor_of_1_3(self) -> None:
        rng = np.random.default_rng(12)
        arrays = {name: (rng.random((150, 150)) < 0.02).astype(float) for name in "ABC"}
        statistics = {name: counted(array) for name, array in arrays.items()}
        text = "X[i, k] = sum(A[i, j] * B[j, k])\nY[i, l] = sum(X[i, k] * C[k, l])"
        entries = estimated(text, **statistics)["Y"].entries
        true = counted(arrays["A"] @ arrays["B"] @ arrays["C"]).entries
        assert max(entries / true, true / entries) < 1.3

    def test_estimates_equal_database_counts(self, db: se.Database) -> None:
        """A result's entries as counted by the database, through the whole pipeline."""
        rng = np.random.default_rng(13)
        for name in "AB":
            db.tensor(name, sp.random_array((120, 120), density=0.02, rng=rng, format="csr"))
        plan = db.plan("C[i, k] = sum(A[i, j] * B[j, k])")
        true = np.count_nonzero(db.run(plan, progress=False)["C"].to_numpy())
        assert plan.statistics["C"].entries == pytest.approx(true, rel=0.1)
