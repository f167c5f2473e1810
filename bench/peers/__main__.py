"""Sparse work beside the libraries and databases that are good at it, in memory and in the same process.

    python -m bench.peers --data DIR --size full --page peers.html

Everything is float64, and has as many threads as a library takes, up to those asked for. Loading does not count: data
are in each library's own format before. Libraries multiply in the best order, as GCN by the weights first. A run of
ours ends with an array of numpy or a table of Arrow, a run of theirs with what they return. `run` is db.run of a plan,
`prepared` a program of db.prepare, whose statements are parsed once. In the table, `dense` is what would be too large
as a dense array, `-` what a library has no product for, `> 60` a query that was stopped, and `wrong` a result that
differs from the others.
"""

import argparse
import os
import platform
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.datasets import add_data_folder
from bench.peers.libraries import DISTRIBUTIONS, Distribution, Library
from bench.peers.racing import Race, Turns, race_workload
from bench.peers.reporting import table, write_page
from bench.peers.workloads import makers
from bench.timing import CONSOLE, write
from sparseeinsum.version import __version__

TURNS = {
    "tiny": partial(Turns, patience=0.2, pause=0),
    "small": partial(Turns, patience=0.2, pause=0.05),
    "full": partial(Turns, patience=3),
}


def races(asked: argparse.Namespace, peers: Sequence[Library]) -> Iterator[Race]:
    """The races that the command line asks for, one after the other."""
    for make in makers(asked.size, asked.data):
        workload = make()
        if not asked.only or workload.kind in asked.only:
            CONSOLE.print(workload.name, style="dim")
            yield race_workload(workload, peers, asked.threads, TURNS[asked.size](asked.repeat))


def heading(installed: Sequence[Distribution], threads: int) -> str:
    """The machine and the versions."""
    versions = ", ".join(f"{distribution.name} {distribution.version()}" for distribution in installed)
    return (
        f"{os.cpu_count()} cores, {threads} threads, Python {platform.python_version()}, sparseeinsum {__version__}, "
        f"{versions}"
    )


def main() -> None:
    """Race what is installed; print a table, and write the figures and a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_folder(parser)
    parser.add_argument("--size", choices=TURNS, default="small", help="of the workloads (default: %(default)s)")
    parser.add_argument("--only", nargs="*", metavar="KIND", help="kinds of workloads, as in SpMM; by default all")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of all that have threads")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    parser.add_argument("--page", type=Path, help="file for a page of HTML; needs matplotlib")
    asked = parser.parse_args()
    installed = [distribution for distribution in DISTRIBUTIONS if distribution.version()]
    missing = {other.name: other.package for other in DISTRIBUTIONS if other not in installed}
    raced: list[Race] = []
    for result in races(asked, [distribution.library(asked.threads) for distribution in installed]):
        raced.append(result)  # written at once: all races together take long
        write([figure for race in raced for figure in race.figures], asked.output / "peers.json")
    machine, names = heading(installed, asked.threads), [distribution.name for distribution in DISTRIBUTIONS]
    shown = table(raced, names, missing)
    CONSOLE.print(machine)
    CONSOLE.print(shown)
    if asked.page:
        write_page(raced, names, machine, shown, asked.page)


if __name__ == "__main__":
    main()
