"""On grids of a Citus cluster, operands are copied to the cells that read them, and results stay or are added up."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from evaluated_plans import results_of
from hypothesis import given
from hypothesis import strategies as st
from program_cases import check
from random_programs import FAMILIES, cases
from random_runs import random_runs
from reading import engine_of

import sparseeinsum as se
from sparseeinsum.decompose.clusters import cluster_tasks
from sparseeinsum.decompose.clusters.cells import cell_keys, shard_of
from sparseeinsum.decompose.clusters.grid_strategies import grid_strategies
from sparseeinsum.decompose.clusters.local_strategies import LocalStrategy
from sparseeinsum.decompose.clusters.partial_groups import keys_of_labels
from sparseeinsum.decompose.clusters.transfers import Cluster
from sparseeinsum.decompose.places.distribution import Gridded, Hashed, Replicated, Scattered
from sparseeinsum.engines.postgresql.citus import CitusEngine
from sparseeinsum.language.eingraph import EinSum

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
SQUARES = "C[k] = sum(tanh(A[i, j] * B[j, k]))"
BATCH = "C[b, i, k] = sum(A[b, i, j] * B[j, k])"
CHAIN = """
T[i, k] = sum(A[i, j] * B[j, k])
U[i, k] = tanh(T[i, k]) * T[i, k]
V[k, i] = U[i, k] - D[k]
Y[i, l] = sum(V[k, i] * C[k, l])
s[k] = sum(U[i, k])
"""


@pytest.fixture
def db(citus: se.Database) -> se.Database:
    """A database of the cluster."""
    return citus


@pytest.fixture
def cluster_of_eight(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The cluster, planned for as if every shard was on a machine of its own, so that there are 8 cells."""
    actual = engine_of(db).cluster()
    assert actual is not None
    eight = replace(actual, sites=8)
    monkeypatch.setattr(CitusEngine, "cluster", lambda _: eight)
    return eight


def test_cells_lie_on_machines_of_their_own(db: se.Database) -> None:
    cluster = engine_of(db).cluster()
    assert cluster is not None
    with db.connection.transaction(force_rollback=True):
        db.connection.execute("CREATE TABLE cells (cell BIGINT)")
        db.connection.execute("SELECT create_distributed_table('cells', 'cell')")
        shards = """SELECT shardid, nodename, nodeport FROM pg_dist_shard JOIN pg_dist_shard_placement USING (shardid)
        WHERE logicalrelid = 'cells'::REGCLASS ORDER BY shardminvalue::INT"""
        placements = db.connection.execute(shards).fetchall()
        number = {shard: at for at, (shard, *_) in enumerate(placements)}
        for key in range(50):
            found = db.connection.execute("SELECT get_shard_id_for_distribution_column('cells', %s::BIGINT)", [key])
            ((shard,),) = found.fetchall()
            assert number[shard] == shard_of(key, cluster.shards)
    machines = {placements[shard_of(key, cluster.shards)][1:] for key in cell_keys(cluster)}
    assert len(machines) == len(cell_keys(cluster)) == cluster.sites


def impossible(einsum: EinSum) -> LocalStrategy:
    """A strategy that no plan has: nothing is sent to be scattered."""
    return LocalStrategy((Scattered(), Replicated())[: len(einsum.operands)], Scattered())


@pytest.mark.parametrize(("text", "inner"), [(PRODUCT, 5), (PRODUCT, 0), (SQUARES, 5), (BATCH, 5)])
def test_all_grids(
    db: se.Database, text: str, inner: int, cluster_of_eight: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every grid gives the same result; workers fill tables, whatever the machines of the operands."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(12, 20)), rng.normal(size=(20, 30))
    tiles = {"i": 3, "j": inner, "k": 6}
    if text == BATCH:
        left, tiles = rng.normal(size=(4, 12, 20)), {**tiles, "b": 2}
    for name, matrix, labels in (("A", left, "bij"[3 - left.ndim :]), ("B", right, "jk")):
        promoted = {f"dim_{axis}": tiles[label] for axis, label in enumerate(labels) if tiles[label]}
        db.tensor(name, matrix, promoted=promoted, distribute=max(promoted))
    expected = np.tanh(left[:, :, None] * right).sum(axis=(0, 1)) if text == SQUARES else left @ right
    pin = {label: tile for label, tile in tiles.items() if tile}
    planned = partial(db.plan, text, pin={"C": pin}, rewrite=False)
    plan = planned()
    (step,) = plan.data.decomposed.steps
    keys = keys_of_labels(plan.data.alternatives.model, step.einsum, step.choice)
    strategies = [
        strategy
        for strategy in grid_strategies(step.einsum, keys, step.absence.join, True, cluster_of_eight)
        if isinstance(strategy.result, Hashed)  # as outputs are
    ]
    monkeypatch.setattr(cluster_tasks, "contraction_strategies", lambda einsum, *_: [impossible(einsum)])
    cuts = set()
    for strategy in strategies:
        monkeypatch.setattr(cluster_tasks, "grid_strategies", lambda *_, only=strategy: [only])
        plan = planned()
        assert plan.data.decomposed.cluster_plan is not None
        assert plan.data.decomposed.cluster_plan.strategies == {"C": strategy}
        np.testing.assert_allclose(db.run(plan)["C"].to_numpy(), expected, rtol=1e-10, atol=1e-10)
        with db.connection.transaction(force_rollback=True):
            for command in plan.sql("staged").split(";\n"):
                if command.strip().startswith("INSERT"):
                    explanation = db.connection.execute(f"EXPLAIN (COSTS OFF) {command}").fetchall()
                    assert "pull to coordinator" not in str(explanation), command + str(explanation)
                db.connection.execute(command)
        cuts.add(tuple(sorted(strategy.pieces(step.einsum).values())))
    assert {len(pieces) for pieces in cuts} == ({2, 3} if inner and text != SQUARES else {2})


@pytest.mark.usefixtures("cluster_of_eight", "nothing_is_small")
def test_results_stay_on_grids(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the next statement reads in the same cells is not sent; a result may also leave its grid for another one."""
    rng = np.random.default_rng(0)
    arrays = {"A": (12, 16), "B": (16, 12), "C": (12, 20), "D": (12,)}
    inputs = {name: rng.normal(size=shape) for name, shape in arrays.items()}
    for name, array in inputs.items():
        db.tensor(name, array, promoted={f"dim_{axis}": 2 for axis in range(array.ndim)}, distribute="dim_0")
    monkeypatch.setattr(cluster_tasks, "contraction_strategies", lambda einsum, *_: [impossible(einsum)])
    labels = {"T": "ijk", "U": "ik", "V": "ki", "Y": "kil", "s": "ik"}
    pins = {name: dict.fromkeys(promoted, 2) for name, promoted in labels.items()}
    plan = db.plan(CHAIN, pin=pins, rewrite=False, objective="floats")
    decomposed = plan.data.decomposed
    assert decomposed.cluster_plan is not None
    on_grids = {name for name, place in decomposed.cluster_plan.distributions.items() if isinstance(place, Gridded)}
    assert {"T", "U"} <= on_grids
    assert on_grids.isdisjoint(decomposed.graph.outputs)
    product = inputs["A"] @ inputs["B"]
    kept = np.tanh(product) * product
    expected = {"Y": (kept - inputs["D"]) @ inputs["C"], "s": kept.sum(axis=0)}
    run, evaluated = db.run(plan), results_of(plan, inputs, keeps_fill=True)
    for name, array in expected.items():
        np.testing.assert_allclose(run[name].to_numpy(), array, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(evaluated[name], array, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("nothing_is_small")
def test_groups_of_one_pair(db: se.Database) -> None:
    """A permutation has one entry for each group, which is aggregated all the same."""
    rng = np.random.default_rng(0)
    permuted = np.zeros((40, 40))
    permuted[np.arange(40), rng.permutation(40)] = 2.0
    inputs = {"A": rng.normal(size=(40, 40)), "B": rng.normal(size=(40, 40)), "P": permuted}
    for name, matrix in inputs.items():
        db.tensor(name, matrix, promoted=["dim_0", "dim_1"], distribute="dim_0")
    text = "T[i, k] = sum(A[i, j] * B[j, k])\nY[i, l] = sum(T[i, k] * P[k, l])"
    plan = db.plan(text, optimizer="relational", objective="floats")
    assert plan.data.decomposed.cluster_plan is not None
    assert all(strategy.grid is not None for strategy in plan.data.decomposed.cluster_plan.strategies.values())
    expected = inputs["A"] @ inputs["B"] @ permuted
    np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("cluster_of_eight", "nothing_is_small")
@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs(db: se.Database, family: str) -> None:
    """Programs in a network so slow that grids are worthwhile."""
    db.connection.execute("SET sparseeinsum.network_gbit_per_second = '1e-6'")

    @random_runs(5, "citus")
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check(db, data.draw(cases(family, data.draw(st.sampled_from(["dp", "greedy", "relational"])))))

    run()
    db.connection.execute("RESET sparseeinsum.network_gbit_per_second")
