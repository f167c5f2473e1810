"""Seconds an epoch of training a graph convolutional network, on twins of the data sets of the SparseEinSum paper.

    python -m bench.epochs [GRAPH ...] [--hidden 256] [--epochs 10] [--rounds 3] [--relational cora]

The paper's table 2 times this on clusters: two layers, 256 hidden features, dropout of one half, Adam. An epoch is a
step of `bench.training` over the whole graph. The chosen plan runs in a DuckDB in memory, and torch trains the same
network with sparse matrices, in two formats. All use float64 and the same number of threads, and take turns. What comes
before the first epoch, such as planning, has a column of its own. `--relational` adds, for the graphs that it names,
the plan that promotes every index, for two epochs. On ogbn_products, and with `--separately` on all graphs, every
contender has the memory for itself: one round of it runs in a process of its own.
"""

import argparse
import importlib
import itertools
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from rich.table import Table

import sparseeinsum as se
from bench.datasets import Sizes, twin_of
from bench.timing import CONSOLE
from bench.training import STEP, Task, TorchNetwork, load, store_first_state
from sparseeinsum.api.examples import citation_graph
from sparseeinsum.pipeline.loops import loop

_FEW = 2  # first epochs that do not count
_FORMS = ("CSR", "COO")  # of torch's sparse matrices
_CHOSEN, _RELATIONAL = "chosen plan", "relational plan"

# Features of these are dense.
LARGE = {
    "ogbn_arxiv": Sizes(169_343, 1_170_000, 128, 169_343 * 128),
    "ogbn_products": Sizes(2_449_029, 61_900_000, 100, 2_449_029 * 100),
}
TOO_LARGE = ("ogbn_products",)  # for all contenders in the memory of one machine
CLASSES = {
    "cora": 7,
    "planetoid_cora": 7,
    "planetoid_citeseer": 6,
    "citationfull_citeseer": 6,
    "amazon_photo": 8,
    "amazon_computers": 10,
    "ogbn_arxiv": 40,
    "ogbn_products": 47,
}


@dataclass(frozen=True)
class Epoch:
    """How long one contender took.

    Attributes:
        graph: What it trained on.
        contender: Who, with the number of threads.
        hidden: Hidden features.
        seconds: Of an epoch, the median of the rounds, of which each has the median of its epochs.
        processor_seconds: The same of all threads together.
        rounds: Seconds of an epoch in every round.
        before: Seconds before the first epoch.
        times_torch: Seconds divided by those of torch with as many threads, in the faster format.
        processor_times_torch: The same of processor seconds.
    """

    graph: str
    contender: str
    hidden: int
    seconds: float
    processor_seconds: float
    rounds: tuple[float, ...]
    before: float
    times_torch: float
    processor_times_torch: float


@dataclass(frozen=True)
class _Clock:
    """Seconds on the clock, and of the processor."""

    wall: float
    processor: float


def twin_task(name: str, seed: int = 0) -> Task:
    """A twin of a graph, with random classes."""
    rng = np.random.default_rng(seed)
    if name in LARGE:
        sizes = LARGE[name]
        adjacency = citation_graph(sizes.nodes, sizes.edges, 1, 1).adjacency
        features: Any = rng.random((sizes.nodes, sizes.features))
    else:
        graph = twin_of(name)
        adjacency = graph.adjacency
        sums = np.maximum(np.asarray(graph.features.sum(axis=1)).ravel(), 1e-12)
        features = (sp.diags_array(1 / sums) @ graph.features).tocoo()
    nodes = adjacency.shape[0]
    labels = rng.integers(CLASSES[name], size=nodes)
    labels[: CLASSES[name]] = np.arange(CLASSES[name])
    return Task((adjacency + sp.eye_array(nodes)).tocoo(), features, labels)


@contextmanager
def _step_ends() -> Iterator[list[_Clock]]:
    """The clocks at the end of every step of loops in the context."""
    ends: list[_Clock] = []
    with patch.object(loop._Loop, "_show", lambda _: ends.append(_now())):
        yield ends


def _now() -> _Clock:
    return _Clock(time.perf_counter(), time.process_time())


def _of_epoch(ends: list[_Clock]) -> _Clock:
    """The median of the epochs between clocks, without the first few."""
    pairs = list(itertools.pairwise(ends))[_FEW - 1 :]
    walls, processors = (
        [getattr(last, name) - getattr(first, name) for first, last in pairs] for name in ("wall", "processor")
    )
    return _Clock(statistics.median(walls), statistics.median(processors))


def _torch_round(network: TorchNetwork, epochs: int, threads: int) -> tuple[_Clock, float]:
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(threads)
    ends = []
    for _ in range(_FEW + epochs):
        network.step()
        ends.append(_now())
    return _of_epoch(ends), 0.0


@dataclass(frozen=True)
class Race:
    """What the contenders do.

    Attributes:
        name: The graph.
        hidden: Hidden features.
        epochs: Epochs of a round.
        rounds: Rounds of every contender.
        threads: Numbers of threads.
        with_relational: Whether the plan that promotes every index runs, too.
    """

    name: str
    hidden: int
    epochs: int
    rounds: int
    threads: tuple[int, ...]
    with_relational: bool


_Rounds = dict[tuple[str, int], list[tuple[_Clock, float]]]


def by_turns(race: Race) -> _Rounds:
    """Train by the chosen plan and by torch in turn, with every number of threads, and by the relational plan once."""
    task = twin_task(race.name)
    taken: _Rounds = {}
    with _loaded(task, race.hidden) as database:
        networks = {form: TorchNetwork(task, race.hidden, form) for form in _FORMS}
        for _, count in itertools.product(range(race.rounds), race.threads):
            for form, network in networks.items():
                taken.setdefault((f"torch, {form}", count), []).append(_torch_round(network, race.epochs, count))
            taken.setdefault((_CHOSEN, count), []).append(_plan_round(database, race, _CHOSEN, count))
        if race.with_relational:
            count = race.threads[0]
            taken[_RELATIONAL, count] = [_plan_round(database, race, _RELATIONAL, count)]
    return taken


def separately(race: Race) -> _Rounds:
    """Train one round by every contender, each in a process of its own."""
    contenders = [(who, count) for count in race.threads for who in (*(f"torch, {form}" for form in _FORMS), _CHOSEN)]
    if race.with_relational:
        contenders.append((_RELATIONAL, race.threads[0]))
    taken: _Rounds = {}
    for who, count in contenders:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            taken[who, count] = [process.submit(_alone, race, who, count).result()]
        CONSOLE.print(f"{race.name}, {who}, {count}: {taken[who, count][0][0].wall:.4f} s")
    return taken


def _alone(race: Race, contender: str, threads: int) -> tuple[_Clock, float]:
    """One round of a contender."""
    task = twin_task(race.name)
    if contender in (_CHOSEN, _RELATIONAL):
        with _loaded(task, race.hidden) as database:
            del task
            return _plan_round(database, race, contender, threads)
    return _torch_round(TorchNetwork(task, race.hidden, contender.removeprefix("torch, ")), race.epochs, threads)


def _plan_round(database: se.Database, race: Race, contender: str, threads: int) -> tuple[_Clock, float]:
    """An epoch of a plan, and the seconds before the first."""
    optimizer, epochs = ("dp", race.epochs) if contender == _CHOSEN else ("relational", 2)
    database.connection.execute(f"SET threads = {threads}")
    start = _now()
    with _step_ends() as ends:
        database.iterate(
            STEP,
            steps=_FEW + epochs,
            optimizer=optimizer,
            parameters={"seed": 0},
            progress=False,
            commit_seconds=np.inf,
        )
    epoch = _of_epoch(ends)
    return epoch, ends[0].wall - start.wall - epoch.wall


@contextmanager
def _loaded(task: Task, hidden: int) -> Iterator[se.Database]:
    """A database in memory with a graph and the state of the first step."""
    with se.connect() as database:
        load(database, task)
        store_first_state(database, task, hidden, 0)
        yield database


def epochs_of(race: Race, taken: _Rounds) -> Iterator[Epoch]:
    """The medians of all contenders, beside torch's in the faster format."""
    fastest = {
        (seconds_of, count): min(seconds_of(taken[f"torch, {form}", count]) for form in _FORMS)
        for seconds_of, count in itertools.product((_median, _processor), race.threads)
    }
    for (contender, count), rows in taken.items():
        yield Epoch(
            race.name,
            f"{contender}, {count}",
            race.hidden,
            _median(rows),
            _processor(rows),
            tuple(clock.wall for clock, _ in rows),
            statistics.median(before for _, before in rows),
            _median(rows) / fastest[_median, count],
            _processor(rows) / fastest[_processor, count],
        )


def _median(rows: list[tuple[_Clock, float]]) -> float:
    return statistics.median(clock.wall for clock, _ in rows)


def _processor(rows: list[tuple[_Clock, float]]) -> float:
    return statistics.median(clock.processor for clock, _ in rows)


def _table(figures: list[Epoch]) -> Table:
    table = Table(title="Seconds an epoch", title_justify="left")
    for heading in ("graph", "contender, threads"):
        table.add_column(heading, no_wrap=True)
    for heading in ("hidden", "median", "min", "max", "processor", "before", "times torch", "processor"):
        table.add_column(heading, justify="right")
    for figure in figures:
        seconds = (figure.seconds, min(figure.rounds), max(figure.rounds), figure.processor_seconds)
        table.add_row(
            figure.graph,
            figure.contender,
            str(figure.hidden),
            *(f"{value:.4f}" for value in seconds),
            f"{figure.before:.2f}",
            f"{figure.times_torch:.2f}",
            f"{figure.processor_times_torch:.2f}",
        )
    return table


def main() -> None:
    """Train on all graphs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=f"some of {', '.join(CLASSES)}; by default all")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=10, help="epochs of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--relational", nargs="*", default=[], metavar="GRAPH", choices=list(CLASSES))
    parser.add_argument("--separately", action="store_true", help="one round of every contender, each in a process")
    chosen = parser.parse_args()
    figures: list[Epoch] = []
    for name in chosen.graphs or CLASSES:
        if name not in CLASSES:
            parser.error(f"there is no graph {name}; choose from {', '.join(CLASSES)}")
        race = Race(name, chosen.hidden, chosen.epochs, chosen.rounds, tuple(chosen.threads), name in chosen.relational)
        run = separately if chosen.separately or name in TOO_LARGE else by_turns
        for figure in epochs_of(race, run(race)):
            CONSOLE.print(f"{figure.graph}, {figure.contender}: {figure.seconds:.4f} s, {figure.times_torch:.2f} times")
            figures.append(figure)
    CONSOLE.print(_table(figures))


if __name__ == "__main__":
    main()
