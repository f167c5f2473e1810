"""The command line: the command demo: a graph network in the database, checked against numpy, with plans compared."""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

import sparseeinsum as se
from sparseeinsum.api.graphs import (
    GCN,
    CoordinateMatrix,
    FeaturedGraph,
    citation_graph,
    gcn_by_numpy,
    gcn_tensors,
    read_graph,
)
from sparseeinsum.cli.output import print_table, status_console
from sparseeinsum.cli.training_demo import train
from sparseeinsum.cli.usage import UsageError
from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import PackageError

Tensors = Mapping[str, CoordinateMatrix | NDArray[np.float64]]

_OPTIMIZERS = {"dp": "chosen", "relational": "no arrays", "dense": "no keys"}
_TOLERANCE = 1e-9


def demo(arguments: argparse.Namespace) -> None:
    """Load a graph, run a two-layer GCN in the database, check it, and compare its plan with the two extreme plans.

    With `--train`, train one instead.
    """
    if arguments.train:
        train(arguments)
        return
    if arguments.html is not None:
        raise UsageError("--html is for the curves of --train; leave it out, or give --train")
    graph = read_graph(Path(arguments.data)) if arguments.data else citation_graph(name="generated citation network")
    print("A graph convolutional network inside DuckDB")
    print(graph.summary)
    inputs = gcn_tensors(graph)
    with status_console().status("loading"):
        database = se.connect()
        start = time.perf_counter()
        _load(database, inputs)
        loading = time.perf_counter() - start
    print(f"loaded {len(inputs)} tensors in {loading:.2f} s")
    plan = database.plan(GCN)
    print("\nThe plan (upper case: key columns; lower case: inside arrays)")
    for line in plan.notation():
        print(f"  {line}")
    print()
    print_table(_comparison(graph, inputs, database, plan, arguments.repeat))
    print("see `plan.explain()` and `plan.sql()`, or `sparseeinsum explain`, for what runs")


def _comparison(graph: FeaturedGraph, inputs: Tensors, database: se.Database, plan: se.Plan, repeat: int) -> Table:
    """Times and errors of the plan and of the extreme plans, and the time of scipy or numpy in memory."""
    expected = gcn_by_numpy(inputs)
    table = Table(title=f"Two-layer GCN on {graph.name}, compute only", title_justify="left")
    for heading in ("plan", "seconds", "times dp", "largest relative error"):
        table.add_column(heading, justify="left" if heading == "plan" else "right")
    seconds: dict[str, float] = {}
    for optimizer, meaning in _OPTIMIZERS.items():
        with status_console().status(f"running: {meaning}"):
            # The relational plan should not pay for a repartition, so its dense tensors are stored one entry a row.
            holder = _load(se.connect(), inputs, ["dim_0", "dim_1"]) if optimizer == "relational" else database
            chosen = plan if optimizer == "dp" else holder.plan(GCN, optimizer=optimizer)
            result, seconds[optimizer] = _timed(partial(_scores, holder, chosen), repeat)
        error = float(np.max(np.abs(result / expected - 1)))
        if not error <= _TOLERANCE:
            raise se.EngineError(f"the {optimizer} plan is wrong: its result differs from numpy's by {error:.1e}")
        ratio = seconds[optimizer] / seconds["dp"]
        table.add_row(f"{optimizer}: {meaning}", f"{seconds[optimizer]:.3f}", f"{ratio:.1f}", f"{error:.1e}")
    name, reference = _in_memory(inputs)
    _, reference_seconds = _timed(reference, repeat)
    table.add_row(name, f"{reference_seconds:.3f}", f"{reference_seconds / seconds['dp']:.2f}", "")
    return table


def _in_memory(inputs: Tensors) -> tuple[str, Callable[[], NDArray[np.float64]]]:
    """The name of an implementation in memory, and the function: scipy if it is installed, else numpy."""
    try:
        examples = imported("sparseeinsum.api.examples", "scipy", "the same in scipy")
    except PackageError:
        return "numpy, dense", partial(gcn_by_numpy, inputs)
    return "scipy, the same steps", partial(examples.gcn_reference, examples.matrices(inputs))


def _load(database: se.Database, inputs: Tensors, promoted: Sequence[str] | None = None) -> se.Database:
    for name, tensor in inputs.items():
        if isinstance(tensor, CoordinateMatrix):
            database.tensor(name, (tensor.coordinates, tensor.values), shape=tensor.shape)
        else:
            database.tensor(name, tensor, promoted=promoted)
    return database


def _scores(database: se.Database, plan: se.Plan) -> np.ndarray:
    return database.run(plan, progress=False, replan=False)["Y"].to_numpy()


def _timed(run: Callable[[], np.ndarray], repeat: int) -> tuple[np.ndarray, float]:
    """The result, and the median time of `repeat` runs after one warm-up run."""
    result = run()
    seconds = []
    for _ in range(max(repeat, 1)):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return result, statistics.median(seconds)
