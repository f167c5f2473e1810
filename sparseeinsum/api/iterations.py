"""API: what a loop of `Database.iterate` returns: its steps, the reason of its end, and its history."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sparseeinsum.environment.extras import late
from sparseeinsum.language.syntax import STEP
from sparseeinsum.plans.units import write_seconds
from sparseeinsum.presentation.html_tables import cell_text, html_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_PREVIEWED = 10  # rows of the history in notebooks


@dataclass(frozen=True, slots=True)
class IterationResult:
    """A loop that has ended; the tensors named by `kept` hold the state. Returned by `Database.iterate`.

    Attributes:
        steps: The number of all steps, with those of earlier runs that the loop went on with.
        reason: Why it ended: `condition`, or `steps` if the condition did not hold within the steps.
        history: A row for every step: its number, from 0, and what the history names.
        kept: The tensors that hold the state, by the names of the state.
        table: The table with a row for every step, from which a later call can go on.
        seconds: How long this run took.
    """

    steps: int
    reason: str
    history: pa.Table
    kept: Mapping[str, str]
    table: str
    seconds: float

    def df(self) -> "pd.DataFrame":
        """The history as a pandas DataFrame."""
        frame: pd.DataFrame = self.history.to_pandas()
        return frame

    def pl(self) -> "pl.DataFrame":
        """The history as a polars DataFrame."""
        frame: pl.DataFrame = late("polars").from_arrow(self.history)
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The history as a stream, which the Arrow PyCapsule interface asks for."""
        return self.history.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        why = "the condition held" if self.reason == "condition" else "all steps were done"
        names = [name for name in self.history.column_names if name != STEP and self.steps]
        numbers = "".join(f", {name} {cell_text(self.history[name][-1].as_py())}" for name in names)
        return f"<{self.steps} steps in {write_seconds(self.seconds)}: {why}{numbers}>"

    def _repr_html_(self) -> str:
        rows = self.history.slice(max(self.history.num_rows - _PREVIEWED, 0)).to_pylist()
        note = "" if len(rows) == self.history.num_rows else f"the last {len(rows)} of {self.history.num_rows} steps"
        return html_table(repr(self), self.history.column_names, [list(row.values()) for row in rows], note)
