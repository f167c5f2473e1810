"""Prices of engines whose functions read values row by row, and of results that nothing reads."""

from dataclasses import replace

import numpy as np
import pytest
from cost_models import EMBEDDED, OPERANDS, PRODUCT, model_of, promoting

import sparseeinsum as se
from sparseeinsum.decompose.compressed_access import OF_VALUES, OrderingPrices, RowOrder, writing_rows
from sparseeinsum.decompose.cost import RepartitionSizes, Work, slowdown_beyond_cache
from sparseeinsum.decompose.einsum_kinds import Uses
from sparseeinsum.decompose.indexed_access import ResidentSizes
from sparseeinsum.decompose.storing_costs import StoringCosts


def test_values_are_stacked_in_half_the_time_and_arrays_take_as_long_as_a_tuple() -> None:
    change = RepartitionSizes(10, 120, 100, 25, 24, 72, slices=False, stacks=True, are_values=True)
    assert EMBEDDED.repartition(change) == Work(100 * 0.45 + 25, 25 * 72, hashed_tuples=100, operators=1)


def test_a_value_in_memory_takes_what_stacking_takes() -> None:
    assert ResidentSizes(100, 800, 8, is_value=True).loading() == Work(45, 800, operators=1)
    assert ResidentSizes(100, 800, 8, scanned_bytes=400).loading() == Work(100, 0.35 * 1200, operators=1)


def test_results_that_leave_the_cache_take_up_to_twice_as_long() -> None:
    assert [slowdown_beyond_cache(size) for size in (0, 4 << 20, 8 << 20, 1 << 30)] == [1, 1.5, 2, 2]
    assert slowdown_beyond_cache(1 << 30, 3) == 3
    assert writing_rows(4 << 20, has_handles=False) == Work(bytes_moved=6 << 20)
    assert writing_rows(4 << 20, has_handles=True) == Work(bytes_moved=4 << 20)


@pytest.mark.parametrize(("ordered", "prices"), [((0,), OF_VALUES.before_array), ((0, 1), OF_VALUES.ordering)])
def test_ordering_has_a_price_of_its_own_before_a_product_with_an_array(
    ordered: tuple[int, ...], prices: OrderingPrices
) -> None:
    model = model_of(PRODUCT, OPERANDS, EMBEDDED)
    footprints = replace(model.footprints, has_handles=False)
    (einsum,) = model.graph.einsums
    choice = promoting(einsum, "ij")
    orders = {index: RowOrder(("i",), ("j",)) for index in ordered}
    cost = replace(model.vertex_cost(einsum, choice), orders=orders)
    compressed = list(footprints.compressed(model.decomposed(einsum, choice), cost))
    assert [sizes.prices for sizes in compressed] == [prices] * len(ordered)


@pytest.mark.parametrize(("collects", "keys", "share"), [(True, "ik", 0.35), (True, "", 0), (False, "ik", 0)])
def test_rows_are_copied_as_they_are_collected(collects: bool, keys: str, share: float) -> None:
    model = model_of(PRODUCT, OPERANDS, EMBEDDED)
    (einsum,) = model.graph.einsums
    choice = promoting(einsum, keys)
    cost = model.vertex_cost(einsum, choice)
    storing = replace(model.storing, collects_rows=collects)
    collected = storing.with_storing(einsum, choice, Uses(0, is_output=True), cost)
    size_bytes = cost.tuples * model.sizes.tuple_bytes("C", choice[:2])
    assert collected.storing == Work(bytes_moved=share * size_bytes)
    assert collected.seconds == pytest.approx(cost.seconds + collected.storing.seconds(model.constants))


@pytest.mark.engines("duckdb", "postgresql")
def test_products_of_many_matrices_are_collected_as_one_array(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    for name in "AB":
        db.tensor(name, rng.random((32, 256, 256)))
    text = "Y[b, i, k] = sum(A[b, i, j] * B[b, j, k])"
    model = db.plan(text, layout="any").data.alternatives.model
    assert model.collects_rows == (db._engine.dialect_name == "duckdb")
    if model.collects_rows:
        assert db.plan(text, layout="any").notation() == [text]
    assert not db.plan(text, layout="any", workers=4).data.alternatives.model.collects_rows


def test_a_result_that_nothing_reads_gets_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(PRODUCT, OPERANDS, EMBEDDED)
    (einsum,) = model.graph.einsums
    choice = promoting(einsum, "")
    cost = model.vertex_cost(einsum, choice)
    monkeypatch.setattr(StoringCosts, "are_large_arrays", lambda *_: True)
    assert model.storing.with_storing(einsum, choice, Uses(0, is_output=True), cost) == cost
    stored = model.storing.with_storing(einsum, choice, Uses(1, is_output=False), cost)
    assert stored.storing.bytes_moved > 0
    assert stored.seconds > cost.seconds
