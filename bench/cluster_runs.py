"""Runs plans on a Citus cluster, leaves the results there, and counts the bytes that arrive at lo meanwhile."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

import sparseeinsum as se
from bench.citus import received_bytes
from bench.cluster_plans import Layout
from sparseeinsum.algebra.implementation.site_operators import SitePlan
from sparseeinsum.api.relational_queries import filled, plan_query
from sparseeinsum.engines.sequential_shards import sequential_shards
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.render.table_distribution import TableDistribution
from sparseeinsum.results.results import TensorResult
from sparseeinsum.statistics.columns import computed_type

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Counted:
    """What a run moved.

    Attributes:
        received_bytes: That arrived at lo.
        seconds: That it took.
    """

    received_bytes: int
    seconds: float


def load(db: se.Database, layout: Layout) -> None:
    """Load tensors as they are to lie."""
    for name, laid in layout.items():
        db.tensor(name, laid.array, promoted=laid.tiles, distribute=laid.distribute)


def machines(db: se.Database) -> int:
    """How many have shards."""
    query = "SELECT COUNT(*) FROM pg_dist_node WHERE shouldhaveshards AND isactive"
    ((count,),) = db.connection.execute(query).fetchall()
    return int(count)


def run_plans(db: se.Database, plans: Sequence[SitePlan], expected: Sequence[Array]) -> Counted:
    """Run plans of the implementation algebra, of tensors that lie as they say."""
    engine = db._engine
    found = []
    with engine.transaction():
        with sequential_shards(engine):
            query = plan_query(plans, engine)
        before, start = received_bytes(), time.perf_counter()
        with filled(query, engine):
            kept = []
            for number, result in enumerate(query.results):
                table = engine.stage_namer(0.0)(f"result{number}")
                of = computed_type(result.schema.tensor.dtype, result.schema.is_scalar)
                spread = result.distribution or TableDistribution(result.schema.keys[0])
                engine.stage(
                    SqlStatement("result", result.select, (), table, engine.dialect, distribution=spread, value_type=of)
                )
                kept.append(table)
            counted = Counted(received_bytes() - before, time.perf_counter() - start)
            for table, result in zip(kept, query.results, strict=True):
                found.append(TensorResult(result.schema, engine.arrow(f"SELECT * FROM {table.sql()}")))
                engine.execute(exp.Drop(tables=[table], kind="TABLE"))
    for tensor, plan, wanted in zip(found, plans, expected, strict=True):
        _check(_put_together(tensor.to_numpy(), plan.type.arity), wanted)
    return counted


def _put_together(blocks: Array, arity: int) -> Array:
    """A matrix or vector of its blocks, by keys and then by what is inside."""
    keys, inside = blocks.shape[:arity], blocks.shape[arity:]
    order = [axis for pair in zip(range(arity), range(arity, 2 * arity), strict=True) for axis in pair]
    return blocks.transpose(order).reshape([count * size for count, size in zip(keys, inside, strict=True)])


def run_program(db: se.Database, plan: se.Plan, expected: Mapping[str, Array]) -> Counted:
    """Run the plan of a program; and again, to see what comes out."""
    before, start = received_bytes(), time.perf_counter()
    db.run(plan, into={name: f"bench_{name}" for name in expected})
    counted = Counted(received_bytes() - before, time.perf_counter() - start)
    found = db.run(plan)
    for name, wanted in expected.items():
        _check(found[name].to_numpy(), wanted)
        db.connection.execute(f"DROP TABLE bench_{name}")
    return counted


def _check(found: Array, wanted: Array) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())
