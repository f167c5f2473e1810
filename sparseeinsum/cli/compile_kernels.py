"""The command line: the command compile-kernels, and a comparison of kernels for two processors."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping

from rich.progress import track
from rich.table import Table

from sparseeinsum.cli.display import duration
from sparseeinsum.cli.output import print_table, status_console
from sparseeinsum.cli.usage import UsageError
from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import KernelsError, PackageError
from sparseeinsum.kernels.duckdb.library import available_level
from sparseeinsum.kernels.platforms import NATIVE, VARIABLE, processor_asked_for, this_platform

_ROUNDS = 5


def compile_kernels(arguments: argparse.Namespace) -> None:
    """Compile the kernels for a processor unless they exist; for `native`, print how much faster they are."""
    processor = arguments.processor or processor_asked_for()
    processors = this_platform().processors
    if processor is not None and processor not in processors:
        raise UsageError(f"--processor {processor!r} is unknown; it must be one of {', '.join(processors)}")
    usual = available_level()
    if processor is None and usual is not None:
        print(f"there are kernels already, for {usual}")
        return
    start = time.perf_counter()
    try:
        make = imported("sparseeinsum.kernels.building.make", "compile", "compiling kernels")
    except PackageError as error:
        raise KernelsError(str(error)) from error
    path = make.cache_library(processor)
    print(f"{path}: {path.stat().st_size:,} bytes, in {duration(time.perf_counter() - start)}")
    if processor == NATIVE and usual is not None:
        _compare(usual)


def _compare(usual: str) -> None:
    """Print how long statements take with the kernels of the level `usual`, and with those of this processor."""
    seconds: dict[str, list[Mapping[str, float]]] = {usual: [], NATIVE: []}
    status = status_console()
    for _ in track(range(_ROUNDS), "measuring", console=status, transient=True, disable=not status.is_terminal):
        for processor, rounds in seconds.items():  # in turn, because the speed of a machine varies over time
            rounds.append(_seconds(processor))
    before, after = (
        {name: min(statements[name] for statements in rounds) for name in rounds[0]} for rounds in seconds.values()
    )
    table = Table(title="Processor time on one thread, minimum of several runs", title_justify="left")
    table.add_column("statement")
    for heading in (usual, NATIVE, "gain"):
        table.add_column(heading, justify="right")
    for name in before:
        gain = 100 * (before[name] / after[name] - 1)
        table.add_row(name, duration(before[name]), duration(after[name]), f"{gain:+.0f} %")
    print_table(table)
    print(f"from now on, the native kernels are used; set {VARIABLE}={usual} to use the others")


def _seconds(processor: str) -> Mapping[str, float]:
    """The seconds of every statement, measured in a new process with the kernels of a processor."""
    command = [sys.executable, "-m", "sparseeinsum.cli.kernel_speed"]
    environment = os.environ | {VARIABLE: processor}
    finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    seconds: Mapping[str, float] = json.loads(finished.stdout)
    return seconds
