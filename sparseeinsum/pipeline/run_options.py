"""Pipeline: the options of a run."""

from dataclasses import dataclass

from sparseeinsum.pipeline.replanning import replan
from sparseeinsum.results.execution import Progress, Replan


def no_progress(done: int, total: int, name: str, rows: float = 0) -> None:
    """Ignore the progress of a run."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a user asks of a run.

    Attributes:
        progress: Called before each statement.
        replans: Whether to plan the rest again where actual sizes differ from the estimates.
        deterministic: Whether aggregates combine values in a fixed order, so that two runs return equal bits.
    """

    progress: Progress = no_progress
    replans: bool = True
    deterministic: bool = False

    @property
    def replan(self) -> Replan | None:
        """The function that plans the rest again, or None. What it finds depends on how long planning took."""
        return replan if self.replans and not self.deterministic else None
