"""The command line: kernels compiled ahead, and how fast those of two processors are."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping

from rich.console import Console
from rich.progress import track
from rich.table import Table

from sparseeinsum.cli.display import duration
from sparseeinsum.errors import KernelsError, PackageError
from sparseeinsum.extras import imported
from sparseeinsum.kernels.duckdb.library import level_at_hand
from sparseeinsum.kernels.platforms import NATIVE, VARIABLE, processor_asked_for, this_platform

_ROUNDS = 5


def compile_kernels(asked: argparse.Namespace) -> None:
    """Compile the kernels for a processor unless they are there; for this very one, say what that brings."""
    processor = asked.processor or processor_asked_for()
    if processor is not None and processor not in this_platform().processors:
        raise ValueError(f"--processor {processor!r} is none of {', '.join(this_platform().processors)}")
    usual = level_at_hand()
    if processor is None and usual is not None:
        print(f"the kernels are there, for {usual}")
        return
    start = time.perf_counter()
    try:
        make = imported("sparseeinsum.kernels.building.make", "compile", "compiling kernels")
    except PackageError as error:
        raise KernelsError(str(error)) from error
    path = make.keep_library(processor)
    print(f"{path}: {path.stat().st_size:,} bytes, in {duration(time.perf_counter() - start)}")
    if processor == NATIVE and usual is not None:
        _compare(usual)


def _compare(usual: str) -> None:
    """Show how long statements take with the kernels of a level, and of this very processor."""
    seconds: dict[str, list[Mapping[str, float]]] = {usual: [], NATIVE: []}
    for _ in track(range(_ROUNDS), "measuring", console=Console(stderr=True), transient=True):
        for processor, rounds in seconds.items():  # in turn, as machines are faster now and slower then
            rounds.append(_seconds(processor))
    before, after = ({name: min(each[name] for each in rounds) for name in rounds[0]} for rounds in seconds.values())
    table = Table(title="Processor time on one thread, the least of some runs", title_justify="left")
    table.add_column("statement")
    for heading in (usual, NATIVE, "what it brings"):
        table.add_column(heading, justify="right")
    for name in before:
        gain = 100 * (before[name] / after[name] - 1)
        table.add_row(name, duration(before[name]), duration(after[name]), f"{gain:+.0f} %")
    Console().print(table)
    print(f"native is used from now on; {VARIABLE}={usual} asks for the other")


def _seconds(processor: str) -> Mapping[str, float]:
    command = [sys.executable, "-m", "sparseeinsum.cli.kernel_speed"]
    environment = os.environ | {VARIABLE: processor}
    finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    seconds: Mapping[str, float] = json.loads(finished.stdout)
    return seconds
