"""The workloads of bench.peers on DuckDB and on PostgreSQL, whose sparse tensors are entries and in lists, by turns.

    python -m bench.engine_ratios --url postgresql://user@host/database --size small --only SpGEMM triangles

The database of the URL has the extension. Compute only: tensors are loaded and programs planned before, and DuckDB
keeps operands from earlier runs in memory. A run ends with an array of numpy or an Arrow table. Lists are A[I, ~j, ~k].
"""

import argparse
import re
from functools import partial
from pathlib import Path

import scipy.sparse as sp

import sparseeinsum as se
from bench.datasets import add_data_folder
from bench.list_layouts import run
from bench.peers.results import entries, of_table, same
from bench.peers.workloads import Data, Workload, makers
from bench.timing import CONSOLE, Figure, race, report

LAYOUTS = ("entries", "lists")


def layout_of(name: str, data: Data, layout: str) -> str | None:
    """The layout of a sparse tensor; None where `db.tensor` chooses, as for dense ones."""
    if not isinstance(data, sp.sparray):
        return None
    first, *others = (f"axis_{axis}" for axis in range(len(data.shape)))
    axes = [first.upper(), *[f"~{axis}" if layout == "lists" else axis.upper() for axis in others]]
    return f"{name}[{', '.join(axes)}]"


def plan(database: se.Database, workload: Workload, layout: str) -> se.Plan:
    """Load the inputs under names of their own, and plan the program that reads these."""
    for name, data in workload.inputs.items():
        stored, fill = f"{name}_{layout}", workload.fills.get(name, 0)
        database.tensor(stored, data, fill=fill, layout=layout_of(stored, data, layout))
    program = re.sub(rf"\b({'|'.join(workload.inputs)})\[", rf"\1_{layout}[", workload.program)
    return database.plan(program, layout="entries" if workload.form == "entries" else "any")


def plain(result: object, workload: Workload) -> object:
    """The result of a run as `bench.peers.results` compares it."""
    if workload.form == "dense":
        return result
    return of_table(result, workload.shape)


def ratios(workload: Workload, url: str, threads: int | None, repeat: int, show: bool) -> list[Figure]:
    """The figures of a workload, after checking that all agree; both have so many threads."""
    with se.connect() as duckdb, se.connect(url) as postgresql:
        if threads is not None:
            duckdb.connection.execute(f"SET threads = {threads}")
            postgresql.connection.execute(f"SET max_parallel_workers_per_gather = {threads - 1}")
        contenders = {"DuckDB": (duckdb, "entries")}
        contenders |= {f"PostgreSQL, {layout}": (postgresql, layout) for layout in LAYOUTS}
        runs = {}
        expected = None
        for name, (database, layout) in contenders.items():
            planned = plan(database, workload, layout)
            if show:
                CONSOLE.print(name, planned, planned.sql(), sep="\n", markup=False)
            runs[name] = partial(run, database, workload, planned)
            result = plain(runs[name](), workload)
            expected = entries(result) if expected is None else expected
            assert same(result, expected), f"{workload.name}: {name} differs"
        return race(workload.name, runs, dict.fromkeys(runs, repeat), "DuckDB", 0)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_folder(parser)
    parser.add_argument("--url", required=True, help="PostgreSQL database that has the extension")
    parser.add_argument("--size", choices=("tiny", "small", "full"), default="small", help="of the workloads")
    parser.add_argument("--only", nargs="*", metavar="KIND", help="kinds of workloads, as in SpMM; by default all")
    parser.add_argument("--threads", type=int, help="of DuckDB, and processes of PostgreSQL; by default all")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    parser.add_argument("--show", action="store_true", help="show plans and their SQL, too")
    asked = parser.parse_args()
    figures: list[Figure] = []
    for make in makers(asked.size, asked.data):
        workload = make()
        if not asked.only or workload.kind in asked.only:
            figures += ratios(workload, asked.url, asked.threads, asked.repeat, asked.show)
    report("DuckDB and PostgreSQL", figures, "DuckDB", asked.output / "engine_ratios.json")


if __name__ == "__main__":
    main()
