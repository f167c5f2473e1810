"""Results: runs the statements of a plan, drops its temporary tables, and returns its results."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from sparseeinsum.algebra.operators import Relation
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.algebra.translate import delivered_relation, materialized_relations
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.memory_limit import MemoryGuard, memory_guard
from sparseeinsum.environment.logs import timed
from sparseeinsum.plans.analysis import EinSumRun, Replanning
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.result_sizes import result_sizes, rows_read
from sparseeinsum.plans.units import write_rows, write_seconds
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.results.delivering import deliver, natural_keys
from sparseeinsum.results.kept_operands import kept_operands, operands_of_passes
from sparseeinsum.results.output_targets import OutputTarget, Table
from sparseeinsum.results.results import TensorResult, result_of
from sparseeinsum.results.unread_tables import LargeTables, in_order_of_readers, tables_of_rest

_LOGGER = logging.getLogger(__name__)
_STAGED_SHARE = 0.25  # the largest share of the memory for the table of an EinSum that runs alone


class Progress(Protocol):
    """A function that is told how far a run is."""

    def __call__(self, done: int, total: int, name: str, rows: float = 0) -> None:
        """Called before each statement, and at the end.

        Args:
            done: The number of finished statements.
            total: The number of all statements.
            name: The result that the next one computes; empty at the end.
            rows: About how many rows it reads; 0 if that is not known.
        """


@dataclass(frozen=True, slots=True)
class StatementRun:
    """One statement of a run.

    Attributes:
        statement: The statement.
        tuples: The number of rows that it stored or returned.
        seconds: How long it took.
    """

    statement: SqlStatement
    tuples: int
    seconds: float

    def __str__(self) -> str:
        return f"{write_rows(self.tuples)} in {write_seconds(self.seconds)}"


@dataclass(frozen=True, slots=True)
class WrittenResult:
    """An output in a table or a file.

    Attributes:
        schema: The tensor and its layout.
        target: The table or file.
        tuples: The number of rows that were written.
    """

    schema: Schema
    target: OutputTarget
    tuples: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """An output that has not been returned yet.

    Attributes:
        schema: The tensor and its layout.
        statement: The statement that returns its rows.
        dictionaries: As in `TensorResult`.
        begin: Makes room for the statement in the memory; call it before the statement runs.
    """

    schema: Schema
    statement: SqlStatement
    dictionaries: Mapping[str, pa.Array]
    begin: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Execution:
    """A finished run of a plan.

    Attributes:
        results: The returned outputs, by name.
        written: The outputs that went into tables and files, by name.
        runs: All statements, in order.
        replannings: The checkpoints at which the rest was planned again.
    """

    results: Mapping[str, TensorResult]
    written: Mapping[str, WrittenResult]
    runs: tuple[StatementRun, ...]
    replannings: tuple[Replanning, ...]


@dataclass(frozen=True, slots=True)
class Replanned:
    """The outcome of planning the rest again.

    Attributes:
        replanning: The sizes and costs.
        plan: The new plan for the rest; None if the run goes on as planned.
    """

    replanning: Replanning
    plan: ProgramPlan | None


class Replan(Protocol):
    """A function that plans the rest of a plan again; it returns None if there is no reason to."""

    def __call__(
        self, plan: ProgramPlan, tables: Mapping[str, int], delivered: Container[str], engine: Engine
    ) -> Replanned | None:
        """Called after a result was stored in a table.

        Args:
            plan: The plan that runs.
            tables: The tuples of its results that are in tables; the last result is the latest.
            delivered: Its outputs that were returned or written.
            engine: The database.
        """


def execute(
    plan: ProgramPlan,
    engine: Engine,
    into: Mapping[str, OutputTarget],
    progress: Progress,
    replan: Replan | None = None,
) -> Execution:
    """Run a plan in the open transaction.

    Args:
        plan: The plan.
        engine: The database.
        into: The table or file that takes an output, by the name of the output; other outputs are returned.
        progress: Called before each statement.
        replan: Plans the rest again where sizes differ from the estimates; None keeps to the plan.

    Raises:
        EngineError: The database refused a statement.
        PlanError: The returned results would leave too little of the memory.
    """
    with memory_guard(engine, into) as memory:
        return _Run(plan, engine, into, progress, replan, memory).execution()


@contextmanager
def prepare(
    plan: ProgramPlan, engine: Engine, progress: Progress, replan: Replan | None = None
) -> Iterator[Mapping[str, Delivery]]:
    """Run all statements of a plan except those that return outputs, in the open transaction.

    Run those within the context, where the database keeps to the memory limit of the plan. Roll the transaction back
    afterwards, because its temporary tables still exist.

    Raises:
        EngineError: The database refused a statement.
    """
    with memory_guard(engine, plan.outputs) as memory:
        yield _Run(plan, engine, {}, progress, replan, memory).deliveries()


def with_dictionaries(execution: Execution, engine: Engine) -> Execution:
    """The same with the natural keys of its results; call it in the transaction of the run."""
    dictionaries = natural_keys(engine, [result.schema for result in execution.results.values()])
    if not dictionaries:
        return execution
    results = {name: replace(result, dictionaries=dictionaries) for name, result in execution.results.items()}
    return replace(execution, results=results)


class _Run:
    """The run of a plan, which may switch to another plan for the rest."""

    def __init__(
        self,
        plan: ProgramPlan,
        engine: Engine,
        into: Mapping[str, OutputTarget],
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
        self._filled = frozenset(
            name for name, target in into.items() if isinstance(target, Table) and target.mode == "replace"
        )
        self._kept: Mapping[Relation, int | None] = {}  # operands in memory, of the current plan
        self._waiting = self._follow(plan)
        self._tables: dict[str, int] = {}  # tuples of the results in tables, of the current plan
        self._large = LargeTables(engine)
        self._returning: list[SqlStatement] = []  # statements that run later than all others
        self._runs: list[StatementRun] = []
        self._results: dict[str, TensorResult] = {}
        self._written: dict[str, WrittenResult] = {}
        self._replannings: list[Replanning] = []

    def execution(self) -> Execution:
        """Run all statements; returns the outputs, the tables written, and what was measured."""
        while self._waiting:
            self._run_next(*self._waiting.pop(0))
        self._progress(len(self._runs), len(self._runs), "")
        for run in self._runs:
            if run.statement.stage is not None:
                _drop(self._engine, run.statement.stage)
        results = {name: self._results[name] for name in self._outputs if name in self._results}
        written = {name: self._written[name] for name in self._outputs if name in self._written}
        seconds = sum(run.seconds for run in self._runs)
        _LOGGER.info("ran %s: statements: %d, %s", ", ".join(self._outputs), len(self._runs), write_seconds(seconds))
        return Execution(results, written, tuple(self._runs), tuple(self._replannings))

    def deliveries(self) -> dict[str, Delivery]:
        """Run all statements except those that return outputs."""
        returning: dict[str, tuple[Schema, SqlStatement]] = {}
        begin: dict[str, Callable[[], None]] = {}
        while self._waiting:
            plan, statement = self._waiting.pop(0)
            if statement.stage is None:
                self._returning.append(statement)
                returning[statement.name] = delivered_relation(plan.decomposed, statement.name).schema, statement
                begin[statement.name] = partial(self._memory.make_room, plan, statement.computes)
            else:
                self._run_next(plan, statement)
        keys = natural_keys(self._engine, [schema for schema, _ in returning.values()])
        return {name: Delivery(*returning[name], keys, begin[name]) for name in self._outputs}

    def _run_next(self, plan: ProgramPlan, statement: SqlStatement) -> None:
        """Run a statement, then plan the rest again if its result is a reason to."""
        total = len(self._runs) + 1 + len(self._waiting)
        self._progress(len(self._runs), total, statement.name, rows_read(plan, statement.computes, self._tables))
        start = time.perf_counter()
        self._memory.make_room(plan, statement.computes)
        tuples = self._tuples(plan, statement)
        run = StatementRun(statement, tuples, time.perf_counter() - start)
        self._runs.append(run)
        _LOGGER.debug("statement %d of %d, %s: %s", len(self._runs), total, statement.name, run)
        if statement.stored:
            self._tables |= dict.fromkeys(statement.stored, tuples)
            self._check_size()
        self._large.add(plan, statement, tuples)
        self._large.free_unread(self._read_later)

    def _follow(self, plan: ProgramPlan) -> list[tuple[ProgramPlan, SqlStatement]]:
        """The statements of a plan, with whose memory limit the run goes on."""
        with timed(_LOGGER, "render"):
            self._kept = kept_operands(plan, self._engine)
            statements = self._statements_reading(plan, self._kept)
        self._memory.adopt_plan(plan, statements)
        return [(plan, statement) for statement in in_order_of_readers(plan, statements)]

    def _statements_reading(self, plan: ProgramPlan, kept: Mapping[Relation, int | None]) -> tuple[SqlStatement, ...]:
        """The statements of a plan, which read operands that are in memory already."""
        written = plan.statements.reading(kept).writing(self._filled)
        return written.for_run if self._replan is None else written.for_run_with_checkpoints

    def _tuples(self, plan: ProgramPlan, statement: SqlStatement) -> int:
        """Run a statement; return the number of tuples that it stored or returned."""
        if statement.passes:
            with operands_of_passes(plan, statement.name, self._engine) as operands:
                rendered = self._statements_reading(plan, {**self._kept, **operands})
                return self._run_statement(plan, next(other for other in rendered if _fills_the_same(other, statement)))
        return self._run_statement(plan, statement)

    def _run_statement(self, plan: ProgramPlan, statement: SqlStatement) -> int:
        if statement.stage is not None:
            return self._engine.stage(statement)
        schema = delivered_relation(plan.decomposed, statement.name).schema
        target = self._into.get(statement.name)
        if target is not None:
            tuples = deliver(self._engine, statement, plan.statements.with_natural_keys(statement), schema, target)
            self._written[statement.name] = WrittenResult(schema, target, tuples)
            return tuples
        count = result_sizes(plan, statement.name).tuples
        result = result_of(schema, self._engine.tuples(statement, schema, count))
        self._results[statement.name] = result
        return int(result.rows.num_rows)

    def _check_size(self) -> None:
        """Switch to another plan if the size of the latest result is a reason to; computed results stay as they are."""
        if self._replan is None:
            return
        replanned = self._replan(self._plan, self._tables, self._delivered, self._engine)
        if replanned is None:
            return
        self._replannings.append(replanned.replanning)
        _LOGGER.info("%s", replanned.replanning.summary)
        if replanned.plan is not None:
            unaffected = [
                (plan, statement)
                for plan, statement in self._waiting
                if plan is not self._plan or self._is_computed(statement)
            ]
            self._plan = replanned.plan
            self._tables = {}
            self._waiting = [*unaffected, *self._follow(replanned.plan)]

    def _read_later(self) -> set[str]:
        """The names of the tables that later statements read, or would read if the rest were planned again."""
        later = (*self._returning, *(statement for _, statement in self._waiting))
        names = {name for statement in later for name in statement.tables_read}
        if self._replan is None:
            return names
        return names | tables_of_rest(self._plan, self._tables.keys(), self._delivered)

    @property
    def _delivered(self) -> Set[str]:
        """The outputs that were returned or written."""
        return self._results.keys() | self._written.keys()

    def _is_computed(self, statement: SqlStatement) -> bool:
        """Whether a statement only delivers a result that is in a table, or repartitions it in order to deliver it."""
        if statement.stage is None:
            return statement.name in self._tables
        delivered = (
            delivered_relation(self._plan.decomposed, name) for name in self._plan.outputs if name in self._tables
        )
        return any(statement.materializes in materialized_relations(relation) for relation in delivered)


def _fills_the_same(statement: SqlStatement, other: SqlStatement) -> bool:
    return (statement.name, statement.stage) == (other.name, other.stage)


def _drop(engine: Engine, table: exp.Table) -> None:
    engine.execute(exp.Drop(tables=[table.copy()], kind="TABLE"))


def run_each(plan: ProgramPlan, engine: Engine) -> dict[str, EinSumRun]:
    """Run every step of a plan alone in the open transaction, from tables into a table; return what each took.

    A result that is expected to take more than a share of the memory gets no table, unless it is computed in passes.
    Its tuples are counted, and it is computed again where it is read: its time is part of that of its readers.
    """
    limit = engine.memory_limit() * _STAGED_SHARE
    steps = [step for step in plan.decomposed.steps if not step.computed_in]
    unread = Counter(operand.tensor for step in steps for operand in step.read)
    tables: dict[str, exp.Table] = {}
    runs: dict[str, EinSumRun] = {}
    with memory_guard(engine, ()) as memory:
        memory.adopt_plan(plan, plan.statements.for_run_with_checkpoints)
        for step in steps:
            name = step.einsum.output.tensor
            memory.make_room(plan, (name,))
            if step.passes is not None or result_sizes(plan, name).expected_bytes <= limit:
                runs[name] = _run_alone(plan.statements.for_result(name, tables), engine)
                tables[name] = plan.stage_of(name)
            else:
                query = plan.statements.query_of(name, tables)
                ((count,),) = engine.rows(exp.select("COUNT(*)").from_(query.subquery("counted")))
                runs[name] = EinSumRun(int(str(count)), None)
            unread.subtract(operand.tensor for operand in step.read)
            for unneeded in [table for table in tables if unread[table] == 0]:
                _drop(engine, tables.pop(unneeded))
    return runs


def _run_alone(statements: Sequence[SqlStatement], engine: Engine) -> EinSumRun:
    """Run statements that fill tables; the last one stores the result of an EinSum, the others what it reads."""
    start = time.perf_counter()
    tuples = [engine.stage(statement) for statement in statements]
    run = EinSumRun(tuples[-1], time.perf_counter() - start)
    for statement in statements[:-1]:
        if statement.stage is not None:
            _drop(engine, statement.stage)
    return run
