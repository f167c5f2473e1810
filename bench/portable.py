"""Portable functions in PostgreSQL beside those of the extension: calls of some functions, and GCN forward.

    python -m bench.portable planetoid_cora --data DATA --extension URL --portable URL

Two databases of one server: one has the extension, the other the portable functions. They take turns; tensors are
loaded before.
"""

from functools import partial

import numpy as np

import sparseeinsum as se
from bench.datasets import chosen_graphs, graph_of, graph_parser
from bench.timing import Figure, race, report
from sparseeinsum.api.examples import ExampleGraph, gcn_inputs, load
from sparseeinsum.api.graphs import GCN

_CALLS = {
    "tensor_add of 1,000 x 256": "SELECT count(tensor_add(u, u)) FROM rows_of_256",
    "tensor_map, relu, of 1,000 x 256": "SELECT count(tensor_map('relu', u)) FROM rows_of_256",
    "tensor_sum of 1,000 x 256": "SELECT tensor_sum(u) FROM rows_of_256",
    "tensor_sum_scaled of 1,000 x 256": "SELECT tensor_sum_scaled(x, u) FROM rows_of_256",
    "tensor_stack of 1,000 x 64": "SELECT tensor_stack(u[:64], i, 1000, 64, 0) FROM rows_of_256",
    "tensor_matmul, 64 x 64 x 64": "SELECT tensor_matmul(w, w, ARRAY[64, 64, 64]) FROM matrix",
    "tensor_map, relu, of 100,000 numbers": "SELECT sum(tensor_map('relu', x)) FROM numbers",
    "tensor_mul of 100,000 numbers": "SELECT sum(tensor_mul(x, x)) FROM numbers",
    "tensor_sum of 100,000 numbers": "SELECT tensor_sum(x) FROM numbers",
}
_TABLES = """
CREATE TEMP TABLE rows_of_256 AS
    SELECT i, ARRAY(SELECT random() - 0.5 + 0 * i FROM generate_series(1, 256)) AS u, random() AS x
    FROM generate_series(0, 999) AS i;
CREATE TEMP TABLE matrix AS SELECT array_agg(random() - 0.5) AS w FROM generate_series(1, 4096);
CREATE TEMP TABLE numbers AS SELECT random() - 0.5 AS x FROM generate_series(1, 100000);
SET jit = off; SET max_parallel_workers_per_gather = 0
"""
_EXTENSION, _PORTABLE = "extension", "portable"


def run(graph: ExampleGraph, urls: dict[str, str], repeat: int) -> list[Figure]:
    """The figures of the calls, and of GCN on one graph after checking that both give the same."""
    databases = {name: se.connect(url) for name, url in urls.items()}
    turns = dict.fromkeys(databases, repeat)
    for database in databases.values():
        database.connection.execute(_TABLES)
    figures = []
    for title, query in _CALLS.items():
        contenders = {name: partial(database.connection.execute, query) for name, database in databases.items()}
        figures += race(title, contenders, turns, _EXTENSION)
    inputs = gcn_inputs(graph)
    plans = {name: (load(database, inputs), database.plan(GCN)) for name, database in databases.items()}
    results = [database.run(plan)["Y"].to_numpy() for database, plan in plans.values()]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-9)
    runs = {name: partial(database.run, plan) for name, (database, plan) in plans.items()}
    figures += race(f"GCN, {graph.name}", runs, {_EXTENSION: repeat, _PORTABLE: 1}, _EXTENSION)
    for database in databases.values():
        database.close()
    return figures


if __name__ == "__main__":
    parser = graph_parser(__doc__ or "", repeat=5)
    for variant in (_EXTENSION, _PORTABLE):
        parser.add_argument(f"--{variant}", required=True, metavar="URL", help="a database with these functions")
    asked = chosen_graphs(parser, ["planetoid_cora"])
    urls = {_EXTENSION: asked.extension, _PORTABLE: asked.portable}
    measured = [figure for name in asked.graphs for figure in run(graph_of(name, asked.data), urls, asked.repeat)]
    report("Portable functions in PostgreSQL", measured, _EXTENSION, asked.output / "portable.json")
