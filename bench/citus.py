"""Programs on a Citus cluster: bytes sent between machines, as planned and as counted, for several layouts.

    unshare -n python -m bench.local_cluster --programs DIR -- python -m bench.citus --coordinator {url} [CASE ...]

The count is what arrives at the network interface `lo` until results are ready to be returned. All machines of the
cluster must therefore be servers on one machine, and nothing else may use that interface; `bench.local_cluster`
starts them so. The client connects by a socket, and so does the coordinator to read its own reference tables, because
neither is transfer between machines. The count includes headers, planning and the creation of tables. Results are
compared with numpy's.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.table import Table

import sparseeinsum as se
from bench.timing import CONSOLE
from sparseeinsum.api.examples import (
    FEED_FORWARD,
    MATRIX_CHAIN,
    ExampleGraph,
    citation_graph,
    feed_forward_inputs,
    feed_forward_reference,
    gcn_inputs,
    gcn_reference,
    matrix_chain_inputs,
    matrix_chain_reference,
)
from sparseeinsum.api.graphs import GCN

_COUNTER = Path("/proc/net/dev")
_PRODUCT = "Y[i, k] = sum(A[i, j] * B[j, k])"

Array = NDArray[Any]
Places = Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """A program, and how its inputs may be distributed.

    Attributes:
        program: Its text.
        inputs: Tensors.
        expected: The result Y.
        layouts: For some tensors each, where they are; the others are put where loading puts them.
    """

    program: str
    inputs: Mapping[str, Any]
    expected: Array
    layouts: tuple[Places, ...]


def product(rows: int, inner: int, columns: int) -> Case:
    """A product of matrices, of which the first is sparse."""
    rng = np.random.default_rng(0)
    left = sp.csr_array(sp.random_array((rows, inner), density=0.05, rng=rng))
    right = rng.normal(size=(inner, columns))
    places = itertools.product(("dim_0", "dim_1"), ("dim_0", "replicated"))
    layouts = tuple({"A": first, "B": second} for first, second in places)
    return Case(_PRODUCT, {"A": left, "B": right}, np.asarray(left @ right), layouts)


def chain() -> Case:
    """The matrix chain of EinDecomp, by rows and whole on every machine."""
    inputs = matrix_chain_inputs(256)
    layouts = (dict.fromkeys(inputs, "dim_0"), dict.fromkeys(inputs, "replicated"))
    return Case(MATRIX_CHAIN, inputs, matrix_chain_reference(inputs), layouts)


def feed_forward() -> Case:
    """A network whose batch is distributed, and whose weights are on every machine or not."""
    inputs = feed_forward_inputs(batch=1024)
    return Case(FEED_FORWARD, inputs, feed_forward_reference(inputs), ({"X": "dim_0"}, {"X": "dim_0", "W1": "dim_0"}))


def gcn(graph: ExampleGraph, hidden: int) -> Case:
    """A graph network whose graph and features are distributed by node."""
    inputs = gcn_inputs(graph, hidden=hidden)
    return Case(GCN, inputs, np.asarray(gcn_reference(inputs)), ({"A": "dim_0", "D": "dim_0", "X": "dim_0"},))


# Products have the three shapes of the TRA paper, section 6.1, scaled down.
CASES: Mapping[str, Callable[[], Case]] = {
    "product, square": lambda: product(400, 400, 400),
    "product, long inner axis": lambda: product(80, 8_000, 80),
    "product, long outer axes": lambda: product(1_000, 20, 1_000),
    "matrix chain": chain,
    "feed-forward": feed_forward,
    "GCN, Planetoid Cora's sizes": lambda: gcn(citation_graph(), 256),
    "GCN, ogbn-arxiv's sizes": lambda: gcn(citation_graph(169_343, 1_166_243, 128, 169_343 * 4), 32),
}


def received_bytes() -> int:
    """What arrived at lo until now."""
    (line,) = (line for line in _COUNTER.read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def measure(db: se.Database, case: Case, places: Places) -> tuple[float, int, float]:
    """Bytes expected and counted, and seconds."""
    for name, tensor in case.inputs.items():
        db.tensor(name, tensor, distribute=places.get(name))
    plan = db.plan(case.program)
    before, start = received_bytes(), time.perf_counter()
    with db.stream(plan) as results:
        seconds, counted = time.perf_counter() - start, received_bytes() - before
        rows = pa.Table.from_batches(results["Y"])
    fill = plan.data.decomposed.graph.tensors["Y"].fill
    assert isinstance(fill, float)
    _check(rows, case.expected, fill)
    return plan.data.transferred_bytes, counted, seconds


def _check(rows: pa.Table, expected: Array, fill: float) -> None:
    """Compare a result with numpy's."""
    dense = np.full(expected.shape, fill)
    *indices, values = (column.to_numpy() for column in rows.columns)
    dense[tuple(indices)] = values
    np.testing.assert_allclose(dense, expected, rtol=1e-9, atol=1e-9)


def run(url: str, wanted: list[str]) -> None:
    """Measure, compare, and print a table."""
    table = Table(title="Bytes between machines", title_justify="left")
    for heading in ("program", "machines", "layout"):
        table.add_column(heading)
    for heading in ("expected MB", "counted MB", "seconds"):
        table.add_column(heading, justify="right")
    with se.connect(url) as db:
        ((machines,),) = db.connection.execute(
            "SELECT COUNT(*) FROM pg_dist_node WHERE shouldhaveshards AND isactive"
        ).fetchall()
        for title in [title for title in CASES if not wanted or any(name in title for name in wanted)]:
            case = CASES[title]()
            for places in case.layouts:
                expected, counted, seconds = measure(db, case, places)
                shown = ", ".join(f"{name} {place}" for name, place in places.items())
                row = (f"{expected / 1e6:.2f}", f"{counted / 1e6:.2f}", f"{seconds:.2f}")
                table.add_row(title, str(machines), shown, *row)
    CONSOLE.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coordinator", required=True, help="URL of the database")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="parts of names of programs; all by default")
    asked = parser.parse_args()
    run(asked.coordinator, asked.cases)
