"""Expected seconds an epoch for all data sets of the SparseEinSum paper, by the cost model, from their sizes alone.

    python -m bench.expected_epochs [GRAPH ...] [--hidden 256] [--threads 2] [--measured GRAPH=SECONDS ...]

Plans the loop of `bench.epochs` without data: the tables are empty but for a few rows, and planning is told the entries
that table 1 of the paper names. So it needs neither the time nor the memory that ogbn-papers100M and friendster
would take; it assumes a machine that has the memory. With measured seconds of some graphs, the expected seconds of all
are multiplied by the mean factor between measured and expected ones (geometric), for a measured graph by that of the
others. How far these simulated seconds are from the measured ones says what the others are worth.
"""

import argparse
import math
import statistics
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.table import Table

import sparseeinsum as se
from bench.datasets import SIZES, Sizes
from bench.epochs import CLASSES, LARGE
from bench.timing import CONSOLE
from bench.training import LABELLED, STATE, STEP
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.pipeline.loops.loop_setup import LoopParts, set_up
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.measured_tensors import MeasuredTensor
from sparseeinsum.storage.measuring import measure_all

ALL_SIZES = {
    **SIZES,
    **LARGE,
    "ogbn_papers100M": Sizes(111_059_956, 1_615_685_872, 128, 111_059_956 * 128),
    "friendster": Sizes(65_608_366, 1_806_067_135, 128, 65_608_366 * 128),
}
ALL_CLASSES = {**CLASSES, "ogbn_papers100M": 172, "friendster": 100}


def expected_seconds(name: str, hidden: int, threads: int, optimizer: str = "dp") -> float:
    """What the plan of a training step is expected to take."""
    sizes, classes = ALL_SIZES[name], ALL_CLASSES[name]
    with se.connect() as database:
        database.connection.execute(f"SET threads = {threads}")
        database.connection.execute("SET memory_limit = '8TB'")
        _store(database, sizes, hidden, classes)
        entries = {"N": sizes.edges + sizes.nodes, "X": sizes.entries}
        with _told_entries(entries), _plans() as parts:
            database.iterate(
                STEP, steps=0, optimizer=optimizer, estimator="uniform", parameters={"seed": 0}, progress=False
            )
    return parts[0].plan.plan.decomposed.seconds


def _store(database: se.Database, sizes: Sizes, hidden: int, classes: int) -> None:
    """The tensors of a step, those of the graph with one row."""
    first: Any = [[0], [0]], [0.5]
    is_dense = sizes.entries == sizes.nodes * sizes.features
    database.tensor("N", first, shape=(sizes.nodes, sizes.nodes))
    if is_dense:
        database.tensor("X", first, shape=(sizes.nodes, sizes.features), axes=["i", "f"], promoted=["i"])
    else:
        database.tensor("X", first, shape=(sizes.nodes, sizes.features))
    trained = np.arange(LABELLED * classes)
    one_hot: Any = [trained, trained % classes], np.ones(trained.size)
    database.tensor("Y", one_hot, shape=(sizes.nodes, classes))
    for tensor in STATE:
        shape = (sizes.features, hidden) if tensor.endswith("1") else (hidden, classes)
        database.tensor(tensor, np.ones(shape))


@contextmanager
def _told_entries(entries: Mapping[str, int]) -> Iterator[None]:
    """Planning in the context takes tensors for as large as said, and their values for spread evenly."""

    def told(stored: Mapping[str, StoredTensor], engine: Engine, *columns: Any) -> dict[str, MeasuredTensor]:  # noqa: ANN401
        measured = measure_all(stored, engine, *columns)
        return measured | {name: _as_large(measured[name], entries[name]) for name in entries.keys() & measured}

    with patch("sparseeinsum.pipeline.program_data.measure_all", told):
        yield


def _as_large(tensor: MeasuredTensor, entries: int) -> MeasuredTensor:
    shape, decomposition = tensor.stored.tensor.shape, tensor.decomposition
    distinct = tuple(float(min(bound, entries)) for bound in shape)
    tuples = entries if decomposition.is_scalar else decomposition.max_tuples(shape)
    measurement = replace(tensor.measurement, statistics=Statistics(float(entries), distinct, shape), tuples=tuples)
    return replace(tensor, measurement=measurement)


@contextmanager
def _plans() -> Iterator[list[LoopParts]]:
    """The parts of the loops that are set up in the context, with their plans."""
    parts: list[LoopParts] = []

    def kept(*arguments: Any) -> LoopParts:  # noqa: ANN401
        parts.append(set_up(*arguments))
        return parts[-1]

    with patch("sparseeinsum.pipeline.loops.loop.set_up", kept):
        yield parts


def simulated_seconds(expected: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float]:
    """Expected seconds times the mean factor between measured and expected ones of the other graphs."""
    factors = {name: seconds / expected[name] for name, seconds in measured.items()}

    def factor(name: str) -> float:
        others = [math.log(factors[other]) for other in factors if other != name]
        return math.exp(statistics.mean(others)) if others else 1.0

    return {name: seconds * factor(name) for name, seconds in expected.items()}


def main() -> None:
    """Plan for all graphs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=f"some of {', '.join(ALL_SIZES)}; by default all")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--measured", nargs="*", default=[], metavar="GRAPH=SECONDS")
    chosen = parser.parse_args()
    names = chosen.graphs or list(ALL_SIZES)
    measured = {name: float(seconds) for name, _, seconds in (text.partition("=") for text in chosen.measured)}
    for name in [*names, *measured]:
        if name not in names or name not in ALL_SIZES:
            parser.error(f"there is no graph {name}; choose from {', '.join(ALL_SIZES)}")
    expected = {name: expected_seconds(name, chosen.hidden, chosen.threads) for name in names}
    relational = {name: expected_seconds(name, chosen.hidden, chosen.threads, "relational") for name in names}
    simulated = simulated_seconds(expected, measured)
    table = Table(title=f"Seconds an epoch, {chosen.hidden} hidden features", title_justify="left")
    for heading in ("graph", "expected", "measured", "simulated", "simulated / measured", "relational, expected"):
        table.add_column(heading, justify="left" if heading == "graph" else "right")
    for name in names:
        known = measured.get(name)
        table.add_row(
            name,
            f"{expected[name]:.4g}",
            "" if known is None else f"{known:.4g}",
            f"{simulated[name]:.4g}",
            "" if known is None else f"{simulated[name] / known:.2f}",
            f"{relational[name]:.4g}",
        )
    CONSOLE.print(table)


if __name__ == "__main__":
    main()
