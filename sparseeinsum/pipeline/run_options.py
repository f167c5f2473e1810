"""How to run a plan."""

from dataclasses import dataclass

from sparseeinsum.pipeline.replanning import replan
from sparseeinsum.results.execution import Progress, Replan


def no_progress(done: int, total: int, name: str) -> None:
    """Show nothing of how far a run is."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a user asks of a run.

    Attributes:
        progress: Told before each statement.
        replans: Whether to plan the rest anew where sizes are not as expected.
        deterministic: Whether groups are folded in a fixed order, so that two runs give the same bits.
    """

    progress: Progress = no_progress
    replans: bool = True
    deterministic: bool = False

    @property
    def replan(self) -> Replan | None:
        """Finds another plan for the rest. What that is depends on the time that planning took."""
        return replan if self.replans and not self.deterministic else None
