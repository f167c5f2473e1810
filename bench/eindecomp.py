"""Floats that partitioned programs send, beside the partitions that people make by a rule, for 2 to 1,024 workers.

    python -m bench.eindecomp

Nothing runs, and only the search is timed. Upper bounds follow the formulas of the EinDecomp paper; actual floats
come from a replay of every call on its worker, whose place is chosen so that the fewest move. The first tables have the
shapes of the paper's figures 7 and 8 (matrix chains), 9 (a training step of a classifier) and 10 (a layer of LLaMA).
EinDecomp's vectors are the best of all, unless tables grow too large; those of longest paths are what the paper does
where results are shared. They cut programs as they are written, "rewritten" as `se.partition` rewrites them. "floats"
has actual floats as its objective.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

import sparseeinsum as se
from bench.timing import CONSOLE
from sparseeinsum.api.examples import MATRIX_CHAIN, MULTI_HEAD_ATTENTION
from sparseeinsum.api.graphs import GCN
from sparseeinsum.decompose.eindecomp.partitioning import Partitioning, partition_graph
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask, Vectors
from sparseeinsum.decompose.elimination import cheapest_plans
from sparseeinsum.language.eingraph import EinGraph, EinSum

# One step of training by gradient descent: b is the batch, m features, h hidden, o labels.
TRAINING_STEP = """
H[b, h]  = relu(sum(X[b, m] * W1[m, h]))
Y[b, o]  = sigmoid(sum(H[b, h] * W2[h, o]))
D2[b, o] = Y[b, o] - L[b, o]
G2[h, o] = sum(H[b, h] * D2[b, o])
D1[b, h] = sum(D2[b, o] * W2[h, o]) * (H[b, h] > 0)
G1[m, h] = sum(X[b, m] * D1[b, h])
V1[m, h] = W1[m, h] - 0.1 * G1[m, h]
V2[h, o] = W2[h, o] - 0.1 * G2[h, o]
"""

# A layer of LLaMA on a prompt: b is the batch, s and t positions, m the width, h heads, d their width, f hidden.
LLAMA_LAYER = """
N1[b, s]       = sum(X[b, s, m] ^ 2)
R1[b, s, m]    = X[b, s, m] * G1[m] / sqrt(N1[b, s] / bound(m) + 1e-5)
Q[b, s, h, d]  = sum(R1[b, s, m] * WQ[m, h, d])
K[b, t, h, d]  = sum(R1[b, t, m] * WK[m, h, d])
V[b, t, h, d]  = sum(R1[b, t, m] * WV[m, h, d])
P[b, h, s, t]  = softmax[t](sum(Q[b, s, h, d] * K[b, t, h, d]) / sqrt(bound(d)))
O[b, s, h, d]  = sum(P[b, h, s, t] * V[b, t, h, d])
A[b, s, m]     = X[b, s, m] + sum(O[b, s, h, d] * WO[h, d, m])
N2[b, s]       = sum(A[b, s, m] ^ 2)
R2[b, s, m]    = A[b, s, m] * G2[m] / sqrt(N2[b, s] / bound(m) + 1e-5)
Z[b, s, f]     = sum(R2[b, s, m] * W1[m, f])
U[b, s, f]     = Z[b, s, f] * sigmoid(Z[b, s, f]) * sum(R2[b, s, m] * W3[m, f])
Y[b, s, m]     = A[b, s, m] + sum(U[b, s, f] * W2[f, m])
"""

Shapes = Mapping[str, tuple[int, ...]]
Schemes = Mapping[str, Mapping[str, int | str]]


@dataclass(frozen=True)
class Case:
    """A program of certain shapes on so many workers.

    Attributes:
        name: What it is.
        text: The program.
        shapes: Of its inputs.
        workers: How many.
        schemes: Partitions by axes of tensors to compare with.
        entries: Of sparse inputs.
    """

    name: str
    text: str
    shapes: Shapes
    workers: int
    schemes: Schemes
    entries: Mapping[str, int]


@dataclass(frozen=True)
class Figure:
    """What one partition of a case moves.

    Attributes:
        case: The program and its shapes.
        workers: How many.
        partition: Whose.
        floats: At most: into joins, of aggregations and of repartitions.
        join: Of these, into joins.
        aggregation: Of these, of partial results.
        repartition: Of these, between EinSums.
        ratio: At most, in times of what those of EinDecomp are.
        replayed: Floats that are moved indeed.
        replayed_ratio: The same in times of those of EinDecomp.
        busiest: Floats to the worker that gets most.
        imbalance: Operations of the busiest worker in times of the mean.
        is_optimal: Whether no other vectors that keep to the rule move fewer floats at most.
        search_seconds: That it took to find.
    """

    case: str
    workers: int
    partition: str
    floats: float
    join: float
    aggregation: float
    repartition: float
    ratio: float
    replayed: float
    replayed_ratio: float
    busiest: float
    imbalance: float
    is_optimal: bool
    search_seconds: float


def chain(size: int, is_square: bool) -> Shapes:
    """Section 9.2, experiment 1: square matrices, or A: s x .1s, B: .1s x s, C: s x .1s, D: .1s x 10s, E: 10s x s."""
    if is_square:
        return dict.fromkeys("ABCDE", (size, size))
    tenth, tenfold = size // 10, 10 * size
    return {"A": (size, tenth), "B": (tenth, size), "C": (size, tenth), "D": (tenth, tenfold), "E": (tenfold, size)}


def classifier(features: int, batch: int) -> Shapes:
    """Experiment 2: AmazonCat-14K, 8,192 hidden neurons."""
    hidden, labels = 8192, 14588
    return {"X": (batch, features), "W1": (features, hidden), "W2": (hidden, labels), "L": (batch, labels)}


def llama(batch: int, positions: int) -> Shapes:
    """Experiment 3: a layer of the model of 7 billion parameters."""
    width, heads, head_width, hidden = 4096, 32, 128, 11008
    projections = dict.fromkeys(("WQ", "WK", "WV"), (width, heads, head_width))
    up = dict.fromkeys(("W1", "W3"), (width, hidden))
    norms = dict.fromkeys(("G1", "G2"), (width,))
    return {
        "X": (batch, positions, width),
        **norms,
        **projections,
        "WO": (heads, head_width, width),
        **up,
        "W2": (hidden, width),
    }


_MOST_REPLAYED = 64  # workers for which actual floats are an objective; for more, a search takes minutes

OF_CHAIN: Schemes = {"rows": {"A": "i"}}
OF_CLASSIFIER: Schemes = {"data parallel": {"X": "b"}, "model parallel": {"W1": "h"}}
OF_LLAMA: Schemes = {
    "Megatron": {"WQ": "h", "W1": "f"},
    "sequence": {"X": "s"},
    "attention": {"WQ": "h"},
    "data parallel": {"X": "b"},
}
OF_ATTENTION: Schemes = {"attention": {"WQ": "h"}, "sequence": {"X": "s"}}
ATTENTION_SHAPES: Shapes = {
    "X": (4096, 4096),
    **dict.fromkeys(("WQ", "WK", "WV"), (4096, 32, 128)),
    "WO": (32, 128, 4096),
}
# Of the graph ogbn-arxiv, with loops.
GCN_SHAPES: Shapes = {
    "A": (169343, 169343),
    "D": (169343, 169343),
    "X": (169343, 128),
    "W1": (128, 256),
    "W2": (256, 40),
}
GCN_ENTRIES = {"A": 2484941, "D": 169343}
OF_GCN: Schemes = {"rows": {"A": 0}, "hidden": {"W1": 1}}


def cases_of_figures() -> Iterator[Case]:
    """Shapes and workers of the paper's figures 7 to 10."""
    for workers in (16, 4):
        for is_square in (True, False):
            for size in (10240, 20480, 40960):
                name = f"7 and 8: chain, {size:,}, {'uniform' if is_square else 'skewed'}"
                yield Case(name, MATRIX_CHAIN, chain(size, is_square), workers, OF_CHAIN, {})
    for batch in (128, 512):
        for features in (8192, 65536, 597540):
            name = f"9: classifier, {features:,}, batch {batch}"
            yield Case(name, TRAINING_STEP, classifier(features, batch), 4, OF_CLASSIFIER, {})
    prompts = [(8, batch, 4096) for batch in (1, 2, 4, 8)]
    prompts += [(workers, 8, 1024) for workers in (2, 4, 8)] + [(workers, 4, 4096) for workers in (2, 4)]
    for workers, batch, positions in prompts:
        name = f"10: LLaMA layer, {positions:,}, batch {batch}"
        yield Case(name, LLAMA_LAYER, llama(batch, positions), workers, OF_LLAMA, {})


def cases_by_workers(numbers: Sequence[int]) -> Iterator[Case]:
    """Every program on these numbers of workers."""
    for workers in numbers:
        yield Case("chain, 20,480, uniform", MATRIX_CHAIN, chain(20480, True), workers, OF_CHAIN, {})
        yield Case("chain, 20,480, skewed", MATRIX_CHAIN, chain(20480, False), workers, OF_CHAIN, {})
        yield Case("attention, 32 heads", MULTI_HEAD_ATTENTION, ATTENTION_SHAPES, workers, OF_ATTENTION, {})
        yield Case("classifier, batch 512", TRAINING_STEP, classifier(65536, 512), workers, OF_CLASSIFIER, {})
        yield Case("LLaMA layer, batch 8", LLAMA_LAYER, llama(8, 1024), workers, OF_LLAMA, {})
        yield Case("GCN, ogbn-arxiv", GCN, GCN_SHAPES, workers, OF_GCN, GCN_ENTRIES)


def run(case: Case) -> list[Figure]:
    """EinDecomp's partition, and those by rules."""
    start = time.perf_counter()
    partitioned = se.partition(case.text, case.workers, case.shapes, case.entries, rewrite=False, objective="bound")
    timed = [("EinDecomp", partitioned.best, time.perf_counter() - start)]
    start = time.perf_counter()
    paths = path_vectors(partitioned.task)
    timed.append(("longest paths", partition_graph(partitioned.task, paths, case.workers), time.perf_counter() - start))
    start = time.perf_counter()
    timed.append(("SQRT", partitioned.even(), time.perf_counter() - start))
    for name, scheme in case.schemes.items():
        start = time.perf_counter()
        timed.append((name, partitioned.along(scheme), time.perf_counter() - start))
    figures = [_figure(case, partitioned, partitioned, *timing) for timing in timed]
    others: dict[str, dict[str, Any]] = {"rewritten": {"objective": "bound"}}
    if case.workers <= _MOST_REPLAYED:
        others |= {"floats": {"rewrite": False}, "floats, rewritten": {}}
    for name, options in others.items():
        start = time.perf_counter()
        program = se.partition(case.text, case.workers, case.shapes, case.entries, **options)
        figures.append(_figure(case, partitioned, program, name, program.best, time.perf_counter() - start))
    return figures


def path_vectors(task: TransferTask) -> Vectors:
    """Section 8.4: longest paths are optimised one after the other; only repartitions within a path count."""
    plans = [cheapest_plans(task, path, {}, 1) or [] for path in longest_paths(task.graph)]
    return {name: tiles for (best,) in plans for name, tiles in best.choices}


def longest_paths(graph: EinGraph) -> Iterator[tuple[EinSum, ...]]:
    """Partition the EinSums into paths: the longest path of the graph, then the longest path of the rest, and so on."""
    remaining = {einsum.output.tensor: einsum for einsum in graph.einsums}
    while remaining:
        length: dict[str, int] = {}
        before: dict[str, str | None] = {}
        for name, einsum in remaining.items():
            read = [operand.tensor for operand in einsum.operands if operand.tensor in remaining]
            before[name] = max(read, key=length.__getitem__, default=None)
            length[name] = 1 + (length[previous] if (previous := before[name]) is not None else 0)
        path: list[EinSum] = []
        last: str | None = max(length, key=length.__getitem__)
        while last is not None:
            path.append(remaining.pop(last))
            last = before[last]
        yield tuple(reversed(path))


def _figure(
    case: Case,
    partitioned: se.PartitionedProgram,
    program: se.PartitionedProgram,
    name: str,
    partitioning: Partitioning,
    seconds: float,
) -> Figure:
    """What a partition of `program` moves, in times of the best of `partitioned`."""
    replay, replayed = program.replay(partitioning), partitioned.moved
    total = replay.total
    return Figure(
        case.name,
        case.workers,
        name,
        partitioning.floats,
        partitioning.join,
        partitioning.aggregation,
        partitioning.repartition,
        partitioning.floats / partitioned.floats,
        total.floats,
        total.floats / replayed if replayed else 1.0,
        float(total.received.max()),
        replay.imbalance,
        partitioning.is_optimal,
        seconds,
    )


def report(title: str, figures: Sequence[Figure]) -> None:
    """Print a table."""
    table = Table(title=f"{title}; times those of EinDecomp", title_justify="left")
    for heading in ("case", "p", "partition"):
        table.add_column(heading)
    headings = ("Mfloats at most", "times", "replayed", "times", "busiest gets", "search s")
    for heading in headings:
        table.add_column(heading, justify="right")
    for figure in figures:
        table.add_row(
            *((figure.case, f"{figure.workers:,}") if figure.partition == "EinDecomp" else ("", "")),
            figure.partition + ("" if figure.is_optimal else " *"),
            f"{figure.floats / 1e6:,.1f}",
            f"{figure.ratio:.2f}",
            f"{figure.replayed / 1e6:,.1f}",
            f"{figure.replayed_ratio:.2f}",
            f"{figure.busiest / 1e6:,.1f}",
            f"{figure.search_seconds:.2f}",
        )
    CONSOLE.print(table)
    if not all(figure.is_optimal for figure in figures):
        CONSOLE.print("* of longest paths, or short lists of vectors: others may move fewer")


_WORKERS = (2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024)


def measured(cases: Iterator[Case]) -> list[Figure]:
    """The figures of all cases; a line tells which are done, since a layer of LLaMA takes 10 to 30 seconds."""
    figures = []
    for case in cases:
        start = time.process_time()
        figures += run(case)
        CONSOLE.print(f"{case.name} on {case.workers:,} workers: {time.process_time() - start:.1f} s of processor time")
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="*", default=_WORKERS, help="of the second table")
    parser.add_argument("--no-figures", action="store_true", help="leave out the shapes of the paper's figures")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    of_figures = [] if asked.no_figures else measured(cases_of_figures())
    if of_figures:
        report("The paper's figures 7 to 10", of_figures)
    by_workers = measured(cases_by_workers(asked.workers))
    if by_workers:
        report("By number of workers", by_workers)
    asked.output.mkdir(parents=True, exist_ok=True)
    kept = [asdict(figure) for figure in (*of_figures, *by_workers)]
    (asked.output / "eindecomp.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
