"""Plans for several machines get cheap placements and the SQL that moves their data; no cluster is needed."""

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from test_golden_sql import PRODUCT, check_golden

import sparseeinsum as se
from sparseeinsum.algebra.placement import PlacedDefinitions, place_definitions
from sparseeinsum.api.examples import citation_graph, gcn_inputs
from sparseeinsum.api.graphs import GCN
from sparseeinsum.decompose.clusters.cluster_plans import ClusterPlan
from sparseeinsum.decompose.clusters.cluster_tasks import Machines
from sparseeinsum.decompose.clusters.costs import TransferCosts, Volume
from sparseeinsum.decompose.clusters.partial_groups import expected_partials
from sparseeinsum.decompose.clusters.transfers import Cluster, transfer_bytes
from sparseeinsum.decompose.clusters.wire import row_bytes
from sparseeinsum.decompose.places.distribution import Central, Distribution, Hashed, Replicated, Scattered
from sparseeinsum.plans.plan_statements import write_sql
from sparseeinsum.render.dialects import CITUS

TWO = Cluster(sites=2, shards=8)
EIGHT = Cluster(sites=8, shards=32)


def cheapest(plan: se.Plan, cluster: Cluster, stored: Mapping[str, Distribution]) -> ClusterPlan:
    """The placements of a plan that send the fewest bytes."""
    slow = replace(cluster, network_bytes_per_second=1.0)  # only transfers count
    costs = TransferCosts(slow, small_bytes=0)
    alternatives = replace(plan.data.alternatives, machines=Machines(costs, stored))
    cluster_plan = alternatives.priced(plan.data.decomposed.choices).cluster_plan
    assert cluster_plan is not None
    return cluster_plan


def placed(plan: se.Plan, cluster: Cluster, **stored: Distribution) -> tuple[PlacedDefinitions, str]:
    """A plan with placements on sites, and its SQL."""
    cluster_plan = cheapest(plan, cluster, stored)
    result = place_definitions(plan.data.definitions, cluster_plan, plan.data.alternatives.model)
    on_machines = replace(plan.data, definitions=result.definitions, dialect=CITUS)
    return result, write_sql(on_machines.statements, "staged")


def product(db: se.Database, rows: int, inner: int, columns: int, pin: str) -> se.Plan:
    rng = np.random.default_rng(0)
    db.tensor("A", sp.csr_array(sp.random_array((rows, inner), density=0.1, rng=rng)))
    db.tensor("B", rng.normal(size=(inner, columns)))
    return db.plan(PRODUCT, pin={"C": pin}, indexes=False)


def test_transfer_is_that_of_the_paper() -> None:
    """Section 5.3: a broadcast of f numbers to s sites counts f * s, a shuffle f, and what is in place nothing."""
    for cluster in (TWO, EIGHT):
        assert transfer_bytes(10.0, Central(), Replicated(), cluster) == 10.0 * cluster.sites
        assert transfer_bytes(10.0, Hashed(0), Replicated(), cluster) == 10.0 * (cluster.sites + 1)
        assert transfer_bytes(10.0, Scattered(), Hashed(1), cluster) == pytest.approx(10.0 - 10.0 / cluster.sites)
        assert transfer_bytes(10.0, Hashed(0), Central(), cluster) == 10.0
        assert transfer_bytes(10.0, Replicated(), Hashed(0), cluster) == 10.0
        assert transfer_bytes(10.0, Hashed(1), Hashed(1), cluster) == 0.0
        assert transfer_bytes(10.0, Replicated(), Central(), cluster) == 0.0


def test_partial_results_per_shard() -> None:
    """The estimate equals the number of distinct groups of a shard among tuples that are drawn at random."""
    rng = np.random.default_rng(0)
    for groups, joined in ((10, 5), (10, 100), (1000, 3000), (1000, 100_000)):
        counted = [len(np.unique(rng.integers(0, groups * TWO.shards, joined))) for _ in range(100)]
        assert expected_partials(groups, joined, TWO.shards) == pytest.approx(np.mean(counted), rel=0.03)
    assert expected_partials(0, 0, TWO.shards) == 0.0


def test_colocated_operands_are_not_moved(db: se.Database) -> None:
    site_plan, _ = placed(product(db, 30, 20, 10, "ij"), TWO, A=Hashed(0), B=Replicated())
    (definition,) = site_plan.definitions
    assert (site_plan.total_bytes, definition.distribution) == (0.0, Hashed(0))
    assert definition.materialized_operands() == ()


@pytest.mark.parametrize(("rows", "columns", "moved"), [(2000, 3, "B"), (20, 300, "A")])
def test_the_smaller_operand_is_broadcast(db: se.Database, rows: int, columns: int, moved: str) -> None:
    """The other operand stays: of C[i, k] = A[i, j] B[j, k], each site computes some rows, or some columns."""
    plan = product(db, rows, 50, columns, "ijk")
    site_plan, _ = placed(
        plan, TWO, A=Hashed(0), B=Hashed(1) if len(plan.data.inputs["B"].stored.keys) > 1 else Hashed(0)
    )
    (definition,) = site_plan.definitions
    broadcast = [operand for operand in definition.materialized_operands() if operand.distribution == Central()]
    assert [operand.schema.tensor.name for operand in broadcast] == [moved]
    sent, gathered = site_plan.transferred_bytes[definition.relation], site_plan.transferred_bytes[broadcast[0]]
    assert sent == 2 * gathered > 0


def test_partial_results_are_gathered_if_smaller(db: se.Database) -> None:
    """For a sum over the distribution column, partial results of a small result are less than the operand."""
    db.tensor("A", sp.csr_array(sp.random_array((3000, 4), density=0.9, rng=np.random.default_rng(0))))
    plan = db.plan("s[j] = sum(A[i, j])", optimizer="relational", indexes=False)
    site_plan, _ = placed(plan, TWO, A=Hashed(0))
    (definition,) = site_plan.definitions
    assert definition.materialized_operands() == ()
    assert 0.0 < site_plan.total_bytes < 10_000  # of some 400,000 in A
    assert definition.distribution == Hashed(0)  # where results stay that are not read before
    at_keys, _ = placed(plan, TWO, A=Hashed(1))
    assert (at_keys.total_bytes, at_keys.definitions[0].distribution) == (0.0, Hashed(0))


TWO_PRODUCTS = "C[i, k] = sum(A[i, j] * B[j, k])\nD[i, k] = sum(E[i, j] * B[j, k])"


@pytest.mark.parametrize("cluster", [TWO, EIGHT])
def test_what_two_statements_read_on_all_machines_is_sent_once(db: se.Database, cluster: Cluster) -> None:
    rng = np.random.default_rng(0)
    for name in "AE":
        db.tensor(name, sp.csr_array(sp.random_array((2000, 50), density=0.1, rng=rng)))
    db.tensor("B", rng.normal(size=(50, 3)), promoted=["dim_0"])
    plan = db.plan(TWO_PRODUCTS, pin={"C": "ij", "D": "ij"}, indexes=False)
    site_plan, text = placed(plan, cluster, A=Hashed(0), B=Hashed(0), E=Hashed(0))
    read = {relation for definition in site_plan.definitions for relation in definition.materialized_operands()}
    (shared,) = read
    assert shared.distribution == Replicated()
    assert text.count("create_reference_table") == 1
    size = 50 * (row_bytes(shared.schema.tensor, shared.schema.decomposition))
    assert site_plan.total_bytes == (cluster.sites + 1) * size
    alone = db.plan(TWO_PRODUCTS, pin={"C": "ij", "D": "ij"}, indexes=False, outputs=["C"])
    assert placed(alone, cluster, A=Hashed(0), B=Hashed(0), E=Hashed(0))[0].total_bytes == (cluster.sites + 1) * size


def test_sharing_pays_for_its_table_and_for_taking_shards_in_turn() -> None:
    costs, volume = TransferCosts(TWO), Volume(1000.0, 1e6)
    sent = costs.transfer_seconds(volume, Central(), Replicated())
    assert costs.saving_of_sharing(volume, 1) < 0
    assert costs.saving_of_sharing(volume, 3) - costs.saving_of_sharing(volume, 2) == pytest.approx(sent)
    assert costs.turns_seconds(1.0) == 0.75  # 4 shards of a machine, each at a time
    assert TransferCosts(Cluster(sites=8, shards=8)).turns_seconds(1.0) == 0.0


@pytest.mark.parametrize("cluster", [TWO, EIGHT])
@pytest.mark.parametrize("pin", ["i", "ij", "jk", "ijk"])
def test_no_placement_of_the_inputs_is_refused(db: se.Database, pin: str, cluster: Cluster) -> None:
    plan = product(db, 12, 10, 8, pin)
    places: list[Distribution] = [Hashed(0), Replicated(), Scattered(), Central()]
    least = {}
    for left, right in itertools.product(places, places):
        site_plan, _ = placed(plan, cluster, A=left, B=right)
        least[left, right] = site_plan.total_bytes
        assert all(definition.distribution is not None for definition in site_plan.definitions)
    assert 0.0 <= min(least.values()) < least[Scattered(), Scattered()]


@pytest.mark.engines("duckdb", reason="the golden files name the tables of plans made there")
def test_sql_of_a_product(db: se.Database) -> None:
    """Statements that create and fill tables on a cluster: a shuffle, a broadcast and partial results."""
    plan = product(db, 30, 20, 10, "ij")
    check_golden("matrix_product_citus_shuffled", placed(plan, TWO, A=Hashed(1), B=Replicated())[1])
    check_golden("matrix_product_citus_parts", placed(plan, TWO, A=Hashed(1), B=Hashed(0))[1])
    check_golden("matrix_product_citus_broadcast", placed(plan, TWO, A=Hashed(0), B=Central())[1])


@pytest.mark.engines("duckdb", reason="the golden files name the tables of plans made there")
def test_sql_of_gcn(db: se.Database) -> None:
    for name, matrix in gcn_inputs(citation_graph()).items():
        db.tensor(name, matrix)
    plan = db.plan(GCN, rewrite=False, indexes=False)
    hashed = {name: Hashed(0) for name in plan.data.inputs}
    check_golden("gcn_citus", placed(plan, TWO, **hashed)[1])


@pytest.mark.parametrize("cluster", [TWO, EIGHT, Cluster(sites=64, shards=64)])
@pytest.mark.parametrize("optimizer", ["dp", "relational"])
def test_plans_are_compared_by_the_bytes_that_their_tables_take(
    db: se.Database, optimizer: str, cluster: Cluster
) -> None:
    """Also by those of keys that are sent to add absent tuples; what several statements read is sent once, at most."""
    for name, matrix in gcn_inputs(citation_graph()).items():
        db.tensor(name, matrix)
    plan = db.plan(GCN, optimizer=optimizer, rewrite=False, indexes=False)
    hashed = {name: Hashed(0) for name in plan.data.inputs}
    site_plan, _ = placed(plan, cluster, **hashed)
    expected = cheapest(plan, cluster, hashed).cost
    assert 0.9 * expected < site_plan.total_bytes < 1.001 * expected


def test_one_machine_has_no_distribution(db: se.Database) -> None:
    with pytest.raises(se.ShapeError, match="one machine here; leave distribute out"):
        db.tensor("A", np.eye(3), distribute="dim_0")
    assert db.tensors() == {}
