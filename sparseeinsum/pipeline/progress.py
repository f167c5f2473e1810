"""Pipeline: shows the progress of a run on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from sparseeinsum.results import execution


@contextmanager
def shown_progress(is_shown: bool | None) -> Iterator[execution.Progress]:
    """A progress bar on standard error; by default, only if that is a terminal."""
    shows = sys.stderr.isatty() if is_shown is None else is_shown
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not shows) as bar:
        task = bar.add_task("planning", total=None)

        def show(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=f"computing {name}" if name else "done")

        yield show
