"""Memory estimates choose decompositions and passes that keep to a limit."""

import math
import re

import pytest
from cost_models import OPERANDS, PRODUCT, model_of, promoting

from sparseeinsum.decompose.cost import Work
from sparseeinsum.decompose.memory_footprint import (
    ENGINE_MARGINS,
    REREAD_BYTES,
    STATE_OVERHEAD_BYTES,
    Passes,
    RunMemory,
)
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.search_space import SearchSpace
from sparseeinsum.errors import PlanError
from sparseeinsum.statistics.estimate import dense_statistics

VECTOR_ROWS = 2048
TWO_THREADS = RunMemory(math.inf, threads=2, vector_rows=VECTOR_ROWS)


def limited(model: CostModel, limit_bytes: int) -> CostModel:
    """The same model for two threads with so much memory."""
    return CostModel(
        model.graph,
        model.statistics,
        model.evaluations,
        model.constants,
        model.accounting,
        RunMemory(limit_bytes, threads=2, vector_rows=VECTOR_ROWS),
    )


def power_of_two(size: int) -> int:
    return int(2 ** math.ceil(math.log2(size)))


class TestMemory:
    def test_bytes_of_vectors_of_rows(self) -> None:
        model = model_of(PRODUCT, OPERANDS)
        (einsum,) = model.graph.einsums
        # 100 rows of A, B once, 100 rows of the result, each in a list of a power of two.
        sizes = [8 * size for size in (100 * 200, 200 * 50, 100 * 50)]
        assert model.footprint(einsum, promoting(einsum, "i")).vector_bytes(TWO_THREADS) == sum(
            map(power_of_two, sizes)
        )
        # 200 columns and rows; their products are added in place.
        sizes = [8 * 200 * 100, 8 * 200 * 50]
        assert model.footprint(einsum, promoting(einsum, "j")).vector_bytes(TWO_THREADS) == sum(
            map(power_of_two, sizes)
        )

    def test_no_thread_has_more_rows_than_the_engine_takes(self) -> None:
        statistics = {"A": dense_statistics((100_000, 10))}
        model = model_of("B[i, j] = relu(A[i, j])", statistics)
        (einsum,) = model.graph.einsums
        vector_bytes = model.footprint(einsum, promoting(einsum, "i")).vector_bytes(TWO_THREADS)
        assert vector_bytes == 2 * power_of_two(8 * 2 * VECTOR_ROWS * 10)

    def test_every_thread_has_a_state_of_each_group(self) -> None:
        model = model_of(PRODUCT, OPERANDS)
        (einsum,) = model.graph.einsums
        assert model.footprint(einsum, promoting(einsum, "ik")).states_bytes(TWO_THREADS) == 0
        footprint = model.footprint(einsum, promoting(einsum, "ij"))
        assert footprint.states_bytes(TWO_THREADS) == 2 * 100 * (8 * 50 + STATE_OVERHEAD_BYTES)
        in_four = footprint.states_bytes(TWO_THREADS, Passes("i", 4))
        assert in_four == 2 * 25 * (8 * 50 + STATE_OVERHEAD_BYTES)

    def test_states_that_the_engine_spills_are_free(self) -> None:
        model = model_of(PRODUCT, OPERANDS)
        (einsum,) = model.graph.einsums
        assert model.footprint(einsum, promoting(einsum, "ijk")).states_bytes(TWO_THREADS) == 0

    def test_limit_excludes_plans_that_need_more(self) -> None:
        model = model_of(PRODUCT, OPERANDS)
        (einsum,) = model.graph.einsums
        outer = promoting(einsum, "j")
        needed = math.ceil(model.footprint(einsum, outer).needed_bytes(TWO_THREADS))
        assert outer in SearchSpace(limited(model, needed)).allowed()["C"]
        assert outer not in SearchSpace(limited(model, needed - 1)).allowed()["C"]
        assert promoting(einsum, "ijk") in SearchSpace(limited(model, needed - 1)).allowed()["C"]

    def test_passes_where_states_need_more(self) -> None:
        statistics = {"A": dense_statistics((50_000, 300)), "B": dense_statistics((300, 100))}
        model = model_of(PRODUCT, statistics)
        (einsum,) = model.graph.einsums
        choice = promoting(einsum, "ij")
        footprint = model.footprint(einsum, choice)
        needed = math.ceil(footprint.needed_bytes(TWO_THREADS))
        vectors, states = footprint.vector_bytes(TWO_THREADS), footprint.states_bytes(TWO_THREADS)
        assert needed == vectors + ENGINE_MARGINS.states * states > ENGINE_MARGINS.vectors * vectors
        single = limited(model, needed).vertex_cost(einsum, choice)
        twice = limited(model, needed - 1).vertex_cost(einsum, choice)
        often = limited(model, needed // 10).vertex_cost(einsum, choice)
        assert [cost.passes for cost in (single, twice, often)] == [None, Passes("i", 2), Passes("i", 16)]
        assert single.seconds < twice.seconds < often.seconds
        assert choice in SearchSpace(limited(model, needed // 10)).allowed()["C"]

    def test_operands_are_read_again_in_every_pass(self) -> None:
        statistics = {"A": dense_statistics((50_000, 300)), "B": dense_statistics((300, 100))}
        model = model_of(PRODUCT, statistics)
        (einsum,) = model.graph.einsums
        choice = promoting(einsum, "ij")
        needed = model.footprint(einsum, choice).needed_bytes(TWO_THREADS)
        cost = limited(model, int(needed / 2)).vertex_cost(einsum, choice)
        assert cost.passes is not None
        again, result_bytes = cost.passes.count - 1, 8 * 100 + 8
        assert cost.rereading == Work(
            again * (50_000 * 300 + 300) + 50_000, again * 300 * (8 * 100 + 8) * REREAD_BYTES + 50_000 * result_bytes
        )

    def test_a_tensor_is_stacked_in_passes(self) -> None:
        model = model_of("B[i, j] = 2 * A[i, j]", {"A": dense_statistics((50_000, 300))})
        at_once = model.repartitions.cheapest("A", (1, 1), (1, 0))
        assert at_once.passes is None
        assert at_once.work == model.repartitions.work("A", (1, 1), (1, 0))
        move = limited(model, 200_000_000).repartitions.cheapest("A", (1, 1), (1, 0))
        assert move.passes is not None
        assert (move.passes.label, move.is_possible) == ("dim_0", True)
        states = ENGINE_MARGINS.states * move.states_bytes
        assert states <= 200_000_000 - move.vector_bytes < states * move.passes.count
        assert not limited(model, 200_000_000).repartitions.cheapest("A", (1, 1), (0, 0)).is_possible

    def test_error_names_the_smallest_sufficient_limit(self) -> None:
        model = model_of(PRODUCT, OPERANDS)
        with pytest.raises(PlanError, match=r"C\[.* needs a memory_limit of .* raise memory_limit") as caught:
            SearchSpace(limited(model, 1000)).allowed()
        match = re.search(r"memory_limit of at least ([\d,]+) bytes", str(caught.value))
        assert match is not None
        least = int(match[1].replace(",", ""))
        assert SearchSpace(limited(model, least)).allowed()["C"]
        with pytest.raises(PlanError):
            SearchSpace(limited(model, least - 1)).allowed()
