"""Sparse tensors as entries and in lists, beside scipy and torch: loading, and products in memory.

    python -m bench.list_layouts --only spmm spgemm
    python -m bench.list_layouts --only spmm --url postgresql://user@host/database

Contenders take turns in one process; seconds are medians, of the clock and of all processors together: the latter say
more on a machine that does other work, too. Lists are A[I, ~j]. Products end with an array of numpy, or with an Arrow
table of entries. `ordering` is the statement alone that brings the first operand into compressed rows in memory, which
PostgreSQL does not do; its figures are of the clock, since another process works.
"""

import argparse
import re
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import scipy.sparse as sp
from rich.table import Table

import sparseeinsum as se
from bench.datasets import add_data_folder, graph_of
from bench.peers.libraries import DISTRIBUTIONS, UnavailableError
from bench.peers.workloads import Workload, gcn, spgemm, spmm
from bench.timing import CONSOLE

LAYOUTS = {"entries": "{name}[I, J]", "lists": "{name}[I, ~j]"}
ORDERING = {
    "entries": "SELECT tensor_compressed(val, i, j, {rows}) FROM {name}",
    "lists": "SELECT tensor_compressed(val, i, [], 0, j, {rows}) FROM {name}",
}
Contenders = dict[str, Callable[[], object]]


def workloads(folder: Path, only: list[str]) -> list[Workload]:
    """The workloads, the small ones first."""
    makers: Mapping[str, list[Callable[[], Workload]]] = {
        "gcn": [lambda: gcn(graph_of("planetoid_cora", folder), 256)],
        "spgemm": [partial(spgemm, 100_000, 500_000)],
        "spmm": [
            partial(spmm, 100_000, 500_000, 16),
            partial(spmm, 13_752, 500_000, 767),
            partial(spmm, 169_343, 2_300_000, 128),
        ],
    }
    return [make() for kind, made in makers.items() if not only or kind in only for make in made]


def load(database: se.Database, workload: Workload, layout: str) -> str:
    """Load the inputs, the sparse ones in a layout, under names of their own; return the program that reads these."""
    for name, data in workload.inputs.items():
        stored = f"{name}_{layout}"
        chosen = LAYOUTS[layout].format(name=stored) if isinstance(data, sp.sparray) else None
        database.tensor(stored, data, layout=chosen)
    names = "|".join(workload.inputs)
    return re.sub(rf"\b({names})\[", rf"\1_{layout}[", workload.program)


def run(database: se.Database, workload: Workload, plan: se.Plan) -> object:
    """Compute the result, as an array or as an Arrow table."""
    (result,) = database.run(plan, replan=False, progress=False).values()
    return result.to_numpy(copy=False) if workload.form == "dense" else result.arrow()


def contenders(
    workload: Workload, database: se.Database, stack: ExitStack
) -> tuple[Contenders, Contenders, Contenders]:
    """Functions that compute the product, that load its first sparse operand, and that order this in memory."""
    products: Contenders = {}
    loading: Contenders = {}
    ordering: Contenders = {}
    first = next(name for name, data in workload.inputs.items() if isinstance(data, sp.sparray))
    matrix = sp.csr_array(workload.inputs[first])
    for layout in LAYOUTS:
        program = load(database, workload, layout)
        plan = database.plan(program, layout="entries" if workload.form == "entries" else "any")
        products[layout] = partial(run, database, workload, plan)
        written = LAYOUTS[layout].format(name="loaded")
        loading[layout] = partial(database.tensor, "loaded", matrix, layout=written)
        if database.costs == "duckdb":
            query = ORDERING[layout].format(rows=matrix.shape[0], name=f"{first}_{layout}")
            ordering[layout] = partial(fetch, database, query)
    for distribution in DISTRIBUTIONS:
        if distribution.name in ("scipy", "torch") and distribution.version():
            with suppress(UnavailableError):
                products[distribution.name] = distribution.library(2).prepare(workload, stack)
    return products, loading, ordering


def fetch(database: se.Database, query: str) -> object:
    """The rows of a query."""
    return database.connection.execute(query).fetchall()


def seconds(runs: Contenders, repeat: int) -> dict[str, tuple[float, float]]:
    """Medians of seconds of the clock and of the processors, of contenders that take turns."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for turn in range(repeat + 1):
        for name, compute in runs.items():
            clock, processors = time.perf_counter(), time.process_time()
            compute()
            if turn:  # the first one warms up
                taken[name].append((time.perf_counter() - clock, time.process_time() - processors))
    return {
        name: (statistics.median(one for one, _ in pairs), statistics.median(other for _, other in pairs))
        for name, pairs in taken.items()
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_folder(parser)
    parser.add_argument("--only", nargs="*", default=[], choices=["gcn", "spgemm", "spmm"], help="by default all")
    parser.add_argument("--url", help="PostgreSQL database that has the extension; by default DuckDB in memory")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each; the median counts")
    asked = parser.parse_args()
    table = Table(title="seconds of the clock, and of all processors", title_justify="left")
    for heading in ("workload", "what", "contender", "clock", "processors", "times entries"):
        table.add_column(heading)
    for workload in workloads(asked.data, asked.only):
        with ExitStack() as stack:
            database = stack.enter_context(se.connect(asked.url) if asked.url else se.connect())
            raced = contenders(workload, database, stack)
            for what, runs in zip(("product", "loading", "ordering"), raced, strict=True):
                figures = seconds(runs, asked.repeat)
                compared = 0 if asked.url else 1  # the clock, or the processors
                for name, (clock, processors) in figures.items():
                    ratio = f"{figures[name][compared] / figures['entries'][compared]:.2f}"
                    table.add_row(workload.name, what, name, f"{clock:.4f}", f"{processors:.4f}", ratio)
    CONSOLE.print(table)


if __name__ == "__main__":
    main()
