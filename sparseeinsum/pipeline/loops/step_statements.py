"""Loops: the statements of a step, which read the tables of one turn and fill those of the other."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Computed, Relation
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.pipeline.loops.inserted_outputs import InsertedOutput, outputs_by_row, with_whole_rows
from sparseeinsum.pipeline.loops.invariants import invariant_aggregates, invariant_stages, with_invariant_arrays
from sparseeinsum.pipeline.loops.prepared_statements import PreparedStatements
from sparseeinsum.pipeline.loops.refilled_tables import RefilledTable, insert_into
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.plan_statements import PlanStatements
from sparseeinsum.render.dialects import as_written, write_sql
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.results.results import result_of

_MOST_REMOVED = 50_000  # rows of an intermediate; to make its table anew takes a millisecond


class StageTables:
    """The tables of the intermediates of a plan, which stay from step to step, so that statements stay prepared."""

    def __init__(self, engine: Engine, statements: PreparedStatements) -> None:
        self._engine = engine
        self._statements = statements
        self._tables: dict[str, RefilledTable] = {}
        self._created: list[exp.Table] = []  # those of failed steps, too
        self._rows: dict[str, int] = {}
        self._filled: set[str] = set()  # tables of the rows of all steps

    def fill(self, statement: SqlStatement, insert: str, is_invariant: bool) -> None:
        """Put the rows of an intermediate into its table, by `insert`, or by creating the table if need be.

        Args:
            statement: The statement that computes the rows.
            insert: The same as an INSERT.
            is_invariant: Whether the rows are the same in every step, so that the table keeps them.
        """
        stage = statement.stage
        assert stage is not None
        if stage.name in self._filled:
            return
        if is_invariant and self._may_stay(statement):
            self._filled.add(stage.name)
        if stage.name in self._tables:
            self._rows[stage.name] = self._statements.write(insert)
            return
        self._engine.execute(exp.Drop(tables=[stage.copy()], kind="TABLE", exists=True))  # after a failed step
        self._rows[stage.name] = self._engine.stage(statement)
        self._statements.outdate()
        if self._may_stay(statement):
            most_removed = None if self._engine.dialect.forgets_own_rows else _MOST_REMOVED
            self._tables[stage.name] = RefilledTable(self._engine, self._statements, stage, most_removed)
            self._created.append(stage)

    def _may_stay(self, statement: SqlStatement) -> bool:
        """Whether a table can be filled again by one INSERT, and no worker reads it."""
        assert statement.stage is not None
        return not statement.passes and statement.stage.db == self._engine.dialect.temporary_schema

    def empty(self, statement: SqlStatement) -> None:
        """Remove the rows of an intermediate, or its table, unless later steps read these rows."""
        stage = statement.stage
        assert stage is not None
        if stage.name in self._filled:
            return
        if stage.name in self._tables:
            self._tables[stage.name].empty(self._rows[stage.name])
        else:
            self._engine.execute(exp.Drop(tables=[stage.copy()], kind="TABLE"))

    def compute_again(self) -> None:
        """Let the next step compute also what was the same in all steps so far: what it reads may have changed."""
        for name in self._filled:
            self._tables[name].empty(self._rows[name])
        self._filled = set()

    def forget(self) -> None:
        """Create tables again: a step that failed may have undone them."""
        self._statements.outdate()
        self._tables, self._filled = {}, set()

    def drop(self) -> None:
        """Drop the tables that were created for stages."""
        self.forget()
        for table in self._created:
            self._engine.execute(exp.Drop(tables=[table.copy()], kind="TABLE", exists=True))
        self._created = []


def statements_of(
    plan: ProgramPlan,
    kept: Mapping[Relation, int | None],
    changed: Set[str],
    in_rows: Iterable[str],
    optimizes: bool,
) -> PlanStatements:
    """The statements of a step for both turns.

    Args:
        plan: The plan, which reads the tables of one turn.
        kept: Its operands that are in memory, with their handles.
        changed: The inputs that steps change.
        in_rows: The outputs that share a row, which are returned also where they hold the fill alone.
        optimizes: Whether the database optimises the statements.
    """
    dialect = plan.dialect if optimizes else as_written(plan.dialect)
    statements = replace(
        plan.statements,
        definitions=with_invariant_arrays(plan, changed),
        dialect=dialect,
        kept=kept,
        also_staged=invariant_aggregates(plan, changed),
    )
    absent = frozenset(name for name in in_rows if name not in statements.places_in_chains)
    return replace(statements, complete=statements.complete | absent) if absent else statements


class StepStatements:
    """The statements of a plan in one of two turns, which differ in the tables that they read and fill."""

    def __init__(
        self,
        prepared: PreparedStatements,
        both_turns: PlanStatements,
        turn: int,
        swapped: Mapping[str, exp.Table],
        inserted: Mapping[str, InsertedOutput],
        stages: StageTables,
        changed: Set[str],
    ) -> None:
        """Take the statements of a plan.

        Args:
            prepared: The statements of the loop.
            both_turns: The statements of the plan, which read the tables of one turn.
            turn: The tables that are filled.
            swapped: For the names of tables that the plan reads, those to read in place of them.
            inserted: The outputs that go into tables; all others are numbers.
            stages: The tables of intermediates.
            changed: The names of the tables that steps change.
        """
        self._prepared = prepared
        self._both_turns = both_turns
        self._stages = stages
        tables = {name: output.tables[turn] for name, output in inserted.items()}
        direct = _direct_outputs(both_turns, inserted)
        read = {
            stage.name: _renamed(tables[name], inserted[name].keys, both_turns.delivery(name).schema.keys)
            for name, stage in direct.items()
        }
        self._in_row_of = outputs_by_row(inserted)
        statements = [statement for statement in both_turns.for_run if statement.stage or statement.name not in direct]
        statements = with_whole_rows(statements, both_turns, inserted, turn)
        self._statements = [_reading(_reading(_in_place(statement, direct), swapped), read) for statement in statements]
        self._invariant = invariant_stages(self._statements, changed)
        self._staged = [statement for statement in self._statements if statement.stage is not None]
        self._inserts = [self._insert(statement, inserted, tables) for statement in self._statements]

    def _insert(
        self, statement: SqlStatement, inserted: Mapping[str, InsertedOutput], tables: Mapping[str, exp.Table]
    ) -> str:
        """The INSERT of the rows of a statement; empty if it returns a number."""
        query, table = statement.query, statement.stage
        if table is None:
            if statement.name not in inserted or inserted[statement.name].is_number:
                return ""
            output = inserted[statement.name]
            query, table = query if output.column else output.rows_of(query), tables[statement.name]
        return insert_into(table, write_sql(query, self._both_turns.dialect), self._both_turns.dialect)

    def run(self) -> tuple[dict[str, int], dict[str, Number]]:
        """Run all statements; return the numbers of rows in tables, and the numbers, by output."""
        try:
            return self._run()
        except BaseException:
            self._stages.forget()
            raise

    def _run(self) -> tuple[dict[str, int], dict[str, Number]]:
        rows: dict[str, int] = {}
        numbers: dict[str, Number] = {}
        for statement, insert in zip(self._statements, self._inserts, strict=True):
            name = statement.name
            if statement.stage is not None:
                self._stages.fill(statement, insert, statement.stage.name in self._invariant)
            elif insert:
                written = self._prepared.write(insert)
                rows |= dict.fromkeys(self._in_row_of.get(name, (name,)), written)
            else:
                schema = delivered_relation(self._both_turns.decomposed, name).schema
                numbers[name] = result_of(schema, self._prepared.read(statement.text)).to_numpy().item()
        for statement in self._staged:
            self._stages.empty(statement)
        return rows, numbers


def _direct_outputs(statements: PlanStatements, inserted: Mapping[str, InsertedOutput]) -> dict[str, exp.Table]:
    """The outputs that other statements read, too, and that are intermediates as they are computed.

    Returns:
        By name, the tables of these intermediates, in place of which the tables of the outputs take the rows.
    """
    stages = {
        statement.name: statement.stage
        for statement in statements.for_run
        if statement.stage is not None and statement.stored == (statement.name,) and not statement.passes
    }
    return {
        name: stages[name]
        for name, output in inserted.items()
        if name in stages
        and not output.column
        and output.takes_any_row
        and isinstance(statements.delivery(name), Computed)
    }


def _in_place(statement: SqlStatement, direct: Mapping[str, exp.Table]) -> SqlStatement:
    """The statement, without its own table if its rows go into that of an output."""
    return replace(statement, stage=None) if statement.stage == direct.get(statement.name) else statement


def _renamed(table: exp.Table, columns: Sequence[str], keys: Iterable[str]) -> exp.Expr:
    """The rows of a table with its key columns named as those of a result."""
    renamed = [
        exp.alias_(exp.column(column, quoted=True), key, quoted=True) for column, key in zip(columns, keys, strict=True)
    ]
    return exp.select(*renamed, exp.column(VALUE_COLUMN)).from_(table.copy()).subquery()


def _reading(statement: SqlStatement, tables: Mapping[str, exp.Expr]) -> SqlStatement:
    """The statement, with `tables`, or subqueries, in place of the tables of these names."""
    if not tables:
        return statement
    query, *passes = (part.copy() for part in (statement.query, *statement.passes))
    for part in (query, *passes):
        for node in list(part.find_all(exp.Table)):
            if node.name in tables:
                other = tables[node.name].copy()
                other.set("alias", exp.TableAlias(this=exp.to_identifier(node.alias_or_name)))
                node.replace(other)
    return replace(statement, query=query, passes=tuple(passes))
