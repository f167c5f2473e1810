"""API: checks what users ask of a loop, runs it, and returns its history as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sparseeinsum.api.iterations import IterationResult
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.syntax import STEP
from sparseeinsum.pipeline.loops.loop import LoopOptions, LoopOutcome, run_loop
from sparseeinsum.pipeline.loops.loop_programs import loop_program
from sparseeinsum.pipeline.progress import shown_progress
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.presentation.spelling import did_you_mean


@dataclass(frozen=True, slots=True)
class LoopRequest:
    """What a user asks of a loop; see `Database.iterate`.

    Raises:
        PlanError: An option has an invalid value.
    """

    state: Mapping[str, str]
    steps: int
    until: str | None
    into: Mapping[str, str]
    history: Sequence[str]
    resume: bool
    commit_seconds: float
    deterministic: bool
    progress: bool | None

    def __post_init__(self) -> None:
        if not self.commit_seconds >= 0:
            raise PlanError(f"commit_seconds is {self.commit_seconds!r}; give 0 or more, or inf to commit at the end")
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 0:
            raise PlanError(f"steps is {self.steps!r}; give a whole number, 0 or more")


def iterate(engine: Engine, program: Program, request: LoopRequest, options: PlanOptions) -> IterationResult:
    """Run a loop; see `Database.iterate`.

    Args:
        engine: The database.
        program: The program.
        request: What the user asks of the loop.
        options: The options of the plan of a step.
    """
    history = [request.history] if isinstance(request.history, str) else request.history
    steps = loop_program(program, request.state, history, request.until)
    for name in request.into:
        if name not in steps.state:
            raise PlanError(f"into names {name}, which is no state; {did_you_mean(name, steps.state)}")
    if options.memory_limit is not None:
        raise PlanError("a loop takes the memory limit of the database; set that, and leave out memory_limit")
    with shown_progress(request.progress, engine, "step") as show:
        loop_options = LoopOptions(
            request.steps, request.into, request.commit_seconds, request.resume, request.deterministic, show
        )
        changing = frozenset(steps.state)
        outcome = run_loop(steps, engine, loop_options, replace(options, searches_all=True, changing=changing))
    history = _history(outcome, steps.history)
    done = len(outcome.records)
    return IterationResult(done, outcome.reason, history, outcome.kept, outcome.table, outcome.seconds)


def _history(outcome: LoopOutcome, names: Sequence[str]) -> pa.Table:
    columns: dict[str, Any] = {STEP: pa.array(range(len(outcome.records)), pa.int64())}
    for name in names:
        columns[name] = pa.array([record[name] for record in outcome.records])
    return pa.table(columns)
