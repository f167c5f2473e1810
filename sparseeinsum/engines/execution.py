"""Engines: a plan's statements in, results out; temporary tables go, and a failed run leaves nothing behind."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.translate import delivery
from sparseeinsum.engines.catalogue import table_named
from sparseeinsum.engines.duckdb import DuckDB
from sparseeinsum.engines.results import TensorResult
from sparseeinsum.plan import Plan
from sparseeinsum.render.statements import Statement

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
        tuples: Tuples of the results that were counted, by name.
    """

    results: Mapping[str, TensorResult]
    runs: tuple[StatementRun, ...]
    tuples: Mapping[str, int]


def execute(plan: Plan, engine: DuckDB, into: Mapping[str, str], progress: Progress, count: bool) -> Execution:
    """Run a plan inside the transaction that is open.

    Args:
        plan: What to run.
        engine: Where.
        into: For some outputs, the permanent table that takes the result; it is replaced whole.
        progress: Told before each statement.
        count: Whether to count also the tuples of results that are inlined into others.

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
            tuples = _create(engine, statement.text)
        elif statement.name in into:
            tuples = _create(engine, _replacement(table_named(into[statement.name], engine.dialect), statement.query))
        else:
            rows = engine.arrow(statement.text)
            results[statement.name] = TensorResult(delivery(plan.decomposed, statement.name).schema, rows)
            tuples = rows.num_rows
        runs.append(StatementRun(statement, tuples, time.perf_counter() - start))
    progress(len(statements), len(statements), "")
    counted = _count_inlined(plan, engine, runs) if count else {}
    for statement in statements:
        if statement.stage is not None:
            engine.execute(exp.Drop(tables=[statement.stage.copy()], kind="TABLE"))
    return Execution(results, tuple(runs), counted)


def _create(engine: DuckDB, command: exp.Expr | str) -> int:
    ((tuples,),) = engine.rows(command)
    return int(str(tuples))


def _replacement(table: exp.Table, query: exp.Select) -> exp.Create:
    return exp.Create(this=table, kind="TABLE", replace=True, expression=query)


def _count_inlined(plan: Plan, engine: DuckDB, runs: list[StatementRun]) -> dict[str, int]:
    """Tuples of every EinSum's result: of staged ones as they were run, of the others by a query of their own."""
    counted = {run.statement.name: run.tuples for run in runs if run.statement.stage is not None}
    tables = {run.statement.name: run.statement.stage for run in runs if run.statement.stage is not None}
    for definition in plan.definitions:
        if definition.name not in counted:
            query = plan.query_of(definition.name, tables)
            ((tuples,),) = engine.rows(exp.select("COUNT(*)").from_(query.subquery("counted")))
            counted[definition.name] = int(str(tuples))
    return counted
