"""GCN forward and sparse attention: ours in DuckDB and in PostgreSQL, and purely relational PostgreSQL.

    python -m bench.postgresql planetoid_cora --data DIR --url postgresql://user@host/database

Compute only: tensors are loaded before, into the database of the URL, which has the extension. Our plans take turns.
The relational plan, whose tensors are stored relationally, runs once, and is stopped after --bound seconds.
"""

import math
import time
from functools import partial

import numpy as np
import psycopg

import sparseeinsum as se
from bench.datasets import chosen_graphs, graph_of, graph_parser
from bench.timing import Figure, race, report
from sparseeinsum.api.examples import ExampleGraph, attention_inputs, attention_program, gcn_inputs, load
from sparseeinsum.api.graphs import GCN

_WIDTH = 1024


def run(graph: ExampleGraph, url: str, repeat: int, bound: float) -> list[Figure]:
    """The figures of both programs on one graph, after checking that the engines agree."""
    cases = {
        "GCN": (GCN, gcn_inputs(graph)),
        "attention": (attention_program(_WIDTH), attention_inputs(graph, _WIDTH)),
    }
    figures = []
    with se.connect() as duckdb, se.connect(url) as postgresql:
        for name, (program, inputs) in cases.items():
            load(postgresql, inputs, ["dim_0", "dim_1"])
            relational = seconds_within(
                postgresql, postgresql.plan(program, optimizer="relational", rewrite=False), bound
            )
            plans = {database: (load(database, inputs), database.plan(program)) for database in (duckdb, postgresql)}
            first, second = (database.run(plan).popitem()[1].to_numpy() for database, plan in plans.values())
            np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-9 * abs(first).max())
            contenders = dict(
                zip(
                    ("DuckDB", "PostgreSQL"),
                    (partial(database.run, plan) for database, plan in plans.values()),
                    strict=True,
                )
            )
            raced = race(f"{name}, {graph.name}", contenders, dict.fromkeys(contenders, repeat), "DuckDB")
            title = "PostgreSQL, relational" if math.isfinite(relational) else "PostgreSQL, relational, stopped"
            taken = min(relational, bound)
            figures += [*raced, Figure(raced[0].graph, title, taken, (taken,), taken / raced[0].seconds)]
    return figures


def seconds_within(database: se.Database, plan: se.Plan, limit: float) -> float:
    """How long a run takes; infinite where one of its statements takes longer than so many seconds."""
    database.connection.execute(f"SET statement_timeout = {math.ceil(limit * 1000)}")
    try:
        start = time.perf_counter()
        database.run(plan, progress=False, replan=False)
        return time.perf_counter() - start
    except se.EngineError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            return math.inf
        raise
    finally:
        database.connection.execute("RESET statement_timeout")


if __name__ == "__main__":
    parser = graph_parser(__doc__ or "", repeat=5)
    parser.add_argument("--url", required=True, help="PostgreSQL database that has the extension")
    parser.add_argument("--bound", type=float, default=600.0, help="seconds after which the relational plan is stopped")
    asked = chosen_graphs(parser, ["planetoid_cora"])
    measured = [
        figure
        for name in asked.graphs
        for figure in run(graph_of(name, asked.data), asked.url, asked.repeat, asked.bound)
    ]
    report("GCN and sparse attention in PostgreSQL", measured, "DuckDB", asked.output / "postgresql.json")
