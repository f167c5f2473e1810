"""Loops: plans the steps of a program once, runs them, and keeps the state in the database."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.memory_limit import deterministic_order
from sparseeinsum.engines.prepared import TransactionMark
from sparseeinsum.engines.retries import after_late_signals, in_own_snapshot, in_snapshot
from sparseeinsum.errors import EngineError, PlanError, StepError
from sparseeinsum.language.syntax import STEP
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.pipeline.loops.loop_programs import CHANGED, LoopProgram
from sparseeinsum.pipeline.loops.loop_setup import LoopParts, set_up
from sparseeinsum.plans.options import PlanOptions

_SHOWN_EVERY = 0.1  # seconds between two signs of progress
_KEEPING_PAUSE = 10  # times as long as it takes to write the state, until it is written again

StepProgress = Callable[[int, int, str], None]  # (steps done, most steps, what the last one returned)


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """How a loop runs.

    Attributes:
        steps: The most steps, with those of earlier runs that it goes on with.
        into: The tensors that keep the state, by the names of the state; by default those of the state.
        commit_seconds: After how many seconds the tensors get the state again when a step ends; later where that
            takes more than a tenth of the time, unless it is 0.
        resumes: Whether the loop goes on where an earlier one ended.
        deterministic: Whether steps aggregate in a fixed order, so that two loops give equal bits.
        progress: Called after steps.
    """

    steps: int
    into: Mapping[str, str]
    commit_seconds: float
    resumes: bool
    deterministic: bool
    progress: StepProgress


@dataclass(slots=True)
class LoopOutcome:
    """What a loop did.

    Attributes:
        records: What every step returned, in order, by name; with those of earlier runs that it went on with.
        first: The number of steps before this run.
        reason: Why it ended: `condition` or `steps`.
        kept: The tensors that hold the state, by the names of the state.
        table: The table of the steps.
        seconds: How long this run took.
    """

    records: list[dict[str, Number]]
    first: int
    reason: str
    kept: Mapping[str, str]
    table: str
    seconds: float


def run_loop(steps: LoopProgram, engine: Engine, options: LoopOptions, plan_options: PlanOptions) -> LoopOutcome:
    """Run the steps of a program until its condition holds.

    Args:
        steps: What a step computes.
        engine: The database.
        options: How the loop runs.
        plan_options: The options of the plan of a step.

    Raises:
        PlanError: Another loop runs over the same state, or the loop cannot go on with earlier steps.
        ShapeError: The next value of a state has another shape, dtype or fill.
        StepError: A step failed; the state is that of the last whole step.
    """
    if engine.cluster() is not None:
        raise PlanError("a loop runs on one machine, and this database is a cluster; run the steps with db.run")
    start = time.perf_counter()
    kept = {name: options.into.get(name, name) for name in steps.state}
    with ExitStack() as stack:
        _claim(kept, engine, stack)
        settings_last = not engine.dialect.has_workers  # those of a server end with every transaction
        stack.enter_context(deterministic_order(engine, options.deterministic and settings_last))
        parts = in_snapshot(engine, lambda: set_up(steps, engine, kept, options.steps, options.resumes, plan_options))
        stack.callback(after_late_signals, parts.close)
        loop = _Loop(steps, engine, options, parts)
        try:
            reason = loop.run()
        except BaseException:
            with suppress(EngineError):  # of a connection that is lost; the first error says more
                after_late_signals(loop.keep)
            raise
        finally:
            with suppress(EngineError):
                after_late_signals(loop.let_optimize)
        loop.keep()
        table = parts.records.table.sql(engine.dialect_name)
        return LoopOutcome(loop.records, parts.first, reason, kept, table, time.perf_counter() - start)


def _claim(kept: Mapping[str, str], engine: Engine, stack: ExitStack) -> None:
    """Refuse a second loop over the same state, until the stack is closed."""
    with engine.protected():
        database, _ = engine.location()
    for name, tensor in kept.items():
        if not stack.enter_context(engine.claimed(f"sparseeinsum loop {database}.{tensor}")):
            raise PlanError(
                f"another loop replaces {tensor} at the moment; wait for its end, or keep the state of this one "
                f'elsewhere, as in into={{"{name}": "{name}_2"}}'
            )


@dataclass(slots=True)
class _Loop:
    """A loop that runs.

    Attributes:
        steps: What a step computes.
        engine: The database.
        options: How the loop runs.
        parts: Its tables and plans.
        records: What the steps so far returned.
    """

    steps: LoopProgram
    engine: Engine
    options: LoopOptions
    parts: LoopParts
    records: list[dict[str, Number]] = field(init=False)
    _rows: dict[str, int] = field(init=False)  # of the state, by name
    _mark: TransactionMark | None = None  # of the last step
    _shown: float = 0.0
    _optimized_before: bool | None = None  # None while the database optimises as it did before the loop
    _kept_at: float = field(default_factory=time.monotonic)
    _keeping_seconds: float = 0.0  # that it took last

    def __post_init__(self) -> None:
        self.records = list(self.parts.earlier)
        self._rows = dict(self.parts.rows)

    def run(self) -> str:
        """Run steps; return why they ended."""
        while not self._has_ended():
            if len(self.records) >= self.options.steps:
                return "steps"
            step = len(self.records)
            try:
                self._rows, self._mark = in_own_snapshot(self.engine, partial(self._step, step))
            except EngineError as error:
                raise StepError(step, error) from error.__cause__
            self._show()
        return "condition"

    def _has_ended(self) -> bool:
        condition, done = self.steps.condition, len(self.records)
        if condition is None or not done:
            return False
        before = None if done == 1 else {**self.records[-2], STEP: done - 2}
        return condition.holds({**self.records[-1], STEP: done - 1}, before)

    def _step(self, step: int) -> tuple[dict[str, int], TransactionMark]:
        """Run a step in the open transaction; return the numbers of rows of the state, and the transaction's mark."""
        self.parts.prepared.begin()
        if self.options.deterministic and self.engine.dialect.has_workers:
            with deterministic_order(self.engine):
                return self._step_in_order(step)
        return self._step_in_order(step)

    def _step_in_order(self, step: int) -> tuple[dict[str, int], TransactionMark]:
        parts, turn = self.parts, (step - self.parts.first) % 2
        mark = self.engine.transaction_mark()
        may_differ = not (mark.follows(self._mark) and parts.plan.reads_own_tables)
        parts.plan.make_exact(turn, {**self._rows, STEP: 1}, may_differ)
        self._keep_plans(parts.plan.is_small)
        inserted, numbers = parts.plan.statements(turn).run()
        rows = {name: inserted[following] for name, following in self.steps.state.items()}
        if parts.changes is not None:
            numbers[CHANGED] = parts.changes.count(turn, self._rows, rows)
        recorded = {name: numbers[name] for name in self.steps.recorded}
        read = {tables.in_turn[turn]: self._rows[tables.name] for tables in parts.tables}
        for table, count in read.items():
            table.empty(count)
        parts.step.increase()
        # Before the transaction ends: a signal may come between its end and the next line that runs here.
        self.records[step:] = [recorded]
        if time.monotonic() - self._kept_at >= self._seconds_between_keeping:
            self._keep()
        return rows, mark

    def _keep_plans(self, is_small: bool) -> None:
        """Let the database keep the plans of small statements, whose optimisation takes longer than it saves."""
        if is_small == (self._optimized_before is not None):
            return
        if is_small:
            self._optimized_before = self.engine.optimize(False)
        else:
            self.let_optimize()
        self.parts.prepared.outdate()

    def let_optimize(self) -> None:
        """Let the database optimise statements as before the loop."""
        if self._optimized_before is not None:
            self.engine.optimize(self._optimized_before)
            self._optimized_before = None

    def keep(self) -> None:
        """Let the tensors have the state of the last whole step, if they have not yet."""

        def keep() -> None:
            self.parts.prepared.begin()
            self._keep()

        in_own_snapshot(self.engine, keep)

    @property
    def _seconds_between_keeping(self) -> float:
        asked = self.options.commit_seconds
        return max(asked, _KEEPING_PAUSE * self._keeping_seconds) if asked else 0.0

    def _keep(self) -> None:
        start = time.monotonic()
        first, done, kept = self.parts.first, self.parts.step.get(), self.parts.records.count()
        if done > kept:
            for tables in self.parts.tables:
                tables.keep(self.engine, (done - first) % 2, self._rows[tables.name])
            self.parts.records.add(list(enumerate(self.records))[kept:done])
        self._kept_at = time.monotonic()
        self._keeping_seconds = self._kept_at - start

    def _show(self) -> None:
        done, now = len(self.records), time.monotonic()
        if now - self._shown >= _SHOWN_EVERY:
            self._shown = now
            numbers = (f"{name} {value:.6g}" for name, value in self.records[-1].items())
            self.options.progress(done, self.options.steps, ", ".join(numbers))
