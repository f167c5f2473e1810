"""Plans: what a run of a plan took, as data."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.plans.units import write_count, write_seconds
from sparseeinsum.render.sql_statement import SqlStatement


@dataclass(frozen=True, slots=True)
class EinSumRun:
    """What one EinSum took when it ran alone.

    Attributes:
        tuples: The number of tuples of its result.
        seconds: The time from tables of its operands to a table of its result; None if it was not measured alone.
    """

    tuples: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Replanning:
    """A checkpoint at which the size of a result differed from the estimate, so that the rest was planned again.

    Attributes:
        name: The result.
        expected: Its estimated number of tuples.
        tuples: Its actual number of tuples.
        kept_seconds: Expected seconds for the rest as it was planned, with the actual size.
        seconds: Expected seconds of the best plan for the rest.
        planning_seconds: How long planning again took.
        is_better: Whether the run switches to the new plan, which is enough faster, or alone fits into the memory.
    """

    name: str
    expected: float
    tuples: int
    kept_seconds: float
    seconds: float
    planning_seconds: float
    is_better: bool

    @property
    def summary(self) -> str:
        """What happened, in one line."""
        sizes = f"{self.name}: {write_count(self.tuples)} tuples instead of {write_count(self.expected)}"
        if not self.is_better:
            return f"{sizes}; the rest goes on as planned, expected {write_seconds(self.kept_seconds)}"
        expected = f"now {write_seconds(self.seconds)} instead of {write_seconds(self.kept_seconds)}"
        if self.seconds >= self.kept_seconds:
            expected = f"{write_seconds(self.seconds)}, because it would have taken too much memory"
        return f"{sizes}; the rest was planned anew in {write_seconds(self.planning_seconds)}, expected {expected}"


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a run of a plan took.

    Attributes:
        statements: The statements that ran, in order, with their seconds.
        replannings: The checkpoints that led to planning again.
        einsums: What every EinSum of the original plan took alone, by the name of its result.
    """

    statements: tuple[tuple[SqlStatement, float], ...]
    replannings: tuple[Replanning, ...]
    einsums: Mapping[str, EinSumRun]
