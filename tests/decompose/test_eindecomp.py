"""EinDecomp counts and prices partition vectors as the paper does, and its search finds the cheapest."""

import itertools
import math
import random
import statistics

import pytest
from partitioned_programs import (
    all_vectors,
    bounds_of,
    floats_of_paper,
    small_tasks,
    task_of,
    tiles_of,
)

import sparseeinsum as se
from sparseeinsum.api.examples import MULTI_HEAD_ATTENTION
from sparseeinsum.decompose.eindecomp.partition_vectors import even_choice, pieces_of, viable_choices
from sparseeinsum.decompose.eindecomp.vector_search import search
from sparseeinsum.decompose.short_lists import cheapest_choices
from sparseeinsum.statistics.estimate import Statistics

PRODUCT = "Z[i, k] = sum(X[i, j] * Y[j, k])"
TWO_PRODUCTS = f"{PRODUCT}\nW[i, l] = sum(Z[i, k] * V[k, l])"
CHAIN = "Y[i, k] = sum(A[i, j] * B[j, k]) + sum(C[i, l] * sum(D[l, m] * E[m, k]))"
SQUARE = {"X": (8, 8), "Y": (8, 8), "V": (8, 8)}


class TestVectors:
    """Sections 6 and 8.1."""

    def test_count_of_section_8_1(self) -> None:
        for doublings, labels in ((10, 6), (10, 3), (3, 3), (5, 1)):
            bounds = (4096,) * labels
            assert len(viable_choices(bounds, 2**doublings)) == math.comb(doublings + labels - 1, doublings)
        assert len(viable_choices((4096,) * 6, 2**10)) == 3003

    def test_vectors_of_a_product_for_8_workers(self) -> None:
        """Section 8.2 lists 8 of them; [2, 4, 4, 1] and [1, 4, 4, 2] are missing there."""
        vectors = {pieces_of(tiles, (8, 8, 8)) for tiles in viable_choices((8, 8, 8), 8)}
        assert vectors == {
            (a, b, c) for a in (1, 2, 4, 8) for b in (1, 2, 4, 8) for c in (1, 2, 4, 8) if a * b * c == 8
        }
        assert len(vectors) == 10

    def test_pieces_that_arise(self) -> None:
        assert viable_choices((10, 1), 8) == ((2, 0),)
        assert pieces_of((2, 0), (10, 1)) == (5, 1)

    def test_no_label_has_more_pieces_than_indices(self) -> None:
        for tiles in viable_choices((3, 100, 1), 64):
            assert all(
                pieces <= bound for pieces, bound in zip(pieces_of(tiles, (3, 100, 1)), (3, 100, 1), strict=True)
            )

    def test_small_bounds_keep_most_workers_busy(self) -> None:
        assert viable_choices((2, 3), 64) == ((1, 2),)
        assert viable_choices((), 64) == ((),)

    def test_pieces_pinned_for_some_labels(self) -> None:
        assert {pieces_of(tiles, (8, 64)) for tiles in viable_choices((8, 64), 32, {0: 16})} == {(8, 4)}
        assert {pieces_of(tiles, (64, 64)) for tiles in viable_choices((64, 64), 8, {1: 8})} == {(1, 8)}

    def test_many_labels_have_a_limited_number_of_vectors(self) -> None:
        for bound in (2, 1024):
            vectors = viable_choices((bound,) * 30, 1024)
            assert 1000 < len(vectors) <= 3003
            assert {math.prod(pieces_of(tiles, (bound,) * 30)) for tiles in vectors} == {1024}

    def test_even_vectors(self) -> None:
        assert pieces_of(even_choice((8, 8, 8), 64), (8, 8, 8)) == (4, 4, 4)
        assert pieces_of(even_choice((8, 2, 8), 64), (8, 2, 8)) == (8, 2, 4)
        assert even_choice((1, 1), 64) == (0, 0)

        assert pieces_of(even_choice((72, 72, 72), 12), (72, 72, 72)) == (3, 2, 2)
        assert pieces_of(even_choice((72, 72), 36), (72, 72)) == (6, 6)
        assert pieces_of(even_choice((5, 5), 7), (5, 5)) == (3, 2)  # as for 6

    @pytest.mark.parametrize("workers", [1, 3, 5, 6, 7, 12, 30, 36, 97, 360])
    def test_any_number_of_workers_has_all_its_factorisations(self, workers: int) -> None:
        for labels in (1, 2, 3):
            counts = range(1, workers + 1)
            expected = [c for c in itertools.product(counts, repeat=labels - 1) if workers % math.prod(c) == 0]
            bounds = (workers**2,) * labels
            vectors = [pieces_of(tiles, bounds) for tiles in viable_choices(bounds, workers)]
            assert sorted(vector[:-1] for vector in vectors) == expected
            assert {math.prod(vector) for vector in vectors} == {workers}
            assert vectors == sorted(vectors, reverse=True)

    def test_small_bounds_for_any_number_of_workers(self) -> None:
        """No vector for 7 workers fits: those of the most workers that have one are taken."""
        assert {pieces_of(tiles, (2, 3)) for tiles in viable_choices((2, 3), 7)} == {(2, 3)}
        assert {pieces_of(tiles, (5, 1)) for tiles in viable_choices((5, 1), 7)} == {(5, 1)}
        assert {pieces_of(tiles, (5, 100)) for tiles in viable_choices((5, 100), 7)} == {(1, 7)}
        assert viable_choices((), 7) == ((),)

    def test_pieces_of_any_number_pinned_for_some_labels(self) -> None:
        assert {pieces_of(tiles, (64, 64)) for tiles in viable_choices((64, 64), 6, {0: 6})} == {(6, 1)}
        assert {pieces_of(tiles, (4, 64)) for tiles in viable_choices((4, 64), 6, {0: 6})} == {(2, 2)}
        assert {pieces_of(tiles, (5, 64)) for tiles in viable_choices((5, 64), 7, {0: 7})} == {(5, 1)}

    @pytest.mark.parametrize("workers", [0, -4, 2.0, "4"])
    def test_workers_are_a_whole_number(self, workers: int) -> None:
        with pytest.raises(se.PlanError, match="give a whole number of 1 or more"):
            viable_choices((8, 8), workers)


class TestFloatsMoved:
    """Section 7: two products of 8 x 8 matrices."""

    def test_join(self) -> None:
        task = task_of(PRODUCT, 16, SQUARE)
        moved = task.model.moved(task.model.graph.einsums[0], tiles_of(task, "Z", i=4, k=4))
        assert (moved.calls, moved.join, moved.aggregation) == (16, 16 * (16 + 16), 0)

    def test_aggregation(self) -> None:
        task = task_of(PRODUCT, 16, SQUARE)
        moved = task.model.moved(task.model.graph.einsums[0], tiles_of(task, "Z", i=2, j=2, k=4))
        assert (moved.calls, moved.aggregation) == (16, 64)

    def test_repartition(self) -> None:
        """[2, 2, 2, 4] makes pieces that [4, 1, 1, 4] reads as its left operand: 128 + 192."""
        task = task_of(TWO_PRODUCTS, 16, SQUARE)
        vectors = {"Z": tiles_of(task, "Z", i=2, j=2, k=4), "W": tiles_of(task, "W", i=4, l=4)}
        first, second = task.model.graph.einsums
        own = sum(task.model.moved(einsum, vectors[einsum.output.tensor]).floats for einsum in (first, second))
        assert task.floats(vectors) - own == 128 + 192

    def test_every_vector_of_a_program_has_the_papers_cost(self) -> None:
        shapes = {"A": (16, 8), "B": (8, 32), "C": (16, 4), "D": (4, 64), "E": (64, 32)}
        task = task_of(CHAIN, 4, shapes)
        for vectors in random.Random(0).sample(list(all_vectors(task)), 300):
            assert task.floats(vectors) == floats_of_paper(task.model.graph, vectors)

    @pytest.mark.parametrize("workers", [3, 5, 7])
    def test_primes_of_workers_have_the_papers_cost(self, workers: int) -> None:
        """The paper's formula is for pieces that nest, as 1 and a prime do; bounds are its multiples here."""
        shapes = {"A": (2, 4), "B": (4, 3), "C": (2, 5), "D": (5, 1), "E": (1, 3)}
        multiples = {name: (workers * rows, workers * columns) for name, (rows, columns) in shapes.items()}
        task = task_of(CHAIN, workers, multiples)
        for vectors in all_vectors(task):
            assert task.floats(vectors) == pytest.approx(floats_of_paper(task.model.graph, vectors))

    def test_ragged_pieces_are_counted_as_they_are(self) -> None:
        """10 rows in 5 pieces, each with all of Y; of 3 pieces of 5 rows each the last is empty."""
        task = task_of(PRODUCT, 8, {"X": (10, 6), "Y": (6, 7)})
        moved = task.model.moved(task.model.graph.einsums[0], tiles_of(task, "Z", i=8))
        assert (moved.calls, moved.join) == (5, 10 * 6 + 5 * 6 * 7)

    def test_pieces_that_do_not_nest(self) -> None:
        """Pieces of 3 and of 5 out of 10 overlap in 5 places: 3 more than there are pieces of 5."""
        task = task_of(TWO_PRODUCTS, 4, {"X": (10, 1), "Y": (1, 1), "V": (1, 1)})
        (floats,) = task.model.repartition_table("Z", [(3, 0)], [(5, 0)])
        assert floats == pytest.approx(3 * (5 + 10 / 4) + 2 * 10 / 4)

    def test_sparse_pieces_have_the_floats_of_their_entries(self) -> None:
        sparse = Statistics(1000.0, (1000.0, 1000.0), (1024, 1024))
        task = task_of("Z[i, k] = sum(S[i, j] * Y[j, k])", 8, {"Y": (1024, 16)}, S=sparse)
        by_rows = task.model.moved(task.model.graph.einsums[0], tiles_of(task, "Z", i=8))
        by_columns = task.model.moved(task.model.graph.einsums[0], tiles_of(task, "Z", k=8))
        assert by_rows.join == pytest.approx(1000 + 8 * 1024 * 16)
        assert by_columns.join == pytest.approx(8 * 1000 + 1024 * 16)

    def test_partial_results_of_sparse_operands_are_sparse(self) -> None:
        """A call has no more entries of the result than pairs of entries."""
        sparse = Statistics(2000.0, (1024.0, 1024.0), (1024, 1024))
        task = task_of("Z[i, k] = sum(S[i, j] * T[j, k])", 64, {}, S=sparse, T=sparse)
        moved = task.model.moved(task.model.graph.einsums[0], tiles_of(task, "Z", j=64))
        assert 0 < moved.aggregation <= 2000 * 2000 / 1024

    def test_empty_tensors_move_nothing(self) -> None:
        task = task_of(TWO_PRODUCTS, 4, {"X": (0, 8), "Y": (8, 8), "V": (8, 8)})
        optimum = search(task)
        assert optimum.candidates[0].cost >= 0
        assert math.isfinite(optimum.candidates[0].cost)


class TestSearch:
    @pytest.mark.parametrize("workers", [4, 3, 6])
    def test_trees_and_graphs_by_brute_force(self, workers: int) -> None:
        count = 0
        for is_tree in (True, False):
            for task in small_tasks(is_tree, 60, workers):
                best = min(map(task.floats, all_vectors(task)))
                optimum = search(task)
                assert optimum.is_exact
                assert optimum.candidates[0].cost == pytest.approx(best, rel=1e-9)
                assert task.floats(optimum.best) == pytest.approx(best, rel=1e-9)
                count += 1
        assert count > 40

    def test_short_lists_of_graphs_in_which_results_are_shared(self) -> None:
        ratios = []
        for task in small_tasks(is_tree=False, count=80, workers=8):
            result, least = search(task, limit=100), task.floats(search(task).best)
            assert set(result.best) == {einsum.output.tensor for einsum in task.graph.einsums}
            floats = task.floats(result.best)
            assert result.candidates[0].cost == pytest.approx(floats)
            assert floats >= least * (1 - 1e-9)
            assert result.is_exact <= (floats == pytest.approx(least))
            ratios.append(floats / least if least else 1.0)
        assert max(ratios) > 1
        assert statistics.mean(ratios) < 1.05

    def test_short_lists_come_close(self) -> None:
        shapes = {"X": (512, 1024), **dict.fromkeys(("WQ", "WK", "WV"), (1024, 16, 64)), "WO": (16, 64, 1024)}
        task = task_of(MULTI_HEAD_ATTENTION, 256, shapes)
        assert max(map(len, task.choices.values())) > 100
        best = task.floats(search(task).best)
        for count, most in ((64, 1.01), (32, 1.02)):
            short = task.narrowed(cheapest_choices(task, task.graph.einsums, count))
            assert all(len(choices) <= count for choices in short.choices.values())
            assert best <= task.floats(search(short).best) * (1 + 1e-9)
            assert task.floats(search(short).best) <= most * best

    def test_lists_are_shortened_if_tables_grow_too_large(self) -> None:
        shapes = {"X": (512, 1024), **dict.fromkeys(("WQ", "WK", "WV"), (1024, 16, 64)), "WO": (16, 64, 1024)}
        task = task_of(MULTI_HEAD_ATTENTION, 256, shapes)
        result = search(task, limit=100_000)
        assert not result.is_exact
        least = task.floats(search(task).best)
        assert result.candidates[0].cost == pytest.approx(task.floats(result.best))
        assert least <= task.floats(result.best) <= 1.02 * least

    def test_squares_are_cut_as_the_three_dimensional_algorithm_cuts_them(self) -> None:
        optimum = search(task_of(PRODUCT, 64, {"X": (4096, 4096), "Y": (4096, 4096)}))
        assert pieces_of(optimum.best["Z"], (4096, 4096, 4096)) == (4, 4, 4)

    def test_a_long_chain_of_many_workers_is_searched_exactly(self) -> None:
        text = "\n".join(f"R{n + 1}[i, j] = relu(sum(R{n}[i, k] * W[k, j]))" for n in range(12))
        task = task_of(text, 1024, {"R0": (4096, 4096), "W": (4096, 4096)})
        assert search(task).is_exact

    def test_small_bounds_use_fewer_workers(self) -> None:
        task = task_of(TWO_PRODUCTS, 1024, {"X": (2, 2), "Y": (2, 2), "V": (2, 4)})
        optimum = search(task)
        for einsum in task.model.graph.einsums:
            bounds = bounds_of(task.model.graph, einsum)
            assert pieces_of(optimum.best[einsum.output.tensor], bounds) == tuple(bounds)
