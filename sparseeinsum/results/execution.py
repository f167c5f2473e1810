"""Results: a plan's statements in, results out; temporary tables go, and a failed run leaves nothing behind."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.algebra.translate import delivered_relation, materialized_relations
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.memory import MemoryGuard, memory_guard
from sparseeinsum.plans.analysis import EinSumRun, Replanning
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.sizes import result_sizes
from sparseeinsum.render.statements import Statement
from sparseeinsum.results.delivering import deliver, natural_keys
from sparseeinsum.results.results import TensorResult, result_of
from sparseeinsum.results.targets import Target

_STAGED_SHARE = 0.25  # of the memory, for the result of one EinSum that is measured alone

Progress = Callable[[int, int, str], None]  # (statements done, of how many, what comes next)


@dataclass(frozen=True, slots=True)
class StatementRun:
    """What one statement did.

    Attributes:
        statement: What was run.
        tuples: Rows that it left or returned.
        seconds: How long it took.
    """

    statement: Statement
    tuples: int
    seconds: float


@dataclass(frozen=True, slots=True)
class KeptResult:
    """An output that went into a table or file.

    Attributes:
        schema: Its name, axes, dtype, and how the rows hold it.
        target: Where it is.
        tuples: Rows that were put there.
    """

    schema: Schema
    target: Target
    tuples: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """An output that is yet to be returned.

    Attributes:
        schema: Its name, axes, dtype, and how rows will hold it.
        statement: That returns them.
        dictionaries: As of a TensorResult.
        begin: Leaves the statement room in the memory, before it is run.
    """

    schema: Schema
    statement: Statement
    dictionaries: Mapping[str, pa.Array]
    begin: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Execution:
    """What a run of a plan did.

    Attributes:
        results: Outputs by name, but those that went into tables and files.
        kept: Those.
        runs: Every statement, in order.
        replannings: Where sizes were not as expected, so that another plan for the rest was looked for.
    """

    results: Mapping[str, TensorResult]
    kept: Mapping[str, KeptResult]
    runs: tuple[StatementRun, ...]
    replannings: tuple[Replanning, ...]


@dataclass(frozen=True, slots=True)
class Replanned:
    """What came of looking for another plan.

    Attributes:
        told: Of sizes and costs.
        plan: For the rest; None where the old one goes on.
    """

    told: Replanning
    plan: ProgramPlan | None


class Replan(Protocol):
    """Looks for another plan for the rest of one; None where there is no reason to."""

    def __call__(self, plan: ProgramPlan, tables: Mapping[str, int], engine: Engine) -> Replanned | None:
        """Called when there is another table.

        Args:
            plan: What runs.
            tables: Tuples of the results of it that are in tables by now; the last one is new.
            engine: Where it runs.
        """


def execute(
    plan: ProgramPlan, engine: Engine, into: Mapping[str, Target], progress: Progress, replan: Replan | None = None
) -> Execution:
    """Run a plan inside the transaction that is open.

    Args:
        plan: What to run.
        engine: Where.
        into: For some outputs, the table or file that takes the result.
        progress: Told before each statement.
        replan: Finds another plan for the rest where sizes are not as expected; None keeps to the plan.

    Raises:
        EngineError: The database refused a statement.
        PlanError: Results that are to be returned would leave too little of the memory.
    """
    with memory_guard(engine, into) as memory:
        return _Run(plan, engine, into, progress, replan, memory).execution()


@contextmanager
def prepare(
    plan: ProgramPlan, engine: Engine, progress: Progress, replan: Replan | None = None
) -> Iterator[Mapping[str, Delivery]]:
    """Run all of a plan but the statements that return its outputs, inside the transaction that is open.

    These may be run within, where the database keeps to the memory of the plan; the transaction must not be committed
    after that, because temporary tables are still there.

    Raises:
        EngineError: The database refused a statement.
    """
    with memory_guard(engine, plan.outputs) as memory:
        yield _Run(plan, engine, {}, progress, replan, memory).deliveries()


def with_dictionaries(execution: Execution, engine: Engine) -> Execution:
    """The same with results that know their natural keys; in the transaction of the run."""
    found = natural_keys(engine, [result.schema for result in execution.results.values()])
    if not found:
        return execution
    results = {name: replace(result, dictionaries=found) for name, result in execution.results.items()}
    return replace(execution, results=results)


class _Run:
    """The run of one plan, which may become another on the way."""

    def __init__(
        self,
        plan: ProgramPlan,
        engine: Engine,
        into: Mapping[str, Target],
        progress: Progress,
        replan: Replan | None,
        memory: MemoryGuard,
    ) -> None:
        self._plan = plan
        self._outputs = plan.outputs
        self._engine = engine
        self._into = into
        self._progress = progress
        self._replan = replan
        self._memory = memory
        self._waiting = self._follow(plan)
        self._tables: dict[str, int] = {}  # of the plan as it is now
        self._runs: list[StatementRun] = []
        self._results: dict[str, TensorResult] = {}
        self._kept: dict[str, KeptResult] = {}
        self._replannings: list[Replanning] = []

    def execution(self) -> Execution:
        """Run all of it."""
        while self._waiting:
            self._go_on(*self._waiting.pop(0))
        self._progress(len(self._runs), len(self._runs), "")
        for run in self._runs:
            if run.statement.stage is not None:
                _drop(self._engine, run.statement.stage)
        results = {name: self._results[name] for name in self._outputs if name in self._results}
        kept = {name: self._kept[name] for name in self._outputs if name in self._kept}
        return Execution(results, kept, tuple(self._runs), tuple(self._replannings))

    def deliveries(self) -> dict[str, Delivery]:
        """Run all of it but what returns outputs."""
        found: dict[str, tuple[Schema, Statement]] = {}
        begin: dict[str, Callable[[], None]] = {}
        while self._waiting:
            plan, statement = self._waiting.pop(0)
            if statement.stage is None:
                found[statement.name] = delivered_relation(plan.decomposed, statement.name).schema, statement
                begin[statement.name] = partial(self._memory.make_room, plan, statement.computes)
            else:
                self._go_on(plan, statement)
        keys = natural_keys(self._engine, [schema for schema, _ in found.values()])
        return {name: Delivery(*found[name], keys, begin[name]) for name in self._outputs}

    def _go_on(self, plan: ProgramPlan, statement: Statement) -> None:
        """Run the next statement."""
        total = len(self._runs) + 1 + len(self._waiting)
        self._progress(len(self._runs), total, statement.name)
        start = time.perf_counter()
        self._memory.make_room(plan, statement.computes)
        tuples = self._tuples(plan, statement)
        self._runs.append(StatementRun(statement, tuples, time.perf_counter() - start))
        if statement.stage is not None and statement.materializes is None:
            self._tables[statement.name] = tuples
            self._look()

    def _follow(self, plan: ProgramPlan) -> list[tuple[ProgramPlan, Statement]]:
        """The statements of a plan, whose memory is kept to from here on."""
        statements = plan.statements.for_run if self._replan is None else plan.statements.for_run_with_checkpoints
        self._memory.adopt_plan(plan, statements)
        return [(plan, statement) for statement in statements]

    def _tuples(self, plan: ProgramPlan, statement: Statement) -> int:
        """Run a statement; the tuples that it left or returned."""
        if statement.stage is not None:
            return self._engine.stage(statement)
        schema = delivered_relation(plan.decomposed, statement.name).schema
        target = self._into.get(statement.name)
        if target is not None:
            tuples = deliver(self._engine, statement, plan.statements.with_natural_keys(statement), schema, target)
            self._kept[statement.name] = KeptResult(schema, target, tuples)
            return tuples
        result = result_of(schema, self._engine.arrow(statement.text))
        self._results[statement.name] = result
        return int(result.rows.num_rows)

    def _look(self) -> None:
        """Go on with another plan where the new table is a reason to; what is computed by now is delivered as it is."""
        found = None if self._replan is None else self._replan(self._plan, self._tables, self._engine)
        if found is None:
            return
        self._replannings.append(found.told)
        if found.plan is not None:
            left = [(plan, each) for plan, each in self._waiting if plan is not self._plan or self._is_computed(each)]
            self._plan = found.plan
            self._tables = {}
            self._waiting = [*left, *self._follow(found.plan)]

    def _is_computed(self, statement: Statement) -> bool:
        """Whether a statement of the plan only delivers what is in a table by now, or puts that together to do so."""
        if statement.stage is None:
            return statement.name in self._tables
        delivered = (
            delivered_relation(self._plan.decomposed, name) for name in self._plan.outputs if name in self._tables
        )
        return any(statement.materializes in materialized_relations(relation) for relation in delivered)


def _drop(engine: Engine, table: exp.Table) -> None:
    engine.execute(exp.Drop(tables=[table.copy()], kind="TABLE"))


def run_each(plan: ProgramPlan, engine: Engine) -> dict[str, EinSumRun]:
    """Run every EinSum of a plan on its own, inside the transaction that is open: from tables into a table.

    A result that is expected to take more than a share of the memory gets no table, unless it is computed in passes: it
    is counted, and computed again where it is read, so that its time is part of its readers'.
    """
    limit = engine.memory_limit() * _STAGED_SHARE
    unread = Counter(operand.tensor for step in plan.decomposed.steps for operand in step.einsum.operands)
    tables: dict[str, exp.Table] = {}
    found: dict[str, EinSumRun] = {}
    with memory_guard(engine, ()) as memory:
        memory.adopt_plan(plan, plan.statements.for_run_with_checkpoints)
        for step in plan.decomposed.steps:
            name = step.einsum.output.tensor
            memory.make_room(plan, (name,))
            if step.passes is not None or result_sizes(plan, name).expected_bytes <= limit:
                found[name] = _run_alone(plan.statements.for_result(name, tables), engine)
                tables[name] = plan.stage_of(name)
            else:
                query = plan.statements.query_of(name, tables)
                ((count,),) = engine.rows(exp.select("COUNT(*)").from_(query.subquery("counted")))
                found[name] = EinSumRun(int(str(count)), None)
            unread.subtract(operand.tensor for operand in step.einsum.operands)
            for read in [table for table in tables if unread[table] == 0]:
                _drop(engine, tables.pop(read))
    return found


def _run_alone(statements: Sequence[Statement], engine: Engine) -> EinSumRun:
    """Run statements, of which the last leaves the result of an EinSum in a table, and the others what that reads."""
    start = time.perf_counter()
    tuples = [engine.stage(statement) for statement in statements]
    run = EinSumRun(tuples[-1], time.perf_counter() - start)
    for statement in statements[:-1]:
        if statement.stage is not None:
            _drop(engine, statement.stage)
    return run
