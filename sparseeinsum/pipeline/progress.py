"""Progress of a run, shown where somebody looks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from sparseeinsum.results import execution


@contextmanager
def shown_progress(wanted: bool | None) -> Iterator[execution.Progress]:
    """A bar on standard error; nothing where it is no terminal."""
    is_shown = sys.stderr.isatty() if wanted is None else wanted
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not is_shown) as bar:
        task = bar.add_task("planning", total=None)

        def show(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=f"computing {name}" if name else "done")

        yield show
