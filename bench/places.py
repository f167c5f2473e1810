"""Floats that programs on several sites send, from every way to ask for them, and how near the search is to the best.

    python -m bench.places

Nothing runs. The ways are `se.partition` with both of its objectives, SQRT and cuts along an axis, plans for workers,
and the tuples of plans distributed over sites. The last table compares the search with all choices of small random
programs.
"""

import argparse
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.table import Table

import sparseeinsum as se
from bench.eindecomp import OF_ATTENTION, OF_CHAIN, OF_GCN, Schemes, Shapes, chain
from bench.timing import CONSOLE
from sparseeinsum.api.examples import MATRIX_CHAIN, MULTI_HEAD_ATTENTION
from sparseeinsum.api.graphs import GCN
from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.eindecomp.moves import Moves
from sparseeinsum.decompose.eindecomp.moves_search import search_moves
from sparseeinsum.decompose.eindecomp.partitioning import partition_graph
from sparseeinsum.decompose.eindecomp.replay import replay
from sparseeinsum.decompose.search_tasks import total_cost

sys.path += [str(Path(__file__).parents[1] / "tests" / folder) for folder in ("generators", "oracles", "databases")]
from partitioned_programs import small_tasks  # from the path above

_SITES = (2, 4, 6, 16, 64)
_GAP_WORKERS = (2, 3, 4, 6)
_MOST_CHOICES = 1000  # of a small program, all of which are compared
_DRAWN = 40  # small programs that are drawn at once
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Case:
    """A program whose inputs are random.

    Attributes:
        name: What it is.
        text: The program.
        shapes: Of its inputs.
        entries: Of sparse inputs.
        schemes: Partitions by axes of tensors to compare with.
    """

    name: str
    text: str
    shapes: Shapes
    entries: Mapping[str, int]
    schemes: Schemes


CASES = (
    Case("chain, skewed", MATRIX_CHAIN, chain(640, False), {}, OF_CHAIN),
    Case("chain, uniform", MATRIX_CHAIN, chain(640, True), {}, OF_CHAIN),
    Case(
        "loss of a factorisation",
        "L[] = sum((X[i, j] - sum(U[i, r] * V[j, r])) ^ 2)",
        {"X": (2000, 2000), "U": (2000, 20), "V": (2000, 20)},
        {"X": 40_000},
        {"rows": {"X": "i"}},
    ),
    Case(
        "product, then a vector",
        "T[i, k] = sum(B[i, j] * C[j, k])\ny[i] = sum(T[i, k] * x[k])",
        {"B": (1024, 1024), "C": (1024, 1024), "x": (1024,)},
        {},
        {"rows": {"B": "i"}},
    ),
    Case(
        "attention",
        MULTI_HEAD_ATTENTION,
        {"X": (512, 256), **dict.fromkeys(("WQ", "WK", "WV"), (256, 8, 32)), "WO": (8, 32, 256)},
        {},
        OF_ATTENTION,
    ),
    Case(
        "GCN",
        GCN,
        {"A": (2708, 2708), "D": (2708, 2708), "X": (2708, 300), "W1": (300, 64), "W2": (64, 16)},
        {"A": 13_264, "D": 2708},
        OF_GCN,
    ),
)


def load(case: Case) -> se.Database:
    """A database with random inputs of a case."""
    rng = np.random.default_rng(0)
    db = se.connect()
    for name, shape in case.shapes.items():
        is_sparse = name in case.entries
        db.tensor(name, sparse_matrix(shape, case.entries[name], rng) if is_sparse else rng.normal(size=shape))
    return db


def sparse_matrix(shape: Sequence[int], entries: int, rng: np.random.Generator) -> sp.coo_array:
    """A random matrix with so many entries, some of them in every row and every column, as `se.partition` assumes."""
    rows, columns = shape
    longest = np.arange(max(shape))
    positions = longest % rows * columns + longest % columns
    others = np.setdiff1d(rng.choice(rows * columns, entries, replace=False), positions)[: entries - len(positions)]
    positions = np.concatenate([positions, others])
    return sp.coo_array((rng.normal(size=entries), np.divmod(positions, columns)), shape=(rows, columns))


def ways(case: Case, sites: int, db: se.Database) -> dict[str, tuple[float, float]]:
    """For every way, the floats that are sent, and the seconds of processor time to plan."""

    def partition(objective: str) -> se.PartitionedProgram:
        return se.partition(case.text, sites, case.shapes, case.entries, objective=objective)

    bound, bound_seconds = timed(lambda: partition("bound"))
    floats, floats_seconds = timed(lambda: partition("floats"))
    plan, plan_seconds = timed(lambda: db.plan(case.text, workers=sites))
    by_floats, by_floats_seconds = timed(lambda: db.plan(case.text, workers=sites, objective="floats"))
    relational, alone = db.plan(case.text, optimizer="relational"), db.plan(case.text)
    tuples, tuples_seconds = timed(lambda: by_floats.distributed(sites))
    entries, entries_seconds = timed(lambda: relational.distributed(sites))
    of_one, of_one_seconds = timed(lambda: alone.distributed(sites))
    assert plan.partitioned is not None
    assert by_floats.partitioned is not None
    figures = {
        "partition, bound": (bound.moved, bound_seconds),
        "partition, floats": (floats.moved, floats_seconds),
        "SQRT": (bound.replay(bound.even()).total.floats, 0.0),
    }
    for name, scheme in case.schemes.items():
        figures[name] = (bound.replay(bound.along(scheme)).total.floats, 0.0)
    return figures | {
        "plan(workers=), seconds": (plan.partitioned.moved, plan_seconds),
        "plan(workers=), floats": (by_floats.partitioned.moved, by_floats_seconds),
        "its tuples, distributed": (tuples.moved, tuples_seconds),
        "relational plan, distributed": (entries.moved, entries_seconds),
        "plan of one machine, distributed": (of_one.moved, of_one_seconds),
    }


def timed(plan: Callable[[], Any]) -> tuple[Any, float]:
    """What a function returns, and the seconds of processor time that it takes."""
    start = time.process_time()
    result = plan()
    return result, time.process_time() - start


def gaps(count: int) -> list[float]:
    """For small random programs, the floats that the search moves, in times of the least of all choices."""
    ratios: list[float] = []
    for number in itertools.count():
        workers = _GAP_WORKERS[number % len(_GAP_WORKERS)]
        for task in small_tasks(number % 2 == 0, _DRAWN * (number + 1), workers):
            moves = Moves.of_vectors(task.model, task.choices, workers)
            if math.prod(map(len, moves.choices.values())) > _MOST_CHOICES:
                continue
            best = next(search_moves(task, workers))
            moved = replay(task.model, partition_graph(task, best, workers)).total.floats
            least = min(_floats(moves, choices) for choices in itertools.product(*moves.choices.values()))
            ratios.append(moved / least if least > _ROUNDING else 1.0 + moved)
            if len(ratios) == count:
                return ratios
    raise AssertionError


def _floats(moves: Moves, choices: Sequence[Choice]) -> float:
    """The floats that choices of all EinSums move."""
    return total_cost(moves, moves.vertices, dict(zip(moves.choices, choices, strict=True)), {})


def report(case: Case, figures: Mapping[int, Mapping[str, tuple[float, float]]]) -> None:
    """Print the table of a case: a row for every way, columns for every number of sites."""
    table = Table(title=f"{case.name}: thousands of floats, and seconds to plan", title_justify="left")
    table.add_column("way")
    for sites in figures:
        table.add_column(f"{sites} sites", justify="right")
        table.add_column("s", justify="right")
    for way in next(iter(figures.values())):
        cells = []
        for by_way in figures.values():
            floats, seconds = by_way[way]
            cells += [f"{floats / 1e3:,.1f}", f"{seconds:.2f}" if seconds else ""]
        table.add_row(way, *cells)
    CONSOLE.print(table)


def main() -> None:
    """Print all tables, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=200, help="small programs (default: 200)")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    kept: dict[str, Any] = {}
    for case in CASES:
        with load(case) as db:
            db.plan(case.text)  # kernels are compiled before planning is timed
            figures = {sites: ways(case, sites, db) for sites in _SITES}
        report(case, figures)
        kept[case.name] = figures
    ratios = gaps(asked.graphs)
    optimal = sum(ratio < 1 + _ROUNDING for ratio in ratios)
    CONSOLE.print(
        f"{len(ratios)} small programs: the least of all choices for {optimal}; mean {statistics.mean(ratios):.4f} "
        f"times the least, most {max(ratios):.4f}"
    )
    kept["gaps"] = ratios
    asked.output.mkdir(parents=True, exist_ok=True)
    (asked.output / "places.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
