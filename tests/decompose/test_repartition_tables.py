"""Tables of repartition costs hold the cost of every single change."""

import itertools
import math

import numpy as np
import pytest
from cost_models import CONSTANTS, EMBEDDED
from evaluated_programs import evaluated
from hypothesis import given
from hypothesis import strategies as st
from random_runs import random_runs

from sparseeinsum.decompose.memory_footprint import RunMemory
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.repartition_costs import RepartitionCosts
from sparseeinsum.decompose.search_tasks import SearchTask
from sparseeinsum.statistics.estimate import Statistics


def task_of(shape: tuple[int, ...], entries: float, limit_bytes: float) -> SearchTask:
    """A program that copies a tensor A of this shape."""
    statistics = {"A": Statistics(entries, tuple(min(bound, entries) for bound in shape), shape)}
    labels = ", ".join("ijklmnop"[: len(shape)])
    graph, evaluations = evaluated(f"B[{labels}] = 2 * A[{labels}]", statistics)
    memory = RunMemory(limit_bytes, threads=2, vector_rows=64)
    return SearchTask(CostModel(graph, statistics, evaluations, CONSTANTS, EMBEDDED, memory), {}, {}, {})


@random_runs(30)
@given(data=st.data())
def test_costs_in_a_table_equal_single_costs(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 2, 2, 5, 12]), min_size=3, max_size=4)))
    entries = data.draw(st.integers(1, math.prod(shape)))
    task = task_of(shape, entries, data.draw(st.sampled_from([math.inf, 1e6, 1e4, 1e3])))
    tiles = list(itertools.product((0, 1, 2, 4), repeat=len(shape)))[:: data.draw(st.integers(1, 5))]
    expected = [(tile, data.draw(st.integers(1, 3))) for tile in tiles]
    costs = task.repartition_costs("A", tiles, expected)
    alone = [[task.model.repartitions.seconds("A", one, *other) for other in expected] for one in tiles]
    np.testing.assert_array_equal(costs, alone)


def test_changes_of_equal_sizes_are_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = []

    def counted(costs: RepartitionCosts, tensor: str, *change: object) -> float:
        priced.append(change)
        return 1.0

    monkeypatch.setattr(RepartitionCosts, "seconds", counted)
    tiles = list(itertools.product((0, 1), repeat=8))
    table = task_of((2,) * 8, 256, math.inf).repartition_costs("A", tiles, [(tile, 1) for tile in tiles])
    assert len(priced) < 1000 < table.size == 1 << 16
    np.testing.assert_array_equal(table, 1 - np.eye(len(tiles)))
