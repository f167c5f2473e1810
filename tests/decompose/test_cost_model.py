"""The cost model computes the paper's formulas term by term, and their variant for an embedded engine."""

import itertools
from dataclasses import replace

import pytest
from cost_models import CONSTANTS, DISTRIBUTED, EMBEDDED, OPERANDS, PRODUCT, model_of, promoting

from sparseeinsum.decompose import call_threads
from sparseeinsum.decompose.cost import (
    Accounting,
    ContractionSizes,
    EmbeddedAccounting,
    RepartitionSizes,
    Work,
)
from sparseeinsum.decompose.memory_footprint import UNLIMITED
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.kernels.compiled import threads as kernel_threads
from sparseeinsum.semantics.exactness import Absence, JoinKind
from sparseeinsum.statistics.estimate import Statistics, dense_statistics


def sizes(
    groups: float = 200,
    is_grouped: bool = True,
    has_keys: bool = True,
    is_matrix_product: bool = False,
    is_expression: bool = False,
    is_streamed: bool = False,
) -> ContractionSizes:
    return ContractionSizes(
        joined=1000,
        matched=300,
        groups=groups,
        is_grouped=is_grouped,
        has_keys=has_keys,
        operand_bytes=100,
        result_bytes=40,
        result_size=4,
        operations=50,
        is_matrix_product=is_matrix_product,
        is_expression=is_expression,
        is_streamed=is_streamed,
    )


class TestWork:
    def test_seconds(self) -> None:
        assert Work(tuples=1).seconds(CONSTANTS) == 7
        assert Work(bytes_moved=1).seconds(CONSTANTS) == 2
        assert Work(kernel_operations=1).seconds(CONSTANTS) == 3
        assert Work(matrix_operations=1).seconds(CONSTANTS) == 5
        assert Work(expression_operations=1).seconds(CONSTANTS) == 11
        assert Work(hashed_tuples=1).seconds(CONSTANTS) == 13
        assert Work(operators=1).seconds(CONSTANTS) == 17
        assert Work(10, 20, 30, 40, 50, 60, 70).seconds(CONSTANTS) == 70 + 40 + 90 + 200 + 550 + 780 + 1190

    def test_sum(self) -> None:
        assert Work(1, 2, 3, 4, 5, 6, 7) + Work(10, 20, 30, 40, 50, 60, 70) == Work(11, 22, 33, 44, 55, 66, 77)

    @pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
    def test_constants_are_checked(self, wrong: float) -> None:
        with pytest.raises(ValueError, match=r"fixed_seconds_per_tuple is .* 0 or more"):
            replace(CONSTANTS, fixed_seconds_per_tuple=wrong)


class TestDistributed:
    """SparseEinSum, section 7.2."""

    def test_join(self) -> None:
        assert DISTRIBUTED.join(sizes()) == Work(tuples=1000, bytes_moved=100_000, kernel_operations=50_000)

    def test_kernel_that_is_a_matrix_product_has_a_constant_of_its_own(self) -> None:
        work = DISTRIBUTED.join(sizes(is_matrix_product=True))
        assert work == Work(tuples=1000, bytes_moved=100_000, matrix_operations=50_000)

    def test_aggregation_moves_and_adds_all_but_one_of_a_group(self) -> None:
        assert DISTRIBUTED.aggregation(sizes(groups=200)) == Work(800, 800 * 40, 800 * 4)

    def test_groups_have_at_least_two_pairs(self) -> None:
        assert sizes(groups=800).aggregated == 500
        assert DISTRIBUTED.aggregation(sizes(groups=800)) == Work(500, 500 * 40, 500 * 4)

    def test_aggregating_no_label_is_free(self) -> None:
        assert sizes(is_grouped=False).aggregated == 1000
        assert DISTRIBUTED.aggregation(sizes(is_grouped=False)) == Work()

    def test_repartition(self) -> None:
        change = RepartitionSizes(
            before=10,
            parts=120,
            between=100,
            after=25,
            between_bytes=24,
            after_bytes=72,
            slices=True,
            stacks=True,
        )
        assert DISTRIBUTED.repartition(change) == Work(165, 165 * 24)

    @pytest.mark.parametrize(
        ("promoted", "join", "aggregation"),
        [
            # One tuple of each, both 8 bytes an element; 100 * 50 * 200 multiplications and additions.
            ("", Work(1, 160_000 + 80_000, 0, 2_000_000), Work()),
            # 100 rows of A, each beside the whole of B.
            ("i", Work(100, 100 * (8 + 1600 + 80_000), 0, 100 * 20_000), Work()),
            # 100 rows times 50 columns.
            ("ik", Work(5000, 5000 * (1608 + 1608), 5000 * 400), Work()),
            # 200 columns and 160 rows meet 160 times; one group.
            ("j", Work(160, 160 * (808 + 408), 160 * 10_000), Work(159, 159 * 40_000, 159 * 5000)),
            # 500 entries times 160 rows over 200 values; groups by row of A.
            ("ij", Work(400, 400 * (24 + 408), 400 * 100), Work(300, 300 * (8 + 400), 300 * 50)),
            # 500 entries times 800 over 200 values; at most half as many groups.
            ("ijk", Work(2000, 2000 * (24 + 24), 2000 * 2), Work(1000, 1000 * 24, 1000)),
        ],
    )
    def test_matrix_product(self, promoted: str, join: Work, aggregation: Work) -> None:
        model = model_of(PRODUCT, OPERANDS)
        (einsum,) = model.graph.einsums
        cost = model.vertex_cost(einsum, promoting(einsum, promoted))
        assert (cost.join, cost.aggregation, cost.filling) == (join, aggregation, Work())
        assert cost.seconds == join.seconds(CONSTANTS) + aggregation.seconds(CONSTANTS)

    def test_groups_count_the_labels_of_the_result(self) -> None:
        """The paper's formula has the aggregated labels here, its explanation those of the groups."""
        statistics = {"A": Statistics(5000, (10, 500), (10, 500)), "B": Statistics(4000, (500, 8), (500, 8))}
        model = model_of(PRODUCT, statistics)
        (einsum,) = model.graph.einsums
        cost = model.vertex_cost(einsum, promoting(einsum, "ijk"))
        assert (cost.joined, cost.tuples) == (5000 * 4000 / 500, 10 * 8)

    def test_groups_of_a_shared_label_have_the_smaller_distinct_count(self) -> None:
        statistics = {"A": Statistics(5000, (100, 50), (100, 50)), "B": Statistics(1000, (20, 50), (100, 50))}
        model = model_of("R[i] = sum(A[i, j] * B[i, j])", statistics)
        (einsum,) = model.graph.einsums
        cost = model.vertex_cost(einsum, promoting(einsum, "ij"))
        assert (cost.joined, cost.tuples) == (5000 * 1000 / (100 * 50), 20)

    @pytest.mark.parametrize(
        ("promoted", "joined"),
        [
            ("ijk", 3 * 500 * 800 / 200),
            # Rows and columns have one tuple per index, so that pairs do not crowd.
            ("j", 160),
            ("ij", 500 * 160 / 200),
            ("jk", 200 * 800 / 200),
            ("ik", 100 * 50),
        ],
    )
    def test_entries_that_crowd_at_shared_indices_have_more_pairs(self, promoted: str, joined: float) -> None:
        model = model_of(PRODUCT, OPERANDS)
        (einsum,) = model.graph.einsums
        result = replace(model.statistics["C"], skew={"j": 3.0})
        crowded = replace(model, statistics={**model.statistics, "C": result})
        assert crowded.vertex_cost(einsum, promoting(einsum, promoted)).joined == pytest.approx(joined)

    def test_one_operand_is_moved_alone(self) -> None:
        model = model_of("R[i] = sum(A[i, j])", {"A": OPERANDS["A"]})
        (einsum,) = model.graph.einsums
        cost = model.vertex_cost(einsum, promoting(einsum, "ij"))
        assert cost.join == Work(500, 500 * 24, 500)
        assert cost.aggregation == Work(400, 400 * 16, 400)


class TestPaper:
    """Numbers in the text of the SparseEinSum paper."""

    TEXT = "T[k, i] = sum(X[i, j] * Y[j, k])\nU[k, m] = sum(T[k, i] * Z[i, m])"
    VERTICES, WIDTH = 100_000_000, 8192

    def model(self) -> CostModel:
        vertices, width = self.VERTICES, self.WIDTH
        statistics = {
            "X": dense_statistics((width, vertices)),
            "Y": Statistics(1000.0 * vertices, (vertices, vertices), (vertices, vertices)),
            "Z": dense_statistics((width, width)),
        }
        return model_of(self.TEXT, statistics)

    def test_introduction_with_single_numbers(self) -> None:
        """820 trillion tuples, aggregated to 820 billion, then joined to some 6,000 trillion."""
        model = self.model()
        first, second = model.graph.einsums
        cost = model.vertex_cost(first, promoting(first, "ijk"))
        assert (cost.joined, cost.tuples) == (8.192e14, 8.192e11)
        assert model.vertex_cost(second, promoting(second, "kim")).joined == pytest.approx(6.7e15, rel=0.01)

    def test_introduction_with_vectors(self) -> None:
        """The first join has 100 billion tuples; the second has one per vertex, as the matrix is one array."""
        model = self.model()
        first, second = model.graph.einsums
        cost = model.vertex_cost(first, promoting(first, "jk"))
        assert (cost.joined, cost.tuples) == (1e11, 1e8)
        assert model.vertex_cost(second, promoting(second, "k")).joined == 1e8

    def test_multiplications_of_section_4_1(self) -> None:
        """16 multiplications where rows meet columns, a quarter of the 64 of the dense product."""
        statistics = {"U": Statistics(5, (2, 4), (4, 4)), "V": Statistics(6, (4, 2), (4, 4))}
        model = model_of("W[i, k] = sum(U[i, j] * V[j, k])", statistics)
        (einsum,) = model.graph.einsums
        sparse, dense = (model.vertex_cost(einsum, promoting(einsum, labels)).join for labels in ("ik", ""))
        assert (sparse.tuples, dense.tuples) == (4, 1)
        assert sparse.kernel_operations == 2 * 16  # a multiplication and an addition each
        assert dense.matrix_operations == 2 * 64


class TestEmbedded:
    """One process: operands are not moved, but results are; tuples are looked up by their keys."""

    def test_join_writes_results_that_are_not_aggregated(self) -> None:
        work = Work(1000, 1000 * 40, 50_000, hashed_tuples=300, operators=1)
        assert EMBEDDED.join(sizes(is_grouped=False)) == work

    def test_join_writes_no_pairs_that_are_aggregated_at_once(self) -> None:
        join_work = Work(1000, hashed_tuples=300, operators=1)
        assert EMBEDDED.join(sizes()) == join_work + Work(kernel_operations=50_000)
        assert EMBEDDED.join(sizes(is_matrix_product=True)) == join_work + Work(matrix_operations=50_000)

    def test_an_expression_is_started_for_every_pair(self) -> None:
        operations = 50_000 + 1000 * 150
        assert EMBEDDED.join(sizes(is_expression=True)).expression_operations == operations

    def test_join_writes_no_numbers_that_one_other_takes_as_they_come(self) -> None:
        assert EMBEDDED.join(sizes(is_grouped=False, is_streamed=True)).bytes_moved == 0

    def test_aggregation_finds_groups_for_pairs_and_writes_every_group_once(self) -> None:
        assert EMBEDDED.aggregation(sizes(groups=200)) == Work(0, 200 * 40, hashed_tuples=400 + 800 / 4, operators=1)
        assert EMBEDDED.aggregation(sizes(groups=800)) == Work(0, 500 * 40, hashed_tuples=1000 + 500 / 4, operators=1)
        assert EMBEDDED.aggregation(sizes(groups=1, has_keys=False)) == Work(0, 40, operators=1)
        assert EMBEDDED.aggregation(sizes(is_grouped=False)) == Work()

    @pytest.mark.parametrize(
        ("slices", "stacks", "work"),
        [
            (True, False, Work(120, 100 * 24, operators=1)),
            (False, True, Work(100, 25 * 72, hashed_tuples=100, operators=1)),
            (True, True, Work(220, 100 * 24 + 25 * 72, hashed_tuples=100, operators=2)),
        ],
    )
    def test_repartition_writes_slices_and_stacks(self, slices: bool, stacks: bool, work: Work) -> None:
        """Slices that hold only the fill are cut, but not written."""
        change = RepartitionSizes(10, 120, 100, 25, 24, 72, slices, stacks)
        assert EMBEDDED.repartition(change) == work

    def test_matrix_product(self) -> None:
        model = model_of(PRODUCT, OPERANDS, EMBEDDED)
        (einsum,) = model.graph.einsums
        cost = model.vertex_cost(einsum, promoting(einsum, "ij"))
        table_bytes = 160 * 408  # nearly all of which is in the processor's caches
        moved = 400 * (320 + 0.6 * 408) * table_bytes / (table_bytes + 20e6)
        assert cost.join.bytes_moved == pytest.approx(moved + 0.35 * table_bytes)
        assert replace(cost.join, bytes_moved=0) == Work(400, 0, 400 * 100, hashed_tuples=500 + 160, operators=1)
        assert cost.aggregation == Work(0, 100 * (8 + 400), hashed_tuples=200 + 300 / 4, operators=1)

    def test_tuples_that_share_no_key_are_not_looked_for(self) -> None:
        model = model_of(PRODUCT, OPERANDS, EMBEDDED)
        (einsum,) = model.graph.einsums
        for labels in ("", "i", "k", "ik"):
            assert model.vertex_cost(einsum, promoting(einsum, labels)).join.hashed_tuples == 0

    def test_plans_are_priced_with_it(self) -> None:
        model = model_of(PRODUCT, OPERANDS)
        default = CostModel(model.graph, model.statistics, model.evaluations, CONSTANTS)
        assert isinstance(default.accounting, EmbeddedAccounting)


class TestFilling:
    def test_absent_tuples_that_contribute_are_filled_in(self) -> None:
        """1 / 0 is no number: of 200 entries 160 are filled in, or 2 of 10 rows."""
        model = model_of("S[i, j] = 1 / A[i, j]", {"A": Statistics(40, (8, 20), (10, 20))})
        (einsum,) = model.graph.einsums
        assert model.vertex_cost(einsum, promoting(einsum, "ij")).filling == Work(160, 160 * 24, operators=1)
        assert model.vertex_cost(einsum, promoting(einsum, "i")).filling == Work(2, 2 * 168, operators=1)
        assert model.vertex_cost(einsum, promoting(einsum, "")).filling == Work()

    def test_function_with_a_fill_adds_no_tuples(self) -> None:
        """The logistic function of 0 is 0.5, which is the fill of the result."""
        model = model_of("S[i, j] = sigmoid(A[i, j])", {"A": Statistics(40, (8, 20), (10, 20))})
        (einsum,) = model.graph.einsums
        assert all(model.vertex_cost(einsum, promoting(einsum, labels)).filling == Work() for labels in ("", "i", "ij"))

    def test_outer_join_copies_filled_tuples(self) -> None:
        statistics = {"A": Statistics(40, (8, 20), (10, 20)), "B": Statistics(30, (10, 15), (10, 20))}
        model = model_of("S[i, j] = A[i, j] + B[i, j]", statistics)
        (einsum,) = model.graph.einsums
        cost = model.vertex_cost(einsum, promoting(einsum, "ij"))
        assert cost.joined == 40 + 30 - 40 * 30 / (10 * 20)
        assert cost.filling == Work(0, cost.joined * 2 * 24)

    def test_cheapest_exact_evaluation(self) -> None:
        """Filling in a few rows of an operand is cheaper than filling in many pairs of the join."""
        few = {"A": Statistics(5000, (100, 100), (100, 100)), "B": Statistics(2000, (90, 50), (100, 50))}
        model = model_of("C[i, k] = sum(A[i, j] * (B[j, k] + 1))", few)
        (einsum,) = model.graph.einsums
        assert model.vertex_cost(einsum, promoting(einsum, "ij")).absence == Absence(JoinKind.INNER, (False, True))
        statistics = {"A": Statistics(10, (10, 10), (100, 9000)), "B": Statistics(20, (20, 20), (9000, 50))}
        model = model_of("C[i, k] = sum(A[i, j] * (B[j, k] + 1))", statistics)
        assert model.vertex_cost(einsum, promoting(einsum, "ij")).absence == Absence(JoinKind.LEFT, (False, False))


class TestRepartition:
    def model(self, accounting: Accounting) -> CostModel:
        statistics = {"A": Statistics(300, (10, 20, 30), (10, 20, 30))}
        return model_of("B[i, j, k] = relu(A[i, j, k])", statistics, accounting)

    def test_repartition_slices_and_stacks(self) -> None:
        """From rows by the first axis to rows by the second, through single entries: 155.37 tuples by equation 7."""
        work = self.model(DISTRIBUTED).repartitions.work("A", (1, 0, 0), (0, 1, 0))
        tuples = 2 * 155.373967970314 - 10 - 20
        assert work.tuples == pytest.approx(tuples, rel=1e-9)
        assert work.bytes_moved == pytest.approx(tuples * (16 + 8 * 30), rel=1e-9)

    def test_to_single_entries_only_slices(self) -> None:
        assert self.model(DISTRIBUTED).repartitions.work("A", (0, 0, 0), (1, 1, 1)) == Work(299, 299 * 32)
        assert self.model(EMBEDDED).repartitions.work("A", (0, 0, 0), (1, 1, 1)) == Work(6000, 300 * 32, operators=1)

    def test_to_one_array_only_stacks(self) -> None:
        assert self.model(DISTRIBUTED).repartitions.work("A", (1, 1, 1), (0, 0, 0)) == Work(299, 299 * 32)
        assert self.model(EMBEDDED).repartitions.work("A", (1, 1, 1), (0, 0, 0)) == Work(
            300, 8 * 6000, hashed_tuples=300, operators=1
        )

    @pytest.mark.parametrize(
        ("before", "bounds", "tuples", "is_in_memory"),
        [
            ((1, 0), (500, 100), 500, True),
            ((1, 50), (500, 100), 1000, True),
            ((0, 1), (500, 100), 100, False),
            ((1, 0), (200, 100), 200, False),  # 160 kB
        ],
    )
    def test_large_arrays_in_order_are_copied_in_memory(
        self, before: tuple[int, int], bounds: tuple[int, int], tuples: int, is_in_memory: bool
    ) -> None:
        """Parts are read from a table, and hashed if an aggregate puts them together."""
        model = replace(
            model_of("B[i, j] = relu(A[i, j])", {"A": dense_statistics(bounds)}, EMBEDDED), resident_bytes=1e9
        )
        keys, size = 8 * (2 - before.count(0)), 8 * bounds[0] * bounds[1]
        scanned = 0.35 * (size + tuples * keys)
        expected = Work(tuples, 0.35 * size + scanned, operators=1)
        if not is_in_memory:
            expected = Work(tuples, size + scanned, hashed_tuples=tuples, operators=1)
        assert model.repartitions.work("A", before, (0, 0)) == expected

    @pytest.mark.parametrize("accounting", [DISTRIBUTED, EMBEDDED], ids=lambda accounting: type(accounting).__name__)
    def test_repartitions_cost_more_than_none(self, accounting: Accounting) -> None:
        model = self.model(accounting)
        for before, after in itertools.product(itertools.product((0, 1), repeat=3), repeat=2):
            cost = model.repartitions.seconds("A", before, after)
            assert cost == 0 if before == after else cost > 0

    def test_repartitions_of_estimated_results_cost_no_less_than_0(self) -> None:
        """Promoting more labels never means fewer tuples, whatever the estimates of joins are."""
        statistics = {"A": Statistics(100, (100, 50), (100, 50)), "B": Statistics(1000, (1000,), (1000,))}
        text = "W[i, k, j] = A[i, k] * B[j]\nV[k, i] = sum(W[i, k, j] * B[j])\nX[i, k, j] = W[i, k, j] * V[k, i]"
        model = model_of(text, statistics)
        for before, after in itertools.product(itertools.product((0, 1), repeat=3), repeat=2):
            assert model.repartitions.seconds("X", before, after) >= 0


class TestRowByRow:
    """Engines without handles compute one row after the other."""

    def test_rows_read_a_large_matrix_again(self) -> None:
        by_rows, at_once = (self.seconds(1000, has_handles=False, promoted=labels) for labels in ("i", ""))
        by_handles = self.seconds(1000, has_handles=True, promoted="i") - self.scanning(1000)
        assert by_rows - by_handles == pytest.approx(1_160_320_320)
        assert at_once - self.seconds(1000, has_handles=True, promoted="") == pytest.approx(2_320_000)

    def test_rows_read_a_small_matrix_from_the_cache(self) -> None:
        by_rows, at_once = (self.seconds(400, has_handles, promoted="i") for has_handles in (False, True))
        assert by_rows - (at_once - self.scanning(400)) == pytest.approx(20_531_328)

    @pytest.mark.parametrize(("threads", "expected"), [(1, 1), (2, 2), (16, 2)])
    def test_a_large_array_is_computed_on_threads(self, threads: int, expected: int) -> None:
        """A server may have fewer processors than processes."""
        seconds = 2 * 1000**3 * CONSTANTS.matrix_seconds_per_operation
        alone, together = (self.seconds(1000, False, "", threads=number) for number in (1, threads))
        assert alone - together == pytest.approx(seconds - seconds / expected)

    def test_prices_count_threads_as_kernels_take_them(self) -> None:
        assert call_threads._ELEMENTS_OF_THREAD == kernel_threads._LEAST_SLICE
        assert call_threads._OPERATIONS_OF_ELEMENT == 2 * kernel_threads._PRODUCTS_OF_ELEMENT

    def test_rows_and_small_arrays_are_computed_on_one_thread(self) -> None:
        for bound, promoted in ((1000, "i"), (100, "")):
            assert self.seconds(bound, False, promoted, threads=4) == self.seconds(bound, False, promoted)

    def scanning(self, bound: int) -> float:
        """Seconds to read the rows of a square matrix from a table."""
        return 0.35 * bound * (8 + 8 * bound) * CONSTANTS.transfer_seconds_per_byte

    def seconds(self, bound: int, has_handles: bool, promoted: str, threads: int = 1) -> float:
        """Seconds of the join of square matrices with so many rows, in a session with so many threads."""
        dense = dense_statistics((bound, bound))
        memory = replace(UNLIMITED, threads=threads)
        model = model_of(PRODUCT, {"A": dense, "B": dense}, EMBEDDED)
        model = replace(model, has_handles=has_handles, memory=memory)
        (einsum,) = model.graph.einsums
        return model.vertex_cost(einsum, promoting(einsum, promoted)).join.seconds(model.constants)
