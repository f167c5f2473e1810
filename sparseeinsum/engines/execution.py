"""Engines: a plan's statements in, results out; temporary tables go, and a failed run leaves nothing behind."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.translate import delivery
from sparseeinsum.engines.catalogue import table_named
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.results import TensorResult
from sparseeinsum.explain import EinSumRun
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.plan import Plan
from sparseeinsum.render.statements import Statement

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
class Execution:
    """What a run of a plan did.

    Attributes:
        results: Outputs by name, but those that went into tables.
        runs: Every statement, in order.
    """

    results: Mapping[str, TensorResult]
    runs: tuple[StatementRun, ...]


def execute(plan: Plan, engine: Engine, into: Mapping[str, str], progress: Progress) -> Execution:
    """Run a plan inside the transaction that is open.

    Args:
        plan: What to run.
        engine: Where.
        into: For some outputs, the permanent table that takes the result; it is replaced whole.
        progress: Told before each statement.

    Raises:
        EngineError: The database refused a statement.
    """
    statements = plan.staged_statements
    runs: list[StatementRun] = []
    results: dict[str, TensorResult] = {}
    for done, statement in enumerate(statements):
        progress(done, len(statements), statement.name)
        start = time.perf_counter()
        if statement.stage is not None:
            tuples = engine.stage(statement)
        elif statement.name in into:
            tuples = engine.replace_table(table_named(into[statement.name], engine.dialect), statement.query)
        else:
            schema = delivery(plan.decomposed, statement.name).schema
            rows = engine.arrow(statement.text).rename_columns([*schema.keys, VALUE_COLUMN])  # some engines cut names
            results[statement.name] = TensorResult(schema, rows)
            tuples = rows.num_rows
        runs.append(StatementRun(statement, tuples, time.perf_counter() - start))
    progress(len(statements), len(statements), "")
    for statement in statements:
        if statement.stage is not None:
            _drop(engine, statement.stage)
    return Execution(results, tuple(runs))


def _drop(engine: Engine, table: exp.Table) -> None:
    engine.execute(exp.Drop(tables=[table.copy()], kind="TABLE"))


def run_each(plan: Plan, engine: Engine) -> dict[str, EinSumRun]:
    """Run every EinSum of a plan on its own, inside the transaction that is open: from tables into a table.

    A result that is expected to take more than a share of the memory gets no table: it is counted, and computed again
    where it is read, so that its time is part of its readers'.
    """
    limit = engine.memory_limit() * _STAGED_SHARE
    unread = Counter(operand.tensor for step in plan.decomposed.steps for operand in step.einsum.operands)
    tables: dict[str, exp.Table] = {}
    found: dict[str, EinSumRun] = {}
    for step in plan.decomposed.steps:
        name = step.einsum.output.tensor
        query = plan.query_of(name, tables)
        if plan.expected_bytes(name) <= limit:
            start = time.perf_counter()
            tables[name] = plan.stage_of(name)
            tuples = engine.create(tables[name], query, is_temporary=True)
            found[name] = EinSumRun(tuples, time.perf_counter() - start)
        else:
            ((count,),) = engine.rows(exp.select("COUNT(*)").from_(query.subquery("counted")))
            found[name] = EinSumRun(int(str(count)), None)
        unread.subtract(operand.tensor for operand in step.einsum.operands)
        for read in [table for table in tables if unread[table] == 0]:
            _drop(engine, tables.pop(read))
    return found
