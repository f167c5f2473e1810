"""Pipeline: shows the progress of a run on a terminal or in a notebook."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from sparseeinsum.engines.engine import Engine
from sparseeinsum.environment.extras import late
from sparseeinsum.pipeline.run_options import no_progress
from sparseeinsum.plans.preview import can_draw
from sparseeinsum.plans.units import write_rows
from sparseeinsum.results import execution

_NOTEBOOK_SHELL = "ZMQInteractiveShell"  # of Jupyter and what follows its protocol
_UPDATE_SECONDS = 0.25


@dataclass(slots=True)
class RunState:
    """How far a run is; one thread runs, another one shows.

    Attributes:
        share: Returns the share of the running statement that is done, from 0 to 1; None if it is not known.
        unit: What is counted: `statement`, or `step` of a loop.
        done: The number of finished statements.
        total: The number of all statements; None while the program is planned.
        name: The result that is computed; empty at the end.
        rows: About how many rows the running statement reads; 0 if that is not known.
        on_statement: Called when a statement begins, and at the end.
        start: When planning began, on the monotonic clock.
    """

    share: Callable[[], float | None]
    unit: str = "statement"
    done: int = 0
    total: int | None = None
    name: str = ""
    rows: float = 0
    on_statement: Callable[[], object] = lambda: None
    start: float = field(default_factory=time.monotonic)

    def begin(self, done: int, total: int, name: str, rows: float = 0) -> None:
        """The next statement begins, as `execution.Progress` says."""
        self.done, self.total, self.name, self.rows = done, total, name, rows
        self.on_statement()

    def completed(self) -> tuple[float, str]:
        """The number of finished statements with the part of the running one, and what is done now."""
        if self.total is None:
            return 0, "planning"
        if not self.name:
            return self.done, "done"
        if self.unit == "step":
            return self.done, f"step {self.done} of {self.total}: {self.name}"
        place = f"computing {self.name}, statement {self.done + 1} of {self.total}"
        share = self.share()
        if share is None:
            return self.done, place
        of_rows = f" of about {write_rows(self.rows)}" if self.rows else ""
        return self.done + share, f"{place}, {share:.0%}{of_rows}"

    def line(self) -> str:
        """All of it in a line, with the seconds since the beginning."""
        return f"{self.completed()[1]}, {time.monotonic() - self.start:.0f} s"


@contextmanager
def shown_progress(is_shown: bool | None, engine: Engine, unit: str = "statement") -> Iterator[execution.Progress]:
    """Show the progress of a run on standard error or in a notebook; by default only if that is there or a terminal.

    Args:
        is_shown: Whether to show it; None is the default.
        engine: The database.
        unit: As in `RunState`.
    """
    in_notebook = _in_notebook()
    if not (in_notebook or sys.stderr.isatty() if is_shown is None else is_shown):
        yield no_progress
        return
    with engine.measured_progress() as share:
        state = RunState(share, unit)
        with _display(state, in_notebook):
            yield state.begin


def _display(state: RunState, in_notebook: bool) -> AbstractContextManager[object]:
    if in_notebook:
        return _in_cell(state)
    return _Bar(state) if can_draw(sys.stderr) else _in_lines(state)


class _Bar(Progress):
    """A progress bar on standard error, which asks for the state whenever it is drawn."""

    def __init__(self, state: RunState) -> None:
        elapsed = TimeElapsedColumn(table_column=Column(no_wrap=True))
        columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), elapsed
        self._state = state  # which drawing reads
        super().__init__(*columns, console=Console(stderr=True), transient=True)
        self.add_task("", total=None)

    def get_renderables(self) -> Iterator[RenderableType]:
        """The bar as it is now."""
        completed, description = self._state.completed()
        for task in self.task_ids:
            self.update(task, completed=completed, total=self._state.total, description=description)
        yield from super().get_renderables()


def _in_notebook() -> bool:
    """Whether the user works in a notebook, as IPython knows; it is not imported otherwise."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ == _NOTEBOOK_SHELL


@contextmanager
def _in_lines(state: RunState) -> Iterator[None]:
    """A line for every statement, where lines cannot be drawn again."""
    state.on_statement = lambda: sys.stderr.write(f"{state.line()}\n")
    yield


@contextmanager
def _in_cell(state: RunState) -> Iterator[None]:
    """A line below the cell, which is empty at the end. A bar of rich would need a widget there."""
    handle = late("IPython.display").display({"text/plain": state.line()}, raw=True, display_id=True)
    has_ended = threading.Event()

    def update() -> None:
        handle.update({"text/plain": state.line()}, raw=True)

    def update_regularly() -> None:
        while not has_ended.wait(_UPDATE_SECONDS):
            update()

    state.on_statement = update
    thread = threading.Thread(target=update_regularly, daemon=True, name="sparseeinsum-progress")
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()
        handle.update({"text/plain": ""}, raw=True)
