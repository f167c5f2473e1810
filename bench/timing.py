"""Timing side by side: contenders take turns, so that a machine that slows down slows all of them."""

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

CONSOLE = Console(width=120)
# BLAS threads of one contender go on spinning for a while, and would slow the next one.
_PAUSE_SECONDS = 0.15


@dataclass(frozen=True)
class Figure:
    """How long one contender took.

    Attributes:
        graph: What it ran on.
        contender: Who.
        seconds: Median of the runs.
        runs: Every run.
        ratio: Median divided by that of the contender that it is compared with.
    """

    graph: str
    contender: str
    seconds: float
    runs: tuple[float, ...]
    ratio: float


def race(
    graph: str,
    contenders: Mapping[str, Callable[[], object]],
    repeat: Mapping[str, int],
    base: str,
    pause: float | None = None,
) -> list[Figure]:
    """Run contenders in turn, each time after a run to warm up that does not count; ratios are to `base`.

    The pause in seconds before each is for those that leave threads behind; plans do not.
    """
    runs: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(max(repeat.values())):
        for name, run in contenders.items():
            if turn < repeat[name]:
                time.sleep(_PAUSE_SECONDS if pause is None else pause)
                run()  # wakes processors and caches from what the others and the pause left
                start = time.perf_counter()
                run()
                runs[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(taken) for name, taken in runs.items()}
    return [Figure(graph, name, medians[name], tuple(runs[name]), medians[name] / medians[base]) for name in contenders]


def report(title: str, figures: list[Figure], base: str, path: Path) -> None:
    """Print a table and keep the figures."""
    table = Table(title=title, title_justify="left")
    table.add_column("graph")
    table.add_column("contender")
    for heading in ("median s", "min s", "max s", f"times {base}"):
        table.add_column(heading, justify="right")
    for figure in figures:
        low, high = min(figure.runs), max(figure.runs)
        table.add_row(
            figure.graph,
            figure.contender,
            f"{figure.seconds:.4f}",
            f"{low:.4f}",
            f"{high:.4f}",
            f"{figure.ratio:.2f}",
        )
    CONSOLE.print(table)
    write(figures, path)


def write(figures: Sequence[Figure], path: Path) -> None:
    """Write figures to a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")
