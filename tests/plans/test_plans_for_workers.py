"""Plans for a number of workers promote the labels to cut, and keep their results."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.api.examples import (
    FEED_FORWARD,
    MULTI_HEAD_ATTENTION,
    ExampleMatrix,
    citation_graph,
    feed_forward_inputs,
    feed_forward_reference,
    gcn_inputs,
    gcn_reference,
    load,
    multi_head_attention_inputs,
    multi_head_attention_reference,
)
from sparseeinsum.api.graphs import GCN
from sparseeinsum.cli import main
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.language.tensors import DEMOTED, count_keys

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"


def assert_cut(plan: se.Plan) -> None:
    """Assert that labels that are cut have keys, each of which belongs to one worker."""
    assert plan.partitioned is not None
    tiles = {step.einsum.output.tensor: step.choice for step in plan.partitioned.best.steps}
    for step in plan.data.decomposed.steps:
        expected = tiles[step.einsum.output.tensor]
        for label, tile, whole in zip(step.einsum.labels, step.choice, expected, strict=True):
            if whole != DEMOTED:
                bound = plan.data.decomposed.graph.bound_of(step.einsum, label)
                assert tile != DEMOTED
                assert whole % tile == 0
                assert count_keys(tile, bound) >= count_keys(whole, bound)


GRAPH = gcn_inputs(citation_graph(200, 1200, 64, 1500), hidden=32, classes=8)
ATTENTION = multi_head_attention_inputs(24, heads=4, width=6)
NETWORK = feed_forward_inputs(40, 30, 20, 10)
CASES: dict[str, tuple[str, Mapping[str, ExampleMatrix], NDArray[np.float64]]] = {
    "convolutions": (GCN, GRAPH, gcn_reference(GRAPH)),
    "attention": (MULTI_HEAD_ATTENTION, ATTENTION, multi_head_attention_reference(ATTENTION)),
    "network": (FEED_FORWARD, NETWORK, feed_forward_reference(NETWORK)),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_one_worker(name: str) -> None:
    text, inputs, expected = CASES[name]
    with load(se.connect(), inputs) as db:
        for workers in (2, 16, 3, 6):
            plan = db.plan(text, workers=workers)
            assert_cut(plan)
            np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), expected, rtol=1e-9, atol=1e-12)


def test_plans_have_as_many_calls_as_workers() -> None:
    with se.connect() as db:
        db.tensor("A", np.ones((64, 64)))
        db.tensor("B", np.ones((64, 64)))
        plan = db.plan(PRODUCT, workers=16)
        assert plan.partitioned is not None
        assert [step.calls for step in plan.partitioned.best.steps] == [16]
        assert plan.partitioned.workers == 16


def test_a_sparse_operand_moves_its_entries_with_their_keys() -> None:
    rng = np.random.default_rng(0)
    sparse = np.where(rng.random((64, 64)) < 0.02, 1.0, 0.0)
    with se.connect() as db:
        db.tensor("A", sparse, promoted=["dim_0", "dim_1"])
        db.tensor("B", rng.random((64, 512)))
        plan = db.plan(PRODUCT, workers=8)
        assert plan.partitioned is not None
        assert plan.partitioned.vectors["C"]["k"] == 8
        assert plan.partitioned.best.join < 3 * 8 * np.count_nonzero(sparse) + 2 * 64 * 512
        np.testing.assert_allclose(db.run(plan)["C"].to_numpy(), sparse @ db.run("D[i, j] = B[i, j]")["D"].to_numpy())


def test_large_dense_arrays_have_the_tiles_of_their_vectors() -> None:
    with se.connect() as db:
        for name in "ABD":
            db.tensor(name, np.ones((1024, 1024)))
        plan = db.plan(f"{PRODUCT}\nE[i, l] = sum(C[i, k] * D[k, l])", workers=64, layout="any")
        assert plan.partitioned is not None
        vectors = {step.einsum.output.tensor: step.choice for step in plan.partitioned.best.steps}
        assert {step.einsum.output.tensor: step.choice for step in plan.data.decomposed.steps} == vectors
        assert plan.notation()[0] == "C[I:256, K:256] = sum(A[I:256, J:256] * B[J:256, K:256])"


@pytest.mark.parametrize("name", CASES)
def test_fewer_floats_are_sent_if_these_are_the_objective(name: str) -> None:
    text, inputs, expected = CASES[name]
    with load(se.connect(), inputs) as db:
        by_seconds, by_floats = (db.plan(text, workers=6, objective=objective) for objective in ("seconds", "floats"))
        assert by_seconds.partitioned is not None
        assert by_floats.partitioned is not None
        assert by_floats.partitioned.moved <= by_seconds.partitioned.moved * (1 + 1e-9)
        assert_cut(by_floats)
        np.testing.assert_allclose(db.run(by_floats)["Y"].to_numpy(), expected, rtol=1e-9, atol=1e-12)


def test_products_are_ordered_for_few_floats() -> None:
    """T * x takes fewer floats than B * C, also where a plan for one worker would not look for another order."""
    text = "T[i, k] = sum(B[i, j] * C[j, k])\ny[i] = sum(T[i, k] * x[k])"
    with se.connect() as db:
        for name, shape in {"B": (48, 48), "C": (48, 48), "x": (48,)}.items():
            db.tensor(name, np.ones(shape))
        moved = {}
        for rewrite in (True, False):
            plan = db.plan(text, workers=4, objective="floats", rewrite=rewrite)
            assert plan.partitioned is not None
            moved[rewrite] = plan.partitioned.moved
            np.testing.assert_array_equal(db.run(plan)["y"].to_numpy(), np.full(48, 48.0 * 48.0))
    assert moved[True] < 0.5 * moved[False]


@pytest.mark.parametrize("name", CASES)
def test_one_number_is_sent_from_every_way_in(name: str) -> None:
    """Shapes alone, a plan for few floats, and its tuples distributed over as many sites send the same."""
    text, inputs, _ = CASES[name]
    shapes = {tensor: matrix.shape for tensor, matrix in inputs.items()}
    with load(se.connect(), {tensor: np.ones(shape) for tensor, shape in shapes.items()}) as db:
        for workers in (4, 6):
            plan = db.plan(text, workers=workers, objective="floats")
            assert plan.partitioned is not None
            moved = se.partition(text, workers, shapes).moved
            assert (plan.partitioned.moved, plan.distributed(workers).moved) == pytest.approx((moved, moved))
            assert f"{moved:,.0f}" in plan.explain()


def test_plans_distributed_over_sites() -> None:
    """Labels without keys are not cut, and inputs are where they are stored."""
    with se.connect() as db:
        db.tensor("A", np.ones((64, 64)), promoted={"dim_0": 1, "dim_1": 1})
        db.tensor("B", np.ones((64, 8)), promoted={"dim_0": 1})
        plan = db.plan(PRODUCT, pin={"C": {"i": 1, "j": 1}}, layout="any")
        free, stored = plan.distributed(4), plan.distributed(4, {"A": "dim_0", "B": 0})
        assert free.moved <= stored.moved <= 3 * 64 * 8
        assert all(vectors["k"] == 1 for vectors in (free.vectors["C"], stored.vectors["C"]))
        assert plan.distributed(4, {"A": 0, "B": "everywhere"}).moved == 0
        whole = db.plan(PRODUCT, pin={"C": []}, layout="any")
        assert whole.distributed(4).vectors == {"C": {"i": 1, "j": 1, "k": 1}}


PLACES: list[tuple[tuple[Any, ...], str]] = [
    ((), "the plan is for one machine; say how many sites there are"),
    ((0,), "sites is 0; give a whole number of 1 or more"),
    ((2.5,), "sites is 2.5; give a whole number of 1 or more"),
    ((2, {"Z": 0}), "Z is placed, and no input; inputs are A, B"),
    ((2, {"A": "somewhere"}), "A is cut along axis 'somewhere'; it has dim_0, dim_1, by name, or by position"),
    ((2, {"A": (0,)}), r"A is cut along axis \(0,\); it has dim_0, dim_1"),
    ((2, [("A", 0)]), "stored is .*; give places by name, as in"),
]


@pytest.mark.parametrize(("arguments", "message"), PLACES)
def test_places_that_do_not_exist(arguments: tuple[Any, ...], message: str) -> None:
    with se.connect() as db:
        db.tensor("A", np.ones((4, 4)))
        db.tensor("B", np.ones((4, 4)))
        with pytest.raises(se.PlanError, match=message):
            db.plan(PRODUCT).distributed(*arguments)


def test_objectives_that_do_not_exist() -> None:
    with se.connect() as db:
        db.tensor("A", np.ones((4, 4)))
        db.tensor("B", np.ones((4, 4)))
        with pytest.raises(se.PlanError, match="objective 'bytes' is neither 'seconds' nor 'floats'"):
            db.plan(PRODUCT, workers=2, objective="bytes")
        with pytest.raises(se.PlanError, match=r"objective 'floats' is of plans for several workers, .*; say how many"):
            db.plan(PRODUCT, objective="floats")


def test_transfers_are_priced() -> None:
    """The floats that workers send cost 8 bytes each, with a few for keys, beyond the seconds of one machine."""
    with se.connect() as db:
        db.tensor("A", np.ones((512, 512)))
        db.tensor("B", np.ones((512, 512)))
        plan = db.plan(PRODUCT, workers=16)
        assert plan.partitioned is not None
        model = plan.data.alternatives.model
        alone = CostModel(model.graph, model.statistics, model.evaluations, model.constants)
        (step,) = plan.data.decomposed.steps
        seconds = (
            model.vertex_cost(step.einsum, step.choice).seconds - alone.vertex_cost(step.einsum, step.choice).seconds
        )
        moved = plan.partitioned.moved
        assert moved > 512 * 512
        sent = moved * 8 * model.constants.transfer_seconds_per_byte
        assert sent <= seconds == pytest.approx(sent, rel=1e-3)  # the keys of a few tuples


def test_the_busiest_worker_is_priced() -> None:
    """10 rows on 8 workers are 5 pieces of 2: each takes as long as 1.6 rows with all workers busy."""
    with se.connect() as db:
        db.tensor("A", np.ones((10, 64)))
        db.tensor("B", np.ones((64, 64)))
        plan = db.plan(PRODUCT, workers=8, pin={"C": {"i": 2}})
        assert plan.partitioned is not None
        assert plan.partitioned.vectors["C"] == {"i": 5, "k": 1, "j": 1}
        model = plan.data.alternatives.model
        alone = CostModel(model.graph, model.statistics, model.evaluations, model.constants)
        (step,) = plan.data.decomposed.steps
        moved = plan.partitioned.moved * 8 * model.constants.transfer_seconds_per_byte
        expected = 1.6 * alone.vertex_cost(step.einsum, step.choice).seconds + moved
        assert model.vertex_cost(step.einsum, step.choice).seconds == pytest.approx(expected)


def test_pinned_labels_are_cut_as_pinned() -> None:
    with se.connect() as db:
        db.tensor("A", np.ones((64, 64)))
        db.tensor("B", np.ones((64, 64)))
        plan = db.plan(PRODUCT, workers=8, pin={"C": ["i"]})
        assert plan.partitioned is not None
        assert plan.partitioned.vectors["C"] == {"i": 8, "k": 1, "j": 1}
        tiled = db.plan(PRODUCT, workers=8, pin={"C": {"i": 48, "k": 16}})
        assert tiled.partitioned is not None
        assert tiled.partitioned.vectors["C"] == {"i": 1, "k": 4, "j": 1}
        by_hand = db.plan("C[I:4, k] = sum(A[I:4, j] * B[j, k])", workers=64)
        assert by_hand.partitioned is not None
        assert by_hand.partitioned.vectors["C"]["i"] <= 16
        np.testing.assert_array_equal(db.run(by_hand)["C"].to_numpy(), np.full((64, 64), 64.0))


def test_a_dense_plan_has_no_keys_to_cut_by() -> None:
    with se.connect() as db:
        db.tensor("A", np.ones((64, 64)))
        db.tensor("B", np.ones((64, 64)))
        with pytest.raises(se.PlanError, match="no decomposition of C satisfies both"):
            db.plan(PRODUCT, workers=8, optimizer="dense")
        assert db.plan(PRODUCT, workers=1, optimizer="dense").notation() == ["C[i, k] = sum(A[i, j] * B[j, k])"]


def test_several_plans_keep_to_one_partition() -> None:
    with se.connect() as db:
        db.tensor("A", np.ones((32, 32)))
        db.tensor("B", np.ones((32, 32)))
        plans = db.plan(PRODUCT, workers=4, top=3)
        assert len(plans) > 1
        for plan in plans:
            assert_cut(plan)
            np.testing.assert_array_equal(db.run(plan)["C"].to_numpy(), np.full((32, 32), 32.0))


def test_explanations_name_the_workers(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"{tmp_path}/products.duckdb"
    with se.connect(path) as db:
        db.tensor("A", np.ones((32, 32)))
        db.tensor("B", np.ones((32, 32)))
        plan = db.plan(PRODUCT, workers=4)
        assert plan.partitioned is not None
        explained = plan.partitioned.explain()
        assert plan.explain().endswith(explained)
    assert main(["explain", "--database", path, "--text", PRODUCT, "--workers", "4"]) == 0
    printed = capsys.readouterr().out
    assert "EinSums cut among 4 workers" in printed
    assert set(re.findall(r"[\w.]+", explained)) <= set(re.findall(r"[\w.]+", printed))
    by_floats = ["--workers", "4", "--objective", "floats"]
    assert main(["explain", "--database", path, "--text", PRODUCT, *by_floats]) == 0
    assert "EinSums cut among 4 workers" in capsys.readouterr().out
    assert main(["explain", "--database", path, "--text", PRODUCT, "--workers", "0"]) == 1
    assert "workers is 0; give a whole number of 1 or more" in capsys.readouterr().err


def test_plans_without_workers_are_not_partitioned() -> None:
    with se.connect() as db:
        db.tensor("A", np.ones((8, 8)))
        plan = db.plan("S[] = sum(A[i, j])")
        assert plan.partitioned is None
        assert "workers" not in plan.explain()
