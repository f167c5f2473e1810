"""Plain PostgreSQL servers behind postgres_fdw: which parts of a product run on the nodes, and how long it takes.

    python -m bench.foreign_servers --coordinator URL --node URL --node URL

The databases need the extension, the coordinator's also postgres_fdw. A sparse matrix of 13,752 rows and 491,722
entries is distributed over the nodes by row, and rows of 256 numbers are on each of them; the coordinator has all of
both. Prints what the coordinator sends to a node, and the seconds of the product beside those of the coordinator
alone.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from bench.timing import CONSOLE, race, report

_ROWS, _ENTRIES, _COLUMNS = 13_752, 491_722, 256
_ALONE, _BRANCHES, _PARTITIONS, _MOVED = "coordinator alone", "one branch a node", "partitions", "rows to a node"
_PRODUCT = """
    SELECT a.i, tensor_sum_scaled(a.val, h.val) AS val
    FROM {entries} AS a JOIN {rows} AS h ON a.j = h.j GROUP BY a.i
"""
_COUNTED = "SELECT count(*), sum(tensor_norm(val)) FROM ({}) AS product"


def product(entries: str, rows: str) -> str:
    """The sparse matrix times the rows, both as tables."""
    return _PRODUCT.format(entries=entries, rows=rows)


def load(connection: psycopg.Connection, keys: NDArray[np.int64], rows: NDArray[np.float64]) -> None:
    """Entries of the matrix and all rows, in tables of a database."""
    connection.execute("DROP TABLE IF EXISTS entries, rows, arrived CASCADE")
    connection.execute("CREATE TABLE entries (i int, j int, val float8)")
    connection.execute("CREATE TABLE rows (j int, val float8[])")
    connection.execute("CREATE TABLE arrived (i int, val float8[])")
    with connection.cursor() as cursor:
        with cursor.copy("COPY entries FROM STDIN") as copy:
            for i, j in keys.tolist():
                copy.write_row((i, j, 1.0))
        with cursor.copy("COPY rows FROM STDIN") as copy:
            for j, row in enumerate(rows.tolist()):
                copy.write_row((j, row))
    connection.execute("ANALYZE entries, rows")


def attach(coordinator: psycopg.Connection, number: int, url: str) -> None:
    """A node's tables as foreign ones, and as a partition of `parts`."""
    place = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    user = place.pop("user", "postgres")
    options = {**place, "extensions": "sparseeinsum", "use_remote_estimate": "true", "async_capable": "true"}
    listed = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(k), v) for k, v in options.items())
    node = sql.Identifier(f"node{number}")
    execute = coordinator.execute
    execute(sql.SQL("CREATE SERVER {} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({})").format(node, listed))
    execute(sql.SQL("CREATE USER MAPPING FOR CURRENT_USER SERVER {} OPTIONS (user {})").format(node, user))
    for table, columns in (
        ("entries", "(i int, j int, val float8)"),
        ("rows", "(j int, val float8[])"),
        ("arrived", "(i int, val float8[])"),
    ):
        made = sql.SQL("CREATE FOREIGN TABLE {} {} SERVER {} OPTIONS (table_name {}, batch_size '1000')")
        execute(made.format(sql.Identifier(f"{table}{number}"), sql.SQL(columns), node, table))
    part = sql.SQL(
        "CREATE FOREIGN TABLE {} PARTITION OF parts FOR VALUES IN ({}) SERVER {} OPTIONS (table_name 'entries')"
    )
    execute(part.format(sql.Identifier(f"part{number}"), number, node))


def show_pushed(coordinator: psycopg.Connection, title: str, query: str) -> None:
    """What of a query is sent to nodes."""
    CONSOLE.print(f"[bold]{title}")
    for (line,) in coordinator.execute(f"EXPLAIN (VERBOSE, COSTS OFF) {query}"):
        if "Remote SQL" in line:
            CONSOLE.print(f"  {line.strip()}")


def run(coordinator_url: str, nodes: Sequence[str], repeat: int, output: Path) -> None:
    """Load all, show what is pushed down, time the product."""
    random = np.random.default_rng(0)
    drawn = random.integers(0, _ROWS, (_ENTRIES, 2))
    rows = random.random((_ROWS, _COLUMNS))
    coordinator = psycopg.connect(coordinator_url, autocommit=True)
    coordinator.execute("DROP EXTENSION IF EXISTS postgres_fdw CASCADE")
    coordinator.execute("CREATE EXTENSION postgres_fdw")
    load(coordinator, drawn, rows)
    coordinator.execute("DROP TABLE IF EXISTS parts")
    coordinator.execute(f"CREATE TABLE parts (i int, j int, val float8) PARTITION BY LIST ((i % {len(nodes)}))")
    for number, url in enumerate(nodes):
        with psycopg.connect(url, autocommit=True) as node:
            load(node, drawn[drawn[:, 0] % len(nodes) == number], rows)
        attach(coordinator, number, url)
    coordinator.execute("SET enable_partitionwise_aggregate = on; SET enable_partitionwise_join = on; SET jit = off")
    branches = " UNION ALL ".join(product(f"entries{number}", f"rows{number}") for number in range(len(nodes)))
    partitions = product("parts", "rows")
    show_pushed(coordinator, _BRANCHES, branches)
    show_pushed(coordinator, _PARTITIONS, partitions)
    queries = {
        _ALONE: _COUNTED.format(product("entries", "rows")),
        _BRANCHES: _COUNTED.format(branches),
        _PARTITIONS: _COUNTED.format(partitions),
        _MOVED: f"INSERT INTO arrived0 {product('entries0', 'rows0')}",
    }
    (alone,), (spread,) = (coordinator.execute(queries[name]).fetchall() for name in (_ALONE, _BRANCHES))
    np.testing.assert_allclose(alone, spread, rtol=1e-9)
    contenders = {name: partial(coordinator.execute, query) for name, query in queries.items()}
    figures = race("sparse times dense", contenders, dict.fromkeys(queries, repeat), _ALONE)
    report("Plain servers behind postgres_fdw", figures, _ALONE, output / "foreign_servers.json")
    coordinator.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coordinator", required=True, metavar="URL")
    parser.add_argument("--node", action="append", required=True, metavar="URL")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for JSON")
    asked = parser.parse_args()
    run(asked.coordinator, asked.node, asked.repeat, asked.output)
